! SPDX-License-Identifier: Apache-2.0
! Proves: every thread of a region has its own number, and all see the same team size.
program region_numbers
  use omp_lib
  implicit none
  integer :: seen(0:3), sizes(0:3), me, i
  seen = 0
  sizes = 0
  !$omp parallel num_threads(4) private(me)
  me = omp_get_thread_num()
  seen(me) = seen(me) + 1
  sizes(me) = omp_get_num_threads()
  !$omp end parallel
  do i = 0, 3
    print '(a,i0,a,i0,a,i0)', 'thread ', i, ' seen ', seen(i), ' team ', sizes(i)
  end do
  if (any(seen /= 1) .or. any(sizes /= 4)) stop 1
end program
