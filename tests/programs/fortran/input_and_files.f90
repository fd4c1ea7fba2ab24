! SPDX-License-Identifier: Apache-2.0
! Proves: standard input and files are read and written in serial parts, data used in regions.
program input_and_files
  implicit none
  integer :: n, i
  double precision :: values(100), back(100), total
  read (*, *) n
  read (*, *) (values(i), i = 1, n)
  !$omp parallel do num_threads(4)
  do i = 1, n
    values(i) = values(i) * 2
  end do
  open (unit=10, file='values.txt', status='replace', action='readwrite')
  write (10, '(f12.4)') values(1:n)
  rewind (10)
  read (10, *) back(1:n)
  close (10, status='delete')
  total = 0
  !$omp parallel do num_threads(4) reduction(+:total)
  do i = 1, n
    total = total + back(i)
  end do
  print '(i0,1x,f0.2)', n, total
end program
