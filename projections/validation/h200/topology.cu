#include <cstdio>
#include <cstdlib>
#include <vector>
#include <algorithm>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
#define CK(x) do{cudaError_t e_=(x); if(e_){printf("ERR %s line %d\n",cudaGetErrorString(e_),__LINE__);exit(1);} }while(0)
__device__ unsigned smid(){unsigned r; asm volatile("mov.u32 %0,%%smid;":"=r"(r)); return r;}
__device__ unsigned long long gt(){unsigned long long r; asm volatile("mov.u64 %0,%%globaltimer;":"=l"(r)); return r;}
__global__ void who(int*o,long long*t,int spin){extern __shared__ char s[]; long long c=clock64(); if(threadIdx.x==0){o[blockIdx.x]=smid(); t[blockIdx.x]=gt();} while(clock64()-c<spin);}
__global__ void clus(int*o){ if(threadIdx.x==0) o[blockIdx.x]=smid(); long long c=clock64(); while(clock64()-c<20000);}
__global__ void lat(unsigned*buf,int n,int*o,int*sm){ // one thread per SM, serialized by turn
  if(threadIdx.x) return; sm[blockIdx.x]=smid();
  for(int rep=0;rep<4;rep++) for(int i=0;i<n;i++){ unsigned*p=buf+(size_t)i*1024; long long a=clock64(); unsigned v=atomicAdd(p,0u); a=clock64()-a+(v>>31); if(rep==0||a<o[blockIdx.x*n+i]) o[blockIdx.x*n+i]=(int)a; }
}
__device__ volatile int flag_[2];
// two SMs read the same (or different) 2 MB region in lockstep
__global__ void __launch_bounds__(1024,1) pairk(const float4*buf,int a,int b,int same,int*cnt,float*out){
  int s=smid(); if(s!=a&&s!=b) return; int me=(s==a)?0:1;
  const float4*p=buf+((same||me==0)?0:(size_t)(1<<20));
  float acc=0; const int N=(2<<20)/16; int step=0;
  for(int i=threadIdx.x;i<N;i+=1024*2){
    if(a!=b){ __syncthreads(); if(threadIdx.x==0){ step++; atomicAdd(cnt,1); while(*(volatile int*)cnt<2*step); } __syncthreads(); }
    float4 v=__ldcg(p+i), w=__ldcg(p+i+1024); acc+=v.x+w.y;
  }
  if(acc==12345.f) out[0]=acc;
}
int main(int c,char**v){
  int mode=c>1?atoi(v[1]):0; int*o;long long*t; CK(cudaMallocManaged(&o,1<<22)); CK(cudaMallocManaged(&t,1<<22));
  if(mode==0){
    CK(cudaFuncSetAttribute(who,cudaFuncAttributeMaxDynamicSharedMemorySize,200*1024));
    for(int cfg=0;cfg<3;cfg++){ int sm=cfg==0?200*1024:cfg==1?100*1024:20*1024; int g=cfg==0?264:cfg==1?528:1056; for(int r=0;r<2;r++){ who<<<g,128,sm>>>(o,t,100000); CK(cudaDeviceSynchronize()); }
      printf("who cfg %d:",cfg); for(int i=0;i<g;i++)printf(" %d",o[i]); printf("\n"); printf("start ns cfg %d:",cfg); long long m=t[0]; for(int i=0;i<g;i++)m=std::min(m,t[i]); for(int i=0;i<g;i+= (cfg==0?1:7))printf(" %lld",t[i]-m); printf("\n"); }
    int par[200]; for(int i=0;i<200;i++)par[i]=i;
    CK(cudaFuncSetAttribute(clus,cudaFuncAttributeNonPortableClusterSizeAllowed,1));
    for(int cs:{2,4,8,16}){ for(int i=0;i<200;i++)par[i]=i; for(int r=0;r<60;r++){ cudaLaunchConfig_t cf={}; cf.gridDim=dim3(cs*(r%3==0?1:(64/cs*2))); cf.blockDim=32*(1+r%8); cudaLaunchAttribute at[1]; at[0].id=cudaLaunchAttributeClusterDimension; at[0].val.clusterDim.x=cs; at[0].val.clusterDim.y=1; at[0].val.clusterDim.z=1; cf.attrs=at; cf.numAttrs=1; cudaError_t e=cudaLaunchKernelEx(&cf,clus,o); if(e){printf("clus %d: %s\n",cs,cudaGetErrorString(e)); cudaGetLastError(); break;} CK(cudaDeviceSynchronize()); int g=cf.gridDim.x; 
        for(int k=0;k<g;k+=cs) for(int q=1;q<cs;q++){ int x=o[k],y=o[k+q]; while(par[x]!=x)x=par[x]; while(par[y]!=y)y=par[y]; par[x]=y; }
        if(r==1){ printf("cluster size %d placement:",cs); for(int k=0;k<std::min(g,132);k++)printf("%s%d",k%cs?" ":" | ",o[k]); printf("\n"); } }
      printf("cluster %d groups:",cs); std::vector<std::vector<int>> G(200); for(int i=0;i<132;i++){int x=i; while(par[x]!=x)x=par[x]; G[x].push_back(i);} for(auto&q:G) if(q.size()){ printf(" {"); for(int z:q)printf("%d ",z); printf("}"); } printf("\n"); }
  }
  if(mode==1){ unsigned*b; int n=512; CK(cudaMalloc(&b,(size_t)n*4096)); CK(cudaMemset(b,0,(size_t)n*4096)); int*sm=o+ (1<<18); 
    // one SM at a time: launch 132 CTAs but serialize by separate launches with big smem is complex; run all at once lightly loaded
    lat<<<132,32>>>(b,n,o,sm); CK(cudaDeviceSynchronize()); lat<<<132,32>>>(b,n,o,sm); CK(cudaDeviceSynchronize());
    for(int k=0;k<132;k++){ printf("lat sm %d:",sm[k]); for(int i=0;i<n;i+=4)printf(" %d",o[k*n+i]); printf("\n"); } }
  if(mode==2){ float4*b; CK(cudaMalloc(&b,64<<20)); CK(cudaMemset(b,0,64<<20)); int*cnt; CK(cudaMalloc(&cnt,4)); float*out; CK(cudaMalloc(&out,4)); CK(cudaFuncSetAttribute(pairk,cudaFuncAttributePreferredSharedMemoryCarveout,0));
    int as[]={0,1,40}; for(int ai=0;ai<3;ai++) for(int bb=0;bb<132;bb++){ if(ai>0&&bb%3) continue; CK(cudaMemset(cnt,0,4)); pairk<<<132,1024>>>(b,as[ai],bb,1,cnt,out); CK(cudaDeviceSynchronize()); }
    CK(cudaMemset(cnt,0,4)); pairk<<<132,1024>>>(b,0,1,0,cnt,out); CK(cudaDeviceSynchronize()); }
  return 0; }
