// A training step's stand-in: multiply-adds that keep every multiprocessor busy for a time set by `rounds`. busy.ptx is
// made from it by crates/cuda/regenerate.

extern "C" __global__ void busy(float* out, unsigned rounds) {
    float x = threadIdx.x, y = blockIdx.x;
    for (unsigned i = 0; i < rounds; i++) {
        x = fmaf(x, 0.999f, y);
        y = fmaf(y, 0.999f, x);
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = x + y;
}
