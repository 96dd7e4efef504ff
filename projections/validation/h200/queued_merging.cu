// Do reads that wait at a saturated port to the L2 merge?  `queued_merging 1`: rates; `queued_merging 1 2` under ncu: sectors read.
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
// SMs of one GPC read the same stream with bulk copies; SM number k of the list starts k*lag cycles later. Bytes per SM in a window.
__global__ void k_dummy2(int*o){ unsigned r; asm volatile("mov.u32 %0,%%smid;":"=r"(r)); if(threadIdx.x==0) o[blockIdx.x]=r; long long c=clock64(); while(clock64()-c<20000); }
__global__ void __launch_bounds__(32,1) k_share(const uint8_t*g,const int*rank,int lag,int groups,long long*o,size_t span,unsigned*ctr,volatile unsigned*flag,int n,int copies){
  extern __shared__ __align__(1024) uint8_t sm[]; __shared__ __align__(8) uint64_t mb[16]; unsigned id; asm volatile("mov.u32 %0,%%smid;":"=r"(id)); int me=rank[id]; if(me<0||threadIdx.x) return;
  uint32_t b=s32(mb), dst=(s32(sm)+127)&~127u; const int CB=8192,F=12; for(int i=0;i<F;i++) asm volatile("mbarrier.init.shared::cta.b64 [%0],1;"::"r"(b+8*i)); asm volatile("fence.proxy.async.shared::cta;":::"memory");
  unsigned t=atomicAdd(ctr,1); if(t==(unsigned)n-1){ __threadfence(); *flag=1; } while(!*flag);
  long long t0=clock64()+1000+(long long)(me/groups)*lag; while(clock64()<t0); size_t base=(size_t)(me%groups)*span; long long h=0;
  size_t off=base, end=base+span; int rounds=copies/F; for(int r=0;r<=rounds;r++){ if(r==rounds/2) h=clock64();
    #pragma unroll
    for(int q=0;q<F;q++){ if(r){ uint32_t ok=0; while(!ok) asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p,[%1],%2; selp.b32 %0,1,0,p;}":"=r"(ok):"r"(b+8*q),"r"((r-1)&1):"memory"); }
      if(r<rounds){ asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _,[%0],%1;"::"r"(b+8*q),"r"(CB):"memory"); asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0],[%1],%2,[%3];"::"r"(dst+CB*q),"l"(g+off),"r"(CB),"r"(b+8*q):"memory"); off+=CB; if(off==end) off=base; } } }
  o[me*4]=clock64()-t0; o[me*4+1]=clock64()-h; o[me*4+2]=h-t0; }
__global__ void k_touch(uint4*g,size_t n,uint32_t*s){ uint32_t a=0; for(size_t i=blockIdx.x*(size_t)blockDim.x+threadIdx.x;i<n;i+=(size_t)gridDim.x*blockDim.x) a^=g[i].x; if(a==77) *s=1; }
int gpc[200]; int root(int i){ while(gpc[i]!=i) i=gpc[i]; return i; }
int main(int argc,char**av){ bool prof=argc>2; 
  uint8_t*g,*fl; long long*o; uint32_t*s; size_t N=256u<<20; CK(cudaMalloc(&g,N)); CK(cudaMalloc(&fl,N)); CK(cudaMemset(g,1,N)); CK(cudaMallocManaged(&o,64u<<20)); CK(cudaMalloc(&s,64));
  { for(int i=0;i<200;i++) gpc[i]=i; int*who; CK(cudaMallocManaged(&who,1<<20)); CK(cudaFuncSetAttribute(k_dummy2,cudaFuncAttributeMaxDynamicSharedMemorySize,200*1024)); CK(cudaFuncSetAttribute(k_dummy2,cudaFuncAttributeNonPortableClusterSizeAllowed,1));
    for(int cs:{2,3,5,6,7,8,4,9,11}) for(int r=0;r<12;r++){ cudaLaunchAttribute at[1]; at[0].id=cudaLaunchAttributeClusterDimension; at[0].val.clusterDim.x=cs; at[0].val.clusterDim.y=at[0].val.clusterDim.z=1; cudaLaunchConfig_t cf={}; int n=cs*(120/cs)*2; cf.gridDim=dim3(n); cf.blockDim=dim3(32); cf.attrs=at; cf.numAttrs=1; cf.dynamicSmemBytes=200*1024; CK(cudaLaunchKernelEx(&cf,k_dummy2,who)); CK(cudaDeviceSynchronize()); for(int i=0;i<n;i+=cs) for(int j=1;j<cs;j++){ int a=root(who[i]),b=root(who[i+j]); gpc[std::max(a,b)]=std::min(a,b); } }
    for(int i=0;i<200;i++) gpc[i]=root(i); int g0=root(2); std::vector<int> mem; for(int i=0;i<132;i++) if(gpc[i]==g0) mem.push_back(i); printf("gpc of SM 0: %zu SMs\n",mem.size()); for(int i=0;i<132;i++) printf("%d ",gpc[i]); printf("\n");
    int*rank; unsigned*ctr; CK(cudaMallocManaged(&rank,800)); CK(cudaMalloc(&ctr,64)); CK(cudaFuncSetAttribute(k_share,cudaFuncAttributeMaxDynamicSharedMemorySize,110*1024)); long long*b2; CK(cudaMallocManaged(&b2,132*64));
    for(int all=0;all<2;all++) for(int n:{8,16}) for(int groups:{1,2,4,8}) for(int lag:{0,50,100,200,400,800,1600,3200,6400,12800}) { if(groups*2>n) continue; size_t span=2u<<20; int cnt=0; for(int i=0;i<132;i++) rank[i]=-1; if(!all){ for(int i=0;i<n&&i<(int)mem.size();i++) rank[mem[i]]=cnt++; } else { if(n<16) continue; int per[200]={0}; int ix[200]; memset(ix,-1,sizeof ix); int ng=0; (void)ng; for(int i=0;i<132;i++){ int r=root(i); rank[i]=per[r]++; cnt++; } }
      k_touch<<<264,512>>>((uint4*)g,(size_t)groups*span/16,s); CK(cudaMemset(ctr,0,64)); int copies=480; if(prof) cudaProfilerStart(); for(int i=0;i<132*8;i++) b2[i]=-1; k_share<<<132,32,110*1024>>>(g,rank,lag,groups,b2,span,ctr,(volatile unsigned*)(ctr+4),cnt,copies); CK(cudaGetLastError()); CK(cudaDeviceSynchronize()); if(prof) cudaProfilerStop(); int m=all?16:n; if(lag==0||lag==6400){ printf("RAW cnt=%d:",cnt); for(int i=0;i<16;i++) printf(" %lld/%lld",b2[i*4],b2[i*4+1]); printf("\n"); } double tt=0,t2=0; for(int i=0;i<m;i++){ tt+=b2[i*4]; t2+=b2[i*4+1]; } printf("SHARE,all=%d,n=%d,groups=%d,lag=%d,bytes per cycle mean %.2f second half %.2f first SM %.2f last SM %.2f\n",all,n,groups,lag,(double)copies*8192*m/tt,(double)(copies/2)*8192*m/t2,(double)copies*8192/b2[0],(double)copies*8192/b2[(m-1)*4]); } }
  return 0; }
