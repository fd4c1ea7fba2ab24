! SPDX-License-Identifier: Apache-2.0
! Proves: reductions of scalars of every type and operator, and of whole arrays.
program reductions
  implicit none
  integer :: i, added, least, most, bits, histogram(8)
  real :: product
  double precision :: total, rows(3, 4)
  complex :: turned
  logical :: all_small, any_big
  added = 1
  least = huge(least)
  most = -huge(most)
  bits = 0
  product = 1.0
  total = 0
  rows = 0
  turned = (0.0, 0.0)
  all_small = .true.
  any_big = .false.
  histogram = 0
  !$omp parallel do num_threads(4) reduction(+:added, total, turned) reduction(*:product) &
  !$omp& reduction(min:least) reduction(max:most) reduction(ior:bits) reduction(.and.:all_small) &
  !$omp& reduction(.or.:any_big)
  do i = 1, 200
    added = added + i
    total = total + 0.5d0 * i
    turned = turned + cmplx(1.0, 2.0)
    product = product * merge(2.0, 0.5, mod(i, 2) == 0)
    least = min(least, mod(i * 37, 211))
    most = max(most, mod(i * 37, 211))
    bits = ior(bits, ishft(1, mod(i, 9)))
    all_small = all_small .and. i < 200
    any_big = any_big .or. i == 150
  end do
  !$omp parallel do num_threads(4) reduction(+:histogram, rows) schedule(dynamic, 9)
  do i = 1, 800
    histogram(mod(i, 8) + 1) = histogram(mod(i, 8) + 1) + 1
    rows(mod(i, 3) + 1, mod(i, 4) + 1) = rows(mod(i, 3) + 1, mod(i, 4) + 1) + i
  end do
  print '(4(i0,1x))', added, least, most, bits
  print '(4(f0.2,1x),2l2)', total, product, real(turned), aimag(turned), all_small, any_big
  print '(8(i0,1x),f0.1)', histogram, sum(rows)
  if (added /= 20101 .or. least /= 1 .or. most /= 210 .or. bits /= 511) stop 1
  if (total /= 10050d0 .or. product /= 1.0 .or. any(histogram /= 100)) stop 2
  if (all_small .or. .not. any_big .or. sum(rows) /= 320400d0) stop 3
end program
