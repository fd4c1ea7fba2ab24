! SPDX-License-Identifier: Apache-2.0
! Proves: workshare divides array assignments, where blocks and reductions of arrays.
program workshare
  implicit none
  integer, parameter :: n = 500
  double precision :: a(n), b(n), c(n), total
  integer :: i
  do i = 1, n
    a(i) = i
  end do
  !$omp parallel num_threads(4) shared(a, b, c, total)
  !$omp workshare
  b = a * 2
  where (b > 500)
    c = b - 500
  elsewhere
    c = 0
  end where
  total = sum(c)
  !$omp end workshare
  !$omp end parallel
  print '(f0.1,1x,f0.1)', total, c(n)
  if (total /= 62750d0 .or. c(n) /= 500d0) stop 1
end program
