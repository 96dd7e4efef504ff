// Small kernels that between them use every operand form the decoder must read; no meaningful results.
#include <cstdint>

__device__ __constant__ int table[4] = {1, 2, 3, 4};

extern "C" __global__ void axpy(float* y, const float* x, float a, int n) {
  __shared__ float tile[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = x[i];
  __syncthreads();
  if (i < n) y[i] += a * tile[255 - threadIdx.x];
}

// Calls (64-bit division), an indirect branch (switch), doubles, local arrays, atomics, shuffles, votes.
extern "C" __global__ void mixed(long long* out, const double* d, int which, long long divisor) {
  int lane = threadIdx.x, local[8];
  for (int k = 0; k < 8; k++) local[k] = lane * k;
  long long q = (out[lane] + table[lane & 3]) / divisor;
  switch (which) {
    case 0: q += __popc(lane); break;
    case 1: q -= __shfl_xor_sync(~0u, lane, 3); break;
    case 2: q *= 17; atomicAdd((int*)out, lane); break;
    case 3: q ^= (long long)(d[lane] * d[lane + 32]); break;
    case 4: q = (long long)sqrt(d[lane]); break;
    case 5: q = __ballot_sync(~0u, lane & which); break;
    default: q = local[which & 7];
  }
  out[lane + 32] = q;
}

// cp.async, ldmatrix, mma.sync.
extern "C" __global__ void matrix(float* out, const uint16_t* in) {
  __shared__ __align__(16) uint16_t s[2048];
  uint32_t at = (uint32_t)__cvta_generic_to_shared(s + threadIdx.x * 8);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\ncp.async.commit_group;\ncp.async.wait_group 0;" ::"r"(at), "l"(in + threadIdx.x * 8));
  __syncthreads();
  uint32_t a[4], b[2];
  float c[4] = {0, 0, 0, 0};
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]) : "r"(at));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];" : "=r"(b[0]), "=r"(b[1]) : "r"(at + 1024));
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  *(float4*)(out + threadIdx.x * 4) = make_float4(c[0], c[1], c[2], c[3]);
}

#if __CUDA_ARCH__ >= 900
struct alignas(64) Map { char bytes[128]; };
// Bulk tensor copy with an mbarrier; on sm_100 also tensor memory.
extern "C" __global__ void bulk(const __grid_constant__ Map map, float* out, int x, int y) {
  __shared__ __align__(1024) float s[1024];
  __shared__ __align__(8) uint64_t bar;
  uint32_t mbar = (uint32_t)__cvta_generic_to_shared(&bar), dst = (uint32_t)__cvta_generic_to_shared(s);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\nfence.proxy.async;" ::"r"(mbar));
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 4096;" ::"r"(mbar));
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(dst), "l"(&map), "r"(x), "r"(y), "r"(mbar) : "memory");
  }
  __syncthreads();
  asm volatile("{\n.reg .pred p;\nagain: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n@!p bra again;\n}" ::"r"(mbar) : "memory");
  float v = s[threadIdx.x];
#if __CUDA_ARCH__ >= 1000
  uint32_t r[4];
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x4.b32 {%0,%1,%2,%3}, [%4];\ntcgen05.wait::ld.sync.aligned;" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(x));
  v += __uint_as_float(r[0] ^ r[1] ^ r[2] ^ r[3]);
#endif
  out[threadIdx.x] = v;
}
#endif
