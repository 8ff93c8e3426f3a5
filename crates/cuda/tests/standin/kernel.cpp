// Compiles src/kernel.cu for the CPU, for the stand-in driver in cuda.c: the tests run the source of the kernels that
// users run, not a copy of it. What CUDA provides is defined here; a launch calls the kernel once per thread.
#include <cmath>
#include <cstring>

#define __device__
#define __global__
#define __launch_bounds__(threads)

namespace {
struct Dim3 {
    unsigned x, y, z;
};
thread_local Dim3 gridDim, blockDim, blockIdx, threadIdx;

unsigned __float_as_uint(float x) {
    unsigned bits;
    std::memcpy(&bits, &x, 4);
    return bits;
}
}  // namespace

// In cuda.c: older compilers have _Float16 in C only.
extern "C" unsigned short half_bits(float x);

#include "../../src/kernel.cu"

namespace {
typedef void Normalize(const u8*, void*, u32, u32, float, float, float, float, float, float);
typedef void Mix(const u8*, void*, u32, u32, float, float, float, float, float, float, const RowMix*, u32);

struct Kernel {
    const char* name;
    Normalize* normalize;
    Mix* mix;
};
#define ENTRIES(variant)                                                   \
    {"normalize_" #variant, normalize_##variant, nullptr}, {"mix_" #variant, nullptr, mix_##variant}
#define VARIANTS(type) \
    ENTRIES(type##_nhwc_x4), ENTRIES(type##_nchw_x4), ENTRIES(type##_nhwc_x1), ENTRIES(type##_nchw_x1)
const Kernel kernels[] = {VARIANTS(f32), VARIANTS(f16), VARIANTS(bf16)};
}  // namespace

// Returns the bytes of a kernel's RowMix for each image: 0 if it takes none, −1 if there is no kernel of that name.
extern "C" int kernel_mix_bytes(const char* name) {
    for (const Kernel& kernel : kernels)
        if (!std::strcmp(kernel.name, name)) return kernel.mix ? (int)sizeof(RowMix) : 0;
    return -1;
}

// Runs every thread of a grid. `mixes` is null for kernels that take none.
extern "C" void kernel_run(const char* name, const unsigned grid[2], unsigned block, const void* in, void* out, unsigned n,
                           unsigned hw, const float a[3], const float b[3], const void* mixes, unsigned width) {
    const Kernel* kernel = kernels;
    while (std::strcmp(kernel->name, name)) kernel++;
    gridDim = {grid[0], grid[1], 1}, blockDim = {block, 1, 1};
    for (blockIdx.y = 0; blockIdx.y < grid[1]; blockIdx.y++)
        for (blockIdx.x = 0; blockIdx.x < grid[0]; blockIdx.x++)
            for (threadIdx.x = 0; threadIdx.x < block; threadIdx.x++)
                if (kernel->mix)
                    kernel->mix((const u8*)in, out, n, hw, a[0], a[1], a[2], b[0], b[1], b[2], (const RowMix*)mixes, width);
                else
                    kernel->normalize((const u8*)in, out, n, hw, a[0], a[1], a[2], b[0], b[1], b[2]);
}
