// Normalisation on the device: u8 pixels [N, H, W, 3] become f32, f16 or bf16, as [N, H, W, 3] or [N, 3, H, W].
//
// Every value is fmaf(x, a[c], b[c]) in f32, then rounded to nearest even. A block's y is the image, its x a run of
// pixels in it. The x4 kernels take four pixels a thread (12 bytes in, three aligned vectors out) and need H*W % 4 == 0;
// the x1 kernels take one and fit every size. ../regenerate compiles this file to kernel.ptx, next to it.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

struct alignas(8) half4 { u16 v[4]; };
struct alignas(16) single4 { float v[4]; };

// Output types, each with the vector of four values that is stored at once.
struct F32 {
    typedef float one;
    typedef single4 four;
    static __device__ one of(float x) { return x; }
};
struct F16 {
    typedef u16 one;
    typedef half4 four;
    static __device__ one of(float x) {
        u16 h;
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
        return h;
    }
};
struct Bf16 {
    typedef u16 one;
    typedef half4 four;
    // The upper half of an f32, rounded to nearest even; coefficients are finite, so there are no NaNs to keep.
    static __device__ one of(float x) {
        u32 bits = __float_as_uint(x);
        return (u16)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
    }
};

struct Affine {
    float a[3], b[3];
    __device__ float at(u32 c, u32 x) const { return fmaf((float)x, a[c], b[c]); }
};

template <class T, bool planar>
static __device__ void four_pixels(const u8* in, void* out, u32 n, u32 hw, const Affine& f) {
    const u32 groups = hw / 4;
    const u32 g = blockIdx.x * blockDim.x + threadIdx.x;
    if (g >= groups) return;
    for (u32 i = blockIdx.y; i < n; i += gridDim.y) {
        const u32* words = (const u32*)in + ((u64)i * groups + g) * 3;
        const u32 w[3] = {words[0], words[1], words[2]};
        typename T::four v[3];
#pragma unroll
        for (u32 k = 0; k < 12; k++) {
            const u32 x = (w[k / 4] >> (8 * (k % 4))) & 255;
            const u32 c = k % 3;
            if (planar) v[c].v[k / 3] = T::of(f.at(c, x));
            else v[k / 4].v[k % 4] = T::of(f.at(c, x));
        }
        typename T::four* to = (typename T::four*)out;
#pragma unroll
        for (u32 c = 0; c < 3; c++) to[planar ? ((u64)i * 3 + c) * groups + g : ((u64)i * groups + g) * 3 + c] = v[c];
    }
}

template <class T, bool planar>
static __device__ void one_pixel(const u8* in, void* out, u32 n, u32 hw, const Affine& f) {
    const u32 q = blockIdx.x * blockDim.x + threadIdx.x;
    if (q >= hw) return;
    for (u32 i = blockIdx.y; i < n; i += gridDim.y) {
        const u64 pixel = (u64)i * hw + q;
#pragma unroll
        for (u32 c = 0; c < 3; c++) {
            const typename T::one v = T::of(f.at(c, in[pixel * 3 + c]));
            ((typename T::one*)out)[planar ? ((u64)i * 3 + c) * hw + q : pixel * 3 + c] = v;
        }
    }
}

#define KERNEL(name, body, type, planar)                                                                             \
    extern "C" __global__ void __launch_bounds__(256) name(const u8* in, void* out, u32 n, u32 hw, float a0, float a1, \
                                                           float a2, float b0, float b1, float b2) {                  \
        body<type, planar>(in, out, n, hw, Affine{{a0, a1, a2}, {b0, b1, b2}});                                       \
    }
#define KERNELS(type, name)                                    \
    KERNEL(normalize_##name##_nhwc_x4, four_pixels, type, false) \
    KERNEL(normalize_##name##_nchw_x4, four_pixels, type, true)  \
    KERNEL(normalize_##name##_nhwc_x1, one_pixel, type, false)   \
    KERNEL(normalize_##name##_nchw_x1, one_pixel, type, true)

KERNELS(F32, f32)
KERNELS(F16, f16)
KERNELS(Bf16, bf16)
