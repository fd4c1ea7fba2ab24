! SPDX-License-Identifier: Apache-2.0
! Proves: tasks with firstprivate values, dependences and taskwait, and recursion by tasks.
module recursion
  implicit none
contains
  recursive function fibonacci(n) result(value)
    integer, intent(in) :: n
    integer :: value, a, b
    if (n < 2) then
      value = n
    else
      !$omp task shared(a) if(n > 5)
      a = fibonacci(n - 1)
      !$omp end task
      !$omp task shared(b) if(n > 5)
      b = fibonacci(n - 2)
      !$omp end task
      !$omp taskwait
      value = a + b
    end if
  end function
end module

program tasks
  use recursion
  implicit none
  integer :: i, results(50), number, first, second
  number = 0
  first = 0
  second = 0
  results = 0
  !$omp parallel num_threads(4)
  !$omp single
  do i = 1, 50
    !$omp task firstprivate(i)
    results(i) = i * i
    !$omp end task
  end do
  !$omp task depend(out: first)
  first = 6
  !$omp end task
  !$omp task depend(in: first) depend(out: second)
  second = first * 7
  !$omp end task
  !$omp taskwait
  number = fibonacci(12)
  !$omp end single
  !$omp end parallel
  print '(i0,1x,i0,1x,i0)', sum(results), second, number
  if (sum(results) /= 42925 .or. second /= 42 .or. number /= 144) stop 1
end program
