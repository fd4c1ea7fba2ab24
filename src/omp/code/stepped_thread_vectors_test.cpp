// SPDX-License-Identifier: Apache-2.0
#include "omp/code/stepped_thread_fixture.hpp"

namespace amasia::omp {
namespace {

asm(STEPPED_SEQUENCES_BEGIN R"(
  # Moves of vectors
  .macro moves prefix
  \prefix\()movaps %xmm1, %xmm0
  \prefix\()movups (%r15), %xmm1
  \prefix\()movupd %xmm2, (%r14)
  \prefix\()movdqu %xmm3, 16(%r14)
  \prefix\()movdqa %xmm3, %xmm2
  \prefix\()movss (%r15), %xmm3
  \prefix\()movss %xmm5, 32(%r14)
  \prefix\()movsd 8(%r15), %xmm4
  \prefix\()movsd %xmm4, 36(%r14)
  \prefix\()movd %eax, %xmm5
  \prefix\()movd %xmm4, %ecx
  \prefix\()movq %rbx, %xmm6
  \prefix\()movq %xmm7, %rdx
  \prefix\()movq %xmm7, 48(%r14)
  \prefix\()movd 4(%r15), %xmm7
  .endm
  .macro halves prefix, first, second, third
  \prefix\()movhlps %xmm1, \first %xmm0
  \prefix\()movlhps %xmm3, \second %xmm2
  \prefix\()movhps (%r15), \third %xmm4
  \prefix\()movhpd %xmm4, (%r14)
  \prefix\()movlpd (%r15), \third %xmm5
  \prefix\()movlps %xmm6, 8(%r14)
  \prefix\()movss %xmm4, \third %xmm6
  \prefix\()movsd %xmm4, \third %xmm7
  .endm
  begin
  moves
  movq %xmm7, %xmm7
  movntps %xmm6, (%r14)
  end
  begin
  halves ""
  end
  begin avx
  moves v
  end
  begin avx
  halves v, "%xmm5,", "%xmm6,", "%xmm7,"
  end
  begin avx
  vmovaps %ymm1, %ymm0
  vmovdqu %ymm2, (%r14)
  vmovupd (%r15), %ymm3
  vmovdqa %xmm4, %xmm4
  vextractf128 $1, %ymm5, %xmm6
  vextracti128 $0, %ymm5, 32(%r14)
  vinsertf128 $1, %xmm0, %ymm1, %ymm2
  vinserti128 $0, (%r15), %ymm1, %ymm7
  vbroadcastss (%r15), %ymm1
  vpbroadcastq %xmm0, %xmm0
  vmovd %eax, %xmm5
  end
  begin avx
  vzeroupper
  end
  .macro parts prefix, first, second
  \prefix\()pinsrd $2, %eax, \first %xmm0
  \prefix\()pinsrq $1, (%r15), \second %xmm1
  \prefix\()pinsrw $5, %ecx, \first %xmm2
  \prefix\()pextrd $3, %xmm3, %edx
  \prefix\()pextrq $1, %xmm4, 8(%r14)
  \prefix\()pextrw $7, %xmm5, %ebx
  \prefix\()pmovmskb %xmm6, %esi
  \prefix\()movmskpd %xmm6, %edi
  \prefix\()movmskps %xmm7, %r8d
  .endm
  begin avx
  parts ""
  end
  begin avx
  parts v, "%xmm5,", "%xmm6,"
  end

  # Two vectors
  .macro both flags, name, between:vararg
  begin \flags
  \name \between %xmm1, %xmm0
  \name \between %xmm2, %xmm3
  \name \between %xmm4, %xmm4
  end
  begin avx
  v\name \between %xmm1, %xmm2, %xmm0
  v\name \between %xmm5, %xmm6, %xmm3
  v\name \between %xmm4, %xmm4, %xmm4
  end
  .endm
  .macro wide name, between:vararg
  begin avx
  v\name \between %ymm1, %ymm2, %ymm0
  v\name \between %ymm5, %ymm6, %ymm3
  v\name \between %ymm4, %ymm4, %ymm4
  end
  .endm
  .irp name, pxor, xorps, xorpd, andps, andpd, orps, orpd, andnps, andnpd, pand, por, pandn
  both 0, \name
  wide \name
  .endr
  .irp name, unpcklps, unpcklpd, unpckhps, unpckhpd, punpcklqdq, punpckldq, punpckhqdq
  both 0, \name
  wide \name
  .endr
  .irp name, punpcklbw, punpcklwd, punpckhbw, punpckhwd, punpckhdq
  both 0, \name
  wide \name
  .endr
  .irp name, paddb, paddw, paddd, paddq, psubb, psubw, psubd, psubq, pmullw, pmuludq
  both 0, \name
  wide \name
  .endr
  .irp name, pcmpeqb, pcmpeqw, pcmpeqd, pcmpgtb, pcmpgtw, pcmpgtd, pminub, pmaxub
  both 0, \name
  wide \name
  .endr
  .irp name, pminsw, pmaxsw
  both 0, \name
  wide \name
  .endr
  .irp name, pcmpeqq, pcmpgtq, pmulld, pminsd, pmaxsd, pminud, pmaxud
  both avx, \name
  wide \name
  .endr
  .irp name, pminsb, pmaxsb, pminuw, pmaxuw
  both avx, \name
  wide \name
  .endr
  .irp name, addss, subss, mulss, divss, minss, maxss, sqrtss, addsd, subsd, mulsd, divsd
  both 0, \name
  .endr
  .irp name, minsd, maxsd, sqrtsd, cvtss2sd, cvtsd2ss
  both 0, \name
  .endr
  .irp name, addps, subps, mulps, divps, minps, maxps, addpd, subpd, mulpd, divpd, minpd, maxpd
  both 0, \name
  wide \name
  .endr
  both 0, shufps, $0x1b,
  both 0, shufpd, $0x1,
  wide shufps, $0xe4,
  wide shufpd, $0x6,
  .irp comparison, 0, 1, 2, 3, 4, 5, 6, 7
  both 0, cmpss, $\comparison,
  both 0, cmpsd, $\comparison,
  both 0, cmpps, $\comparison,
  wide cmppd, $\comparison,
  .endr

  # Others
  begin
  pshufd $0x4e, %xmm0, %xmm1
  pshufd $0x93, (%r15), %xmm2
  psrldq $8, %xmm3
  pslldq $3, %xmm4
  psllw $3, %xmm5
  pslld $31, %xmm6
  psllq $33, %xmm7
  end
  begin
  psrlw $15, %xmm0
  psrld $4, %xmm1
  psrlq $64, %xmm2
  psraw $3, %xmm3
  psrad $77, %xmm4
  movd %ecx, %xmm7
  psrad %xmm7, %xmm5
  psllq %xmm7, %xmm6
  end
  begin avx
  vpshufd $0x4e, %ymm0, %ymm1
  vpsrldq $8, %ymm3, %ymm2
  vpslldq $3, %xmm4, %xmm3
  vpsllq $33, %ymm7, %ymm4
  vpsrad $3, %xmm6, %xmm5
  vblendvpd %ymm0, %ymm1, %ymm2, %ymm7
  vblendvps %xmm0, %xmm1, %xmm2, %xmm6
  vpblendvb %ymm3, %ymm4, %ymm5, %ymm0
  end
  begin
  addsd 8(%r15), %xmm0
  mulss 4(%r15), %xmm1
  addps (%r15), %xmm2
  unpcklpd (%r15), %xmm3
  end
  .irp name, comiss, comisd, ucomiss, ucomisd
  one all, \name %xmm1, %xmm0
  one all, \name 8(%r15), %xmm2
  one all|avx, v\name %xmm1, %xmm0
  .endr
  begin
  cvtsi2sd %eax, %xmm0
  cvtsi2sd %rcx, %xmm1
  cvtsi2ssl (%r15), %xmm2
  cvtsi2ssq %rdx, %xmm3
  cvttsd2si %xmm4, %eax
  cvttsd2si %xmm4, %rcx
  cvttss2si %xmm5, %edx
  cvttss2si (%r15), %rbx
  cvtsd2si %xmm6, %rsi
  cvtss2si %xmm6, %edi
  end
  begin avx
  vcvtsi2sd %eax, %xmm7, %xmm0
  vcvtsi2ssq %rcx, %xmm7, %xmm1
  vcvttsd2si %xmm4, %rcx
  vcvttss2si %xmm5, %edx
  end
  begin
  cvtps2pd %xmm0, %xmm1
  cvtpd2ps %xmm2, %xmm3
  cvtdq2ps %xmm4, %xmm5
  cvtdq2pd %xmm4, %xmm6
  cvttps2dq %xmm7, %xmm4
  cvttpd2dq %xmm7, %xmm0
  end
  begin avx
  vcvtps2pd %xmm0, %ymm1
  vcvtpd2ps %ymm2, %xmm3
  vcvtdq2ps %ymm4, %ymm5
  vcvtdq2pd (%r15), %ymm6
  vcvttps2dq %ymm7, %ymm4
  vcvttpd2dq %ymm7, %xmm0
  end
  begin newest
  vmovdqu8 %ymm0, (%r14)
  vmovdqu64 (%r15), %xmm1
  vmovdqa32 %ymm3, %ymm2
  vcvtusi2sd %eax, %xmm5, %xmm3
  vcvtusi2ss %rcx, %xmm5, %xmm4
  vpbroadcastd %ecx, %ymm5
  vpmaxuq %ymm0, %ymm1, %ymm6
  vpminsq (%r15), %xmm1, %xmm7
  vpxord %xmm16, %xmm16, %xmm16
  vmovdqa64 %xmm16, %xmm0
  vpternlogq $0x96, %ymm0, %ymm1, %ymm2
  vpternlogd $0x1d, (%r15), %xmm4, %xmm3
  vpternlogd $0xff, %ymm17, %ymm17, %ymm17
  vmovdqa64 %ymm17, %ymm1
  end
  .macro fuses name               # only numbers
  begin fused
  .irp number, 0, 1, 2, 3, 4, 5, 6
  vcvtdq2ps %ymm\number, %ymm\number
  .endr
  v\name\()132ss %xmm0, %xmm1, %xmm2
  v\name\()213ps %ymm1, %ymm2, %ymm3
  v\name\()231ss %xmm2, %xmm3, %xmm4
  v\name\()132ps %xmm3, %xmm4, %xmm5
  v\name\()231ps %ymm4, %ymm5, %ymm6
  end
  begin fused
  .irp number, 0, 1, 2, 3, 4, 5
  vcvtdq2pd %xmm\number, %ymm\number
  .endr
  v\name\()132pd %ymm0, %ymm1, %ymm2
  v\name\()213sd %xmm1, %xmm2, %xmm3
  v\name\()231pd %ymm2, %ymm3, %ymm4
  v\name\()132sd %xmm3, %xmm4, %xmm5
  end
  .endm
  .irp name, fmadd, fmsub, fnmadd, fnmsub
  fuses \name
  .endr
)" STEPPED_SEQUENCES_END);

class SteppedVectors : public SteppedSequences {};

TEST_F(SteppedVectors, DoWhatTheProcessorDoes) { compare_all(); }

}  // namespace
}  // namespace amasia::omp
