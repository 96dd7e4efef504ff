#include <cstdio>
#include <cstdint>
#include <cstdlib>
#include <vector>
#include <algorithm>
#include <cuda_runtime.h>
#define CK(x) do{cudaError_t e=(x); if(e!=cudaSuccess){printf("ERR,%s,%d,%s\n",#x,__LINE__,cudaGetErrorString(e)); exit(1);}}while(0)
__device__ __forceinline__ uint32_t s32(const void*p){uint32_t a; asm("{.reg .u64 t; cvta.to.shared.u64 t,%1; cvt.u32.u64 %0,t;}":"=r"(a):"l"(p)); return a;}
__device__ __forceinline__ unsigned long long gt(){unsigned long long r; asm volatile("mov.u64 %0,%%globaltimer;":"=l"(r)); return r;}
#define D64 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}"
#define C8(b) "+f"(c[b]),"+f"(c[b+1]),"+f"(c[b+2]),"+f"(c[b+3]),"+f"(c[b+4]),"+f"(c[b+5]),"+f"(c[b+6]),"+f"(c[b+7])
#define WGSS asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 " D64 ",%64,%65,1,1,1,0,0;":C8(0),C8(8),C8(16),C8(24),C8(32),C8(40),C8(48),C8(56):"l"(da),"l"(db));
__global__ void __launch_bounds__(256,1) k(const uint32_t*tab,int n,int*lat,long long*clk,volatile int*stop,int burn,uint32_t*sink,long long warm_ns){ extern __shared__ __align__(1024) uint8_t sm[];
  if(blockIdx.x==0){ if(threadIdx.x==0){ unsigned long long t0=gt(); while(gt()-t0<warm_ns); uint32_t p=0; for(int i=0;i<n;i++){ uint32_t v; long long a=clock64(); asm volatile("ld.global.cg.b32 %0,[%1];":"=r"(v):"l"(tab+p):"memory"); p=v; long long b; asm volatile("{.reg .pred q; setp.eq.u32 q,%1,0xffffffff; @q trap; mov.u64 %0,%%clock64;}":"=l"(b):"r"(v):"memory"); lat[i]=(int)(b-a); }
      unsigned long long g0=gt(); long long c0=clock64(); while(gt()-g0<20000); clk[0]=clock64()-c0; clk[1]=gt()-g0; sink[1]=p; __threadfence(); *stop=1; } return; }
  if(!burn) return; uint32_t r=blockIdx.x*7919+threadIdx.x; for(int i=threadIdx.x;i<48*1024/4;i+=256){ r=r*1664525u+1013904223u; ((uint32_t*)sm)[i]=(r&0x3fff3fff)|0x30003000; } __syncthreads(); asm volatile("fence.proxy.async.shared::cta;":::"memory");
  uint32_t s=(s32(sm)+1023)&~1023u; uint64_t base=((uint64_t)1<<62)|((uint64_t)64<<32)|((uint64_t)1<<16); int wg=threadIdx.x/128; uint64_t da=base|((s+wg*8192)>>4&0x3fff),db=base|((s+16384)>>4&0x3fff); float c[64]; for(int i=0;i<64;i++) c[i]=0; unsigned long long t0=gt();
  while(!__syncthreads_or(*stop || gt()-t0>200000000ull)){ asm volatile("wgmma.fence.sync.aligned;":::"memory");
    #pragma unroll
    for(int q=0;q<16;q++){ if(q*8<burn) WGSS }
    asm volatile("wgmma.commit_group.sync.aligned;":::"memory"); asm volatile("wgmma.wait_group.sync.aligned 0;":::"memory"); } float x=0; for(int i=0;i<64;i++) x+=c[i]; if(x==1.25f) sink[0]=1; }
int main(){ uint32_t*tab; int*lat; long long*clk; int*stop; uint32_t*s; CK(cudaMalloc(&tab,1ull<<30)); CK(cudaMallocManaged(&lat,1<<20)); CK(cudaMallocManaged(&clk,64)); CK(cudaMalloc(&stop,64)); CK(cudaMalloc(&s,64)); CK(cudaFuncSetAttribute(k,cudaFuncAttributeMaxDynamicSharedMemorySize,200*1024));
  for(size_t mb:{1,8,40,512}) for(int burn:{0,8,64,128}){ uint32_t n=(mb<<20)/4; std::vector<uint32_t> h(n),perm(n/32); for(uint32_t i=0;i<n/32;i++) perm[i]=i; uint32_t x=12345; for(uint32_t i=n/32-1;i>0;i--){ x=x*1664525u+1013904223u; std::swap(perm[i],perm[(x>>3)%(i+1)]); } for(uint32_t i=0;i<n/32;i++) h[(size_t)perm[i]*32]=perm[(i+1)%(n/32)]*32; uint32_t st=perm[0]*32; (void)st; CK(cudaMemcpy(tab,h.data(),(size_t)n*4,cudaMemcpyHostToDevice)); int N=mb==1?4096:mb==8?16384:8192;
    for(int r=0;r<(mb<512?2:1);r++){ CK(cudaMemset(stop,0,4)); k<<<132,256,200*1024>>>(tab,N,lat,clk,stop,burn,s,r==0&&mb<512?1000:60000000ll); CK(cudaDeviceSynchronize()); }
    std::vector<int> v(lat+256,lat+N); std::sort(v.begin(),v.end()); double hz=(double)clk[0]/clk[1]; auto q=[&](double f){return (double)v[(size_t)(f*(v.size()-1))];}; printf("%zu MiB,burn %d,SM clock GHz %.3f,p5 %.0f p25 %.0f median %.0f p75 %.0f p95 %.0f,median ns %.1f\n",mb,burn,hz,q(.05),q(.25),q(.5),q(.75),q(.95),q(.5)/hz); fflush(stdout); } return 0; }
