// Fourth set: arithmetic mixes, shared accesses and bulk copies beside wgmma; latency distributions, idle and under load.
#include <cstdio>
#include <cstdint>
#include <vector>
#include <algorithm>
#include <cuda_runtime.h>
#define CK(x) do{cudaError_t e=(x); if(e!=cudaSuccess){printf("ERR,%s,%d,%s,\n",#x,__LINE__,cudaGetErrorString(e)); cudaGetLastError();}}while(0)
static void out(const char*g,const char*n,const char*p,double v,const char*u){printf("%s,%s,%s,%.4f,%s\n",g,n,p,v,u);fflush(stdout);}
static long long*d_o; static uint32_t*d_s;
static long long rd(int i=0){long long v; CK(cudaDeviceSynchronize()); CK(cudaMemcpy(&v,d_o+i,8,cudaMemcpyDeviceToHost)); return v;}
__device__ __forceinline__ uint32_t s32(const void*p){uint32_t a; asm("{.reg .u64 t; cvta.to.shared.u64 t,%1; cvt.u32.u64 %0,t;}":"=r"(a):"l"(p)); return a;}
#define D64 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}"
#define C8(b) "+f"(c[b]),"+f"(c[b+1]),"+f"(c[b+2]),"+f"(c[b+3]),"+f"(c[b+4]),"+f"(c[b+5]),"+f"(c[b+6]),"+f"(c[b+7])
#define WGSS asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 " D64 ",%64,%65,1,1,1,0,0;":C8(0),C8(8),C8(16),C8(24),C8(32),C8(40),C8(48),C8(56):"l"(da),"l"(db));
#define WGRS asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 " D64 ",{%65,%66,%67,%68},%64,1,1,1,0;":C8(0),C8(8),C8(16),C8(24),C8(32),C8(40),C8(48),C8(56):"l"(db),"r"(a0),"r"(a0),"r"(a0),"r"(a0));
enum {FMUL,FADD,FFMA3,IADD,MUFU,MIX,LDS,STS,SHFL,BULK,LOP,CVT,FMA2,LDSV,NONE};
// warps 0-3 (WGS=1) or 0-7 (WGS=2): wgmma streams when mode&1; the other 4 warps: a stream of KIND when mode&2
template<int KIND,int WGS,int RS> __global__ void __launch_bounds__(128*(WGS+1),1) k_b(long long*o,uint32_t*sink,const uint8_t*g,int it,int mode,float cc,int inflight){
  extern __shared__ __align__(1024) uint8_t sm[]; __shared__ __align__(8) uint64_t mb[16]; __shared__ volatile int done;
  for(int i=threadIdx.x;i<16384;i+=blockDim.x) ((uint32_t*)sm)[i]=0x3c003c00u; if(threadIdx.x==0) done=0;
  uint32_t s=(s32(sm)+1023)&~1023u; uint64_t base=((uint64_t)1<<62)|((uint64_t)64<<32)|((uint64_t)1<<16); int wg=threadIdx.x/128;
  uint64_t da=base|((s+wg*8192)>>4&0x3fff),db=base|((s+32768)>>4&0x3fff); uint32_t a0=0x3c003c00u;
  if(threadIdx.x==0){ for(int i=0;i<16;i++) asm volatile("mbarrier.init.shared::cta.b64 [%0],1;"::"r"(s32(mb)+8*i)); asm volatile("fence.proxy.async.shared::cta;":::"memory"); }
  __syncthreads();
  if(threadIdx.x<128*WGS){ if(mode&1){ float c[64]; for(int i=0;i<64;i++) c[i]=0; long long t0=clock64(); int n=0; while(n<it){ asm volatile("wgmma.fence.sync.aligned;":::"memory");
      #pragma unroll
      for(int q=0;q<8;q++){ if(RS) WGRS else WGSS }
      asm volatile("wgmma.commit_group.sync.aligned;":::"memory"); asm volatile("wgmma.wait_group.sync.aligned 0;":::"memory"); n++; } long long t1=clock64(); float x=0; for(int i=0;i<64;i++) x+=c[i]; if(x==1.25f) sink[0]=1; if(threadIdx.x==0){ o[1]=t1-t0; done=1; } } }
  else if(mode&2){ int t=threadIdx.x-128*WGS; float f[8]; uint32_t u[8]; for(int i=0;i<8;i++){ f[i]=t+i; u[i]=t*3+i; } long long t0=clock64(); long long n=0;
    if(KIND==BULK){ if(t==0){ int ph=0; uint32_t b=s32(mb), dst=s+65536; size_t off=0; const int CB=(int)cc; for(int i=0;i<it*2/inflight+1;i++){ for(int k=0;k<inflight;k++){ if(i){ uint32_t ok=0; while(!ok) asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p,[%1],%2; selp.b32 %0,1,0,p;}":"=r"(ok):"r"(b+8*k),"r"(ph^1):"memory"); }
          asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _,[%0],%1;"::"r"(b+8*k),"r"(CB):"memory"); asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0],[%1],%2,[%3];"::"r"(dst+CB*k),"l"(g+off),"r"(CB),"r"(b+8*k):"memory"); off=(off+CB)&((4u<<20)-1); n+=CB; } ph^=1; }
        for(int k=0;k<inflight;k++){ uint32_t ok=0; while(!ok) asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p,[%1],%2; selp.b32 %0,1,0,p;}":"=r"(ok):"r"(b+8*k),"r"(ph^1):"memory"); } o[0]=clock64()-t0; o[2]=n; } }
    else { int reps=it*(KIND==MUFU?1:KIND==MIX?1:KIND==LDS||KIND==STS?2:KIND==SHFL?2:4); uint32_t ad=s+65536+t*4; for(int i=0;i<reps;i++){
      #pragma unroll
      for(int r=0;r<8;r++){
        if(KIND==MIX){
          #pragma unroll
          for(int k=0;k<8;k++) asm volatile("max.f32 %0,%0,%1;":"+f"(f[k]):"f"(cc));
          #pragma unroll
          for(int k=0;k<8;k++) asm volatile("fma.rn.f32 %0,%0,%1,%2;":"+f"(f[k]):"f"(cc),"f"(f[(k+1)&7]));
          #pragma unroll
          for(int k=0;k<8;k++) asm volatile("ex2.approx.ftz.f32 %0,%0;":"+f"(f[k]));
          #pragma unroll
          for(int k=0;k<8;k++) asm volatile("add.f32 %0,%0,%1;":"+f"(f[k]):"f"(f[(k+3)&7]));
          #pragma unroll
          for(int k=0;k<4;k++) asm volatile("{.reg .b32 h; cvt.rn.bf16x2.f32 h,%0,%1; mov.b32 %0,h;}":"+f"(f[k]):"f"(f[k+4]));
        } else {
        #pragma unroll
        for(int k=0;k<8;k++){ if(KIND==FMUL) asm volatile("mul.f32 %0,%0,%1;":"+f"(f[k]):"f"(cc)); if(KIND==FADD) asm volatile("add.f32 %0,%0,%1;":"+f"(f[k]):"f"(cc)); if(KIND==FFMA3) asm volatile("fma.rn.f32 %0,%1,%2,%0;":"+f"(f[k]):"f"(f[(k+1)&7]),"f"(f[(k+2)&7])); if(KIND==LOP) asm volatile("lop3.b32 %0,%0,%1,%1,0x1e;":"+r"(u[k]):"r"(i)); if(KIND==CVT) asm volatile("{.reg .b32 h; cvt.rn.bf16x2.f32 h,%0,%1; mov.b32 %0,h;}":"+f"(f[k]):"f"(cc)); if(KIND==FMA2) asm volatile("fma.rn.f32 %0,%0,%1,%1;":"+f"(f[k]):"f"(cc)); if(KIND==LDSV){ uint32_t v; asm volatile("ld.volatile.shared.b32 %0,[%1];":"=r"(v):"r"(ad+k*512):"memory"); u[k]^=v; } if(KIND==IADD) asm volatile("add.s32 %0,%0,%1;":"+r"(u[k]):"r"(i)); if(KIND==MUFU) asm volatile("ex2.approx.ftz.f32 %0,%0;":"+f"(f[k]));
          if(KIND==LDS) asm volatile("ld.shared.b32 %0,[%1];":"=r"(u[k]):"r"(ad+k*512)); if(KIND==STS) asm volatile("st.shared.b32 [%1],%0;"::"r"(u[k]),"r"(ad+k*512)); if(KIND==SHFL) asm volatile("shfl.sync.bfly.b32 %0,%0,1,31,0xffffffff;":"+r"(u[k])); } } } }
    long long t1=clock64(); if(t==0){ o[0]=t1-t0; o[2]=(long long)reps*64; } }
    float x=0; for(int i=0;i<8;i++) x+=f[i]+u[i]; if(x==1.25f) sink[0]=1; } }
template<int K,int W,int RS> void bes(const char*n,int inflight=1,float cc=1.5f){ auto k=k_b<K,W,RS>; CK(cudaFuncSetAttribute(k,cudaFuncAttributeMaxDynamicSharedMemorySize,200*1024)); static uint8_t*g=nullptr; if(!g){ CK(cudaMalloc(&g,8<<20)); CK(cudaMemset(g,0,8<<20)); } double r[4]={0},w[4]={0}; int it=256; char p[96];
  for(int m:{2,3,1}){ int itt=it; for(int q=0;q<2;q++){ k<<<1,128*(W+1),200*1024>>>(d_o,d_s,g,itt,m,cc,inflight); rd(0);} if(m&2) r[m]=K==BULK? (double)rd(2)/rd(0) : rd(0)/(double)rd(2); if(m&1) w[m]=rd(1)/(itt*8.0*W); }
  sprintf(p,"%s wgmma=%s WGs=%d inflight=%d size=%d",n,RS?"RS":"SS",W,inflight,K==BULK?(int)cc:0); out("beside_wgmma2",p,K==BULK?"alone B/clk":"alone cycles",r[2],""); out("beside_wgmma2",p,K==BULK?"beside B/clk":"beside cycles",r[3],""); out("beside_wgmma2",p,"wgmma interval alone",w[1],"cycles"); out("beside_wgmma2",p,"wgmma interval beside",w[3],"cycles"); }
// chase: one thread follows `n` dependent loads over a table of 128-B lines; stores each latency
__global__ void k_lat(const uint32_t*tab,uint32_t start,int n,int*lat,int*sm,const uint4*st,size_t stn,int warps,int chasers,long long*bytes,uint32_t*sink){
  if(blockIdx.x<chasers){ if(threadIdx.x==0){ uint32_t p=start+blockIdx.x*977; p&=~31u; unsigned id; asm volatile("mov.u32 %0,%%smid;":"=r"(id)); sm[blockIdx.x]=id; for(int i=0;i<n;i++){ uint32_t v; long long t0=clock64(); asm volatile("ld.global.cg.b32 %0,[%1];":"=r"(v):"l"(tab+p):"memory"); p=v; long long t1; asm volatile("{.reg .pred q; setp.eq.u32 q,%1,0xffffffff; @q trap; mov.u64 %0,%%clock64;}":"=l"(t1):"r"(v):"memory"); lat[blockIdx.x*n+i]=(int)(t1-t0); } sink[1]=p; bytes[1]=1; __threadfence(); *(volatile long long*)(bytes+2)=1; } }
  else if(warps>0){ uint32_t acc=0; size_t i=((size_t)(blockIdx.x-chasers)*blockDim.x+threadIdx.x); long long b=0; if(threadIdx.x<warps*32) { long long t0=clock64(); while(!*(volatile long long*)(bytes+2) && clock64()-t0<4000000){ 
     #pragma unroll
     for(int k=0;k<4;k++){ uint4 v; asm volatile("ld.global.cg.v4.b32 {%0,%1,%2,%3},[%4];":"=r"(v.x),"=r"(v.y),"=r"(v.z),"=r"(v.w):"l"(st+i)); acc+=v.x^v.y; i+=(size_t)blockDim.x*gridDim.x; if(i>=stn) i-=stn; b+=16; } } if((threadIdx.x&31)==0) atomicAdd((unsigned long long*)bytes,(unsigned long long)b*32); } if(acc==123) sink[0]=1; } }
void lats(const char*nm,size_t mb,size_t stmb,int warps,int chasers,int warm){ uint32_t n=(mb<<20)/4; static uint32_t*tab=nullptr; static uint4*st=nullptr; static int*lat,*sm; static long long*by; if(!tab){ CK(cudaMalloc(&tab,1ull<<30)); CK(cudaMalloc(&st,2ull<<30)); CK(cudaMemset(st,0,2ull<<30)); CK(cudaMallocManaged(&lat,132*4096*4)); CK(cudaMallocManaged(&sm,1024)); CK(cudaMallocManaged(&by,64)); }
  std::vector<uint32_t> h(n),perm(n/32); for(uint32_t i=0;i<n/32;i++) perm[i]=i; uint32_t x=12345; for(uint32_t i=n/32-1;i>0;i--){ x=x*1664525u+1013904223u; std::swap(perm[i],perm[(x>>3)%(i+1)]); } for(uint32_t i=0;i<n/32;i++) h[(size_t)perm[i]*32]=perm[(i+1)%(n/32)]*32; CK(cudaMemcpy(tab,h.data(),(size_t)n*4,cudaMemcpyHostToDevice)); int N=2048;
  for(int q=0;q<(warm?2:1);q++){ if(!warm) CK(cudaMemset(st,0,512<<20)); by[0]=by[1]=by[2]=0; cudaEvent_t a,b; cudaEventCreate(&a); cudaEventCreate(&b); cudaEventRecord(a); k_lat<<<warps>0?132:chasers,1024>>>(tab,0,N,lat,sm,st,(stmb<<20)/16,warps,chasers,by,d_s); cudaEventRecord(b); CK(cudaDeviceSynchronize()); float ms; cudaEventElapsedTime(&ms,a,b); if(q==(warm?1:0)){ std::vector<int> v; for(int i=64;i<N;i++) for(int c=0;c<chasers;c++) v.push_back(lat[c*N+i]); std::sort(v.begin(),v.end()); char p[128]; auto pc=[&](double f){return (double)v[(size_t)(f*(v.size()-1))];}; double mean=0; for(int z:v) mean+=z; mean/=v.size(); printf("latency,%s,table=%zuMiB stream=%zuMiB warps=%d chasers=%d sm0=%d GBs=%.0f,mean %.0f p1 %.0f p10 %.0f p25 %.0f p50 %.0f p75 %.0f p90 %.0f p99 %.0f max %.0f,\n",nm,mb,stmb,warps,chasers,sm[0],by[0]/ms/1e6,mean,pc(.01),pc(.1),pc(.25),pc(.5),pc(.75),pc(.9),pc(.99),pc(1)); 
      if(warps==0&&chasers==1){ printf("hist,%s,%zuMiB,",nm,mb); int lo=v[0]/10*10; for(int z=lo;z<v.back()+10&&z<lo+1200;z+=10){ int cn=std::upper_bound(v.begin(),v.end(),z+9)-std::lower_bound(v.begin(),v.end(),z); if(cn) printf(" %d:%d",z,cn);} printf("\n"); } fflush(stdout);} } }
int main(){ CK(cudaMalloc(&d_o,1<<20)); CK(cudaMalloc(&d_s,1<<20));
 bes<FMUL,2,0>("FMUL"); bes<FMA2,1,0>("FFMA 2 registers"); bes<FMA2,2,0>("FFMA 2 registers"); bes<FFMA3,2,0>("FFMA 3 registers"); bes<IADD,2,0>("IADD"); bes<LOP,1,0>("LOP3"); bes<LOP,2,0>("LOP3"); bes<MUFU,2,0>("MUFU"); bes<CVT,2,0>("F2FP"); bes<SHFL,2,0>("SHFL"); bes<LDSV,1,0>("LDS"); bes<LDSV,2,0>("LDS"); bes<MIX,2,1>("softmax mix"); bes<LOP,2,1>("LOP3"); bes<FMUL,2,1>("FMUL");
 for(int f:{2,3,4}) for(float c:{16384.f,32768.f}){ if(f*c>120000) continue; bes<BULK,1,0>("bulk copy",f,c); bes<BULK,2,0>("bulk copy",f,c); }
 lats("idle",1,0,0,1,1); lats("idle",1,0,0,8,1); lats("idle",8,0,0,1,1); lats("idle",40,0,0,1,1); lats("idle",512,0,0,1,0); lats("idle 132 chasers",8,0,0,132,1); lats("idle 132 chasers",512,0,0,132,0);
 for(int w:{1,2,4,8,16,32}) lats("beside L2 stream",4,16,w,4,1);
 for(int w:{1,2,4,8,16,32}) lats("beside DRAM stream",256,1800,w,4,0);
 for(int w:{4,32}) lats("L2 chase beside DRAM stream",4,1800,w,4,1);
 return 0; }
