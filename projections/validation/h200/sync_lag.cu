#include <cstdio>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cmath>
#include <algorithm>
#include <cuda.h>
#include <cuda_runtime.h>
#include <cuda_profiler_api.h>
#define CK(x) do{cudaError_t e=(x); if(e!=cudaSuccess){printf("ERR,%s,%d,%s\n",#x,__LINE__,cudaGetErrorString(e)); exit(1);}}while(0)
__device__ __forceinline__ unsigned smid(){unsigned r; asm volatile("mov.u32 %0,%%smid;":"=r"(r)); return r;}
__device__ __forceinline__ uint32_t s32(const void*p){uint32_t a; asm("{.reg .u64 t; cvta.to.shared.u64 t,%1; cvt.u32.u64 %0,t;}":"=r"(a):"l"(p)); return a;}
__device__ __forceinline__ unsigned long long gt(){unsigned long long r; asm volatile("mov.u64 %0,%%globaltimer;":"=l"(r)); return r;}
struct P{int nm,nn,nk,gm,S,compute,BM,BN,every,nst;};
__global__ void k_sync(long long*o){ if(threadIdx.x) return; for(int r=0;r<4;r++){ unsigned long long a=gt(),b; long long c; do{ b=gt(); c=clock64(); }while(b==a); o[smid()*8+2*r]=(long long)b; o[smid()*8+2*r+1]=c; } }
__global__ void __launch_bounds__(32) k_gemm(const __grid_constant__ CUtensorMap ma,const __grid_constant__ CUtensorMap mb_,P p,long long*st,int*who){
  extern __shared__ __align__(1024) uint8_t sm[]; __shared__ __align__(8) uint64_t mb[16]; if(threadIdx.x) return; int pid=blockIdx.x; who[pid]=smid();
  int per=p.gm*p.nn, g=pid/per, fm=g*p.gm, gs=min(p.nm-fm,p.gm), m=fm+(pid%per)%gs, n=(pid%per)/gs; uint32_t b=s32(mb), d=(s32(sm)+1023)&~1023u; int bytes=(p.BM+p.BN)*128;
  for(int i=0;i<p.S;i++) asm volatile("mbarrier.init.shared::cta.b64 [%0],1;"::"r"(b+8*i)); asm volatile("fence.proxy.async.shared::cta;":::"memory");
  auto load=[&](int k){ int s=k%p.S; uint32_t q=d+s*bytes; asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _,[%0],%1;"::"r"(b+8*s),"r"(bytes):"memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0],[%1,{%3,%4}],[%2];"::"r"(q),"l"(&ma),"r"(b+8*s),"r"(k*64),"r"(m*p.BM):"memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0],[%1,{%3,%4}],[%2];"::"r"(q+p.BM*128),"l"(&mb_),"r"(b+8*s),"r"(k*64),"r"(n*p.BN):"memory"); };
  long long*o=st+(size_t)pid*p.nst; int w=0; o[w++]=clock64(); for(int k=0;k<p.S-1&&k<p.nk;k++) load(k); long long free_at=0;
  for(int k=0;k<p.nk;k++){ int s=k%p.S; uint32_t ok=0; while(!ok) asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p,[%1],%2; selp.b32 %0,1,0,p;}":"=r"(ok):"r"(b+8*s),"r"((k/p.S)&1):"memory");
    long long now=clock64(); if(k%p.every==0&&w<p.nst-1) o[w++]=now; free_at=(now>free_at?now:free_at)+p.compute; if(k+p.S-1<p.nk) load(k+p.S-1); while(clock64()<free_at); }
  o[p.nst-1]=clock64(); }
typedef CUresult(*ENC)(CUtensorMap*,CUtensorMapDataType,cuuint32_t,void*,const cuuint64_t*,const cuuint64_t*,const cuuint32_t*,const cuuint32_t*,CUtensorMapInterleave,CUtensorMapSwizzle,CUtensorMapL2promotion,CUtensorMapFloatOOBfill);
int main(int c,char**v){ int gpc[132]; { FILE*f=fopen("gpc.txt","r"); for(int i=0;i<132;i++) if(fscanf(f,"%d",gpc+i)!=1) return 1; } void*fp=nullptr; cudaDriverEntryPointQueryResult qr; CK(cudaGetDriverEntryPoint("cuTensorMapEncodeTiled",&fp,cudaEnableDefault,&qr)); ENC enc=(ENC)fp;
  uint8_t*A,*B; CK(cudaMalloc(&A,512u<<20)); CK(cudaMalloc(&B,512u<<20)); CK(cudaMemset(A,1,512u<<20)); CK(cudaMemset(B,1,512u<<20)); long long*so,*st; int*who; CK(cudaMallocManaged(&so,132*64)); CK(cudaMallocManaged(&st,256u<<20)); CK(cudaMallocManaged(&who,1<<20)); CK(cudaFuncSetAttribute(k_sync,cudaFuncAttributeMaxDynamicSharedMemorySize,220*1024)); CK(cudaFuncSetAttribute(k_gemm,cudaFuncAttributeMaxDynamicSharedMemorySize,220*1024));
  struct C{int M,N,K,BM,BN,S,ctas,compute;} cs[]={ {8192,8192,8192,128,128,4,1,512},{8192,8192,8192,128,128,4,1,640},{8192,8192,2048,128,128,4,1,512},{8192,8192,2048,128,128,4,1,640},{4096,4096,4096,128,128,4,1,512},{8192,8192,8192,64,64,4,3,384},{8192,8192,2048,64,64,4,3,384},{2048,2048,2048,64,64,4,3,384},{8192,8192,2048,64,128,4,2,512},{8192,8192,8192,64,128,4,2,512},{4096,4096,4096,64,64,4,3,384},{8192,8192,8192,64,64,4,3,500} };
  bool prof=c>1; if(prof) cudaProfilerStart();
  for(auto&q:cs){ P p; p.nm=q.M/q.BM; p.nn=q.N/q.BN; p.nk=q.K/64; p.gm=8; p.S=q.S; p.compute=q.compute; p.BM=q.BM; p.BN=q.BN; p.every=4; p.nst=p.nk/4+2; CUtensorMap ta,tb; cuuint64_t da[2]={(cuuint64_t)q.K,(cuuint64_t)q.M},sa[1]={(cuuint64_t)q.K*2},db[2]={(cuuint64_t)q.K,(cuuint64_t)q.N}; cuuint32_t ba[2]={64,(cuuint32_t)q.BM},bb[2]={64,(cuuint32_t)q.BN},e[2]={1,1};
    enc(&ta,CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,2,A,da,sa,ba,e,CU_TENSOR_MAP_INTERLEAVE_NONE,CU_TENSOR_MAP_SWIZZLE_128B,CU_TENSOR_MAP_L2_PROMOTION_L2_256B,CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE); enc(&tb,CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,2,B,db,sa,bb,e,CU_TENSOR_MAP_INTERLEAVE_NONE,CU_TENSOR_MAP_SWIZZLE_128B,CU_TENSOR_MAP_L2_PROMOTION_L2_256B,CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    int n=p.nm*p.nn, smem=q.ctas==1?150*1024:q.ctas==2?100*1024:70*1024; smem=std::max(smem,(q.BM+q.BN)*128*q.S+1024); for(int r=0;r<(prof?1:2);r++){ if(!prof){ k_sync<<<132,32,220*1024>>>(so); } k_gemm<<<n,32,smem>>>(ta,tb,p,st,who); CK(cudaDeviceSynchronize()); }
    printf("CASE;%d;%d;%d;%d;%d;%d;%d;%d\n",q.M,q.N,q.K,q.BM,q.BN,q.S,q.ctas,q.compute); if(prof) continue;
    // common time base: cycles, t = clock - off(sm), from globaltimer edges
    double hz=0; int h=0; for(int i=0;i<132;i++){ double dt=so[i*8+6]-so[i*8]; if(dt>0){ hz+=(so[i*8+7]-so[i*8+1])/dt; h++; } } hz/=h; std::vector<double> off(132); for(int i=0;i<132;i++) off[i]=(double)so[i*8+7]-(double)(so[i*8+6]-so[6])*hz; // cycles per ns*ns
    double base=1e300; for(int i=0;i<n;i++) base=std::min(base,st[(size_t)i*p.nst]-off[who[i]]); double endt=0; for(int i=0;i<n;i++) endt=std::max(endt,st[(size_t)i*p.nst+p.nst-1]-off[who[i]]-base);
    double fill=(double)n*p.nk*(q.BM+q.BN)*128; printf(" total cycles %.0f fill/SM/clk %.1f cyc/ns %.3f iter-bound %.0f\n",endt,fill/endt/132,hz,(double)n*p.nk*q.compute/q.ctas/132);
    // lag between CTAs that share the B tile (same n) or the A tile (same m) in one GPC and are concurrently running, at iteration idx
    int slots=132*q.ctas; for(int wave=0;wave<std::min(4,(n+slots-1)/slots);wave++){ printf("  wave %d:",wave); for(int idx:{0,2,8,p.nst-3}){ if(idx>p.nst-2) continue; std::vector<double> lag; int tot=0,in50=0,in100=0,in300=0; for(int i=wave*slots;i<std::min(n,(wave+1)*slots);i++){ int per=p.gm*p.nn; auto mn=[&](int pid,int&m,int&nn){ int g=pid/per,fm=g*p.gm,gs=std::min(p.nm-fm,p.gm); m=fm+(pid%per)%gs; nn=(pid%per)/gs; }; int mi,ni; mn(i,mi,ni); double ti=st[(size_t)i*p.nst+1+idx]-off[who[i]]; double best=1e18; for(int j=std::max(0,i-16);j<std::min(n,i+17);j++) if(j!=i&&gpc[who[j]]==gpc[who[i]]){ int mj,nj; mn(j,mj,nj); if(mj!=mi&&nj!=ni) continue; double l=std::fabs(st[(size_t)j*p.nst+1+idx]-off[who[j]]-ti); best=std::min(best,l); lag.push_back(l); } tot++; in50+=best<50; in100+=best<100; in300+=best<300; } std::sort(lag.begin(),lag.end()); int c50=0,c100=0,c300=0; for(double l:lag){ c50+=l<50; c100+=l<100; c300+=l<300; } if(lag.size()) printf(" it%d: med %.0f p75 %.0f pairs<50 %.2f <100 %.2f <300 %.2f of %.1f |",idx*4,lag[lag.size()/2],lag[lag.size()*3/4],(double)c50/lag.size(),(double)c100/lag.size(),(double)c300/lag.size(),(double)lag.size()/tot); } printf("\n"); }
  } if(prof) cudaProfilerStop(); return 0; }
