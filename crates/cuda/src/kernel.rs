use crate::device::Device;
use crate::error::{Doing, Result};
use cudarc::driver::{CudaFunction, CudaStream, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;
use shardtool_decode::{Dtype, Layout, Output};
use std::sync::Arc;

/// Made from `kernel.cu` by `regenerate`; the driver compiles it for its device, so that users need no CUDA toolkit.
const PTX: &str = include_str!("kernel.ptx");

/// Threads of a block: what the kernels' launch bounds promise.
const THREADS: u32 = 256;

/// The kernels of one output, on one device.
pub(crate) struct Kernel {
    output: Output,
    four: CudaFunction,
    one: CudaFunction,
}

impl Kernel {
    pub(crate) fn load(device: &Device, output: Output) -> Result<Self> {
        let module = device.context().load_module(Ptx::from_src(PTX)).doing("loading the kernels")?;
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
            four: function("x4").doing("finding a kernel")?,
            one: function("x1").doing("finding a kernel")?,
        })
    }

    /// Queues the normalisation of `n` images of `hw` pixels on `stream`.
    ///
    /// # Safety
    /// On `stream`'s device, `from` holds `[n, hw, 3]` u8 and `to` has room for as many values of the output's type, both
    /// aligned to 16 bytes, valid until the work queued here is done, and nobody else writes either until then.
    pub(crate) unsafe fn launch(&self, stream: &Arc<CudaStream>, from: u64, to: u64, n: u32, hw: u32) -> Result<()> {
        let (function, threads) = if hw.is_multiple_of(4) { (&self.four, hw / 4) } else { (&self.one, hw) };
        // A grid's y ends at 65,535; the kernels go on from there by themselves.
        let config = LaunchConfig {
            grid_dim: (threads.div_ceil(THREADS), n.min(65_535), 1),
            block_dim: (THREADS, 1, 1),
            shared_mem_bytes: 0,
        };
        let (a, b) = self.output.coefficients();
        let mut launch = stream.launch_builder(function);
        launch.arg(&from).arg(&to).arg(&n).arg(&hw);
        launch.arg(&a[0]).arg(&a[1]).arg(&a[2]).arg(&b[0]).arg(&b[1]).arg(&b[2]);
        // SAFETY: the arguments are those of the kernels in kernel.cu, in number, order and type, and live past the call;
        // the memory is as this function's caller promises.
        unsafe { launch.launch(config) }.doing("launching the normalisation")?;
        Ok(())
    }
}
