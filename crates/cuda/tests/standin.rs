//! Uploads under a stand-in driver: values, order, limits, failures, and leaks of resources.

#[path = "child/mod.rs"]
mod child;
#[path = "child/feed.rs"]
mod feed;

use child::with_standin;
use feed::{Made, pixel};
use shardtool_cuda::cudarc::driver::{CudaContext, CudaStream, DriverError, LaunchConfig, PushKernelArg};
use shardtool_cuda::cudarc::nvrtc::Ptx;
use shardtool_cuda::{
    Config, Device, DeviceBatch, DeviceLoader, Dtype, Error, Feed, HostArray, HostBatch, Layout, OnExhausted, Output,
    Part, Probe, Rows, Unavailable, Value,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

const MEAN: [f64; 3] = [0.485, 0.456, 0.406];
const STD: [f64; 3] = [0.229, 0.224, 0.225];

/// Copies an array to the host.
fn fetch<T: Value>(batch: &DeviceBatch, part: Part<'_>, stream: &Arc<CudaStream>) -> Vec<T> {
    batch.view::<T>(part, stream).unwrap().to_host().unwrap()
}

/// The default options, changed by `set`.
fn config(set: impl FnOnce(&mut Config)) -> Config {
    let mut config = Config::default();
    set(&mut config);
    config
}

/// Compares the images with the formula in f64, within half a step of their type.
fn check_images(batch: &DeviceBatch, number: u64, [n, h, w, _]: [usize; 4], stream: &Arc<CudaStream>) {
    let output = batch.output();
    let (values, step): (Vec<f64>, f64) = match output.dtype() {
        Dtype::F32 => (fetch::<f32>(batch, Part::Images, stream).iter().map(|v| *v as f64).collect(), 1.2e-7),
        Dtype::F16 => (fetch::<half::f16>(batch, Part::Images, stream).iter().map(|v| v.to_f64()).collect(), 4.9e-4),
        Dtype::Bf16 => (fetch::<half::bf16>(batch, Part::Images, stream).iter().map(|v| v.to_f64()).collect(), 3.95e-3),
    };
    assert_eq!(values.len(), n * h * w * 3);
    for i in 0..values.len() {
        let c = i % 3;
        let at = match output.layout() {
            Layout::Nhwc => i,
            Layout::Nchw => (i / 3 / (h * w) * 3 + c) * h * w + i / 3 % (h * w),
        };
        let exact = (pixel(number, i) as f64 / 255.0 - MEAN[c]) / STD[c];
        // Half a step of the type, and the cancellation of x·a against b in f32.
        let bound = exact.abs() * step + 4e-7;
        assert!((values[at] - exact).abs() <= bound, "{output:?} batch {number} byte {i}: {} for {exact}", values[at]);
    }
}

fn check_rows(batch: &DeviceBatch, number: u64, stream: &Arc<CudaStream>) {
    let rows = batch.rows();
    let n = rows.ids.len() as i64;
    assert_eq!(rows.ids[0], number as i64 * n);
    assert_eq!(fetch::<i64>(batch, Part::Ids, stream), rows.ids);
    assert_eq!(fetch::<bool>(batch, Part::Valid, stream), rows.valid);
    let label: Vec<i64> = (0..n).map(|i| i + 1000 * number as i64).collect();
    assert_eq!(fetch::<i64>(batch, Part::Column("label"), stream), label);
    assert_eq!(batch.shape(Part::Column("box")).unwrap(), [n as usize, 2]);
    let last = (2 * n - 1) as f32 / 4.0 + number as f32;
    assert_eq!(fetch::<f32>(batch, Part::Column("box"), stream).last(), Some(&last));
}

fn loader(config: Config, shape: [usize; 4], per_epoch: u64, epochs: u64) -> (Device, DeviceLoader<Made>) {
    let device = Device::open(0).unwrap();
    let loader = DeviceLoader::new(&device, config, |pinned| Made::new(pinned, shape, per_epoch, epochs)).unwrap();
    (device, loader)
}

#[test]
fn images_follow_the_formula_for_every_type_layout_and_shape() {
    let report = with_standin("images_follow_the_formula_for_every_type_layout_and_shape", &[], || {
        for dtype in [Dtype::F32, Dtype::F16, Dtype::Bf16] {
            for layout in [Layout::Nhwc, Layout::Nchw] {
                for shape in [[2, 8, 6, 3], [3, 5, 7, 3], [1, 1, 1, 3], [5, 33, 31, 3], [2, 40, 52, 3]] {
                    let output = Output::new(dtype, layout, MEAN, STD).unwrap();
                    let (device, mut loader) = loader(config(|c| c.output = output), shape, 3, 1);
                    let stream = device.context().new_stream().unwrap();
                    let mut number = 0;
                    while let Some(batch) = loader.next_batch().unwrap() {
                        check_images(&batch, number, shape, &stream);
                        check_rows(&batch, number, &stream);
                        number += 1;
                    }
                    assert_eq!(number, 3);
                }
            }
        }
    });
    if let Some(report) = report {
        report.assert_clean();
    }
}

#[test]
fn batches_are_complete_for_a_slow_consumer_that_drops_early() {
    for seed in ["1", "2", "3"] {
        let environment = [("STANDIN_SEED", seed), ("STANDIN_DELAY_US", "2000")];
        let report = with_standin("batches_are_complete_for_a_slow_consumer_that_drops_early", &environment, || {
            let shape = [2, 12, 12, 3];
            let output = Output::new(Dtype::F32, Layout::Nhwc, MEAN, STD).unwrap();
            let (device, mut loader) = loader(config(|c| (c.output, c.slots) = (output, 2)), shape, 30, 1);
            // Two streams that are slower than the uploads: they copy the images after the batch was dropped.
            let streams = [device.context().new_stream().unwrap(), device.context().new_stream().unwrap()];
            let mut copies = Vec::new();
            while let Some(batch) = loader.next_batch().unwrap() {
                for stream in &streams {
                    let view = batch.view::<f32>(Part::Images, stream).unwrap();
                    let mut copy = stream.alloc_zeros::<f32>(view.len()).unwrap();
                    view.copy_to(&mut copy).unwrap();
                    copies.push((stream, copy));
                }
            }
            assert_eq!(copies.len(), 60);
            for (i, (stream, copy)) in copies.iter().enumerate() {
                let values = stream.clone_dtoh(copy).unwrap();
                stream.synchronize().unwrap();
                for (at, value) in values.iter().enumerate() {
                    let exact = (pixel(i as u64 / 2, at) as f64 / 255.0 - MEAN[at % 3]) / STD[at % 3];
                    assert!((*value as f64 - exact).abs() < 1e-6, "batch {} value {at}", i / 2);
                }
            }
        });
        let Some(report) = report else { return };
        report.assert_clean();
    }
}

/// The stand-in driver must detect the race that views prevent: here a stream reads an array without waiting for its
/// upload, through a raw pointer.
#[test]
fn standin_detects_a_read_that_does_not_wait() {
    let environment = [("STANDIN_DELAY_US", "20000")];
    let report = with_standin("standin_detects_a_read_that_does_not_wait", &environment, || {
        let (device, mut loader) = loader(Config::default(), [2, 8, 8, 3], 10, 1);
        let known = device.context().new_stream().unwrap();
        let other = device.context().new_stream().unwrap();
        while let Some(batch) = loader.next_batch().unwrap() {
            let view = batch.view::<f32>(Part::Images, &known).unwrap();
            // SAFETY: none: the stand-in's device memory is host memory, and the test expects the violation.
            let raced = unsafe { other.upgrade_device_ptr::<f32>(view.address(), view.len()) };
            other.clone_dtoh(&raced).unwrap();
            raced.leak();
        }
    });
    if let Some(report) = report {
        assert!(report.number("violations") > 0);
    }
}

#[test]
fn consumer_that_holds_every_batch_gets_an_error_and_may_continue() {
    let report = with_standin("consumer_that_holds_every_batch_gets_an_error_and_may_continue", &[], || {
        for (on_exhausted, least) in [
            (OnExhausted::Error, Duration::ZERO),
            (OnExhausted::Block(Duration::from_millis(80)), Duration::from_millis(80)),
        ] {
            let config = config(|c| (c.slots, c.on_exhausted) = (3, on_exhausted));
            let (_device, mut loader) = loader(config, [2, 8, 8, 3], 10, 1);
            let mut held: Vec<_> = (0..3).map(|_| loader.next_batch().unwrap().unwrap()).collect();
            let start = Instant::now();
            let Err(Error::Exhausted { held: 3, waited, shortage: None }) = loader.next_batch() else {
                panic!("three are held")
            };
            assert!(waited >= least && start.elapsed() >= least);
            held.remove(0);
            assert_eq!(loader.next_batch().unwrap().unwrap().rows().ids[0], 6);
        }
        // A batch that another thread drops in time.
        let (_device, mut loader) = loader(config(|c| c.slots = 2), [2, 8, 8, 3], 4, 1);
        let mut held = vec![loader.next_batch().unwrap().unwrap(), loader.next_batch().unwrap().unwrap()];
        let first = held.remove(0);
        let late = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(30));
            drop(first);
        });
        assert_eq!(loader.next_batch().unwrap().unwrap().rows().ids[0], 4);
        late.join().unwrap();
    });
    if let Some(report) = report {
        report.assert_clean();
    }
}

/// Bytes of a slot, and of both staging buffers, for f32 batches of `[2, 16, 16, 3]`.
const SLOT: u64 = 2 * 16 * 16 * 3 * 4;
const STAGING: u64 = 2 * 2 * 16 * 16 * 3;
/// Room for ids, flags and columns.
const ROW_DATA: u64 = 1024;

#[test]
fn device_memory_stays_within_its_limit_and_the_error_shows_the_sum() {
    let report = with_standin("device_memory_stays_within_its_limit_and_the_error_shows_the_sum", &[], || {
        let shape = [2, 16, 16, 3];
        let limit = STAGING + 2 * (SLOT + ROW_DATA);
        let limited =
            |limit| config(|c| (c.slots, c.device_memory_limit, c.on_exhausted) = (8, Some(limit), OnExhausted::Error));
        let (_device, mut first) = loader(limited(limit), shape, 20, 1);
        let held = [first.next_batch().unwrap().unwrap(), first.next_batch().unwrap().unwrap()];
        let Err(Error::Exhausted { held: 2, shortage: Some(shortage), .. }) = first.next_batch() else {
            panic!("two fit")
        };
        assert!(shortage.held <= limit && shortage.held + shortage.needed > limit);
        assert_eq!((shortage.limit, first.memory().device), (Some(limit), shortage.held));
        drop(held);
        let mut seen = 2;
        while first.next_batch().unwrap().is_some() {
            seen += 1;
        }
        assert_eq!(seen, 20);

        // Another loader on the device has its own limit, into which no batch fits.
        let (_device, mut second) = loader(limited(STAGING + SLOT / 2), shape, 20, 1);
        let error = second.next_batch().unwrap_err();
        let Error::DeviceMemory(shortage) = &error else { panic!("{error}") };
        assert_eq!((shortage.held, shortage.limit), (STAGING, Some(STAGING + SLOT / 2)));
        assert!(error.to_string().contains(&format!("{} are already held", STAGING)), "{error}");
    });
    if let Some(report) = report {
        report.assert_clean();
        assert!(report.number("device_peak") as u64 <= 2 * STAGING + 2 * (SLOT + ROW_DATA));
    }
}

#[test]
fn no_more_than_retain_bytes_is_kept_between_epochs() {
    let report = with_standin("no_more_than_retain_bytes_is_kept_between_epochs", &[], || {
        for (retain, most) in [(0, 0), (STAGING + SLOT + ROW_DATA, STAGING + SLOT + ROW_DATA), (u64::MAX, u64::MAX)] {
            let config = config(|c| c.retain_bytes = Some(retain));
            let (device, mut loader) = loader(config, [2, 16, 16, 3], 6, 2);
            let stream = device.context().new_stream().unwrap();
            for epoch in 0..2 {
                let mut number = 6 * epoch;
                while let Some(batch) = loader.next_batch().unwrap() {
                    check_rows(&batch, number, &stream);
                    number += 1;
                }
                assert_eq!(number, 6 * (epoch + 1));
                let end = Instant::now() + Duration::from_secs(20);
                while loader.memory().device > most {
                    assert!(Instant::now() < end, "{} bytes kept, {most} allowed", loader.memory().device);
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        }
    });
    if let Some(report) = report {
        report.assert_clean();
    }
}

#[test]
fn batches_and_loader_may_be_dropped_on_any_thread_in_any_order() {
    let report = with_standin("batches_and_loader_may_be_dropped_on_any_thread_in_any_order", &[], || {
        for taken in 0..5 {
            let (device, mut loader) = loader(config(|c| c.slots = 6), [2, 8, 8, 3], 9, 1);
            let stream = device.context().new_stream().unwrap();
            let mut held: Vec<_> = (0..taken).map(|_| loader.next_batch().unwrap().unwrap()).collect();
            for batch in &held {
                batch.view::<f32>(Part::Images, &stream).unwrap();
            }
            if let Some(early) = held.pop() {
                std::thread::spawn(move || drop(early)).join().unwrap();
            }
            std::thread::spawn(move || drop(loader)).join().unwrap();
            for (number, batch) in held.iter().enumerate() {
                check_rows(batch, number as u64, &stream);
            }
            std::thread::spawn(move || drop(held)).join().unwrap();
        }
    });
    if let Some(report) = report {
        report.assert_clean();
    }
}

/// Names and values.
type Environment = &'static [(&'static str, &'static str)];
type Expected = fn(&Unavailable) -> bool;

#[test]
fn missing_driver_or_device_is_an_error_with_the_reason() {
    let cases: [(Environment, Expected); 5] = [
        (&[("STANDIN_VERSION", "11080")], |u| matches!(u, Unavailable::OldDriver { found: 11_080, needed: 12_000 })),
        (&[("STANDIN_DEVICES", "0")], |u| matches!(u, Unavailable::NoDevice)),
        (&[("STANDIN_INIT", "100")], |u| matches!(u, Unavailable::NoDevice)),
        (&[("STANDIN_INIT", "999")], |u| matches!(u, Unavailable::NotStarted { code: 999, .. })),
        (&[("STANDIN_BUSY", "1")], |u| matches!(u, Unavailable::Refused { ordinal: 0, code: 46, .. })),
    ];
    for (environment, _) in cases {
        let report = with_standin("missing_driver_or_device_is_an_error_with_the_reason", environment, || {
            let Err(Error::Unavailable(answer)) = Device::open(0) else { panic!("it opened") };
            // The environment determines which case this child runs.
            let shown = Probe::new();
            assert!(shown.unavailable.as_ref() == Some(&answer) || shown.devices[0].refused.as_ref() == Some(&answer));
            assert!(shown.to_string().contains(&answer.to_string()));
            let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|v| v == value);
            let here = cases.iter().find(|(environment, _)| environment.iter().all(|(n, v)| is(n, v)));
            assert!(here.unwrap().1(&answer), "{answer}");
        });
        let Some(report) = report else { return };
        assert_eq!(report.number("violations"), 0);
    }
}

#[test]
fn missing_device_is_named() {
    let report = with_standin("missing_device_is_named", &[("STANDIN_DEVICES", "2")], || {
        assert!(Device::open(1).is_ok());
        let Err(Error::Unavailable(Unavailable::NoSuchDevice { ordinal: 5, devices: 2 })) = Device::open(5) else {
            panic!("there are two");
        };
        let probe = Probe::new();
        assert_eq!((probe.devices.len(), probe.devices[1].capability, probe.driver), (2, (9, 0), Some(12_020)));
        assert_eq!(probe.devices[0].total_bytes, 1 << 30);
    });
    if let Some(report) = report {
        report.assert_clean();
    }
}

/// Runs one and a half epochs, up to the first error.
fn run_through() -> Result<u64, Error> {
    let device = Device::open(0)?;
    let config = config(|c| (c.slots, c.retain_bytes) = (3, Some(0)));
    let mut loader = DeviceLoader::new(&device, config, |pinned| Made::new(pinned, [2, 8, 8, 3], 4, 2))?;
    let driver = |code: DriverError| Error::Driver { operation: "testing", code: code.0 as u32, name: "".into() };
    let stream = device.context().new_stream().map_err(driver)?;
    let mut batches = 0;
    for _ in 0..2 {
        while let Some(batch) = loader.next_batch()? {
            batch.view::<f32>(Part::Images, &stream)?;
            batches += 1;
            if batches == 6 {
                return Ok(batches);
            }
        }
    }
    Ok(batches)
}

#[test]
fn every_driver_call_may_fail_without_a_hang_a_leak_or_misuse() {
    let name = "every_driver_call_may_fail_without_a_hang_a_leak_or_misuse";
    let body = || match (run_through(), std::env::var("STANDIN_FAIL")) {
        (Ok(6), _) | (Err(_), Ok(_)) => {}
        (other, _) => panic!("{other:?}"),
    };
    let delay = ("STANDIN_DELAY_US", "50");
    let Some(report) = with_standin(name, &[delay], body) else { return };
    report.assert_clean();
    let calls = report.number("calls");
    for call in 1..calls {
        for tail in ["", ":lost"] {
            let fail = format!("any:{call}:700{tail}");
            let report = with_standin(name, &[delay, ("STANDIN_FAIL", &fail)], body).unwrap();
            // Memory whose release fails is not released, and after the device is lost nothing is.
            let failed = report.0["failed"].as_str().unwrap();
            // If reading an attribute of the device fails, cudarc keeps the context that it had just retained.
            let parts = ["Free", "Destroy", "Unload", "Release", "Ctx", "DeviceGetAttribute"];
            let returning = parts.iter().any(|part| failed.contains(part));
            if tail.is_empty() && !returning {
                report.assert_clean();
            } else if !returning {
                assert_eq!(report.number("violations"), 0, "{fail} {failed}: {}", report.0);
            }
        }
    }
}

/// As examples/own_kernel.rs, but with a separate context.
#[test]
fn consumer_launches_its_own_kernel_on_batches() {
    let environment = [("STANDIN_DELAY_US", "2000")];
    let report = with_standin("consumer_launches_its_own_kernel_on_batches", &environment, || {
        let (_device, mut loader) = loader(config(|c| c.slots = 2), [3, 4, 6, 3], 12, 1);
        let context = CudaContext::new(0).unwrap();
        let stream = context.new_stream().unwrap();
        let module = context.load_module(Ptx::from_src(include_str!("../examples/own_kernel.ptx"))).unwrap();
        let brightness = module.load_function("brightness").unwrap();
        let mut results = Vec::new();
        while let Some(batch) = loader.next_batch().unwrap() {
            let images = batch.view::<f32>(Part::Images, &stream).unwrap();
            let (address, n, values) = (images.address(), batch.len() as u32, (images.len() / batch.len()) as u32);
            let mut sums = stream.alloc_zeros::<f32>(batch.len()).unwrap();
            let grid = LaunchConfig { grid_dim: (n, 1, 1), block_dim: (256, 1, 1), shared_mem_bytes: 0 };
            // SAFETY: the arguments are the kernel's; `images` has n times `values` floats at `address`, `sums` n.
            unsafe {
                stream.launch_builder(&brightness).arg(&address).arg(&mut sums).arg(&n).arg(&values).launch(grid)
            }
            .unwrap();
            results.push(sums);
        }
        assert_eq!(results.len(), 12);
        for (number, sums) in results.iter().enumerate() {
            for (image, sum) in stream.clone_dtoh(sums).unwrap().iter().enumerate() {
                let exact: f32 = (0..72).map(|i| pixel(number as u64, image * 72 + i) as f32 / 255.0).sum();
                assert!((sum - exact).abs() < 1e-3, "batch {number} image {image}: {sum} for {exact}");
            }
        }
    });
    if let Some(report) = report {
        report.assert_clean();
    }
}

/// The context that a device hands out orders cudarc's own slices, so safe code that uses several streams has no races.
#[test]
fn device_context_tracks_events() {
    let report = with_standin("device_context_tracks_events", &[("STANDIN_DELAY_US", "5000")], || {
        let device = Device::open(0).unwrap();
        assert!(device.context().is_event_tracking());
        let (first, second) = (device.context().new_stream().unwrap(), device.context().new_stream().unwrap());
        let values: Vec<i64> = (0..1000).collect();
        let copied = first.clone_htod(&values).unwrap();
        assert_eq!(second.clone_dtoh(&copied).unwrap(), values);
    });
    if let Some(report) = report {
        report.assert_clean();
    }
}

#[test]
fn view_rejects_streams_of_other_contexts_and_targets_that_are_too_small() {
    let environment = [("STANDIN_DEVICES", "2")];
    let name = "view_rejects_streams_of_other_contexts_and_targets_that_are_too_small";
    let report = with_standin(name, &environment, || {
        let (device, mut loader) = loader(Config::default(), [2, 8, 8, 3], 1, 1);
        let batch = loader.next_batch().unwrap().unwrap();
        let foreign = CudaContext::new(1).unwrap().new_stream().unwrap();
        let error = batch.view::<f32>(Part::Images, &foreign).unwrap_err();
        assert!(matches!(error, Error::StreamContext { batch: 0, stream: 1 }), "{error}");
        let stream = device.context().new_stream().unwrap();
        let ids = batch.view::<i64>(Part::Ids, &stream).unwrap();
        let mut small = stream.alloc_zeros::<i64>(1).unwrap();
        assert!(matches!(ids.copy_to(&mut small), Err(Error::Room { needed: 2, found: 1 })));
        let error = batch.view::<f32>(Part::Ids, &stream).unwrap_err();
        assert_eq!(error.to_string(), "the values are int64, requested as float32");
    });
    if let Some(report) = report {
        report.assert_clean();
    }
}

/// A feed whose pixels are one byte more than their shape says; copying them would write past the staging buffer.
struct TooLong;

impl Feed for TooLong {
    type Batch = TooLong;

    fn next_batch(&mut self) -> Result<Option<TooLong>, shardtool_load::Error> {
        Ok(Some(TooLong))
    }
}

impl HostBatch for TooLong {
    fn arrays(&self) -> Vec<HostArray<'_>> {
        vec![HostArray::images([2, 4, 4, 3], &[0; 2 * 4 * 4 * 3 + 1])]
    }

    fn rows(&self) -> Rows {
        Rows { ids: vec![0, 1], valid: vec![true, true], ..Rows::default() }
    }
}

#[test]
fn pixels_that_do_not_match_their_shape_are_rejected() {
    let report = with_standin("pixels_that_do_not_match_their_shape_are_rejected", &[], || {
        let device = Device::open(0).unwrap();
        let mut loader = DeviceLoader::new(&device, Config::default(), |_| Ok(TooLong)).unwrap();
        assert!(matches!(loader.next_batch(), Err(Error::ArrayBytes { expected: 96, found: 97 })));
    });
    if let Some(report) = report {
        report.assert_clean();
    }
}
