// Asynchronous copies into shared memory beside wgmma: does either slow the other?
#include <cstdio>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cmath>
#include <numeric>
#include <algorithm>
#include <cuda.h>
#include <cuda_runtime.h>
#include <cuda_profiler_api.h>
#define CK(x) do{cudaError_t e=(x); if(e!=cudaSuccess){printf("ERR,%s,%d,%s\n",#x,__LINE__,cudaGetErrorString(e)); exit(1);}}while(0)
__device__ __forceinline__ unsigned smid(){unsigned r; asm volatile("mov.u32 %0,%%smid;":"=r"(r)); return r;}
__device__ __forceinline__ uint32_t s32(const void*p){uint32_t a; asm("{.reg .u64 t; cvta.to.shared.u64 t,%1; cvt.u32.u64 %0,t;}":"=r"(a):"l"(p)); return a;}
__device__ __forceinline__ unsigned long long gt(){unsigned long long r; asm volatile("mov.u64 %0,%%globaltimer;":"=l"(r)); return r;}
__device__ __forceinline__ uint64_t desc(uint32_t a,int sw){ uint64_t d=0; d|=(uint64_t)((a&0x3ffff)>>4); d|=(uint64_t)1<<16; d|=(uint64_t)(sw==128?64:32)<<32; d|=(uint64_t)(sw==128?1:2)<<62; return d; }
template<int N> struct Mma;
#define R8(b) "+f"(c[b]),"+f"(c[b+1]),"+f"(c[b+2]),"+f"(c[b+3]),"+f"(c[b+4]),"+f"(c[b+5]),"+f"(c[b+6]),"+f"(c[b+7])
template<> struct Mma<64>{ static constexpr int R=32; __device__ static void go(float*c,uint64_t a,uint64_t b){ asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31},%32,%33,1,1,1,0,0;":R8(0),R8(8),R8(16),R8(24):"l"(a),"l"(b)); } };
template<> struct Mma<128>{ static constexpr int R=64; __device__ static void go(float*c,uint64_t a,uint64_t b){ asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63},%64,%65,1,1,1,0,0;":R8(0),R8(8),R8(16),R8(24),R8(32),R8(40),R8(48),R8(56):"l"(a),"l"(b)); } };

// warps 0-3: m64nNk16 from shared memory; warp 4: bulk copies of CB bytes, F in flight
template<int N> __global__ void __launch_bounds__(160,1) k_fill(const uint8_t*g,int F,int CB,int rounds,int swz,long long*o,float*sink){
  extern __shared__ __align__(1024) uint8_t sm[]; __shared__ __align__(8) uint64_t mb[16]; __shared__ volatile int done; uint32_t b=s32(mb), d=(s32(sm)+1023)&~1023u; if(threadIdx.x==0){ done=0; for(int i=0;i<16;i++) asm volatile("mbarrier.init.shared::cta.b64 [%0],1;"::"r"(b+8*i)); asm volatile("fence.proxy.async.shared::cta;":::"memory"); } __syncthreads();
  if(threadIdx.x<128){ float c[Mma<N>::R]; for(int i=0;i<Mma<N>::R;i++) c[i]=0; asm volatile("wgmma.fence.sync.aligned;":::"memory"); long long t=clock64();
    for(int r=0;r<rounds;r++){
      #pragma unroll
      for(int k=0;k<8;k++) Mma<N>::go(c,desc(d+(k&3)*32,128),desc(d+16384+(k&3)*32,128));
      asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 1;":::"memory"); }
    asm volatile("wgmma.wait_group.sync.aligned 0;":::"memory"); t=clock64()-t; if(threadIdx.x==0){ o[blockIdx.x*4]=t; done=1; } float x=0; for(int i=0;i<Mma<N>::R;i++) x+=c[i]; if(x==1.5f) sink[0]=x;
  } else if(threadIdx.x==128&&F){ long long t=clock64(),n=0; size_t off=(size_t)blockIdx.x*65536; uint32_t dst=d+40960; bool first=true; int ph=0; while(!done){ for(int k=0;k<F;k++){ if(!first){ uint32_t ok=0; while(!ok) asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p,[%1],%2; selp.b32 %0,1,0,p;}":"=r"(ok):"r"(b+8*k),"r"(ph^1):"memory"); n+=CB; }
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _,[%0],%1;"::"r"(b+8*k),"r"(CB):"memory"); asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0],[%1],%2,[%3];"::"r"(dst+CB*k),"l"(g+off),"r"(CB),"r"(b+8*k):"memory"); off=(off&~65535ull)|((off+CB)&65535); } ph^=1; first=false; }
    o[blockIdx.x*4+1]=n; o[blockIdx.x*4+2]=clock64()-t; for(int k=0;k<F;k++){ uint32_t ok=0; while(!ok) asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p,[%1],%2; selp.b32 %0,1,0,p;}":"=r"(ok):"r"(b+8*k),"r"(ph^1):"memory"); } } }
// warps 0-3: m64nNk16 from shared memory; W more warps: cp.async of 16 B a lane, U instructions a group, two groups in flight
template<int N,int U> __global__ void __launch_bounds__(384,1) k_cp(const uint8_t*g,int rounds,long long*o,float*sink){
  extern __shared__ __align__(1024) uint8_t sm[]; __shared__ volatile int done; uint32_t d=(s32(sm)+1023)&~1023u; if(threadIdx.x==0) done=0; __syncthreads();
  if(threadIdx.x<128){ float c[Mma<N>::R]; for(int i=0;i<Mma<N>::R;i++) c[i]=0; asm volatile("wgmma.fence.sync.aligned;":::"memory"); long long t=clock64();
    for(int r=0;r<rounds;r++){
      #pragma unroll
      for(int k=0;k<8;k++) Mma<N>::go(c,desc(d+(k&3)*32,128),desc(d+16384+(k&3)*32,128));
      asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 1;":::"memory"); }
    asm volatile("wgmma.wait_group.sync.aligned 0;":::"memory"); t=clock64()-t; if(threadIdx.x==0){ o[blockIdx.x*4]=t; done=1; } float x=0; for(int i=0;i<Mma<N>::R;i++) x+=c[i]; if(x==1.5f) sink[0]=x;
  } else { int w=threadIdx.x/32-4; long long t=clock64(); int n=0; const uint8_t*q=g+(size_t)blockIdx.x*65536+w*8192+(threadIdx.x&31)*16; uint32_t dst=d+40960+w*8192+(threadIdx.x&31)*16;
    while(!done){
      #pragma unroll
      for(int u=0;u<U;u++) asm volatile("cp.async.cg.shared.global [%0],[%1],16;"::"r"(dst+u*512),"l"(q+u*512):"memory");
      asm volatile("cp.async.commit_group; cp.async.wait_group 1;":::"memory"); n++; }
    if((threadIdx.x&31)==0){ atomicAdd((unsigned long long*)&o[blockIdx.x*4+1],(unsigned long long)n*U*512); if(w==0) o[blockIdx.x*4+2]=clock64()-t; } asm volatile("cp.async.wait_group 0;":::"memory"); } }
int main(){ uint8_t*g; long long*o; float*s; CK(cudaMalloc(&g,64u<<20)); CK(cudaMemset(g,0,64u<<20)); CK(cudaMallocManaged(&o,1<<20)); CK(cudaMalloc(&s,64)); CK(cudaFuncSetAttribute(k_fill<64>,cudaFuncAttributeMaxDynamicSharedMemorySize,200*1024)); CK(cudaFuncSetAttribute(k_fill<128>,cudaFuncAttributeMaxDynamicSharedMemorySize,200*1024));
  for(int w=0;w<30;w++){ k_fill<128><<<132,160,200*1024>>>(g,4,8192,4000,128,o,s); } CK(cudaDeviceSynchronize());
  for(int ctas:{1,4}) for(int N:{64,128}) for(int CB:{2048,8192}) for(int F:{0,1,2,4,8,12}){ int rounds=2000; if(CB*F>150*1024) continue; for(int r=0;r<2;r++){ for(int i=0;i<ctas*4;i++) o[i]=0; if(N==64) k_fill<64><<<ctas,160,200*1024>>>(g,F,CB,rounds,128,o,s); else k_fill<128><<<ctas,160,200*1024>>>(g,F,CB,rounds,128,o,s); CK(cudaGetLastError()); CK(cudaDeviceSynchronize()); }
    printf("FILL,ctas=%d,n=%d,copy=%d,inflight=%d,wgmma interval %.2f,copy bytes per cycle %.2f\n",ctas,N,CB,F,(double)o[0]/(rounds*8),o[2]?(double)o[1]/o[2]:0.0); }
  auto go=[&](auto f,int N,int U){ CK(cudaFuncSetAttribute(f,cudaFuncAttributeMaxDynamicSharedMemorySize,200*1024)); for(int w=0;w<20;w++) f<<<132,384,200*1024>>>(g,4000,o,s); CK(cudaDeviceSynchronize());
    for(int W:{0,1,2,4,8}){ for(int r=0;r<2;r++){ for(int i=0;i<4;i++) o[i]=0; f<<<1,128+32*W,200*1024>>>(g,4000,o,s); CK(cudaGetLastError()); CK(cudaDeviceSynchronize()); } printf("CPASYNC,n=%d,instructions per group=%d,warps=%d,wgmma interval %.2f,copy bytes per cycle %.2f\n",N,U,W,(double)o[0]/32000,o[2]?(double)o[1]/o[2]:0.0); } };
  go(k_cp<64,1>,64,1); go(k_cp<64,4>,64,4); go(k_cp<64,16>,64,16); go(k_cp<128,1>,128,1); go(k_cp<128,4>,128,4); go(k_cp<128,16>,128,16);
  return 0; }
