! SPDX-License-Identifier: Apache-2.0
! Proves: threadprivate common blocks and saved variables, with copyin, last from region to region.
program threadprivate_common
  use omp_lib
  implicit none
  integer :: counter, rows(5)
  common /own/ counter, rows
  integer, save :: saved = 3
  !$omp threadprivate(/own/, saved)
  integer :: counters(0:3), seen(0:3), round, me
  counter = 10
  rows = 7
  !$omp parallel num_threads(4) copyin(/own/) private(me)
  me = omp_get_thread_num()
  counter = counter + me
  rows(3) = rows(3) + me
  saved = saved + me
  !$omp end parallel
  do round = 1, 3
    !$omp parallel num_threads(4) private(me)
    me = omp_get_thread_num()
    counter = counter + 100
    saved = saved + 1
    counters(me) = counter + rows(3)
    seen(me) = saved
    !$omp end parallel
  end do
  print '(4(i0,1x))', counters, seen
  do me = 0, 3
    if (counters(me) /= 317 + 2 * me .or. seen(me) /= 6 + me) stop 1
  end do
end program
