! SPDX-License-Identifier: Apache-2.0
! Proves: lines written by all threads inside a critical section all arrive.
program output_all_threads
  use omp_lib
  implicit none
  integer :: i
  print '(a)', 'before'
  !$omp parallel num_threads(4) private(i)
  do i = 1, 8
    !$omp critical
    write (*, '(a,i0,a,i0)') 'thread ', omp_get_thread_num(), ' line ', i
    flush (6)
    !$omp end critical
  end do
  !$omp end parallel
  print '(a)', 'after'
end program
