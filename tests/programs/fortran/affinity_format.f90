! SPDX-License-Identifier: Apache-2.0
! The affinity format reaches every thread of the team, and numbers threads by the whole of it.
program affinity_format
  use omp_lib
  implicit none
  integer, parameter :: most = 8
  character(len=60) :: lines(0:most - 1), set
  character(len=5) :: short
  integer :: needed(0:most - 1), length, thread

  call omp_set_affinity_format('thread %0.3n of %{num_threads}, level %L')
  length = int(omp_get_affinity_format(set))
  print '(3a,i0,a)', '[', trim(set), '] (', length, ')'

  call capture('')
  call capture('[%.4{thread_num}|%4n|%N] 100%%   ')
  call omp_set_affinity_format('now %n')
  call capture('')

  ! What does not fit is cut, and the length that all would have is told.
  length = int(omp_capture_affinity(short, 'abcdefgh'))
  print '(3a,i0,a)', '[', short, '] (', length, ')'

contains
  subroutine capture(how)
    character(len=*), intent(in) :: how
    integer :: me
    lines = ''
    !$omp parallel num_threads(most) private(me)
    me = omp_get_thread_num()
    needed(me) = int(omp_capture_affinity(lines(me), how))
    !$omp end parallel
    do thread = 0, most - 1
      print '(i0,3a,i0,a)', thread, ': [', trim(lines(thread)), '] (', needed(thread), ')'
    end do
  end subroutine
end program
