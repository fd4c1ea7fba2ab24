! SPDX-License-Identifier: Apache-2.0
! Proves: copyprivate of threadprivate arrays, derived types and allocatable arrays, and of a
! common block.
module state
  implicit none
  type record
    integer :: values(700)
    character(len=12) :: name
  end type
  integer :: table(40)
  type(record) :: own
  real(8), allocatable :: grown(:)
  !$omp threadprivate(table, own, grown)
end module

program threadprivate_copyprivate
  use state
  implicit none
  integer :: wrong, round, i, block_values(25)
  common /block/ block_values
  !$omp threadprivate(/block/)
  wrong = 0
  !$omp parallel num_threads(4) private(round, i) reduction(+:wrong)
  allocate(grown(60))
  do round = 1, 8
    !$omp single
    table = [(round + i, i = 1, 40)]
    own%values = [(round * i, i = 1, 700)]
    write (own%name, '(a,i0)') 'round ', round
    grown = [(dble(round) / i, i = 1, 60)]
    block_values = [(i - round, i = 1, 25)]
    !$omp end single copyprivate(table, own, grown, /block/)
    if (any(table /= [(round + i, i = 1, 40)])) wrong = wrong + 1
    if (any(own%values /= [(round * i, i = 1, 700)])) wrong = wrong + 1
    if (own%name(7:7) /= achar(48 + round)) wrong = wrong + 1
    if (any(grown /= [(dble(round) / i, i = 1, 60)])) wrong = wrong + 1
    if (any(block_values /= [(i - round, i = 1, 25)])) wrong = wrong + 1
    ! Copies: what a thread changes now is its own.
    grown(1) = -1
    table(1) = -1
    !$omp barrier
  end do
  deallocate(grown)
  !$omp end parallel
  print '(i0)', wrong
  if (wrong /= 0) stop 1
end program
