! SPDX-License-Identifier: Apache-2.0
! Proves: copyprivate of scalars and arrays, sections and lastprivate.
program copyprivate_and_sections
  implicit none
  integer :: number, rows(10), wrong, hits(5), last, i, base
  number = 0
  rows = 0
  wrong = 0
  hits = 0
  !$omp parallel num_threads(4) private(number, rows) reduction(+:wrong)
  !$omp single
  number = 77
  rows = [(i, i = 1, 10)]
  !$omp end single copyprivate(number, rows)
  if (number /= 77 .or. sum(rows) /= 55) wrong = wrong + 1
  !$omp end parallel
  !$omp parallel sections num_threads(4)
  !$omp section
  hits(1) = hits(1) + 1
  !$omp section
  hits(2) = hits(2) + 1
  !$omp section
  hits(3) = hits(3) + 1
  !$omp section
  hits(4) = hits(4) + 1
  !$omp section
  hits(5) = hits(5) + 1
  !$omp end parallel sections
  base = 1000
  !$omp parallel do num_threads(4) firstprivate(base) lastprivate(last)
  do i = 1, 90
    last = base + i
  end do
  !$omp end parallel do
  print '(i0,1x,5(i0,1x),i0)', wrong, hits, last
  if (wrong /= 0 .or. any(hits /= 1) .or. last /= 1090) stop 1
end program
