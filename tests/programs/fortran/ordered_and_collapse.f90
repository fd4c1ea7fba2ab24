! SPDX-License-Identifier: Apache-2.0
! Proves: ordered loops print in order, collapsed loops cover their space.
program ordered_and_collapse
  implicit none
  integer :: i, j, k, cube(6, 7, 8), order(40), length
  length = 0
  cube = 0
  !$omp parallel do num_threads(4) ordered schedule(dynamic, 2)
  do i = 1, 40
    !$omp ordered
    length = length + 1
    order(length) = i
    !$omp end ordered
  end do
  !$omp parallel do num_threads(4) collapse(3)
  do k = 1, 8
    do j = 7, 1, -1
      do i = 1, 6
        cube(i, j, k) = cube(i, j, k) + i * j * k
      end do
    end do
  end do
  print '(i0,1x,l1,1x,i0)', length, all(order == [(i, i = 1, 40)]), sum(cube)
  if (length /= 40 .or. sum(cube) /= 21 * 28 * 36) stop 1
end program
