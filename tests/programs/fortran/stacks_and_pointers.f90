! SPDX-License-Identifier: Apache-2.0
! Proves: automatic arrays, pointers, optional arguments and recursion inside regions.
module work
  implicit none
contains
  function weigh(n, extra) result(total)
    integer, intent(in) :: n
    integer, intent(in), optional :: extra
    double precision :: total, row(n)
    integer :: i
    do i = 1, n
      row(i) = i
    end do
    total = sum(row)
    if (present(extra)) total = total + extra
  end function

  recursive integer function depth(n) result(value)
    integer, intent(in) :: n
    integer :: pad(50)
    pad = n
    if (n == 0) then
      value = 0
    else
      value = depth(n - 1) + pad(50) / n
    end if
  end function
end module

program stacks_and_pointers
  use omp_lib
  use work
  implicit none
  double precision, target :: rows(100, 4)
  double precision, pointer :: column(:)
  double precision :: weights(0:3)
  integer :: depths(0:3), me
  rows = 1
  !$omp parallel num_threads(4) private(me, column)
  me = omp_get_thread_num()
  column => rows(:, me + 1)
  column = column * (me + 1)
  !$omp barrier
  column => rows(:, mod(me + 1, 4) + 1)
  weights(me) = sum(column) + weigh(100 + me) + weigh(10, me)
  depths(me) = depth(200 + me)
  !$omp end parallel
  print '(4(f0.1,1x),4(i0,1x))', weights, depths
  do me = 0, 3
    if (depths(me) /= 200 + me) stop 1
  end do
end program
