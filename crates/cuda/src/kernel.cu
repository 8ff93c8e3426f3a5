// Normalisation and mixing on the device: u8 pixels [N, H, W, 3] become f32, f16 or bf16, as [N, H, W, 3] or [N, 3, H, W].
//
// Every value is fmaf(x, a[c], b[c]) in f32, then rounded to nearest even. A block's y is the image, its x a run of
// pixels in it. The x4 kernels take four pixels a thread (12 bytes in, three aligned vectors out) and need H*W % 4 == 0;
// the x1 kernels take one and fit every size. The mix_ kernels normalise pixels that they mix from the batch's rows, as
// RowMix says; the mixed values are u8, so that they equal what the host mixes.
//
// ../regenerate compiles this file to kernel.ptx, next to it, which tests/ptx interprets; tests/standin/kernel.cpp
// compiles it for the CPU.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

struct alignas(8) half4 { u16 v[4]; };
struct alignas(16) single4 { float v[4]; };

#ifdef __CUDACC__
// Returns an f32 as f16, rounded to nearest even.
static __device__ u16 half_bits(float x) {
    u16 h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
    return h;
}
#endif

// Output types, each with the vector of four values that is stored at once.
struct F32 {
    typedef float one;
    typedef single4 four;
    static __device__ one of(float x) { return x; }
};
struct F16 {
    typedef u16 one;
    typedef half4 four;
    static __device__ one of(float x) { return half_bits(x); }
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

// Normalises and stores the four pixels of group g of image i; w are their 12 bytes.
template <class T, bool planar>
static __device__ void store_four(const u32* w, void* out, u32 i, u32 g, u32 groups, const Affine& f) {
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

// Normalises and stores pixel q of image i; x are its values.
template <class T, bool planar>
static __device__ void store_one(const u32* x, void* out, u32 i, u32 q, u32 hw, const Affine& f) {
#pragma unroll
    for (u32 c = 0; c < 3; c++) {
        const typename T::one v = T::of(f.at(c, x[c]));
        ((typename T::one*)out)[planar ? ((u64)i * 3 + c) * hw + q : ((u64)i * hw + q) * 3 + c] = v;
    }
}

template <class T, bool planar>
static __device__ void four_pixels(const u8* in, void* out, u32 n, u32 hw, const Affine& f) {
    const u32 groups = hw / 4;
    const u32 g = blockIdx.x * blockDim.x + threadIdx.x;
    if (g >= groups) return;
    for (u32 i = blockIdx.y; i < n; i += gridDim.y) {
        const u32* words = (const u32*)in + ((u64)i * groups + g) * 3;
        const u32 w[3] = {words[0], words[1], words[2]};
        store_four<T, planar>(w, out, i, g, groups, f);
    }
}

template <class T, bool planar>
static __device__ void one_pixel(const u8* in, void* out, u32 n, u32 hw, const Affine& f) {
    const u32 q = blockIdx.x * blockDim.x + threadIdx.x;
    if (q >= hw) return;
    for (u32 i = blockIdx.y; i < n; i += gridDim.y) {
        const u8* pixel = in + ((u64)i * hw + q) * 3;
        const u32 x[3] = {pixel[0], pixel[1], pixel[2]};
        store_one<T, planar>(x, out, i, q, hw, f);
    }
}

// How a row of the batch is mixed: RowMix of the crate shardtool-load, which defines the numbers. The columns and the
// lines that it names divide the row into four regions, each of which shows a row of the batch.
struct RowMix {
    u32 left, width, top, height;
    u32 source[4], offset[4];
    u32 partner, weight;

    // The region of a pixel: bit 0 inside the columns, bit 1 inside the lines.
    __device__ u32 region(u32 x, u32 y) const { return (u32)(x - left < width) | (u32)(y - top < height) << 1; }
};

static __device__ u32 blend(u32 a, u32 b, u32 weight) { return (a * weight + b * (65536 - weight) + 32768) >> 16; }

template <class T, bool planar>
static __device__ void four_mixed(const u8* in, const RowMix* mixes, void* out, u32 n, u32 hw, u32 width,
                                  const Affine& f) {
    const u32 groups = hw / 4;
    const u32 g = blockIdx.x * blockDim.x + threadIdx.x;
    if (g >= groups) return;
    for (u32 i = blockIdx.y; i < n; i += gridDim.y) {
        const RowMix& mix = mixes[i];
        u32 x = 4 * g % width, y = 4 * g / width, region[4];
#pragma unroll
        for (u32 k = 0; k < 4; k++) {
            region[k] = mix.region(x, y);
            if (++x == width) x = 0, y++;
        }
        u32 w[3] = {0, 0, 0};
        const u32 r = region[0], offset = mix.offset[r];
        if (region[1] == r && region[2] == r && region[3] == r && offset % 4 == 0) {
            // The four pixels are a group of the source too.
            const u32* words = (const u32*)in + ((u64)mix.source[r] * groups + (4 * g + offset) / 4) * 3;
#pragma unroll
            for (u32 k = 0; k < 3; k++) w[k] = words[k];
        } else {
#pragma unroll
            for (u32 k = 0; k < 4; k++) {
                const u32 q = 4 * g + k + mix.offset[region[k]];
                const u8* pixel = in + ((u64)mix.source[region[k]] * hw + q) * 3;
#pragma unroll
                for (u32 c = 0; c < 3; c++) w[(3 * k + c) / 4] |= (u32)pixel[c] << 8 * ((3 * k + c) % 4);
            }
        }
        if (mix.weight < 65536) {
            const u32* words = (const u32*)in + ((u64)mix.partner * groups + g) * 3;
#pragma unroll
            for (u32 k = 0; k < 3; k++) {
                const u32 own = w[k], other = words[k];
                w[k] = 0;
#pragma unroll
                for (u32 bit = 0; bit < 32; bit += 8)
                    w[k] |= blend((own >> bit) & 255, (other >> bit) & 255, mix.weight) << bit;
            }
        }
        store_four<T, planar>(w, out, i, g, groups, f);
    }
}

template <class T, bool planar>
static __device__ void one_mixed(const u8* in, const RowMix* mixes, void* out, u32 n, u32 hw, u32 width,
                                 const Affine& f) {
    const u32 q = blockIdx.x * blockDim.x + threadIdx.x;
    if (q >= hw) return;
    for (u32 i = blockIdx.y; i < n; i += gridDim.y) {
        const RowMix& mix = mixes[i];
        const u32 region = mix.region(q % width, q / width);
        const u32 shown = q + mix.offset[region];
        const u8* own = in + ((u64)mix.source[region] * hw + shown) * 3;
        const u8* other = in + ((u64)mix.partner * hw + q) * 3;
        u32 x[3];
#pragma unroll
        for (u32 c = 0; c < 3; c++) x[c] = mix.weight < 65536 ? blend(own[c], other[c], mix.weight) : own[c];
        store_one<T, planar>(x, out, i, q, hw, f);
    }
}

#define KERNEL(name, body, type, planar)                                                                             \
    extern "C" __global__ void __launch_bounds__(256) name(const u8* in, void* out, u32 n, u32 hw, float a0, float a1, \
                                                           float a2, float b0, float b1, float b2) {                  \
        body<type, planar>(in, out, n, hw, Affine{{a0, a1, a2}, {b0, b1, b2}});                                       \
    }
#define MIX_KERNEL(name, body, type, planar)                                                                          \
    extern "C" __global__ void __launch_bounds__(256)                                                                 \
        name(const u8* in, void* out, u32 n, u32 hw, float a0, float a1, float a2, float b0, float b1, float b2,      \
             const RowMix* mixes, u32 width) {                                                                        \
        body<type, planar>(in, mixes, out, n, hw, width, Affine{{a0, a1, a2}, {b0, b1, b2}});                         \
    }
#define KERNELS(type, name)                                      \
    KERNEL(normalize_##name##_nhwc_x4, four_pixels, type, false) \
    KERNEL(normalize_##name##_nchw_x4, four_pixels, type, true)  \
    KERNEL(normalize_##name##_nhwc_x1, one_pixel, type, false)   \
    KERNEL(normalize_##name##_nchw_x1, one_pixel, type, true)    \
    MIX_KERNEL(mix_##name##_nhwc_x4, four_mixed, type, false)    \
    MIX_KERNEL(mix_##name##_nchw_x4, four_mixed, type, true)     \
    MIX_KERNEL(mix_##name##_nhwc_x1, one_mixed, type, false)     \
    MIX_KERNEL(mix_##name##_nchw_x1, one_mixed, type, true)

KERNELS(F32, f32)
KERNELS(F16, f16)
KERNELS(Bf16, bf16)
