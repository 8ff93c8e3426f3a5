//! Checks that need a real GPU, one per subcommand; `benches/device/run` calls them and compares with PyTorch. Each prints one
//! JSON object per line.
//!
//! ```text
//! device probe                    driver, devices and memory
//! device values DIR               uploads batches of every type, layout and shape; writes input and output
//! device mix                      mixed batches of every type, layout and shape compared with the host's; their upload rate
//! device rate                     upload rate compared with plain pinned copies, in turn; cached and write-combined memory
//! device step                     time of a fixed GPU workload, with and without a running loader, in turn
//! device stress                   a consumer with a slow stream; checks the values of every batch
//! device memory                   peak of device memory compared with the limit
//! device unbound                  batches and loader dropped on a thread without a CUDA context
//! ```
//! `mix`, `rate`, `step` and `stress` take `--batches N` (200); `mix`, `rate` and `step` also take `--rounds N` (5).

mod mix;

use serde_json::json;
use shardtool_benches::median;
use shardtool_cuda::cudarc::driver::{CudaStream, DevicePtr, DriverError, LaunchConfig, PushKernelArg, result};
use shardtool_cuda::cudarc::nvrtc::Ptx;
use shardtool_cuda::{
    Config, Device, DeviceBatch, DeviceLoader, Dtype, Error, Feed, HostArray, HostBatch, Layout, Output, Part,
    PinnedAlloc, Probe, Rows,
};
use shardtool_load::{BatchAlloc, BatchBuffer, BatchMix, Mixing};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

type Outcome = Result<(), Box<dyn std::error::Error>>;

const MEAN: [f64; 3] = [0.485, 0.456, 0.406];
const STD: [f64; 3] = [0.229, 0.224, 0.225];
/// A typical batch of training: 38.5 MB.
const USUAL: [usize; 4] = [256, 224, 224, 3];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |name: &str, otherwise: u64| match arguments.iter().position(|a| a == name) {
        Some(at) => arguments.get(at + 1).and_then(|n| n.parse().ok()).unwrap_or(otherwise),
        None => otherwise,
    };
    let (batches, rounds) = (number("--batches", 200), number("--rounds", 5));
    let outcome = match arguments.first().map(String::as_str) {
        Some("probe") => probe(),
        Some("values") if arguments.len() == 2 => values(Path::new(&arguments[1])),
        Some("mix") => mix::mix(batches, rounds),
        Some("rate") => rate(batches, rounds),
        Some("step") => step(batches, rounds),
        Some("stress") => stress(batches),
        Some("memory") => memory(),
        Some("unbound") => unbound(),
        _ => {
            Err("usage: device probe | values DIR | mix | rate | step | stress | memory | unbound [--batches N] [--rounds N]"
                .into())
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("device: {error}");
            ExitCode::from(2)
        }
    }
}

fn probe() -> Outcome {
    let probe = Probe::new();
    println!("{}", json!({ "check": "probe", "found": probe }));
    eprintln!("{probe}");
    Ok(())
}

/// Delivers batches of generated pixels from pinned memory. Buffers are filled once and reused, so only the upload takes time.
struct Prepared {
    shape: [usize; 4],
    left: u64,
    back: Sender<Tagged>,
    free: Receiver<Tagged>,
    mixing: Option<Mixing>,
}

/// Shape and memory of the pixels.
type Tagged = (i64, Box<dyn BatchBuffer>);

struct PreparedBatch {
    tagged: Option<Tagged>,
    back: Sender<Tagged>,
    shape: [usize; 4],
    mix: Option<BatchMix>,
}

/// Number of pinned buffers of a feed: two being uploaded, one being delivered.
const BUFFERS: i64 = 3;

impl Prepared {
    fn new(pinned: &PinnedAlloc, shape: [usize; 4], batches: u64) -> shardtool_cuda::Result<Self> {
        let (back, free) = channel();
        for tag in 0..BUFFERS {
            let buffer =
                pinned.alloc(shape.iter().product()).map_err(|e| *e.downcast::<Error>().expect("its own error"))?;
            // SAFETY: `buffer` owns `len()` bytes, and nothing else refers to them before it is sent below.
            let bytes = unsafe { std::slice::from_raw_parts_mut(buffer.as_ptr().as_ptr(), buffer.len()) };
            bytes.iter_mut().enumerate().for_each(|(i, b)| *b = pixel(tag, i));
            back.send((tag, buffer)).expect("the receiver is here");
        }
        Ok(Prepared { shape, left: batches, back, free, mixing: None })
    }
}

/// Returns byte `i` of the batches whose ids are `tag`.
fn pixel(tag: i64, i: usize) -> u8 {
    (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(13).wrapping_add(tag as u64 * 85) as u8
}

impl Feed for Prepared {
    type Batch = PreparedBatch;

    fn next_batch(&mut self) -> Result<Option<PreparedBatch>, shardtool_load::Error> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let tagged = self.free.recv().expect("the feed holds a sender");
        let mix = self.mixing.as_ref().map(|mixing| mix::of_batch(mixing, self.shape, self.left)).transpose()?;
        Ok(Some(PreparedBatch { tagged: Some(tagged), back: self.back.clone(), shape: self.shape, mix }))
    }
}

impl HostBatch for PreparedBatch {
    fn arrays(&self) -> Vec<HostArray<'_>> {
        let (_, buffer) = self.tagged.as_ref().expect("taken only by `drop`");
        // SAFETY: `Prepared::new` initialised all `len()` bytes, and nothing writes to them afterwards.
        let bytes = unsafe { std::slice::from_raw_parts(buffer.as_ptr().as_ptr(), buffer.len()) };
        vec![HostArray::images(self.shape, bytes)]
    }

    fn mix(&self) -> Option<&BatchMix> {
        self.mix.as_ref()
    }

    fn rows(&self) -> Rows {
        let tag = self.tagged.as_ref().map_or(-1, |(tag, _)| *tag);
        Rows { ids: vec![tag; self.shape[0]], valid: vec![true; self.shape[0]], ..Rows::default() }
    }
}

impl Drop for PreparedBatch {
    fn drop(&mut self) {
        let tagged = self.tagged.take().expect("taken only here");
        // If the feed was dropped, its memory is freed too.
        let _ = self.back.send(tagged);
    }
}

fn output(dtype: Dtype, layout: Layout) -> Output {
    Output::new(dtype, layout, MEAN, STD).expect("finite numbers")
}

fn config(output: Output) -> Config {
    let mut config = Config::default();
    config.output = output;
    config
}

fn start(device: &Device, config: Config, shape: [usize; 4], n: u64) -> shardtool_cuda::Result<DeviceLoader<Prepared>> {
    DeviceLoader::new(device, config, |pinned| Prepared::new(pinned, shape, n))
}

/// Copies a part of a batch to the host as bytes, after its upload.
fn bytes(batch: &DeviceBatch, stream: &Arc<CudaStream>) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    fn plain<T: Copy>(values: &[T]) -> Vec<u8> {
        // SAFETY: `values` is initialised, and the three number types that it is called with have no padding.
        unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }.to_vec()
    }
    let bytes = match batch.output().dtype() {
        Dtype::F32 => plain(&batch.view::<f32>(Part::Images, stream)?.to_host()?),
        Dtype::F16 => plain(&batch.view::<half::f16>(Part::Images, stream)?.to_host()?),
        Dtype::Bf16 => plain(&batch.view::<half::bf16>(Part::Images, stream)?.to_host()?),
    };
    Ok(bytes)
}

/// Writes `N.in` (u8) and `N.out` (bytes from the device) for each case, and prints a description of them.
fn values(folder: &Path) -> Outcome {
    std::fs::create_dir_all(folder)?;
    let device = Device::open(0)?;
    let stream = device.context().new_stream()?;
    let mut case = 0;
    for shape in [[4, 224, 224, 3], [3, 37, 53, 3], [1, 1, 1, 3], [2, 30, 30, 3], [70_000, 2, 2, 3]] {
        for dtype in [Dtype::F32, Dtype::F16, Dtype::Bf16] {
            for layout in [Layout::Nhwc, Layout::Nchw] {
                let config = config(output(dtype, layout));
                let mut loader = start(&device, config, shape, 1)?;
                let batch = loader.next_batch()?.ok_or("a batch")?;
                let tag = batch.rows().ids[0];
                let pixels: Vec<u8> = (0..shape.iter().product()).map(|i| pixel(tag, i)).collect();
                std::fs::write(folder.join(format!("{case}.in")), pixels)?;
                std::fs::write(folder.join(format!("{case}.out")), bytes(&batch, &stream)?)?;
                let ids = batch.view::<i64>(Part::Ids, &stream)?.to_host()?;
                let (dtype, layout) = (dtype.name(), format!("{layout:?}").to_uppercase());
                println!(
                    "{}",
                    json!({ "check": "values", "case": case, "shape": shape, "dtype": dtype, "layout": layout,
                            "mean": MEAN, "std": STD, "ids_right": ids == vec![tag; shape[0]] })
                );
                case += 1;
            }
        }
    }
    Ok(())
}

/// Does one run; returns bytes per second from the first request to the arrival of the last batch.
fn upload(
    device: &Device,
    pinned: PinnedAlloc,
    dtype: Dtype,
    batches: u64,
    mixing: Option<&Mixing>,
) -> Result<f64, Box<dyn std::error::Error>> {
    let config = config(output(dtype, Layout::Nchw));
    let make = |p: &_| Ok(Prepared { mixing: mixing.cloned(), ..Prepared::new(p, USUAL, batches)? });
    let mut loader = DeviceLoader::with_pinned(device, config, pinned, make)?;
    let stream = device.context().new_stream()?;
    // The first batches include allocations.
    let warm = batches / 10 + 4;
    for _ in 0..warm {
        loader.next_batch()?.ok_or("a batch")?.view::<i64>(Part::Ids, &stream)?;
    }
    stream.synchronize()?;
    let start = Instant::now();
    for _ in warm..batches {
        loader.next_batch()?.ok_or("a batch")?.view::<i64>(Part::Ids, &stream)?;
    }
    stream.synchronize()?;
    let bytes = (batches - warm) as f64 * USUAL.iter().product::<usize>() as f64;
    Ok(bytes / start.elapsed().as_secs_f64())
}

/// Copies the same bytes from pinned memory, one copy queued after the other: the rate of the bus.
fn plain_copy(device: &Device, pinned: &PinnedAlloc, batches: u64) -> Result<f64, Box<dyn std::error::Error>> {
    let stream = device.context().new_stream()?;
    let n: usize = USUAL.iter().product();
    let buffers: Vec<_> = (0..2).map(|_| pinned.alloc(n)).collect::<Result<_, _>>().map_err(|e| e.to_string())?;
    // SAFETY: nothing reads this memory; the copies below only write to it.
    let to = (0..2).map(|_| unsafe { stream.alloc::<u8>(n) }).collect::<Result<Vec<_>, _>>()?;
    stream.synchronize()?;
    let mut seconds = f64::MAX;
    for _ in 0..2 {
        let start = Instant::now();
        for i in 0..batches as usize {
            // SAFETY: both sides have `n` bytes and live until `synchronize` below has waited for the copies.
            unsafe {
                let from = std::slice::from_raw_parts(buffers[i % 2].as_ptr().as_ptr(), n);
                result::memcpy_htod_async(to[i % 2].device_ptr(&stream).0, from, stream.cu_stream())?;
            }
        }
        stream.synchronize()?;
        seconds = seconds.min(start.elapsed().as_secs_f64());
    }
    Ok(batches as f64 * n as f64 / seconds)
}

fn rate(batches: u64, rounds: u64) -> Outcome {
    let device = Device::open(0)?;
    for dtype in [Dtype::F16, Dtype::F32] {
        for combined in [false, true] {
            let pinned = || if combined { PinnedAlloc::write_combined(&device) } else { PinnedAlloc::new(&device) };
            let (mut ours, mut plain, mut shares) = (vec![], vec![], vec![]);
            for _ in 0..rounds {
                plain.push(plain_copy(&device, &pinned(), batches)?);
                ours.push(upload(&device, pinned(), dtype, batches + batches / 10 + 4, None)?);
                shares.push(ours[ours.len() - 1] / plain[plain.len() - 1]);
            }
            println!(
                "{}",
                json!({ "check": "rate", "dtype": dtype.name(), "write_combined": combined, "batch_bytes": USUAL.iter().product::<usize>(),
                        "plain_gb_per_s": median(plain) / 1e9, "upload_gb_per_s": median(ours) / 1e9,
                        "share": median(shares.clone()), "shares": shares })
            );
        }
    }
    Ok(())
}

/// Measures a workload of about 5 ms per step on the GPU, with and without a loader.
fn step(batches: u64, turns: u64) -> Outcome {
    let device = Device::open(0)?;
    let stream = device.context().new_stream()?;
    let module = device.context().load_module(Ptx::from_src(include_str!("../../../device/busy.ptx")))?;
    let busy = module.load_function("busy")?;
    let (blocks, threads) = (4096u32, 256u32);
    let mut out = stream.alloc_zeros::<f32>((blocks * threads) as usize)?;
    let mut work = |rounds: u32| -> Result<(), DriverError> {
        let grid = LaunchConfig { grid_dim: (blocks, 1, 1), block_dim: (threads, 1, 1), shared_mem_bytes: 0 };
        // SAFETY: `busy` takes a float pointer and a `u32`; `out` has one float for each of `blocks * threads` threads.
        unsafe { stream.launch_builder(&busy).arg(&mut out).arg(&rounds).launch(grid) }.map(|_| ())
    };
    // Number of rounds in 5 ms, measured on a longer run.
    let mut seconds =
        |rounds: u32, steps: u64, each: &mut dyn FnMut() -> Outcome| -> Result<f64, Box<dyn std::error::Error>> {
            stream.synchronize()?;
            let start = Instant::now();
            for _ in 0..steps {
                each()?;
                work(rounds)?;
            }
            stream.synchronize()?;
            Ok(start.elapsed().as_secs_f64())
        };
    seconds(10_000, 3, &mut || Ok(()))?;
    let rounds = (10_000.0 * 0.005 * 10.0 / seconds(10_000, 10, &mut || Ok(()))?) as u32;
    let mut loader = start(&device, config(output(Dtype::F16, Layout::Nchw)), USUAL, u64::MAX)?;
    let mut feed = || -> Outcome {
        loader.next_batch()?.ok_or("a batch")?.view::<half::f16>(Part::Images, &stream)?;
        Ok(())
    };
    let (mut alone, mut fed, mut shares) = (vec![], vec![], vec![]);
    seconds(rounds, 10, &mut feed)?;
    for _ in 0..turns {
        alone.push(seconds(rounds, batches, &mut || Ok(()))? / batches as f64);
        // Batches that were prefetched meanwhile are not counted.
        seconds(rounds, 8, &mut feed)?;
        fed.push(seconds(rounds, batches, &mut feed)? / batches as f64);
        shares.push(fed[fed.len() - 1] / alone[alone.len() - 1]);
    }
    println!(
        "{}",
        json!({ "check": "step", "batch_bytes": USUAL.iter().product::<usize>(), "alone_ms": median(alone) * 1e3,
                "fed_ms": median(fed) * 1e3, "ratio": median(shares.clone()), "ratios": shares })
    );
    Ok(())
}

/// Consumes batches on a slow stream: queues slow work and a copy of the images for each batch, and drops the batch
/// immediately. If a slot were overwritten too early, the copy would hold values of a later batch.
fn stress(batches: u64) -> Outcome {
    let device = Device::open(0)?;
    let shape = [16, 224, 224, 3];
    let mut config = config(output(Dtype::F32, Layout::Nhwc));
    config.slots = 2;
    let mut loader = start(&device, config, shape, batches)?;
    let stream = device.context().new_stream()?;
    let values = shape.iter().product::<usize>();
    // Slow work: repeated fills of a large buffer.
    let mut large = stream.alloc_zeros::<u8>(512 << 20)?;
    let mut kept = Vec::new();
    let expected: Vec<Vec<f32>> = (0..BUFFERS)
        .map(|tag| {
            let (a, b) = (STD.map(|s| (1.0 / (255.0 * s)) as f32), [0, 1, 2].map(|c| (-MEAN[c] / STD[c]) as f32));
            (0..values).map(|i| (pixel(tag, i) as f32).mul_add(a[i % 3], b[i % 3])).collect()
        })
        .collect();
    let (mut wrong, mut checked) = (0u64, 0u64);
    let start = Instant::now();
    while let Some(batch) = loader.next_batch()? {
        let tag = batch.rows().ids[0];
        let view = batch.view::<f32>(Part::Images, &stream)?;
        for _ in 0..4 {
            stream.memset_zeros(&mut large)?;
        }
        let mut copy = stream.alloc_zeros::<f32>(values)?;
        view.copy_to(&mut copy)?;
        drop(batch);
        kept.push((tag, copy));
        if kept.len() == 32 {
            for (tag, copy) in kept.drain(..) {
                wrong += (stream.clone_dtoh(&copy)? != expected[tag as usize]) as u64;
                checked += 1;
            }
        }
    }
    for (tag, copy) in kept {
        wrong += (stream.clone_dtoh(&copy)? != expected[tag as usize]) as u64;
        checked += 1;
    }
    println!(
        "{}",
        json!({ "check": "stress", "batches": checked, "wrong": wrong, "seconds": start.elapsed().as_secs_f64() })
    );
    if wrong > 0 || checked != batches { Err(format!("{wrong} of {checked} batches wrong").into()) } else { Ok(()) }
}

/// Compares the peak of device memory from the driver with the loader's own figure and with its limit.
fn memory() -> Outcome {
    let device = Device::open(0)?;
    let stream = device.context().new_stream()?;
    // The memory of the kernels, allocated once per context, does not count for batches.
    {
        let mut first = start(&device, Config::default(), [1, 4, 4, 3], 1)?;
        first.next_batch()?.ok_or("a batch")?.view::<i64>(Part::Ids, &stream)?;
        stream.synchronize()?;
    }
    let pixels = USUAL.iter().product::<usize>() as u64;
    // Two stages and three slots of f16; a slot has 256 ids and flags besides.
    let limit = 2 * pixels + 3 * (2 * pixels + 4096);
    let before = device.memory()?.0;
    let mut config = config(output(Dtype::F16, Layout::Nchw));
    (config.slots, config.device_memory_limit) = (8, Some(limit));
    config.on_exhausted = shardtool_cuda::OnExhausted::Error;
    let mut loader = start(&device, config, USUAL, 100)?;
    let mut held = Vec::new();
    let mut lowest = u64::MAX;
    let refusal = loop {
        match loader.next_batch() {
            Ok(Some(batch)) => held.push(batch),
            Ok(None) => return Err("the limit held nothing back".into()),
            Err(error) => break error.to_string(),
        }
        lowest = lowest.min(device.memory()?.0);
    };
    let said = loader.memory();
    let slots = held.len();
    drop(held);
    drop(loader);
    let after = device.memory()?.0;
    println!(
        "{}",
        json!({ "check": "memory", "limit": limit, "loader_says": said.device, "pinned": said.pinned, "slots": slots,
                "driver_says": before - lowest, "left_behind": before.saturating_sub(after), "refusal": refusal })
    );
    let good = said.device <= limit && slots == 3;
    if good { Ok(()) } else { Err("the promise was not kept".into()) }
}

/// Drops batches and loader on threads without a context.
fn unbound() -> Outcome {
    let device = Device::open(0)?;
    let mut loader = start(&device, Config::default(), [8, 64, 64, 3], 40)?;
    let stream = device.context().new_stream()?;
    let mut seen = 0;
    while let Some(batch) = loader.next_batch()? {
        batch.view::<f32>(Part::Images, &stream)?;
        std::thread::spawn(move || drop(batch)).join().map_err(|_| "a drop panicked")?;
        seen += 1;
    }
    std::thread::spawn(move || drop(loader)).join().map_err(|_| "a drop panicked")?;
    stream.synchronize()?;
    std::thread::sleep(Duration::from_millis(10));
    device.memory()?;
    println!("{}", json!({ "check": "unbound", "batches": seen }));
    if seen == 40 { Ok(()) } else { Err(format!("{seen} of 40 batches").into()) }
}
