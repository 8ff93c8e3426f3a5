use crate::device::Device;
use crate::error::{During, Result};
use cudarc::driver::{CudaFunction, CudaStream, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;
use shardtool_decode::{Dtype, Layout, Output};
use std::sync::Arc;

/// Compiled from `kernel.cu` by `../regenerate`. The driver compiles PTX for its device, so users need no CUDA toolkit.
const PTX: &str = include_str!("kernel.ptx");

/// Threads of a block, as in the kernels' `__launch_bounds__`.
const THREADS: u32 = 256;

/// The normalisation kernels for one output, on one device.
pub(crate) struct Kernel {
    output: Output,
    /// Four pixels a thread, for sizes that are multiples of 4.
    four: CudaFunction,
    /// One pixel a thread.
    one: CudaFunction,
}

impl Kernel {
    pub(crate) fn load(device: &Device, output: Output) -> Result<Self> {
        let module = device.context().load_module(Ptx::from_src(PTX)).during("loading the kernels")?;
        let dtype = match output.dtype() {
            Dtype::F32 => "f32",
            Dtype::F16 => "f16",
            Dtype::Bf16 => "bf16",
        };
        let layout = match output.layout() {
            Layout::Nhwc => "nhwc",
            Layout::Nchw => "nchw",
        };
        let function = |pixels| module.load_function(&format!("normalize_{dtype}_{layout}_{pixels}"));
        Ok(Kernel {
            output,
            four: function("x4").during("looking up a kernel")?,
            one: function("x1").during("looking up a kernel")?,
        })
    }

    /// Queues the normalisation of `n` images of `hw` pixels each on `stream`.
    ///
    /// # Safety
    /// `from` is the address of `[n, hw, 3]` u8, and `to` of memory for as many values of the output's type, both on
    /// `stream`'s device and aligned to 16 bytes. Both stay valid, and are not written by others, until the work queued
    /// here is done.
    pub(crate) unsafe fn launch(&self, stream: &Arc<CudaStream>, from: u64, to: u64, n: u32, hw: u32) -> Result<()> {
        let (function, threads) = if hw.is_multiple_of(4) { (&self.four, hw / 4) } else { (&self.one, hw) };
        // The y dimension of a grid is at most 65,535; for more images each block of the kernel takes several.
        let config = LaunchConfig {
            grid_dim: (threads.div_ceil(THREADS), n.min(65_535), 1),
            block_dim: (THREADS, 1, 1),
            shared_mem_bytes: 0,
        };
        let (a, b) = self.output.coefficients();
        let mut launch = stream.launch_builder(function);
        launch.arg(&from).arg(&to).arg(&n).arg(&hw);
        launch.arg(&a[0]).arg(&a[1]).arg(&a[2]).arg(&b[0]).arg(&b[1]).arg(&b[2]);
        // SAFETY: number, order and types of the arguments are those of the kernels in kernel.cu, and the arguments
        // outlive the call; the caller guarantees the memory.
        unsafe { launch.launch(config) }.during("launching the normalisation")?;
        Ok(())
    }
}
