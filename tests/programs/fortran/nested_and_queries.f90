! SPDX-License-Identifier: Apache-2.0
! Proves: nested regions and the query functions of omp_lib.
program nested_and_queries
  use omp_lib
  implicit none
  integer :: me, inner, sums(0:1), levels(0:1)
  call omp_set_max_active_levels(2)
  call omp_set_dynamic(.false.)
  call omp_set_num_threads(3)
  print '(i0,1x,l1,1x,l1)', omp_get_max_threads(), omp_get_dynamic(), omp_in_parallel()
  !$omp parallel num_threads(2) private(me, inner)
  me = omp_get_thread_num()
  inner = 0
  !$omp parallel num_threads(2) reduction(+:inner)
  inner = inner + 10 * omp_get_ancestor_thread_num(1) + omp_get_thread_num()
  !$omp master
  levels(me) = omp_get_level()
  !$omp end master
  !$omp end parallel
  sums(me) = inner
  !$omp end parallel
  print '(4(i0,1x))', sums, levels
  if (any(sums /= [1, 21]) .or. any(levels /= 2)) stop 1
end program
