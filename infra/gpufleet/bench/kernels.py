"""PTX text of the kernels of the built-in backend. The driver compiles it for the GPU it finds.

``.target sm_60`` is the oldest architecture this is meant for; newer GPUs accept older PTX.
"""

_ACCUMULATORS = 8
_UNROLL = 4


def _fma_body() -> str:
    lines = [f"  fma.rn.f32 %f{i}, %f{i}, %f20, %f21;" for i in range(_ACCUMULATORS)]
    return "\n".join(lines * _UNROLL)


def _fma_start() -> str:
    # Every thread starts its accumulators at different values; all converge to c / (1 - m) = 1.
    lines = ["  cvt.rn.f32.u32 %f0, %r2;", "  mul.f32 %f0, %f0, 0f38D1B717;"]  # 1e-4
    lines += [f"  add.f32 %f{i}, %f{i - 1}, 0f3DCCCCCD;" for i in range(1, _ACCUMULATORS)]  # + 0.1
    return "\n".join(lines)


def _fma_sum() -> str:
    return "\n".join(f"  add.f32 %f0, %f0, %f{i};" for i in range(1, _ACCUMULATORS))


#: ``fma_loop(float *out, u32 rounds)``: register-only fused multiply-adds, 32 per thread and round. After some
#: 100,000 rounds each thread has written 8.0 (eight accumulators that converge to 1), which proves that it ran.
FMA_LOOP = f"""
.visible .entry fma_loop(.param .u64 out, .param .u32 rounds)
{{
  .reg .pred %p0;
  .reg .f32 %f<24>;
  .reg .u32 %r<8>;
  .reg .u64 %d<4>;
  ld.param.u64 %d0, [out];
  ld.param.u32 %r0, [rounds];
  cvta.to.global.u64 %d0, %d0;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.u32 %r2, %r1, %r3, %r4;
  mov.f32 %f20, 0f3F7FF972;
  mov.f32 %f21, 0f38D1C000;
{_fma_start()}
FMA_NEXT:
{_fma_body()}
  sub.u32 %r0, %r0, 1;
  setp.ne.u32 %p0, %r0, 0;
  @%p0 bra FMA_NEXT;
{_fma_sum()}
  mul.wide.u32 %d1, %r2, 4;
  add.u64 %d0, %d0, %d1;
  st.global.f32 [%d0], %f0;
  ret;
}}
"""

#: ``copy_loop(void *to, const void *from, u64 vectors)``: copies 16-byte vectors, each thread every grid-th one.
COPY_LOOP = """
.visible .entry copy_loop(.param .u64 to, .param .u64 from, .param .u64 vectors)
{
  .reg .pred %p0;
  .reg .u32 %r<8>;
  .reg .u64 %d<12>;
  ld.param.u64 %d0, [to];
  ld.param.u64 %d1, [from];
  ld.param.u64 %d2, [vectors];
  cvta.to.global.u64 %d0, %d0;
  cvta.to.global.u64 %d1, %d1;
  mov.u32 %r0, %ctaid.x;
  mov.u32 %r1, %ntid.x;
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, %nctaid.x;
  mad.lo.u32 %r4, %r0, %r1, %r2;
  mul.lo.u32 %r5, %r3, %r1;
  cvt.u64.u32 %d3, %r4;
  cvt.u64.u32 %d4, %r5;
  shl.b64 %d5, %d3, 4;
  add.u64 %d0, %d0, %d5;
  add.u64 %d1, %d1, %d5;
  shl.b64 %d6, %d4, 4;
COPY_NEXT:
  setp.ge.u64 %p0, %d3, %d2;
  @%p0 bra COPY_DONE;
  ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%d1];
  st.global.v4.u32 [%d0], {%r0, %r1, %r2, %r3};
  add.u64 %d0, %d0, %d6;
  add.u64 %d1, %d1, %d6;
  add.u64 %d3, %d3, %d4;
  bra COPY_NEXT;
COPY_DONE:
  ret;
}
"""

#: ``read_loop(u32 *sum, const void *from, u64 vectors)``: reads 16-byte vectors and adds their words to ``sum``.
READ_LOOP = """
.visible .entry read_loop(.param .u64 sum, .param .u64 from, .param .u64 vectors)
{
  .reg .pred %p0;
  .reg .u32 %r<8>;
  .reg .u64 %d<8>;
  ld.param.u64 %d0, [sum];
  ld.param.u64 %d1, [from];
  ld.param.u64 %d2, [vectors];
  cvta.to.global.u64 %d0, %d0;
  cvta.to.global.u64 %d1, %d1;
  mov.u32 %r0, %ctaid.x;
  mov.u32 %r1, %ntid.x;
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, %nctaid.x;
  mad.lo.u32 %r4, %r0, %r1, %r2;
  mul.lo.u32 %r5, %r3, %r1;
  cvt.u64.u32 %d3, %r4;
  cvt.u64.u32 %d4, %r5;
  shl.b64 %d5, %d3, 4;
  add.u64 %d1, %d1, %d5;
  shl.b64 %d6, %d4, 4;
  mov.u32 %r6, 0;
READ_NEXT:
  setp.ge.u64 %p0, %d3, %d2;
  @%p0 bra READ_DONE;
  ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%d1];
  add.u32 %r6, %r6, %r0;
  add.u32 %r6, %r6, %r1;
  add.u32 %r6, %r6, %r2;
  add.u32 %r6, %r6, %r3;
  add.u64 %d1, %d1, %d6;
  add.u64 %d3, %d3, %d4;
  bra READ_NEXT;
READ_DONE:
  red.global.add.u32 [%d0], %r6;
  ret;
}
"""

MODULE = ".version 6.0\n.target sm_60\n.address_size 64\n" + FMA_LOOP + COPY_LOOP + READ_LOOP
