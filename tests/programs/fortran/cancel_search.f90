! SPDX-License-Identifier: Apache-2.0
! Proves: cancel do, sections and parallel from Fortran; threads that wait to hear of it do.
program cancel_search
  use omp_lib
  implicit none
  integer :: round, found, after, there, late, i, all
  logical :: good
  good = .true.
  do round = 1, 20
    found = 0
    after = 0
    late = 0
    !$omp parallel num_threads(4) private(i)
    !$omp do schedule(dynamic)
    do i = 1, 1000
      !$omp cancellation point do
      if (i == 10 * round) then
        !$omp atomic write
        found = i
        !$omp cancel do
        !$omp atomic
        late = late + 1
      end if
    end do
    !$omp end do
    !$omp do
    do i = 1, 100
      !$omp atomic
      after = after + 1
    end do
    !$omp end do
    !$omp sections
    !$omp section
    !$omp cancel sections
    !$omp atomic
    late = late + 1
    !$omp section
    do
      !$omp cancellation point sections
    end do
    !$omp end sections
    !$omp end parallel
    good = good .and. found == 10 * round .and. after == 100 .and. late == 0
    there = 0
    !$omp parallel num_threads(4) private(all)
    !$omp atomic
    there = there + 1
    do
      !$omp atomic read
      all = there
      if (all == 4 .and. omp_get_thread_num() == mod(round, 4)) then
        !$omp cancel parallel
      end if
      !$omp cancellation point parallel
    end do
    !$omp end parallel
    good = good .and. there == 4
  end do
  print '(a, l2, l2)', 'cancellation', omp_get_cancellation(), good
  if (.not. good) stop 1
end program
