//! Batches of many arrays under the stand-in driver, each of other sizes: what arrives, when memory is used again, and limits.

#[path = "child/mod.rs"]
mod child;

use child::with_standin;
use shardtool_cuda::cudarc::driver::CudaStream;
use shardtool_cuda::{
    Column, Config, Device, DeviceBatch, DeviceLoader, Dtype, Element, Error, Feed, HostArray, HostBatch, Layout,
    OnExhausted, Output, PackedRows, Part, PinnedAlloc, Rows, Value,
};
use shardtool_load::{BatchAlloc, BatchBuffer, ObjectRole, OwnedBytes, Values};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

type Pinned = Box<dyn BatchBuffer>;

/// Returns byte `i` of an array of a batch.
fn byte(batch: u64, array: u64, i: usize) -> u8 {
    (i as u64 ^ (i as u64 >> 6)).wrapping_mul(41).wrapping_add(batch * 61 + array * 17) as u8
}

/// The sizes of a batch: rows, height and width, and ragged values.
#[derive(Clone, Copy)]
struct Size {
    n: usize,
    hw: [usize; 2],
    ragged: usize,
}

impl Size {
    /// Sizes that grow and shrink, some without ragged values.
    fn of(batch: u64) -> Self {
        let b = batch as usize;
        Size { n: 1 + b * 5 % 4, hw: [3 + b * 3 % 5, 4 + b * 7 % 9], ragged: b * 37 % 60 }
    }

    fn images(self) -> [usize; 4] {
        [self.n, self.hw[0], self.hw[1], 3]
    }

    fn clips(self) -> [usize; 5] {
        [self.n, 2, self.hw[1], self.hw[0], 3]
    }

    fn masks(self) -> [usize; 3] {
        [self.n, self.hw[0], self.hw[1]]
    }

    fn volumes(self) -> [usize; 3] {
        [self.n, 5, self.ragged % 7]
    }
}

fn count(shape: &[usize]) -> usize {
    shape.iter().product()
}

/// Images and clips to normalise, masks in pinned memory, volumes of bools in ordinary memory, ragged columns and packed rows.
struct Varied {
    size: fn(u64) -> Size,
    batches: u64,
    step: u64,
    free: (Sender<Pinned>, Receiver<Pinned>),
}

struct VariedBatch {
    size: Size,
    number: u64,
    /// Images, clips and masks, one after the other.
    buffer: Option<Pinned>,
    volumes: Vec<u8>,
    back: Sender<Pinned>,
}

impl Varied {
    fn new(pinned: &PinnedAlloc, batches: u64, size: fn(u64) -> Size) -> shardtool_cuda::Result<Self> {
        let free = channel();
        for _ in 0..3 {
            let buffer = pinned.alloc(1 << 16).map_err(|e| *e.downcast::<Error>().unwrap())?;
            free.0.send(buffer).unwrap();
        }
        Ok(Varied { size, batches, step: 0, free })
    }
}

impl Feed for Varied {
    type Batch = VariedBatch;

    fn next_batch(&mut self) -> Result<Option<VariedBatch>, shardtool_load::Error> {
        if self.step == self.batches {
            return Ok(None);
        }
        let (number, size) = (self.step, (self.size)(self.step));
        self.step += 1;
        let buffer = self.free.1.recv().expect("the feed holds a sender");
        // SAFETY: no batch has this buffer, and it has the length that was allocated.
        let bytes = unsafe { std::slice::from_raw_parts_mut(buffer.as_ptr().as_ptr(), buffer.len()) };
        let mut at = 0;
        for (array, bytes_of) in
            [count(&size.images()), count(&size.clips()), 2 * count(&size.masks())].iter().enumerate()
        {
            bytes[at..at + bytes_of].iter_mut().enumerate().for_each(|(i, b)| *b = byte(number, array as u64, i));
            at += bytes_of;
        }
        let volumes = (0..count(&size.volumes())).map(|i| byte(number, 3, i) % 3).collect();
        Ok(Some(VariedBatch { size, number, buffer: Some(buffer), volumes, back: self.free.0.clone() }))
    }
}

impl HostBatch for VariedBatch {
    fn arrays(&self) -> Vec<HostArray<'_>> {
        let Size { n, hw: [h, w], .. } = self.size;
        let buffer = self.buffer.as_ref().expect("taken only by `drop`");
        // SAFETY: written before the batch was created, and not again before the batch is dropped.
        let bytes = unsafe { std::slice::from_raw_parts(buffer.as_ptr().as_ptr(), buffer.len()) };
        let (images, rest) = bytes.split_at(count(&[n, h, w, 3]));
        let (clips, rest) = rest.split_at(count(&[n, 2, w, h, 3]));
        let part = Part::Picture { feature: Some("clip"), view: "small" };
        let clips = HostArray::new(part, Element::U8, vec![n, 2, w, h, 3], clips);
        vec![
            HostArray::images([n, h, w, 3], images),
            HostArray { normalize: true, ..clips },
            HostArray::new(Part::Mask("map"), Element::U16, vec![n, h, w], &rest[..2 * n * h * w]),
            HostArray::new(Part::Array("volume"), Element::StoredBool, self.size.volumes().to_vec(), &self.volumes),
        ]
    }

    fn rows(&self) -> Rows {
        rows(self.number, self.size)
    }

    fn row_length(&self) -> Option<usize> {
        Some(4)
    }
}

impl Drop for VariedBatch {
    fn drop(&mut self) {
        let _ = self.back.send(self.buffer.take().expect("taken only by `drop`"));
    }
}

/// What the row data of a batch are.
fn rows(number: u64, Size { n, ragged, .. }: Size) -> Rows {
    // All in the last row.
    let offsets = |count: usize| (0..n).map(|_| 0).chain([count as i64]).collect::<Vec<_>>();
    let numbers = || (0..ragged).map(|i| i as u64 * 7 + number);
    let boxes = Values::RaggedFloat { offsets: offsets(4 * ragged), values: vec![number as f32 + 0.5; 4 * ragged] };
    let ids = || (0..2 * n as i64).map(|i| i + 100 * number as i64);
    Rows {
        ids: ids().collect(),
        valid: (0..n).map(|i| i % 3 != 1).collect(),
        columns: vec![
            Column::new("label", Values::Int64((0..n as i64).collect()), Some(1)),
            Column { role: Some(ObjectRole::Boxes), item: vec![4], ..Column::new("box", boxes, None) },
            Column {
                role: Some(ObjectRole::Masks),
                item: vec![2, 2],
                ..Column::new(
                    "covered",
                    Values::RaggedUint8 { offsets: offsets(4 * ragged), values: OwnedBytes::of(&vec![1; 4 * ragged]) },
                    None,
                )
            },
            Column::new("u", Values::RaggedUint64 { offsets: offsets(ragged), values: numbers().collect() }, None),
            Column::new(
                "d",
                Values::RaggedFloat64 { offsets: offsets(ragged), values: numbers().map(|v| v as f64).collect() },
                None,
            ),
            Column::new(
                "tokens",
                Values::RaggedInt64 { offsets: offsets(ragged), values: numbers().map(|v| v as i64).collect() },
                None,
            ),
        ],
        packed: Some(PackedRows {
            offsets: (0..=n as i64).map(|i| 2 * i).collect(),
            tokens: vec![2; 2 * n],
            capacity: 5,
        }),
        ..Rows::default()
    }
}

fn fetch<T: Value>(batch: &DeviceBatch, part: Part<'_>, stream: &Arc<CudaStream>) -> Vec<T> {
    batch.view::<T>(part, stream).unwrap().to_host().unwrap()
}

/// Compares all arrays of a batch with those of its number.
fn check(batch: &DeviceBatch, number: u64, size: Size, stream: &Arc<CudaStream>) {
    let (Size { n, ragged, .. }, expected) = (size, rows(number, size));
    let shape = |part| batch.shape(part).unwrap().to_vec();
    assert_eq!(batch.len(), n);
    // The output of 0 to 255 has whole numbers.
    let images = fetch::<f32>(batch, Part::Images, stream);
    let exact = (0..count(&size.images())).map(|i| f32::from(byte(number, 0, i)));
    assert!(images.iter().copied().eq(exact), "images of batch {number}");
    let clip = Part::Picture { feature: Some("clip"), view: "small" };
    assert_eq!((shape(clip), shape(Part::Images)), (size.clips().to_vec(), size.images().to_vec()));
    let exact = (0..count(&size.clips())).map(|i| f32::from(byte(number, 1, i)));
    assert!(fetch::<f32>(batch, clip, stream).into_iter().eq(exact), "clips of batch {number}");
    let exact =
        (0..count(&size.masks())).map(|i| u16::from_le_bytes([byte(number, 2, 2 * i), byte(number, 2, 2 * i + 1)]));
    assert!(fetch::<u16>(batch, Part::Mask("map"), stream).into_iter().eq(exact), "masks of batch {number}");
    let exact = (0..count(&size.volumes())).map(|i| byte(number, 3, i) % 3);
    assert!(fetch::<u8>(batch, Part::Array("volume"), stream).into_iter().eq(exact), "volumes of batch {number}");
    assert_eq!(batch.element(Part::Array("volume")).unwrap().name(), "bool");
    // A byte of 2 is not a valid `bool` in Rust.
    assert!(matches!(batch.view::<bool>(Part::Array("volume"), stream), Err(Error::Type { expected: "uint8", .. })));

    assert_eq!(fetch::<i64>(batch, Part::Ids, stream), expected.ids);
    assert_eq!(fetch::<bool>(batch, Part::Valid, stream), expected.valid);
    assert_eq!(fetch::<i64>(batch, Part::Column("label"), stream), (0..n as i64).collect::<Vec<_>>());
    assert_eq!(shape(Part::Column("box")), [ragged, 4]);
    assert!(fetch::<f32>(batch, Part::Column("box"), stream).iter().all(|v| *v == number as f32 + 0.5));
    assert_eq!(shape(Part::Column("covered")), [ragged, 2, 2]);
    assert_eq!(fetch::<u8>(batch, Part::Column("covered"), stream), vec![1; 4 * ragged]);
    for feature in ["box", "covered", "u", "d"] {
        let offsets = fetch::<i64>(batch, Part::Offsets(feature), stream);
        assert_eq!(offsets, (0..n).map(|_| 0).chain([ragged as i64]).collect::<Vec<_>>(), "{feature}");
    }
    let numbers = || (0..ragged).map(|i| i as u64 * 7 + number);
    assert!(fetch::<u64>(batch, Part::Column("u"), stream).into_iter().eq(numbers()));
    assert!(fetch::<f64>(batch, Part::Column("d"), stream).into_iter().eq(numbers().map(|v| v as f64)));
    // Padded: the last row has up to four values, the others none.
    assert_eq!(shape(Part::Column("tokens")), [n, 4]);
    let padded = fetch::<i64>(batch, Part::Column("tokens"), stream);
    let last = numbers().map(|v| v as i64).chain([-9; 4]).take(4);
    assert!(padded.into_iter().eq(std::iter::repeat_n(-9, 4 * (n - 1)).chain(last)));
    assert!(matches!(batch.shape(Part::Offsets("tokens")), Err(Error::NoPart { .. })));
    assert_eq!(fetch::<i64>(batch, Part::Tokens, stream), vec![2; 2 * n]);
    assert_eq!(fetch::<i64>(batch, Part::SampleOffsets, stream).last(), Some(&(2 * n as i64)));
    assert_eq!(fetch::<i32>(batch, Part::SegmentIds, stream), [1, 1, 2, 2, 0].repeat(n));
    assert_eq!(fetch::<i32>(batch, Part::PositionIds, stream), [0, 1, 0, 1, 0].repeat(n));
}

/// The configuration, with values 0 to 255, which are whole numbers in f32.
fn config(set: impl FnOnce(&mut Config)) -> Config {
    let mut config = Config::default();
    config.output = Output::new(Dtype::F32, Layout::Nhwc, [0.0; 3], [1.0 / 255.0; 3]).unwrap();
    config.padded = vec![("tokens".into(), -9.0)];
    set(&mut config);
    config
}

#[test]
fn arrays_of_every_kind_and_size_arrive() {
    for (seed, slots) in [("1", "2"), ("2", "3"), ("3", "4")] {
        let environment = [("STANDIN_SEED", seed), ("STANDIN_DELAY_US", "1500"), ("TESTED_SLOTS", slots)];
        let report = with_standin("arrays_of_every_kind_and_size_arrive", &environment, || {
            let device = Device::open(0).unwrap();
            let slots = std::env::var("TESTED_SLOTS").unwrap().parse().unwrap();
            let make = |pinned: &PinnedAlloc| Varied::new(pinned, 24, Size::of);
            let mut loader = DeviceLoader::new(&device, config(|c| c.slots = slots), make).unwrap();
            let streams = [0; 2].map(|_| device.context().new_stream().unwrap());
            let mut held = std::collections::VecDeque::new();
            for number in 0..24 {
                let batch = loader.next_batch().unwrap().unwrap();
                assert_eq!(batch.pixel_bytes(), count(&Size::of(number).images()) + count(&Size::of(number).clips()));
                held.push_back((batch, number));
                if held.len() == slots - 1 {
                    let (batch, number): (DeviceBatch, u64) = held.pop_front().unwrap();
                    check(&batch, number, Size::of(number), &streams[number as usize % 2]);
                }
            }
            assert!(loader.next_batch().unwrap().is_none());
        });
        let Some(report) = report else { return };
        report.assert_clean();
    }
}

/// Copies that a consumer queued before it dropped a batch are done before its slot is written, or freed for a larger one.
#[test]
fn growing_slots_wait_for_their_consumers() {
    let environment = [("STANDIN_DELAY_US", "3000")];
    let report = with_standin("growing_slots_wait_for_their_consumers", &environment, || {
        fn size(batch: u64) -> Size {
            Size { n: 1, hw: [4, 4], ragged: 50 * batch as usize }
        }
        let device = Device::open(0).unwrap();
        let make = |pinned: &PinnedAlloc| Varied::new(pinned, 12, size);
        let mut loader = DeviceLoader::new(&device, config(|c| c.slots = 2), make).unwrap();
        let stream = device.context().new_stream().unwrap();
        let mut copies = vec![];
        for number in 0..12 {
            let batch = loader.next_batch().unwrap().unwrap();
            let view = batch.view::<u64>(Part::Column("u"), &stream).unwrap();
            assert_eq!(view.is_empty(), number == 0);
            let mut copy = stream.alloc_zeros::<u64>(view.len().max(1)).unwrap();
            view.copy_to(&mut copy).unwrap();
            copies.push((number, view.len(), copy));
        }
        for (number, len, copy) in copies {
            let exact = (0..50 * number).map(|i| i * 7 + number);
            assert!(stream.clone_dtoh(&copy).unwrap().into_iter().take(len).eq(exact), "batch {number}");
        }
    });
    if let Some(report) = report {
        report.assert_clean();
    }
}

#[test]
fn limit_holds_while_batches_grow_and_errors_show_the_sum() {
    const LIMIT: u64 = 20_000;
    let report = with_standin("limit_holds_while_batches_grow_and_errors_show_the_sum", &[], || {
        // First several slots fit, later one, and none in the end.
        fn size(batch: u64) -> Size {
            Size { n: 1, hw: [4, 4], ragged: 30 * batch as usize }
        }
        let device = Device::open(0).unwrap();
        let limited = config(|c| {
            (c.slots, c.device_memory_limit, c.on_exhausted) = (8, Some(LIMIT), OnExhausted::Error);
        });
        let make = |pinned: &PinnedAlloc| Varied::new(pinned, 20, size);
        let mut loader = DeviceLoader::new(&device, limited, make).unwrap();
        let stream = device.context().new_stream().unwrap();
        let mut number = 0;
        let error = loop {
            match loader.next_batch() {
                Ok(batch) => check(&batch.unwrap(), number, size(number), &stream),
                Err(error) => break error,
            }
            assert!(loader.memory().device <= LIMIT);
            number += 1;
        };
        let Error::DeviceMemory(shortage) = error else { panic!("{error}") };
        assert!(
            number > 8 && shortage.held < LIMIT && shortage.held + shortage.needed > LIMIT,
            "{number} {shortage:?}"
        );
        assert_eq!(shortage.limit, Some(LIMIT));
    });
    let Some(report) = report else { return };
    report.assert_clean();
    // The consumer's own arrays are not part of it, but `to_host` needs none.
    assert!(report.number("device_peak") as u64 <= LIMIT, "{}", report.0);
}

#[test]
fn consumer_that_holds_the_memory_of_a_larger_batch_gets_the_reason() {
    let name = "consumer_that_holds_the_memory_of_a_larger_batch_gets_the_reason";
    let report = with_standin(name, &[], || {
        fn size(batch: u64) -> Size {
            Size { n: 1, hw: [4, 4], ragged: if batch < 2 { 20 } else { 150 } }
        }
        let device = Device::open(0).unwrap();
        let limited = config(|c| {
            (c.slots, c.device_memory_limit, c.on_exhausted) = (3, Some(18_000), OnExhausted::Error);
        });
        let make = |pinned: &PinnedAlloc| Varied::new(pinned, 4, size);
        let mut loader = DeviceLoader::new(&device, limited, make).unwrap();
        let stream = device.context().new_stream().unwrap();
        let mut held: Vec<_> = (0..2).map(|_| loader.next_batch().unwrap().unwrap()).collect();
        let Err(Error::Exhausted { held: 2, shortage: Some(shortage), .. }) = loader.next_batch() else {
            panic!("the third does not fit")
        };
        assert!(shortage.held + shortage.needed > 18_000 && shortage.limit == Some(18_000));
        for (number, batch) in held.drain(..).enumerate() {
            check(&batch, number as u64, size(number as u64), &stream);
        }
        for number in 2..4 {
            check(&loader.next_batch().unwrap().unwrap(), number, size(number), &stream);
        }
    });
    if let Some(report) = report {
        report.assert_clean();
    }
}

/// A batch whose arrays differ between two calls; copying them would write outside their places.
struct Changing(std::sync::atomic::AtomicUsize, usize);

impl Feed for Changing {
    type Batch = Changing;

    fn next_batch(&mut self) -> Result<Option<Changing>, shardtool_load::Error> {
        Ok(Some(Changing(0.into(), self.1)))
    }
}

impl HostBatch for Changing {
    fn arrays(&self) -> Vec<HostArray<'_>> {
        const BYTES: &[u8] = &[0; 4096];
        let call = self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let mask = |bytes: usize| HostArray::new(Part::Mask("m"), Element::U8, vec![bytes], &BYTES[..bytes]);
        match (self.1, call) {
            (0, 0) => vec![mask(4)],
            (0, _) => vec![mask(4096)],
            (1, 0) => vec![mask(4), HostArray::images([1, 2, 2, 3], &BYTES[..12])],
            (1, _) => vec![mask(4), HostArray::images([1, 32, 32, 3], &BYTES[..3072])],
            (_, 0) => vec![mask(4)],
            (_, _) => vec![mask(4), mask(4)],
        }
    }

    fn rows(&self) -> Rows {
        Rows { ids: vec![0], valid: vec![true], ..Rows::default() }
    }
}

#[test]
fn arrays_that_change_are_rejected() {
    let report = with_standin("arrays_that_change_are_rejected", &[], || {
        let device = Device::open(0).unwrap();
        let failure = |case| {
            let make = |_: &PinnedAlloc| Ok(Changing(0.into(), case));
            DeviceLoader::new(&device, Config::default(), make).unwrap().next_batch().unwrap_err()
        };
        assert!(matches!(failure(0), Error::ArrayBytes { expected: 4, found: 4096 }));
        assert!(matches!(failure(1), Error::ArrayBytes { expected: 12, found: 3072 }));
        assert!(matches!(failure(2), Error::Arrays { expected: 1, found: 2 }));
    });
    if let Some(report) = report {
        report.assert_clean();
    }
}

/// Uploads batches that grow, up to the first error.
fn run_through() -> Result<u64, Error> {
    fn size(batch: u64) -> Size {
        Size { n: 1 + batch as usize, hw: [2, 4], ragged: 30 * batch as usize }
    }
    let device = Device::open(0)?;
    let config = config(|c| (c.slots, c.retain_bytes) = (2, Some(0)));
    let mut loader = DeviceLoader::new(&device, config, |pinned| Varied::new(pinned, 3, size))?;
    let mut batches = 0;
    while let Some(batch) = loader.next_batch()? {
        drop(batch);
        batches += 1;
    }
    Ok(batches)
}

#[test]
fn every_driver_call_may_fail_while_memory_grows() {
    let name = "every_driver_call_may_fail_while_memory_grows";
    let body = || match (run_through(), std::env::var("STANDIN_FAIL")) {
        (Ok(3), _) | (Err(_), Ok(_)) => {}
        (other, _) => panic!("{other:?}"),
    };
    let delay = ("STANDIN_DELAY_US", "50");
    let Some(report) = with_standin(name, &[delay], body) else { return };
    report.assert_clean();
    for call in 1..report.number("calls") {
        let fail = format!("any:{call}:700");
        let report = with_standin(name, &[delay, ("STANDIN_FAIL", &fail)], body).unwrap();
        // Memory whose release fails is not released. If reading an attribute of the device fails, cudarc keeps the context that
        // it had just retained.
        let failed = report.0["failed"].as_str().unwrap();
        let parts = ["Free", "Destroy", "Unload", "Release", "Ctx", "DeviceGetAttribute"];
        if !parts.iter().any(|part| failed.contains(part)) {
            report.assert_clean();
        }
    }
}
