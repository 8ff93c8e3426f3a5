//! Launches a custom kernel through cudarc on the batches of an epoch: the mean brightness of every image.
//!
//! ```text
//! cargo run --release -p shardtool-cuda --example own_kernel -- DATASET SPLIT
//! ```

use shardtool_cuda::cudarc::driver::{LaunchConfig, PushKernelArg};
use shardtool_cuda::cudarc::nvrtc::Ptx;
use shardtool_cuda::{Device, DeviceLoader, Part};
use shardtool_decode::{Filter, Pipeline, Transform};
use shardtool_load::{Config, Image, Loader};
use shardtool_read::Dataset;
use std::sync::Arc;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [dataset, split] = arguments.as_slice() else { return Err("usage: own_kernel DATASET SPLIT".into()) };
    let split = Dataset::open(dataset)?.split(split)?.clone();

    let device = Device::open(0)?;
    let steps = vec![
        Transform::Resize { shorter: 256, longest: None, interpolation: Filter::Bilinear },
        Transform::CenterCrop { size: [224, 224] },
    ];
    let mut config = Config::new(split, [Image::new(Pipeline::new(steps)?)], 64);
    let mut loader = DeviceLoader::new(&device, shardtool_cuda::Config::default(), |pinned| {
        config.alloc = Arc::new(pinned.clone());
        Ok(Loader::new(&config)?)
    })?;

    let stream = device.context().new_stream()?;
    let module = device.context().load_module(Ptx::from_src(include_str!("own_kernel.ptx")))?;
    let brightness = module.load_function("brightness")?;
    while let Some(batch) = loader.next_batch()? {
        // From here on `stream` waits for the upload; this thread does not.
        let images = batch.view::<f32>(Part::Images, &stream)?;
        let (address, n, values) = (images.address(), batch.len() as u32, (images.len() / batch.len()) as u32);
        let mut sums = stream.alloc_zeros::<f32>(batch.len())?;
        let grid = LaunchConfig { grid_dim: (n, 1, 1), block_dim: (256, 1, 1), shared_mem_bytes: 0 };
        // SAFETY: the arguments are the kernel's; `images` has n times `values` floats at `address`, which the kernel
        // only reads, on the stream of the view; `sums` has n.
        unsafe { stream.launch_builder(&brightness).arg(&address).arg(&mut sums).arg(&n).arg(&values).launch(grid) }?;
        // The kernel is queued, so the batch can be dropped: the next upload into its memory waits for `stream`.
        drop(batch);
        for sum in stream.clone_dtoh(&sums)? {
            println!("{:.4}", sum / values as f32);
        }
    }
    Ok(())
}
