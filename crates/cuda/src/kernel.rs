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

/// The kernels for one output, on one device.
pub(crate) struct Kernel {
    output: Output,
    /// Normalises.
    normalize: Variants,
    /// Mixes rows, and normalises the result.
    mix: Variants,
}

/// A kernel for every size of images.
struct Variants {
    /// Four pixels a thread, for sizes that are multiples of 4.
    four: CudaFunction,
    /// One pixel a thread.
    one: CudaFunction,
}

/// The images of a launch.
pub(crate) struct Images {
    /// Address of the u8 pixels.
    pub(crate) from: u64,
    /// Address of the normalised values.
    pub(crate) to: u64,
    /// Number of images.
    pub(crate) n: u32,
    /// Pixels of each.
    pub(crate) hw: u32,
    /// Columns of each.
    pub(crate) width: u32,
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
        let variants = |name: &str| -> Result<Variants> {
            let function = |pixels| module.load_function(&format!("{name}_{dtype}_{layout}_{pixels}"));
            let [four, one] = ["x4", "x1"].map(|pixels| function(pixels).during("looking up a kernel"));
            Ok(Variants { four: four?, one: one? })
        };
        Ok(Kernel { output, normalize: variants("normalize")?, mix: variants("mix")? })
    }

    /// Queues the normalisation of images on `stream`; with `mixes`, the address of a
    /// [`RowMix`](shardtool_load::RowMix) for each image, they are mixed first.
    ///
    /// # Safety
    /// `from` is the address of `[n, hw, 3]` u8, and `to` of memory for as many values of the output's type, both aligned
    /// to 16 bytes; `mixes` is that of the words of `n` values of `RowMix` whose rows are below `n` and whose pixels are
    /// inside the images, aligned to 4 bytes. All are on `stream`'s device, stay valid, and are not written by others,
    /// until the work queued here is done.
    pub(crate) unsafe fn launch(&self, stream: &Arc<CudaStream>, images: &Images, mixes: Option<u64>) -> Result<()> {
        let Images { from, to, n, hw, width } = images;
        let variants = if mixes.is_some() { &self.mix } else { &self.normalize };
        let (function, threads) = if hw.is_multiple_of(4) { (&variants.four, hw / 4) } else { (&variants.one, *hw) };
        // The y dimension of a grid is at most 65,535; for more images each block of the kernel takes several.
        let config = LaunchConfig {
            grid_dim: (threads.div_ceil(THREADS), (*n).min(65_535), 1),
            block_dim: (THREADS, 1, 1),
            shared_mem_bytes: 0,
        };
        let (a, b) = self.output.coefficients();
        let mut launch = stream.launch_builder(function);
        launch.arg(from).arg(to).arg(n).arg(hw);
        launch.arg(&a[0]).arg(&a[1]).arg(&a[2]).arg(&b[0]).arg(&b[1]).arg(&b[2]);
        if let Some(mixes) = &mixes {
            launch.arg(mixes).arg(width);
        }
        // SAFETY: number, order and types of the arguments are those of the kernels in kernel.cu, and the arguments
        // outlive the call; the caller guarantees the memory.
        unsafe { launch.launch(config) }.during("launching the normalisation")?;
        Ok(())
    }
}
