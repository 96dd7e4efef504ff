// Stores and loads of local memory, alone and in the pattern of a spilling kernel, with a large L1 and with 200 KiB of shared memory.
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
// local memory: blocks of n vector stores and n vector loads of the frame
template<int V,int ST,int LD,int LU> __global__ void __launch_bounds__(1024) k_local(long long*o,uint32_t*sink,int it,int lines){
  uint32_t f[256]; uint64_t a; asm volatile("{.reg .u64 t; cvta.to.local.u64 %0,%1;}":"=l"(a):"l"(f)); uint32_t acc=0; long long t0=0,ts=0,tl=0; (void)t0;
  for(int i=0;i<256;i++) asm volatile("st.local.b32 [%0],%1;"::"l"(a+i*4),"r"(i):"memory");
  __syncthreads(); long long t=clock64();
  for(int r=0;r<it;r++){ long long c0=clock64();
    #pragma unroll
    for(int i=0;i<64*ST;i++){ uint32_t w=r+i; uint64_t q=a+(i*V*4)%1024;
      if(V==1) asm volatile("st.local.b32 [%0],%1;"::"l"(q),"r"(w):"memory"); else if(V==2) asm volatile("st.local.v2.b32 [%0],{%1,%1};"::"l"(q),"r"(w):"memory"); else asm volatile("st.local.v4.b32 [%0],{%1,%1,%1,%1};"::"l"(q),"r"(w):"memory"); }
    long long c1=clock64();
    uint32_t v[64*LD+1][V];
    #pragma unroll
    for(int i=0;i<64*LD;i++){ uint64_t q=a+(i*V*4)%1024;
      if(V==1){ if(LU) asm volatile("ld.local.lu.b32 %0,[%1];":"=r"(v[i][0]):"l"(q):"memory"); else asm volatile("ld.local.b32 %0,[%1];":"=r"(v[i][0]):"l"(q):"memory"); }
      else { if(LU) asm volatile("ld.local.lu.v2.b32 {%0,%1},[%2];":"=r"(v[i][0]),"=r"(v[i][V>1?1:0]):"l"(q):"memory"); else asm volatile("ld.local.v2.b32 {%0,%1},[%2];":"=r"(v[i][0]),"=r"(v[i][V>1?1:0]):"l"(q):"memory"); } }
    #pragma unroll
    for(int i=0;i<64*LD;i++) acc+=v[i][0]+v[i][V>1?1:0];
    if(acc==77) sink[1]=acc; long long c2=clock64(); ts+=c1-c0; tl+=c2-c1; }
  __syncthreads(); if(threadIdx.x==0){ o[blockIdx.x*4]=clock64()-t; o[blockIdx.x*4+1]=ts; o[blockIdx.x*4+2]=tl; } if(acc==78) sink[0]=acc; }


__global__ void __launch_bounds__(1024) k_mix(long long*o,uint32_t*sink,int it){
  uint32_t f[256]; uint64_t a; asm volatile("{.reg .u64 t; cvta.to.local.u64 %0,%1;}":"=l"(a):"l"(f)); uint32_t acc=0;
  for(int i=0;i<256;i++) asm volatile("st.local.b32 [%0],%1;"::"l"(a+i*4),"r"(i):"memory");
  __syncthreads(); long long t=clock64(),c[4]={0,0,0,0};
  for(int r=0;r<it;r++){ long long c0=clock64();
    #pragma unroll
    for(int i=0;i<14;i++) asm volatile("st.local.v2.b32 [%0],{%1,%1};"::"l"(a+512+i*8),"r"(r+i):"memory");
    long long c1=clock64(); uint32_t v[64][2];
    #pragma unroll
    for(int i=0;i<64;i++) asm volatile("ld.local.lu.v2.b32 {%0,%1},[%2];":"=r"(v[i][0]),"=r"(v[i][1]):"l"(a+i*8):"memory");
    #pragma unroll
    for(int i=0;i<64;i++) acc+=v[i][0]+v[i][1];
    if(acc==77) sink[1]=acc; long long c2=clock64();
    #pragma unroll
    for(int i=0;i<64;i++) asm volatile("st.local.v2.b32 [%0],{%1,%1};"::"l"(a+i*8),"r"(acc+i):"memory");
    long long c3=clock64();
    #pragma unroll
    for(int i=0;i<14;i++) asm volatile("ld.local.lu.v2.b32 {%0,%1},[%2];":"=r"(v[i][0]),"=r"(v[i][1]):"l"(a+512+i*8):"memory");
    #pragma unroll
    for(int i=0;i<14;i++) acc+=v[i][0]+v[i][1];
    if(acc==77) sink[1]=acc; long long c4=clock64(); c[0]+=c1-c0; c[1]+=c2-c1; c[2]+=c3-c2; c[3]+=c4-c3; }
  __syncthreads(); if(threadIdx.x==0){ o[blockIdx.x*8]=clock64()-t; for(int i=0;i<4;i++) o[blockIdx.x*8+1+i]=c[i]; } if(acc==78) sink[0]=acc; }
int main(){ long long*o; uint32_t*s; CK(cudaMallocManaged(&o,1<<20)); CK(cudaMalloc(&s,64));
  for(int smem:{0,200*1024}) for(int ctas:{1,132}) for(int thr:{32,64,128,256}){ CK(cudaFuncSetAttribute(k_mix,cudaFuncAttributeMaxDynamicSharedMemorySize,200*1024)); int it=64; for(int r=0;r<2;r++) k_mix<<<ctas,thr,smem>>>(o,s,it); CK(cudaGetLastError()); CK(cudaDeviceSynchronize()); printf("MIX,smem=%d,ctas=%d,warps=%d,iteration %.1f,st14 %.1f,ld64 %.1f,st64 %.1f,ld14 %.1f\n",smem,ctas,thr/32,(double)o[0]/it,(double)o[1]/it,(double)o[2]/it,(double)o[3]/it,(double)o[4]/it); }
  auto loc=[&](auto f,const char*n,int V,int st,int ld){ CK(cudaFuncSetAttribute(f,cudaFuncAttributeMaxDynamicSharedMemorySize,200*1024)); for(int smem:{0,200*1024}) for(int ctas:{1,132}) for(int thr:{32,128,256}){ int it=64; f<<<ctas,thr,smem>>>(o,s,it,0); f<<<ctas,thr,smem>>>(o,s,it,0); CK(cudaGetLastError()); CK(cudaDeviceSynchronize()); printf("LOCAL,%s,V=%d,smem=%d,ctas=%d,warps=%d,iteration %.1f,store block %.1f,load block %.1f\n",n,V,smem,ctas,thr/32,(double)o[0]/it,(double)o[1]/it,(double)o[2]/it); } };
  loc(k_local<2,1,0,0>,"st",2,1,0); loc(k_local<1,0,1,1>,"ld.lu",1,0,1); loc(k_local<2,0,1,0>,"ld",2,0,1); loc(k_local<2,0,1,1>,"ld.lu",2,0,1); loc(k_local<2,1,1,1>,"st+ld.lu",2,1,1);
  return 0; }
