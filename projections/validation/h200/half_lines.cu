// Bulk copies and loads of half lines, step by step: does an L2 miss fill the other half (L2 promotion)?  `half_lines`: times; `half_lines prof` under ncu: sectors.
#include <cstdio>
#include <cstdint>
#include <cstring>
#include <vector>
#include <algorithm>
#include <cuda.h>
#include <cuda_runtime.h>
#include <cuda_profiler_api.h>
#define CK(x) do{cudaError_t e=(x); if(e!=cudaSuccess){printf("ERR,%s,%d,%s\n",#x,__LINE__,cudaGetErrorString(e)); exit(1);}}while(0)
__device__ __forceinline__ uint32_t s32(const void*p){uint32_t a; asm("{.reg .u64 t; cvta.to.shared.u64 t,%1; cvt.u32.u64 %0,t;}":"=r"(a):"l"(p)); return a;}
typedef CUresult(*ENC)(CUtensorMap*,CUtensorMapDataType,cuuint32_t,void*,const cuuint64_t*,const cuuint64_t*,const cuuint32_t*,const cuuint32_t*,CUtensorMapInterleave,CUtensorMapSwizzle,CUtensorMapL2promotion,CUtensorMapFloatOOBfill);
// one box of `rows` rows a step, next columns in the next step; CTA b reads rows b*rows...
__global__ void k_step(const __grid_constant__ CUtensorMap m,int rows,int cols,int bytes,int steps,int gap,long long*o){
  extern __shared__ __align__(1024) uint8_t sm[]; __shared__ __align__(8) uint64_t mb; if(threadIdx.x) return;
  uint32_t b=s32(&mb), d=(s32(sm)+1023)&~1023u; asm volatile("mbarrier.init.shared::cta.b64 [%0],1;"::"r"(b)); asm volatile("fence.proxy.async.shared::cta;":::"memory");
  for(int k=0;k<steps;k++){ long long t=clock64();
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _,[%0],%1;"::"r"(b),"r"(bytes):"memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0],[%1,{%3,%4}],[%2];"::"r"(d),"l"(&m),"r"(b),"r"(k*cols),"r"(blockIdx.x*rows):"memory");
    uint32_t ok=0; while(!ok) asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p,[%1],%2; selp.b32 %0,1,0,p;}":"=r"(ok):"r"(b),"r"(k&1):"memory");
    o[(size_t)blockIdx.x*steps+k]=clock64()-t; while(clock64()-t<gap); } }
// the same by loads: one warp, each lane 16 B: 4 lanes a row of 64 B, 8 rows an instruction, `n` instructions in flight
template<int MODE> __global__ void k_ldg(const uint8_t*g,size_t pitch,int steps,long long*o,uint32_t*sink){ uint32_t acc=0; extern __shared__ __align__(1024) uint8_t sm[];
  for(int k=0;k<steps;k++){ long long t=clock64(); uint4 v[8];
    if(MODE<2){
    #pragma unroll
    for(int i=0;i<8;i++){ const uint8_t*q=g+(size_t)((blockIdx.x*64+i*8+threadIdx.x/4))*pitch+k*64+threadIdx.x%4*16;
      if(MODE==0) asm volatile("ld.global.cg.v4.b32 {%0,%1,%2,%3},[%4];":"=r"(v[i].x),"=r"(v[i].y),"=r"(v[i].z),"=r"(v[i].w):"l"(q));
      else asm volatile("ld.global.cg.L2::128B.v4.b32 {%0,%1,%2,%3},[%4];":"=r"(v[i].x),"=r"(v[i].y),"=r"(v[i].z),"=r"(v[i].w):"l"(q)); }
    #pragma unroll
    for(int i=0;i<8;i++) acc^=v[i].x^v[i].w;
    if(acc==77) sink[0]=acc; } else {
    #pragma unroll
    for(int i=0;i<8;i++){ const uint8_t*q=g+(size_t)((blockIdx.x*64+i*8+threadIdx.x/4))*pitch+k*64+threadIdx.x%4*16; uint32_t s=s32(sm)+i*512+threadIdx.x*16;
      if(MODE==2) asm volatile("cp.async.cg.shared.global [%0],[%1],16;"::"r"(s),"l"(q):"memory"); else asm volatile("cp.async.cg.shared.global.L2::128B [%0],[%1],16;"::"r"(s),"l"(q):"memory"); }
    asm volatile("cp.async.commit_group; cp.async.wait_group 0;":::"memory"); }
    __syncwarp(); if(threadIdx.x==0) o[(size_t)blockIdx.x*steps+k]=clock64()-t+(acc==78); } }
int main(int argc,char**av){ bool prof=argc>1; void*fp=nullptr; cudaDriverEntryPointQueryResult qr; CK(cudaGetDriverEntryPoint("cuTensorMapEncodeTiled",&fp,cudaEnableDefault,&qr)); ENC enc=(ENC)fp;
  uint8_t*g,*fl; long long*o; uint32_t*s; size_t N=256u<<20; CK(cudaMalloc(&g,N)); CK(cudaMalloc(&fl,N)); CK(cudaMemset(g,1,N)); CK(cudaMallocManaged(&o,64u<<20)); CK(cudaMalloc(&s,64)); if(prof) cudaProfilerStart();
  CK(cudaFuncSetAttribute(k_step,cudaFuncAttributeMaxDynamicSharedMemorySize,100*1024));
  const char*pn[4]={"none","64","128","256"};
  for(int box:{32,64}) for(int pr=0;pr<4;pr++) for(int ctas:{1,16,128}) for(int pitch:{8192,8192+256}) for(int gap:{0,3000}){ if(prof&&(gap||pitch!=8192)) continue; int steps=128, rows=128; CUtensorMap m; cuuint64_t dm[2]={4096,(cuuint64_t)(ctas*rows)},st[1]={(cuuint64_t)pitch}; cuuint32_t bx[2]={(cuuint32_t)box,(cuuint32_t)rows},e[2]={1,1};
    int bytes=box*2*rows; if(box==64) steps=64; CUresult q=enc(&m,CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,2,g,dm,st,bx,e,CU_TENSOR_MAP_INTERLEAVE_NONE,box==32?CU_TENSOR_MAP_SWIZZLE_64B:CU_TENSOR_MAP_SWIZZLE_128B,(CUtensorMapL2promotion)pr,CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE); if(q){printf("ERR enc %d\n",q); return 1;}
    for(int warm=0;warm<(prof?1:2);warm++){ if(!warm) CK(cudaMemset(fl,pr,N)); k_step<<<ctas,32,100*1024>>>(m,rows,box,bytes,steps,gap,o); CK(cudaDeviceSynchronize());
      std::vector<long long> ph[4]; for(int c=0;c<ctas;c++) for(int k=4;k<steps;k++) ph[k%4].push_back(o[(size_t)c*steps+k]); printf("STEP,tma,box=%d,promo=%s,ctas=%d,pitch=%d,gap=%d,%s",box,pn[pr],ctas,pitch,gap,warm?"warm":"cold"); for(auto&v:ph){ std::sort(v.begin(),v.end()); printf(",%lld/%lld",v[v.size()/2],v[v.size()*9/10]); } printf("\n"); } }
  auto ldg=[&](auto f,const char*n){ for(int ctas:{1,16,128}) for(int warm=0;warm<(prof?1:2);warm++){ int steps=128; if(!warm) CK(cudaMemset(fl,ctas,N)); f<<<ctas,32,16384>>>(g,8192,steps,o,s); CK(cudaDeviceSynchronize());
      std::vector<long long> ph[4]; for(int c=0;c<ctas;c++) for(int k=4;k<steps;k++) ph[k%4].push_back(o[(size_t)c*steps+k]); printf("STEP,%s,ctas=%d,%s",n,ctas,warm?"warm":"cold"); for(auto&v:ph){ std::sort(v.begin(),v.end()); printf(",%lld/%lld",v[v.size()/2],v[v.size()*9/10]); } printf("\n"); } };
  ldg(k_ldg<0>,"ldg.cg"); ldg(k_ldg<1>,"ldg.cg.L2::128B"); ldg(k_ldg<2>,"cp.async"); ldg(k_ldg<3>,"cp.async.L2::128B");
  return 0; }
