//! Arrays exported through DLPack: the contents of the structs, and that memory is not reused while a framework has it.

#[path = "child/mod.rs"]
mod child;
#[path = "child/feed.rs"]
mod feed;

use child::with_standin;
use feed::{Made, pixel};
use shardtool_cuda::dlpack::{CUDA, Managed, Tensor, Versioned};
use shardtool_cuda::{Config, Device, DeviceBatch, DeviceLoader, Dtype, Error, Layout, OnExhausted, Output, Part};

fn open(slots: usize) -> (Device, DeviceLoader<Made>) {
    let device = Device::open(0).unwrap();
    let output = Output::new(Dtype::Bf16, Layout::Nchw, [0.0; 3], [1.0; 3]).unwrap();
    let mut config = Config::default();
    (config.output, config.slots, config.on_exhausted) = (output, slots, OnExhausted::Error);
    let loader = DeviceLoader::new(&device, config, |pinned| Made::new(pinned, [2, 6, 10, 3], 8, 1)).unwrap();
    (device, loader)
}

/// Shape and strides of an exported array.
fn extents(tensor: &Tensor) -> (Vec<i64>, Vec<i64>) {
    // SAFETY: DLPack has `ndim` numbers in both.
    let list = |at: *mut i64| unsafe { std::slice::from_raw_parts(at, tensor.ndim as usize) }.to_vec();
    (list(tensor.shape), list(tensor.strides))
}

fn managed(batch: &DeviceBatch, part: Part<'_>, stream: i64) -> *mut Managed {
    // SAFETY: none of the streams named in these tests is a handle.
    unsafe { batch.export(part, stream) }.unwrap().into_managed()
}

/// Deletes an array, as a framework does.
fn delete(managed: *mut Managed) {
    // SAFETY: called once for each exported array.
    unsafe { (*managed).deleter.unwrap()(managed) }
}

#[test]
fn structs_describe_the_arrays() {
    let report = with_standin("structs_describe_the_arrays", &[], || {
        let (_device, mut loader) = open(4);
        let batch = loader.next_batch().unwrap().unwrap();
        let cases = [
            (Part::Images, (4, 16), vec![2, 3, 6, 10], vec![180, 60, 10, 1]),
            (Part::Ids, (0, 64), vec![2], vec![1]),
            (Part::Valid, (6, 8), vec![2], vec![1]),
            (Part::Column("label"), (0, 64), vec![2], vec![1]),
            (Part::Column("box"), (2, 32), vec![2, 2], vec![2, 1]),
        ];
        for (part, (code, bits), shape, strides) in cases {
            let old = managed(&batch, part, 1);
            // SAFETY: as in `managed`.
            let new: *mut Versioned = unsafe { batch.export(part, -1) }.unwrap().into_versioned();
            // SAFETY: both pointers are live until their deleters below.
            let (a, b) = unsafe { (&(*old).tensor, &(*new).tensor) };
            for tensor in [a, b] {
                assert_eq!((tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes), (code, bits, 1));
                assert_eq!((tensor.device.kind, tensor.device.ordinal, tensor.byte_offset), (CUDA, 0, 0));
                assert_eq!(extents(tensor), (shape.clone(), strides.clone()));
                assert_eq!(tensor.data as usize % 256, 0);
            }
            assert_eq!(a.data, b.data);
            // SAFETY: as above; each deleter is called once.
            unsafe {
                assert_eq!(((*new).version, (*new).flags), ([1, 0], 0));
                (*new).deleter.unwrap()(new);
            }
            delete(old);
        }
        for stream in [0, -2] {
            // SAFETY: refused before a stream is used.
            assert!(matches!(unsafe { batch.export(Part::Images, stream) }, Err(Error::Stream(s)) if s == stream));
        }
    });
    if let Some(report) = report {
        report.assert_clean();
    }
}

#[test]
fn memory_is_kept_until_the_array_is_deleted_and_its_stream_is_done() {
    for stream in ["1", "2", "-1"] {
        let environment = [("STANDIN_DELAY_US", "3000"), ("TESTED_STREAM", stream)];
        let report =
            with_standin("memory_is_kept_until_the_array_is_deleted_and_its_stream_is_done", &environment, || {
                let stream: i64 = std::env::var("TESTED_STREAM").unwrap().parse().unwrap();
                let (device, mut loader) = open(2);
                // The framework's stream: all default streams are one in the stand-in.
                let theirs = device.context().default_stream();
                let mut copies = Vec::new();
                for number in 0..8u64 {
                    let batch = loader.next_batch().unwrap().unwrap();
                    let array = managed(&batch, Part::Images, stream);
                    if stream == -1 {
                        // A framework that passes −1 orders its stream itself; here through another array of the batch.
                        delete(managed(&batch, Part::Ids, 1));
                    }
                    drop(batch);
                    let mut copy = theirs.alloc_zeros::<half::bf16>(2 * 3 * 6 * 10).unwrap();
                    // SAFETY: the array is this large and lives until its deleter; the slice is not dropped.
                    let from = unsafe { theirs.upgrade_device_ptr::<half::bf16>((*array).tensor.data as u64, 360) };
                    theirs.memcpy_dtod(&from, &mut copy).unwrap();
                    from.leak();
                    copies.push((number, copy));
                    let at = array as usize;
                    std::thread::spawn(move || delete(at as *mut Managed)).join().unwrap();
                }
                for (number, copy) in copies {
                    let values = theirs.clone_dtoh(&copy).unwrap();
                    theirs.synchronize().unwrap();
                    // Image 1, channel 2, row 5, column 9.
                    let exact = pixel(number, ((60 + 59) * 3) + 2) as f32 / 255.0;
                    assert!((values[359].to_f32() - exact).abs() <= exact * 0.004, "batch {number}");
                }
            });
        let Some(report) = report else { return };
        report.assert_clean();
    }
}

#[test]
fn exported_array_keeps_its_slot() {
    let report = with_standin("exported_array_keeps_its_slot", &[], || {
        let (_device, mut loader) = open(2);
        let arrays = [0, 1].map(|_| managed(&loader.next_batch().unwrap().unwrap(), Part::Images, 1));
        assert!(matches!(loader.next_batch(), Err(Error::Exhausted { held: 2, .. })));
        delete(arrays[0]);
        assert!(loader.next_batch().unwrap().is_some());
        drop(loader);
        delete(arrays[1]);
    });
    if let Some(report) = report {
        report.assert_clean();
    }
}
