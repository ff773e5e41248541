/* What ONNX Runtime's CUDA provider asks of the CUDA libraries until a session is ready: a device with 40 GB, whose memory is
   ordinary memory. The functions that the provider needs besides these do nothing and succeed; build.py adds them. */

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef void *Pointer;
static int handle[64];

int cudaGetDeviceCount(int *count) { *count = 1; return 0; }
int cudaGetDevice(int *device) { *device = 0; return 0; }
int cudaDriverGetVersion(int *version) { *version = 13000; return 0; }
int cudaRuntimeGetVersion(int *version) { *version = 13000; return 0; }
const char *cudaGetErrorName(int error) { return "none"; }
const char *cudaGetErrorString(int error) { return "none"; }
const char *cublasGetStatusName(int status) { return "none"; }
const char *cublasGetStatusString(int status) { return "none"; }

int cudaMemGetInfo(size_t *free_bytes, size_t *all) { *free_bytes = *all = (size_t)40 << 30; return 0; }
int cudaMalloc(Pointer *place, size_t size) { *place = aligned_alloc(256, (size + 511) / 256 * 256); return 0; }
int cudaMallocHost(Pointer *place, size_t size) { return cudaMalloc(place, size); }
int cudaHostAlloc(Pointer *place, size_t size, unsigned flags) { return cudaMalloc(place, size); }
int cudaMallocFromPoolAsync(Pointer *place, size_t size, Pointer pool, Pointer stream) { return cudaMalloc(place, size); }
int cudaFree(Pointer place) { free(place); return 0; }
int cudaFreeHost(Pointer place) { free(place); return 0; }
int cudaFreeAsync(Pointer place, Pointer stream) { free(place); return 0; }
int cudaMemcpy(Pointer to, Pointer from, size_t size, int kind) { memcpy(to, from, size); return 0; }
int cudaMemcpyAsync(Pointer to, Pointer from, size_t size, int kind, Pointer stream) { memcpy(to, from, size); return 0; }
int cudaMemset(Pointer place, int value, size_t size) { memset(place, value, size); return 0; }
int cudaMemsetAsync(Pointer place, int value, size_t size, Pointer stream) { memset(place, value, size); return 0; }

int cudaStreamCreate(Pointer *stream) { *stream = handle; return 0; }
int cudaStreamCreateWithFlags(Pointer *stream, unsigned flags) { *stream = handle; return 0; }
int cudaEventCreate(Pointer *event) { *event = handle; return 0; }
int cudaEventCreateWithFlags(Pointer *event, unsigned flags) { *event = handle; return 0; }
int cudaMemPoolCreate(Pointer *pool, Pointer properties) { *pool = handle; return 0; }
int cublasCreate_v2(Pointer *blas) { *blas = handle; return 0; }
int cublasLtCreate(Pointer *blas) { *blas = handle; return 0; }
int cudnnCreate(Pointer *dnn) { *dnn = handle; return 0; }
Pointer *__cudaRegisterFatBinary(Pointer binary) { static Pointer registered[1]; return registered; }
int cudaFuncGetAttributes(Pointer attributes, Pointer function) { memset(attributes, 0, 128); return 0; }
int cudaPointerGetAttributes(Pointer attributes, Pointer place) { memset(attributes, 0, 64); return 0; }
int cudaGetDriverEntryPointByVersion(const char *name, Pointer *function, unsigned version, unsigned long long flags, int *found) {
    *function = NULL;
    if (found) *found = 0;
    return 1;
}

/* Compute capability 8.9, with the offsets of struct cudaDeviceProp in CUDA 13. */
int cudaGetDeviceProperties(char *properties, int device) {
    memset(properties, 0, 1008);
    strcpy(properties, "placement");
    *(size_t *)(properties + 288) = (size_t)40 << 30; /* totalGlobalMem */
    *(size_t *)(properties + 296) = 49152;            /* sharedMemPerBlock */
    *(int *)(properties + 304) = 65536;               /* regsPerBlock */
    *(int *)(properties + 308) = 32;                  /* warpSize */
    *(int *)(properties + 320) = 1024;                /* maxThreadsPerBlock */
    int *block = (int *)(properties + 324), *grid = (int *)(properties + 336);
    block[0] = block[1] = 1024, block[2] = 64;
    grid[0] = 2147483647, grid[1] = grid[2] = 65535;
    *(int *)(properties + 360) = 8; /* major */
    *(int *)(properties + 364) = 9; /* minor */
    *(int *)(properties + 384) = 128; /* multiProcessorCount */
    return 0;
}

int cudaDeviceGetAttribute(int *value, int attribute, int device) {
    switch (attribute) {
        case 10: *value = 32; break;      /* warp size */
        case 16: *value = 128; break;     /* multiprocessors */
        case 75: *value = 8; break;       /* major */
        case 76: *value = 9; break;       /* minor */
        case 97: *value = 101376; break;  /* shared memory per block, opt in */
        default: *value = 1024;
    }
    return 0;
}
