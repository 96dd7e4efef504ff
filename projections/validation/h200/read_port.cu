#include <cstdio>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <algorithm>
#include <cuda_runtime.h>
#include <cuda_profiler_api.h>
#define CK(x) do{cudaError_t e=(x); if(e!=cudaSuccess){printf("ERR,%s,%d,%s\n",#x,__LINE__,cudaGetErrorString(e)); exit(1);}}while(0)
__device__ __forceinline__ unsigned smid(){unsigned r; asm volatile("mov.u32 %0,%%smid;":"=r"(r)); return r;}
__device__ __forceinline__ uint32_t s32(const void*p){uint32_t a; asm("{.reg .u64 t; cvta.to.shared.u64 t,%1; cvt.u32.u64 %0,t;}":"=r"(a):"l"(p)); return a;}
__device__ __forceinline__ unsigned long long gt(){unsigned long long r; asm volatile("mov.u64 %0,%%globaltimer;":"=l"(r)); return r;}
// A: SMs of `who` (bit list) read the same lines; SM number k of the list lags k*lag cycles. One warp, 8 x 512 B per period.
__global__ void k_lag(const uint4*g,const int*order,int n,int lag,int periods,int period,unsigned*ctr,volatile unsigned*flag,uint32_t*sink,long long*stamp,int bytes_cold_stride){
  int me=-1; unsigned id=smid(); for(int i=0;i<n;i++) if(order[i]==(int)id) me=i; if(me<0||threadIdx.x>=32) return;
  if(threadIdx.x==0){ unsigned t=atomicAdd(ctr,1); if(t==(unsigned)n-1) { __threadfence(); *flag=1; } while(!*flag); }
  __syncwarp(); long long t0=clock64()+2000+(long long)me*lag; uint32_t acc=0; if(threadIdx.x==0) stamp[me]=gt();
  for(int p=0;p<periods;p++){ while(clock64()<t0+(long long)p*period); const uint4*q=g+(size_t)p*256+threadIdx.x;
    uint4 v[8];
    #pragma unroll
    for(int k=0;k<8;k++) asm volatile("ld.global.cg.v4.b32 {%0,%1,%2,%3},[%4];":"=r"(v[k].x),"=r"(v[k].y),"=r"(v[k].z),"=r"(v[k].w):"l"(q+k*32));
    #pragma unroll
    for(int k=0;k<8;k++) acc^=v[k].x+v[k].w; }
  if(acc==77) sink[0]=1; }
// B: the SMs of a list copy from an L2-resident buffer with bulk copies for a fixed time; bytes per SM
__global__ void __launch_bounds__(32,1) k_bw(const uint8_t*g,const unsigned char*on,long long cycles,long long*bytes,size_t span,int shared,unsigned*ctr,volatile unsigned*flag,int n){
  extern __shared__ __align__(1024) uint8_t sm[]; __shared__ __align__(8) uint64_t mb[16]; unsigned id=smid(); if(!on[id]||threadIdx.x) return;
  uint32_t b=s32(mb), dst=(s32(sm)+127)&~127u; const int CB=8192,F=12; for(int i=0;i<F;i++) asm volatile("mbarrier.init.shared::cta.b64 [%0],1;"::"r"(b+8*i)); asm volatile("fence.proxy.async.shared::cta;":::"memory");
  unsigned t=atomicAdd(ctr,1); if(t==(unsigned)n-1){ __threadfence(); *flag=1; } while(!*flag);
  size_t off=shared?0:((size_t)id*(span/132))&~(size_t)8191; long long t0=clock64(),n0=0; int ph=0; bool first=true; while(clock64()-t0<cycles){ for(int k=0;k<F;k++){ if(!first){ uint32_t ok=0; while(!ok) asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p,[%1],%2; selp.b32 %0,1,0,p;}":"=r"(ok):"r"(b+8*k),"r"(ph^1):"memory"); n0+=CB; }
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _,[%0],%1;"::"r"(b+8*k),"r"(CB):"memory"); asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0],[%1],%2,[%3];"::"r"(dst+CB*k),"l"(g+off),"r"(CB),"r"(b+8*k):"memory"); off+=CB; if(off>=span) off=0; } ph^=1; first=false; }
  long long el=clock64()-t0; bytes[2*id]=n0; bytes[2*id+1]=el; for(int k=0;k<F;k++){ uint32_t ok=0; while(!ok) asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p,[%1],%2; selp.b32 %0,1,0,p;}":"=r"(ok):"r"(b+8*k),"r"(ph^1):"memory"); } }
__global__ void k_touch(uint4*g,size_t n,uint32_t*s){ uint32_t a=0; for(size_t i=blockIdx.x*(size_t)blockDim.x+threadIdx.x;i<n;i+=(size_t)gridDim.x*blockDim.x) a^=g[i].x; if(a==77) *s=1; }
__global__ void k_warm(const uint4*g,size_t n,const int*order,int m,uint32_t*s){ unsigned id=smid(); bool in=false; for(int i=0;i<m;i++) in|=order[i]==(int)id; if(!in) return; uint32_t a=0; for(size_t i=threadIdx.x;i<n;i+=blockDim.x) { uint4 v; asm volatile("ld.global.cg.v4.b32 {%0,%1,%2,%3},[%4];":"=r"(v.x),"=r"(v.y),"=r"(v.z),"=r"(v.w):"l"(g+i)); a^=v.x; } if(a==77) *s=1; }
int main(int c,char**v){ uint4*g; unsigned*ctr; uint32_t*s; long long*st; int*ord; CK(cudaMalloc(&g,512u<<20)); CK(cudaMemset(g,0,512u<<20)); CK(cudaMalloc(&ctr,64)); CK(cudaMalloc(&s,64)); CK(cudaMallocManaged(&st,132*16)); CK(cudaMallocManaged(&ord,1024));
 if(!strcmp(v[1],"lag")){ // sms: comma list file
   std::vector<std::vector<int>> sets; FILE*f=fopen(v[2],"r"); char line[4096]; while(fgets(line,4096,f)){ std::vector<int> q; for(char*t=strtok(line,", \n");t;t=strtok(0,", \n")) q.push_back(atoi(t)); if(q.size()) sets.push_back(q); }
   CK(cudaFuncSetAttribute(k_lag,cudaFuncAttributeMaxDynamicSharedMemorySize,200*1024)); int periods=256; cudaProfilerStart();
   for(auto&q:sets) for(int state=0;state<2;state++) for(int lag:{0,30,60,100,150,200,250,300,400,500,600,800,1000,1400}) { for(size_t i=0;i<q.size();i++) ord[i]=q[i]; CK(cudaMemset(ctr,0,64)); 
     if(state==0){ CK(cudaMemset((char*)g+(256u<<20),1,256u<<20)); } else { k_warm<<<132,1024,0>>>(g,(size_t)periods*256,ord,q.size(),s); }
     k_lag<<<132,64,200*1024>>>(g,ord,q.size(),lag,periods,4000,ctr,(volatile unsigned*)(ctr+4),s,st,0); CK(cudaDeviceSynchronize()); printf("CASE,k_lag,n=%zu first=%d,%s,lag=%d,start spread ns %lld\n",q.size(),q[0],state?"warm":"cold",lag,st[q.size()-1]-st[0]); }
   cudaProfilerStop(); }
 else { unsigned char*on; long long*by; CK(cudaMallocManaged(&on,256)); CK(cudaMallocManaged(&by,132*16)); CK(cudaFuncSetAttribute(k_bw,cudaFuncAttributeMaxDynamicSharedMemorySize,110*1024)); int gpc[132]; FILE*f=fopen(v[2],"r"); for(int i=0;i<132;i++) if(fscanf(f,"%d",gpc+i)!=1) return 1;
   auto go=[&](const char*name,size_t span,int shared,auto pred){ int n=0; for(int i=0;i<132;i++){ on[i]=pred(i); n+=on[i]; by[2*i]=by[2*i+1]=0; } k_touch<<<264,512>>>(g,span/16,s); for(int r=0;r<2;r++){ CK(cudaMemset(ctr,0,64)); k_bw<<<132,32,110*1024>>>((uint8_t*)g,on,300000,by,span,shared,ctr,(volatile unsigned*)(ctr+4),n); CK(cudaDeviceSynchronize()); }
     double tot=0; printf("BW,%s,n=%d,",name,n); std::vector<double> per; for(int i=0;i<132;i++) if(on[i]){ double x=(double)by[2*i]/by[2*i+1]; per.push_back(x); tot+=x; } std::sort(per.begin(),per.end()); printf("mean %.2f min %.2f max %.2f total %.0f |",tot/n,per[0],per.back(),tot); double gs[8]={0}; int gn[8]={0}; for(int i=0;i<132;i++) if(on[i]){ gs[gpc[i]]+=(double)by[2*i]/by[2*i+1]; gn[gpc[i]]++; } for(int q=0;q<8;q++) if(gn[q]) printf(" g%d:%d:%.2f",q,gn[q],gs[q]/gn[q]); printf(" |"); if(n==132||n<=18) for(int i=0;i<132;i++) if(on[i]) printf(" %d:%.1f",i,(double)by[2*i]/by[2*i+1]); printf("\n"); fflush(stdout); };
   for(int gq=0;gq<8;gq+=1) { for(int m:{1,2,4,8,12,16,18}){ std::vector<int> mem; for(int i=0;i<132;i++) if(gpc[i]==gq) mem.push_back(i); if(m>(int)mem.size()) continue; if(gq>1&&m<(int)mem.size()&&gq!=6) continue; char nm[64]; sprintf(nm,"gpc%d first %d",gq,m); go(nm,16u<<20,0,[&](int i){ for(int k=0;k<m;k++) if(mem[k]==i) return 1; return 0; }); } }
   for(size_t sp:{4u<<20,16u<<20,24u<<20,40u<<20}) { char nm[64]; sprintf(nm,"all apart %zuMiB",sp>>20); go(nm,sp,0,[&](int){return 1;}); sprintf(nm,"all together %zuMiB",sp>>20); go(nm,sp,1,[&](int){return 1;}); }
   for(int k:{2,4,6,7}) { char nm[64]; sprintf(nm,"%d gpcs",k); go(nm,16u<<20,0,[&](int i){return gpc[i]<k;}); }
   go("all apart 400MiB (DRAM)",400u<<20,0,[&](int){return 1;}); go("all together 400MiB (DRAM)",400u<<20,1,[&](int){return 1;});
   for(int m:{2,4,8}) { char nm[64]; sprintf(nm,"%d SMs of each gpc",m); int cnt[8]={0}; std::vector<int> o(132,0); for(int i=0;i<132;i++) if(cnt[gpc[i]]<m){ cnt[gpc[i]]++; o[i]=1; } go(nm,16u<<20,0,[&](int i){return o[i];}); }
 } return 0; }
