! SPDX-License-Identifier: Apache-2.0
! Proves: stop with a code after regions is the exit code of the program.
program stop_code
  implicit none
  integer :: i, total
  total = 0
  !$omp parallel do num_threads(4) reduction(+:total)
  do i = 1, 10
    total = total + i
  end do
  print '(i0)', total
  stop 21
end program
