! SPDX-License-Identifier: Apache-2.0
! Proves: critical, atomic, locks, single, master and barrier.
program exclusion
  use omp_lib
  implicit none
  integer :: named, loose, counted, locked, singles, masters, got, ticket, sum_of_tickets, i
  double precision :: added
  integer(omp_lock_kind) :: lock
  named = 0
  loose = 0
  counted = 0
  locked = 0
  singles = 0
  masters = 0
  ticket = 0
  sum_of_tickets = 0
  added = 0
  call omp_init_lock(lock)
  !$omp parallel num_threads(4) private(i, got) reduction(+:sum_of_tickets)
  do i = 1, 15
    !$omp critical (one)
    named = named + 1
    !$omp end critical (one)
    !$omp critical
    loose = loose + 1
    !$omp end critical
    !$omp atomic
    counted = counted + 1
    !$omp atomic update
    added = added + 0.25d0
    !$omp atomic capture
    got = ticket
    ticket = ticket + 1
    !$omp end atomic
    sum_of_tickets = sum_of_tickets + got
    call omp_set_lock(lock)
    locked = locked + 1
    call omp_unset_lock(lock)
    !$omp single
    singles = singles + 1
    !$omp end single
    !$omp master
    masters = masters + 1
    !$omp end master
    !$omp barrier
  end do
  !$omp end parallel
  call omp_destroy_lock(lock)
  print '(7(i0,1x),f0.2)', named, loose, counted, locked, singles, masters, sum_of_tickets, added
  if (named /= 60 .or. loose /= 60 .or. counted /= 60 .or. locked /= 60) stop 1
  if (singles /= 15 .or. masters /= 15 .or. sum_of_tickets /= 1770 .or. added /= 15d0) stop 2
end program
