! SPDX-License-Identifier: Apache-2.0
! Proves: allocatable arrays, module variables, derived types and array sections are shared.
module state
  implicit none
  type :: particle
    double precision :: place(3)
    integer :: id
    character(len=8) :: name
  end type
  type(particle), allocatable :: particles(:)
  double precision :: grid(64, 64) = 0
  integer, save :: steps = 0
end module

program arrays_and_modules
  use state
  implicit none
  integer :: i, j, n
  double precision, allocatable :: work(:, :)
  double precision :: total
  n = 400
  allocate (particles(n), work(64, 64))
  !$omp parallel num_threads(4)
  !$omp do
  do i = 1, n
    particles(i)%place = [1d0 * i, 2d0 * i, 3d0 * i]
    particles(i)%id = i
    write (particles(i)%name, '(a,i4.4)') 'p', i
  end do
  !$omp end do
  !$omp do private(i)
  do j = 1, 64
    do i = 1, 64
      grid(i, j) = i + 100 * j
    end do
    work(:, j) = grid(:, j) * 2
  end do
  !$omp end do
  !$omp single
  steps = steps + 1
  !$omp end single
  !$omp end parallel
  total = 0
  !$omp parallel do num_threads(4) reduction(+:total)
  do i = 1, n
    total = total + sum(particles(i)%place) + particles(i)%id
  end do
  print '(f0.1,1x,f0.1,1x,a,1x,i0)', total, sum(work), particles(n)%name, steps
  if (total /= 7d0 * n * (n + 1) / 2 .or. sum(work) /= 2 * sum(grid)) stop 1
  deallocate (particles, work)
end program
