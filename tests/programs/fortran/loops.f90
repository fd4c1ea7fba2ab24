! SPDX-License-Identifier: Apache-2.0
! Proves: loops of every schedule, up and down, with strides and 64-bit counters.
program loops
  implicit none
  integer, parameter :: wide = selected_int_kind(18)
  integer :: i, visits(600)
  integer(wide) :: k, total, expected
  visits = 0
  !$omp parallel do num_threads(4) schedule(static)
  do i = 1, 600
    visits(i) = visits(i) + 1
  end do
  !$omp parallel do num_threads(4) schedule(static, 7)
  do i = 600, 1, -1
    visits(i) = visits(i) + 1
  end do
  !$omp parallel do num_threads(4) schedule(dynamic, 5)
  do i = 1, 600
    visits(i) = visits(i) + 1
  end do
  !$omp parallel do num_threads(4) schedule(guided)
  do i = 600, 1, -3
    visits(i) = visits(i) + 1
  end do
  !$omp parallel do num_threads(4) schedule(runtime)
  do i = 1, 599
    visits(i) = visits(i) + 1
  end do
  total = 0
  !$omp parallel do num_threads(4) reduction(+:total) schedule(dynamic, 11)
  do k = 5000000000_wide, 5000001000_wide, 3_wide
    total = total + k
  end do
  expected = 0
  do k = 5000000000_wide, 5000001000_wide, 3_wide
    expected = expected + k
  end do
  print '(i0,1x,i0,1x,i0)', sum(visits), visits(300), total
  if (sum(visits) /= 1800 + 200 + 599 .or. total /= expected) stop 1
end program
