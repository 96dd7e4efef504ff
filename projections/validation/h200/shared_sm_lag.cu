// CTAs of a GEMM-like kernel that share tensor cores: when does each of their iterations begin?
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
struct P{int nm,nn,nk,gm,S,BM,BN,BK,every,nst;};
__global__ void k_sync(long long*o){ if(threadIdx.x) return; for(int r=0;r<4;r++){ unsigned long long a=gt(),b; long long c; do{ b=gt(); c=clock64(); }while(b==a); o[smid()*8+2*r]=(long long)b; o[smid()*8+2*r+1]=c; } }
__global__ void __cluster_dims__(1) k_dummy(){}
__global__ void k_clus(int*o){ if(threadIdx.x==0) o[blockIdx.x]=smid(); long long c=clock64(); while(clock64()-c<20000); }
__device__ __forceinline__ uint64_t desc(uint32_t a,int sw){ uint64_t d=0; d|=(uint64_t)((a&0x3ffff)>>4); d|=(uint64_t)1<<16; d|=(uint64_t)(sw==128?64:32)<<32; d|=(uint64_t)(sw==128?1:2)<<62; return d; }
template<int N> struct Mma;
#define R8(b) "+f"(c[b]),"+f"(c[b+1]),"+f"(c[b+2]),"+f"(c[b+3]),"+f"(c[b+4]),"+f"(c[b+5]),"+f"(c[b+6]),"+f"(c[b+7])
template<> struct Mma<64>{ static constexpr int R=32; __device__ static void go(float*c,uint64_t a,uint64_t b){ asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31},%32,%33,1,1,1,0,0;":R8(0),R8(8),R8(16),R8(24):"l"(a),"l"(b)); } };
template<> struct Mma<128>{ static constexpr int R=64; __device__ static void go(float*c,uint64_t a,uint64_t b){ asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63},%64,%65,1,1,1,0,0;":R8(0),R8(8),R8(16),R8(24),R8(32),R8(40),R8(48),R8(56):"l"(a),"l"(b)); } };
template<int N,int MB,int BK> __global__ void __launch_bounds__(128) k_gemm(const __grid_constant__ CUtensorMap ma,const __grid_constant__ CUtensorMap mb_,P p,long long*st,int*who,float*sink){
  extern __shared__ __align__(1024) uint8_t sm[]; __shared__ __align__(8) uint64_t mb[16]; int pid=blockIdx.x; bool lead=threadIdx.x==0; if(lead) who[pid]=smid();
  int per=p.gm*p.nn, g=pid/per, fm=g*p.gm, gs=min(p.nm-fm,p.gm), m=fm+(pid%per)%gs, n=(pid%per)/gs; uint32_t b=s32(mb), d=(s32(sm)+1023)&~1023u; constexpr int row=BK*2; int bytes=(p.BM+p.BN)*row;
  if(lead){ for(int i=0;i<p.S;i++) asm volatile("mbarrier.init.shared::cta.b64 [%0],1;"::"r"(b+8*i)); asm volatile("fence.proxy.async.shared::cta;":::"memory"); } __syncthreads();
  auto load=[&](int k){ int s=k%p.S; uint32_t q=d+s*bytes; asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _,[%0],%1;"::"r"(b+8*s),"r"(bytes):"memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0],[%1,{%3,%4}],[%2];"::"r"(q),"l"(&ma),"r"(b+8*s),"r"(k*p.BK),"r"(m*p.BM):"memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0],[%1,{%3,%4}],[%2];"::"r"(q+p.BM*row),"l"(&mb_),"r"(b+8*s),"r"(k*p.BK),"r"(n*p.BN):"memory"); };
  long long*o=st+(size_t)pid*p.nst; int w=0; if(lead){ o[w++]=clock64(); for(int k=0;k<p.S-1&&k<p.nk;k++) load(k); }
  float c[MB][Mma<N>::R]; _Pragma("unroll") for(int i=0;i<MB;i++) _Pragma("unroll") for(int j=0;j<Mma<N>::R;j++) c[i][j]=0;
  for(int k=0;k<p.nk;k++){ int s=k%p.S; uint32_t ok=0; while(!ok) asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p,[%1],%2; selp.b32 %0,1,0,p;}":"=r"(ok):"r"(b+8*s),"r"((k/p.S)&1):"memory");
    if(lead&&k%p.every==0&&w<p.nst-1) o[w++]=clock64();
    asm volatile("wgmma.fence.sync.aligned;":::"memory"); uint32_t q=d+s*bytes;
    _Pragma("unroll") for(int i=0;i<MB;i++) _Pragma("unroll") for(int kk=0;kk<BK/16;kk++) Mma<N>::go(c[i],desc(q+i*64*row+kk*32,row),desc(q+p.BM*row+kk*32,row));
    asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;":::"memory"); __syncthreads();
    if(lead&&k+p.S-1<p.nk) load(k+p.S-1); }
  asm volatile("wgmma.wait_group.sync.aligned 0;":::"memory"); float t=0; for(int i=0;i<MB;i++) for(int j=0;j<Mma<N>::R;j++) t+=c[i][j]; if(t==1.5f) sink[0]=t; if(lead) o[p.nst-1]=clock64(); }
typedef CUresult(*ENC)(CUtensorMap*,CUtensorMapDataType,cuuint32_t,void*,const cuuint64_t*,const cuuint64_t*,const cuuint32_t*,const cuuint32_t*,CUtensorMapInterleave,CUtensorMapSwizzle,CUtensorMapL2promotion,CUtensorMapFloatOOBfill);
int gpc[200]; int root(int i){ while(gpc[i]!=i) i=gpc[i]; return i; }
int main(int argc,char**v){ bool prof=argc>1; int*who; CK(cudaMallocManaged(&who,1<<20));
  for(int i=0;i<200;i++) gpc[i]=i;
  if(!prof){ cudaLaunchAttribute at[1]; at[0].id=cudaLaunchAttributeClusterDimension; at[0].val.clusterDim.x=8; at[0].val.clusterDim.y=at[0].val.clusterDim.z=1; cudaLaunchConfig_t cf={}; cf.gridDim=dim3(1056); cf.blockDim=dim3(32); cf.attrs=at; cf.numAttrs=1; CK(cudaFuncSetAttribute(k_clus,cudaFuncAttributeMaxDynamicSharedMemorySize,100*1024)); cf.dynamicSmemBytes=100*1024;
    for(int r=0;r<40;r++){ CK(cudaLaunchKernelEx(&cf,k_clus,who)); CK(cudaDeviceSynchronize()); for(int i=0;i<1056;i+=8) for(int j=1;j<8;j++){ int a=root(who[i]),b=root(who[i+j]); gpc[std::max(a,b)]=std::min(a,b); } }
    for(int i=0;i<200;i++) gpc[i]=root(i); int ng=0; for(int i=0;i<132;i++) ng+=gpc[i]==i; printf("gpcs %d\n",ng); }
  void*fp=nullptr; cudaDriverEntryPointQueryResult qr; CK(cudaGetDriverEntryPoint("cuTensorMapEncodeTiled",&fp,cudaEnableDefault,&qr)); ENC enc=(ENC)fp;
  uint8_t*A,*B; float*sink; CK(cudaMalloc(&A,512u<<20)); CK(cudaMalloc(&B,512u<<20)); CK(cudaMalloc(&sink,64)); CK(cudaMemset(A,0,512u<<20)); CK(cudaMemset(B,0,512u<<20)); long long*so,*st; CK(cudaMallocManaged(&so,132*64)); CK(cudaMallocManaged(&st,256u<<20));
  struct C{int M,N,K,BM,BN,BK,S,ctas;} cs[]={ {4096,4096,4096,64,128,64,4,2},{2048,2048,2048,64,128,64,3,3},{8192,8192,8192,64,64,64,4,3},{1024,4096,4096,64,128,64,4,2},{4096,4096,4096,64,128,32,4,4},{1024,4096,4096,64,64,32,4,6},{2048,2048,2048,64,64,32,3,8},{4096,4096,4096,64,64,32,3,8},{8192,8192,8192,128,128,64,4,1},{8192,8192,8192,128,128,64,3,2},{4096,4096,4096,128,128,64,3,2},{8192,8192,2048,128,128,64,3,2},{4096,4096,4096,128,128,32,2,3},{2048,2048,2048,128,128,32,2,3} };
  void*ks[6]={(void*)k_gemm<64,1,64>,(void*)k_gemm<128,1,64>,(void*)k_gemm<128,2,64>,(void*)k_gemm<64,1,32>,(void*)k_gemm<128,1,32>,(void*)k_gemm<128,2,32>}; for(auto f:ks) CK(cudaFuncSetAttribute(f,cudaFuncAttributeMaxDynamicSharedMemorySize,220*1024)); CK(cudaFuncSetAttribute(k_sync,cudaFuncAttributeMaxDynamicSharedMemorySize,220*1024));
  if(prof) cudaProfilerStart();
  for(auto&q:cs){ P p; p.nm=q.M/q.BM; p.nn=q.N/q.BN; p.nk=q.K/q.BK; p.gm=8; p.S=q.S; p.BM=q.BM; p.BN=q.BN; p.BK=q.BK; p.every=8; p.nst=p.nk/8+2; CUtensorMap ta,tb; cuuint64_t da[2]={(cuuint64_t)q.K,(cuuint64_t)q.M},sa[1]={(cuuint64_t)q.K*2},db[2]={(cuuint64_t)q.K,(cuuint64_t)q.N}; cuuint32_t ba[2]={(cuuint32_t)q.BK,(cuuint32_t)q.BM},bb[2]={(cuuint32_t)q.BK,(cuuint32_t)q.BN},e[2]={1,1}; auto swz=q.BK==64?CU_TENSOR_MAP_SWIZZLE_128B:CU_TENSOR_MAP_SWIZZLE_64B;
    enc(&ta,CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,2,A,da,sa,ba,e,CU_TENSOR_MAP_INTERLEAVE_NONE,swz,CU_TENSOR_MAP_L2_PROMOTION_L2_128B,CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE); enc(&tb,CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,2,B,db,sa,bb,e,CU_TENSOR_MAP_INTERLEAVE_NONE,swz,CU_TENSOR_MAP_L2_PROMOTION_L2_128B,CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    int n=p.nm*p.nn; int smem=std::max(220*1024/q.ctas-2048,(q.BM+q.BN)*q.BK*2*q.S+1024); void*f=ks[(q.BM==128?2:q.BN==64?0:1)+(q.BK==32?3:0)]; void*args[]={&ta,&tb,&p,&st,&who,&sink};
    for(int r=0;r<(prof?1:2);r++){ if(!prof) k_sync<<<132,32,220*1024>>>(so); CK(cudaLaunchKernel(f,dim3(n),dim3(128),args,smem,0)); CK(cudaDeviceSynchronize()); }
    printf("CASE;%d;%d;%d;%d;%d;%d;%d;%d\n",q.M,q.N,q.K,q.BM,q.BN,q.BK,q.S,q.ctas); if(prof) continue;
    double hz=0; int h=0; for(int i=0;i<132;i++){ double dt=so[i*8+6]-so[i*8]; if(dt>0){ hz+=(so[i*8+7]-so[i*8+1])/dt; h++; } } hz/=h; std::vector<double> off(132); for(int i=0;i<132;i++) off[i]=(double)so[i*8+7]-(double)(so[i*8+6]-so[6])*hz;
    auto T=[&](int i,int j){ return st[(size_t)i*p.nst+j]-off[who[i]]; };
    double base=1e300,endt=0,life=0; for(int i=0;i<n;i++){ base=std::min(base,T(i,0)); endt=std::max(endt,T(i,p.nst-1)); life+=T(i,p.nst-1)-T(i,0); } printf(" total %.0f cyc/ns %.3f life %.0f fill/SM/clk %.1f\n",endt-base,hz,life/n,(double)n*p.nk*(q.BM+q.BN)*q.BK*2/(endt-base)/132);
    int slots=132*q.ctas; for(int wave=0;wave<(n+slots-1)/slots;wave=wave<4?wave+1:wave*2){ int lo=wave*slots,hi=std::min(n,(wave+1)*slots); std::vector<double> ss; for(int i=lo;i<hi;i++) ss.push_back(T(i,0)-base); std::sort(ss.begin(),ss.end());
      printf("  wave %d start p5 %.0f p50 %.0f p95 %.0f:",wave,ss[ss.size()*5/100],ss[ss.size()/2],ss[ss.size()*95/100]);
      for(int idx:{0,1,(p.nst-2)/2,p.nst-3}){ std::vector<double> lag; for(int i=lo;i<hi;i++){ auto mn=[&](int pid,int&m,int&nn){ int per=p.gm*p.nn; int g=pid/per,fm=g*p.gm,gs=std::min(p.nm-fm,p.gm); m=fm+(pid%per)%gs; nn=(pid%per)/gs; }; int mi,ni; mn(i,mi,ni); for(int j=std::max(0,i-64);j<std::min(n,i+65);j++) if(j!=i&&gpc[who[j]]==gpc[who[i]]&&who[i]!=who[j]){ int mj,nj; mn(j,mj,nj); if(mj!=mi&&nj!=ni) continue; lag.push_back(std::fabs(T(j,1+idx)-T(i,1+idx))); } }
        std::sort(lag.begin(),lag.end()); int a=0,b=0,c=0; for(double l:lag){ a+=l<50; b+=l<300; c+=l<1000; } if(lag.size()) printf(" it%d: p25 %.0f med %.0f p75 %.0f <50 %.2f <300 %.2f <1000 %.2f pairs %.1f |",idx*8,lag[lag.size()/4],lag[lag.size()/2],lag[lag.size()*3/4],(double)a/lag.size(),(double)b/lag.size(),(double)c/lag.size(),(double)lag.size()/(hi-lo)); }
      // spread within an SM: iteration stamps of CTAs that run together
      if(wave==0||wave==2){ std::vector<std::vector<double>> per(132); int idx=(p.nst-2)/2; for(int i=lo;i<hi;i++) per[who[i]].push_back(T(i,1+idx)); double sp=0; int k=0; for(auto&u:per) if(u.size()>1){ sp+=*std::max_element(u.begin(),u.end())-*std::min_element(u.begin(),u.end()); k++; } if(k) printf(" SM spread %.0f",sp/k); }
      printf("\n"); } }
  if(prof) cudaProfilerStop(); return 0; }
