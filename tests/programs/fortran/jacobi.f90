! SPDX-License-Identifier: Apache-2.0
! Proves: a relaxation with allocatable grids gives bit for bit what one thread gives.
program jacobi
  implicit none
  double precision :: many, one
  many = relax(4)
  one = relax(1)
  print '(es23.15)', many
  if (many /= one) stop 1
contains
  function relax(threads) result(total)
    integer, intent(in) :: threads
    double precision :: total
    double precision, allocatable :: grid(:, :), next(:, :)
    integer :: i, j, sweep
    allocate (grid(0:121, 0:121), next(0:121, 0:121))
    grid = 0
    grid(0, :) = 3
    next = grid
    !$omp parallel num_threads(threads) private(sweep, i, j)
    do sweep = 1, 15
      !$omp do
      do j = 1, 120
        do i = 1, 120
          next(i, j) = 0.25d0 * (grid(i - 1, j) + grid(i + 1, j) + grid(i, j - 1) + grid(i, j + 1))
        end do
      end do
      !$omp end do
      !$omp do
      do j = 1, 120
        grid(1:120, j) = next(1:120, j)
      end do
      !$omp end do
    end do
    !$omp end parallel
    total = sum(grid)
    deallocate (grid, next)
  end function
end program
