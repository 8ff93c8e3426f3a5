//! The whole path under a stand-in driver: values, order, limits, failures, and nothing left behind.

#[path = "child/mod.rs"]
mod child;
#[path = "child/feed.rs"]
mod feed;

use child::with_standin;
use cudarc::driver::{CudaStream, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;
use feed::{Made, pixel};
use shardtool_cuda::{
    Config, Device, DeviceBatch, DeviceLoader, Dtype, Error, Layout, OnExhausted, Output, Part, Probe, Unavailable,
    Value,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

const MEAN: [f64; 3] = [0.485, 0.456, 0.406];
const STD: [f64; 3] = [0.229, 0.224, 0.225];

/// An array, copied to the host behind the upload.
fn fetch<T: Value + Default + Clone>(batch: &DeviceBatch, part: Part<'_>, stream: &Arc<CudaStream>) -> Vec<T> {
    let values = stream.clone_dtoh(&batch.view::<T>(part, stream).unwrap()).unwrap();
    stream.synchronize().unwrap();
    values
}

/// What the image values must be: the formula in f64, and how far the nearest value of the type may be from it.
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
fn every_type_layout_and_shape_is_what_the_formula_says() {
    let report = with_standin("every_type_layout_and_shape_is_what_the_formula_says", &[], || {
        for dtype in [Dtype::F32, Dtype::F16, Dtype::Bf16] {
            for layout in [Layout::Nhwc, Layout::Nchw] {
                for shape in [[2, 8, 6, 3], [3, 5, 7, 3], [1, 1, 1, 3], [5, 33, 31, 3], [2, 40, 52, 3]] {
                    let output = Output::new(dtype, layout, MEAN, STD).unwrap();
                    let (device, mut loader) = loader(Config { output, ..Config::default() }, shape, 3, 1);
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
fn a_consumer_that_lags_and_drops_early_sees_each_batch_whole() {
    for seed in ["1", "2", "3"] {
        let environment = [("STANDIN_SEED", seed), ("STANDIN_DELAY_US", "2000")];
        let report = with_standin("a_consumer_that_lags_and_drops_early_sees_each_batch_whole", &environment, || {
            let shape = [2, 12, 12, 3];
            let output = Output::new(Dtype::F32, Layout::Nhwc, MEAN, STD).unwrap();
            let (device, mut loader) = loader(Config { output, slots: 2, ..Config::default() }, shape, 30, 1);
            // Two streams, each with more to do than the uploads: they copy the images away after the batch was dropped.
            let streams = [device.context().new_stream().unwrap(), device.context().new_stream().unwrap()];
            let mut copies = Vec::new();
            while let Some(batch) = loader.next_batch().unwrap() {
                for stream in &streams {
                    let view = batch.view::<f32>(Part::Images, stream).unwrap();
                    let mut copy = stream.alloc_zeros::<f32>(view.len()).unwrap();
                    stream.memcpy_dtod(&view, &mut copy).unwrap();
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

/// The stand-in must see what the crate is careful to avoid: here nobody waits for the upload.
#[test]
fn reading_without_waiting_is_noticed() {
    let environment = [("STANDIN_DELAY_US", "20000")];
    let report = with_standin("reading_without_waiting_is_noticed", &environment, || {
        let (device, mut loader) = loader(Config::default(), [2, 8, 8, 3], 10, 1);
        let known = device.context().new_stream().unwrap();
        let other = device.context().new_stream().unwrap();
        while let Some(batch) = loader.next_batch().unwrap() {
            let view = batch.view::<f32>(Part::Images, &known).unwrap();
            other.clone_dtoh(&view).unwrap();
        }
    });
    if let Some(report) = report {
        assert!(report.number("violations") > 0);
    }
}

#[test]
fn who_holds_every_batch_is_told_and_goes_on_after_dropping_one() {
    let report = with_standin("who_holds_every_batch_is_told_and_goes_on_after_dropping_one", &[], || {
        for (on_exhausted, least) in [
            (OnExhausted::Error, Duration::ZERO),
            (OnExhausted::Block(Duration::from_millis(80)), Duration::from_millis(80)),
        ] {
            let config = Config { slots: 3, on_exhausted, ..Config::default() };
            let (_device, mut loader) = loader(config, [2, 8, 8, 3], 10, 1);
            let mut held: Vec<_> = (0..3).map(|_| loader.next_batch().unwrap().unwrap()).collect();
            let start = Instant::now();
            let Err(Error::Held { held: 3, waited, shortage: None }) = loader.next_batch() else {
                panic!("three are held")
            };
            assert!(waited >= least && start.elapsed() >= least);
            held.remove(0);
            assert_eq!(loader.next_batch().unwrap().unwrap().rows().ids[0], 6);
        }
        // One that comes back in time, from another thread.
        let (_device, mut loader) = loader(Config { slots: 2, ..Config::default() }, [2, 8, 8, 3], 4, 1);
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

/// Bytes of a slot and of both stages for f32 batches of `[2, 16, 16, 3]`.
const SLOT: u64 = 2 * 16 * 16 * 3 * 4;
const STAGES: u64 = 2 * 2 * 16 * 16 * 3;
/// Room for ids, flags and columns.
const SIDE: u64 = 1024;

#[test]
fn device_memory_stays_within_its_limit_and_the_error_has_the_arithmetic() {
    let report = with_standin("device_memory_stays_within_its_limit_and_the_error_has_the_arithmetic", &[], || {
        let shape = [2, 16, 16, 3];
        let limit = STAGES + 2 * (SLOT + SIDE);
        let config = Config {
            slots: 8,
            device_memory_limit: Some(limit),
            on_exhausted: OnExhausted::Error,
            ..Config::default()
        };
        let (_device, mut first) = loader(config.clone(), shape, 20, 1);
        let held = [first.next_batch().unwrap().unwrap(), first.next_batch().unwrap().unwrap()];
        let Err(Error::Held { held: 2, shortage: Some(shortage), .. }) = first.next_batch() else { panic!("two fit") };
        assert!(shortage.held <= limit && shortage.held + shortage.needed > limit);
        assert_eq!((shortage.limit, first.memory().device), (Some(limit), shortage.held));
        drop(held);
        let mut seen = 2;
        while first.next_batch().unwrap().is_some() {
            seen += 1;
        }
        assert_eq!(seen, 20);

        // A second loader on the device has its own limit, and one that fits nothing says so.
        let small = Config { device_memory_limit: Some(STAGES + SLOT / 2), ..config };
        let (_device, mut second) = loader(small, shape, 20, 1);
        let error = second.next_batch().unwrap_err();
        let Error::DeviceMemory(shortage) = &error else { panic!("{error}") };
        assert_eq!((shortage.held, shortage.limit), (STAGES, Some(STAGES + SLOT / 2)));
        assert!(error.to_string().contains(&format!("{} are already held", STAGES)), "{error}");
    });
    if let Some(report) = report {
        report.assert_clean();
        assert!(report.number("device_peak") as u64 <= 2 * STAGES + 2 * (SLOT + SIDE));
    }
}

#[test]
fn between_epochs_no_more_is_kept_than_was_allowed() {
    let report = with_standin("between_epochs_no_more_is_kept_than_was_allowed", &[], || {
        for (retain, most) in [(0, 0), (STAGES + SLOT + SIDE, STAGES + SLOT + SIDE), (u64::MAX, u64::MAX)] {
            let config = Config { retain_bytes: Some(retain), ..Config::default() };
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
fn batches_and_loader_may_be_dropped_anywhere_and_in_any_order() {
    let report = with_standin("batches_and_loader_may_be_dropped_anywhere_and_in_any_order", &[], || {
        for taken in 0..5 {
            let (device, mut loader) = loader(Config { slots: 6, ..Config::default() }, [2, 8, 8, 3], 9, 1);
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
fn what_is_not_there_is_an_ordinary_answer() {
    let cases: [(Environment, Expected); 5] = [
        (&[("STANDIN_VERSION", "11080")], |u| matches!(u, Unavailable::OldDriver { found: 11_080, needed: 12_000 })),
        (&[("STANDIN_DEVICES", "0")], |u| matches!(u, Unavailable::NoDevice)),
        (&[("STANDIN_INIT", "100")], |u| matches!(u, Unavailable::NoDevice)),
        (&[("STANDIN_INIT", "999")], |u| matches!(u, Unavailable::NotStarted { code: 999, .. })),
        (&[("STANDIN_BUSY", "1")], |u| matches!(u, Unavailable::Refused { ordinal: 0, code: 46, .. })),
    ];
    for (environment, _) in cases {
        let report = with_standin("what_is_not_there_is_an_ordinary_answer", environment, || {
            let Err(Error::Unavailable(answer)) = Device::open(0) else { panic!("it opened") };
            // Which case this is only the parent knows: the child holds its answer against what all allow.
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
fn a_device_that_is_not_there_is_named() {
    let report = with_standin("a_device_that_is_not_there_is_named", &[("STANDIN_DEVICES", "2")], || {
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

/// A run of an epoch and a half that uses everything; errors end it.
fn run_through() -> Result<u64, Error> {
    let device = Device::open(0)?;
    let config = Config { slots: 3, retain_bytes: Some(0), ..Config::default() };
    let mut loader = DeviceLoader::new(&device, config, |pinned| Made::new(pinned, [2, 8, 8, 3], 4, 2))?;
    let driver =
        |code: cudarc::driver::DriverError| Error::Driver { doing: "testing", code: code.0 as u32, name: "".into() };
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
fn every_call_may_fail_without_a_hang_a_leak_or_misuse() {
    let name = "every_call_may_fail_without_a_hang_a_leak_or_misuse";
    let body = || match (run_through(), std::env::var("STANDIN_FAIL")) {
        (Ok(6), _) | (Err(_), Ok(_)) => {}
        (other, _) => panic!("{other:?}"),
    };
    let delay = ("STANDIN_DELAY_US", "50");
    let Some(report) = with_standin(name, &[delay], body) else { return };
    report.assert_clean();
    let calls = report.number("calls");
    for call in (1..calls).step_by(3) {
        for tail in ["", ":lost"] {
            let fail = format!("any:{call}:700{tail}");
            let report = with_standin(name, &[delay, ("STANDIN_FAIL", &fail)], body).unwrap();
            // What goes back to a device that refuses to take it, or after the device is lost, is gone anyway.
            let failed = report.0["failed"].as_str().unwrap();
            // And when a device's attribute cannot be read, cudarc keeps the context that it had just retained.
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

/// As examples/own_kernel.rs does.
#[test]
fn another_user_launches_its_own_kernel_on_batches() {
    let environment = [("STANDIN_DELAY_US", "2000")];
    let report = with_standin("another_user_launches_its_own_kernel_on_batches", &environment, || {
        let (_device, mut loader) = loader(Config { slots: 2, ..Config::default() }, [3, 4, 6, 3], 12, 1);
        let context = cudarc::driver::CudaContext::new(0).unwrap();
        let stream = context.new_stream().unwrap();
        let module = context.load_module(Ptx::from_src(include_str!("../examples/own_kernel.ptx"))).unwrap();
        let brightness = module.load_function("brightness").unwrap();
        let mut results = Vec::new();
        while let Some(batch) = loader.next_batch().unwrap() {
            let images = batch.view::<f32>(Part::Images, &stream).unwrap();
            let (n, values) = (batch.len() as u32, (images.len() / batch.len()) as u32);
            let mut sums = stream.alloc_zeros::<f32>(batch.len()).unwrap();
            let grid = LaunchConfig { grid_dim: (n, 1, 1), block_dim: (256, 1, 1), shared_mem_bytes: 0 };
            // SAFETY: the arguments are the kernel's; `images` holds n times `values` floats, `sums` n.
            unsafe { stream.launch_builder(&brightness).arg(&images).arg(&mut sums).arg(&n).arg(&values).launch(grid) }
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
