//! Arrays of large, damaged and hostile records: which bytes a crop reads, and what bad ones cost.

use crate::arrays::{Naive, config, group, rows, volume};
use crate::arrays_dataset::{Stored, open, write};
use shardtool_format::Damage;
use shardtool_load::{Error, Loader, OnBad};
use shardtool_order::{Order, Rng};
use shardtool_read::{Access, Split};

/// Three volumes of more than a mebibyte each, of 27 chunks.
fn large(folder: &std::path::Path) -> Vec<Stored> {
    let elements = |n: u32| -> Vec<u16> { (0..96 * 96 * 96).map(|at: u32| ((at * 7 + n) % 65_521) as u16).collect() };
    let codecs = ["zstd", "raw", "raw"].into_iter().zip(0..);
    let stored = codecs.map(|(codec, n)| Stored::u16("ct", &[96; 3], &[32; 3], codec, &elements(n)));
    let stored: Vec<_> = stored.collect();
    write(folder, &["ct"], &stored.iter().map(|ct| vec![ct.clone()]).collect::<Vec<_>>(), None);
    stored
}

/// Inverts a byte of a record's data in its shard's file.
fn invert(split: &Split, id: u64, offset: u64) {
    let (shard, row) = split.locate(id).unwrap();
    let path = split.shard_path(shard);
    let at = split.shard(shard).unwrap().frame(row).unwrap().start + 12 + offset;
    let mut file = std::fs::read(&path).unwrap();
    file[at as usize] ^= 0xff;
    // Another file, since the first one is mapped.
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, file).unwrap();
}

#[test]
fn a_record_is_checked_without_its_chunks() {
    let folder = tempfile::tempdir().unwrap();
    large(folder.path());
    let open = || open(folder.path(), Access::Mmap);
    let record = |split: &Split| {
        let (shard, row) = split.locate(1).unwrap();
        split.shard(shard).unwrap().record_without_values(row, &["ct", "absent"])
    };
    let chunks = |record: &shardtool_read::Record| -> Vec<Vec<u8>> {
        let example = record.example().unwrap();
        let Some(shardtool_format::example::Feature::Bytes(list)) = example.get("ct") else { panic!("no chunks") };
        list.iter().map(<[u8]>::to_vec).collect()
    };
    let check = |record: &shardtool_read::Record, number: usize| {
        let example = record.example().unwrap();
        let Some(shardtool_format::example::Feature::Bytes(list)) = example.get("ct") else { panic!("no chunks") };
        record.check_value("ct", number as u64, list.iter().nth(number).unwrap())
    };
    let split = open();
    let whole = record(&split).unwrap();
    let size: usize = chunks(&whole).iter().map(Vec::len).sum();
    assert_eq!((chunks(&whole).len(), whole.unread_bytes()), (27, size as u64));
    assert!((0..27).all(|number| check(&whole, number).is_ok()));
    assert!(whole.check_value("ct", 3, &whole.data()[..10]).is_err(), "other bytes than the index says");
    let (shard, row) = split.locate(1).unwrap();
    let ranges = split.shard(shard).unwrap().value_ranges(row, "ct").unwrap().unwrap();
    invert(&split, 1, u64::from(ranges[5].offset) + 100);
    let split = open();
    assert_eq!(split.get(1).unwrap_err().damage(), Some(Damage::DataCrc));
    let damaged = record(&split).unwrap();
    for number in 0..27 {
        let damage = check(&damaged, number).err().and_then(|error| error.damage());
        assert_eq!(damage, (number == 5).then_some(Damage::DataCrc), "chunk {number}");
    }
    // A byte between the chunks and one after them: the layout.
    for offset in [ranges[9].offset - 1, ranges[26].offset + ranges[26].length + 9] {
        invert(&split, 1, offset.into());
        assert_eq!(record(&open()).unwrap_err().damage(), Some(Damage::DataCrc));
        invert(&split, 1, offset.into());
    }
}

#[test]
fn a_crop_reads_only_its_chunks() {
    let folder = tempfile::tempdir().unwrap();
    let stored = large(folder.path());
    let split = open(folder.path(), Access::Mmap);
    let (shard, row) = split.locate(2).unwrap();
    // The chunk in the middle of sample 2.
    let range = split.shard(shard).unwrap().value_ranges(row, "ct").unwrap().unwrap()[13];
    invert(&split, 2, range.offset.into());
    let mut loaded = vec![];
    for access in [Access::Mmap, Access::Pread] {
        let mut config = config(&open(folder.path(), access), vec![group(&["ct"], &[Some(20); 3])]);
        (config.order, config.bad_samples.on_bad, config.batch_size) = (Order::Sequential, Some(OnBad::Mask), 3);
        let mut loader = Loader::new(&config).unwrap();
        let (mut good, mut bad) = (0, 0);
        for epoch in 0..30 {
            let batch = loader.next_batch().unwrap().unwrap();
            let (_, ct) = rows(&batch, "ct");
            for (id, ct) in (0..3).zip(ct) {
                let mut stream = Rng::step(11, epoch, id, 1 << 32, 0);
                let start = [0; 3].map(|_| stream.below(77) as usize);
                let meets = start.iter().all(|start| *start < 64 && start + 20 > 32);
                // Reading the whole record finds the damage in any case.
                let is_bad = id == 2 && (meets || access == Access::Pread);
                assert_eq!(batch.valid()[id as usize], !is_bad, "sample {id} at {start:?}");
                *(if is_bad { &mut bad } else { &mut good }) += 1;
                let data = stored[id as usize].data.as_chunks::<2>().0;
                let element = |at: [usize; 3]| {
                    let [i, j, k] = [0, 1, 2].map(|d| start[d] + at[d]);
                    if is_bad { 0 } else { u16::from_le_bytes(data[(i * 96 + j) * 96 + k]) }
                };
                assert_eq!(ct, Naive::from_fn([20; 3], element).data);
            }
            assert!(loader.next_batch().unwrap().is_none());
        }
        assert!(good >= 60 && bad > 5, "{good} good, {bad} bad");
        let damage = loader.bad_samples()[0].error.damage();
        assert_eq!(damage, Some(Damage::DataCrc));
        loaded.push(loader.stats().bytes);
    }
    assert!(loaded[0] * 3 < loaded[1], "{loaded:?} bytes");
}

/// Records with right CRCs and anything inside: each costs its own sample at most, and memory stays within the budget.
#[test]
fn hostile_arrays_cost_one_sample_each() {
    use shardtool_format::example::{Column, encode};
    use shardtool_format::{checksum::crc32c, frame};
    let good = volume(0, [6, 8, 10]);
    let layout = shardtool_format::array::ArrayLayout::new(&good.shape, &good.chunk, b"u16", b"zstd").unwrap();
    let chunks = shardtool_decode::encode_array(&layout, &good.data, 3).unwrap();
    let record = |shape: &[i64], chunk: &[i64], dtype: &[u8], codec: &[u8], chunks: &[&[u8]]| {
        let (mut data, dtype, codec) = (vec![], [dtype], [codec]);
        let mut features = vec![
            ("ct", Column::Bytes(chunks)),
            ("ct/shape", Column::Int64(shape)),
            ("ct/chunk", Column::Int64(chunk)),
            ("ct/dtype", Column::Bytes(&dtype)),
            ("ct/codec", Column::Bytes(&codec)),
        ];
        encode(&mut features, &mut data);
        data
    };
    let slices: Vec<&[u8]> = chunks.iter().map(Vec::as_slice).collect();
    let whole = record(&good.shape, &good.chunk, b"u16", b"zstd", &slices);
    // One byte of zeros, 2^28 times: a frame of few bytes whose content fits the shape.
    let bomb = zstd_of_zeros(1 << 28);
    let mut records = vec![
        whole.clone(),
        record(&[i64::MAX, 8, 10], &[3, 4, 5], b"u16", b"zstd", &slices),
        record(&[i64::MAX, 0, 1], &[1, 1, 1], b"u16", b"raw", &[]),
        record(&[1 << 62, 1, 1], &[1 << 62, 1, 1], b"u8", b"zstd", &[b""]),
        record(&[6, 8, -10], &[3, 4, 5], b"u16", b"zstd", &slices),
        record(&[6, 8, 10], &[3, 0, 5], b"u16", b"zstd", &slices),
        record(&[6; 65], &[6; 65], b"u16", b"zstd", &slices),
        record(&[], &[], b"u16", b"zstd", &slices),
        record(&[6, 8, 10], &[3, 4, 5], b"f128", b"zstd", &slices),
        record(&[6, 8, 10], &[3, 4, 5], b"u16", b"gzip", &slices),
        record(&[6, 8, 10], &[3, 4, 5], b"u16", b"zstd", &slices[1..]),
        record(&[6, 8, 10], &[6, 8, 10], b"u16", b"zstd", &[&bomb]),
        whole.clone(),
    ];
    let crafted = records.len() - 1;
    let mut rng = Rng::new(5);
    for _ in 0..600 {
        let mut mutated = whole.clone();
        // Half of them in what describes the array, which comes last.
        let at = if rng.below(2) == 0 { rng.below(whole.len() as u32) } else { whole.len() as u32 - 1 - rng.below(90) };
        mutated[at as usize] = rng.next_u64() as u8;
        records.push(mutated);
    }
    let mut file = vec![];
    for data in &records {
        file.extend(frame::header(data.len() as u64));
        file.extend_from_slice(data);
        file.extend(frame::footer(crc32c(data)));
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("ct-00000.tfrecord"), file).unwrap();
    let dataset = shardtool_read::Dataset::open(folder.path().join("ct-00000.tfrecord")).unwrap();
    let split = dataset.splits()[0].clone();
    let mut config = config(&split, vec![group(&["ct"], &[Some(4), Some(4), Some(4)])]);
    (config.order, config.bad_samples.on_bad, config.bad_samples.max_bad) =
        (Order::Sequential, Some(OnBad::Mask), Some(u64::MAX));
    (config.batch_size, config.memory) = (5, Some(8 << 20));
    let mut loader = Loader::new(&config).unwrap();
    let mut valid = vec![];
    loop {
        match loader.next_batch() {
            Ok(Some(batch)) => valid.extend_from_slice(batch.valid()),
            Ok(None) => break,
            Err(error) => panic!("{}", shardtool_format::Chain(&error)),
        }
    }
    let expected: Vec<_> = (0..=crafted).map(|at| at == 0 || at == crafted).collect();
    assert_eq!(valid[..=crafted], expected);
    let mutated = &valid[crafted + 1..records.len()];
    let good = mutated.iter().filter(|valid| **valid).count();
    assert!(good > 60 && good < 540, "{good} of 600");
}

#[test]
fn a_chunk_that_exceeds_the_budget_ends_the_run_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let zeros = |side: i64, chunk: i64| Stored {
        dtype: "u8",
        ..Stored::u16("ct", &[side; 3], &[chunk; 3], "zstd", &vec![0; (side * side * side / 2) as usize])
    };
    let mut samples: Vec<_> = (0..40).map(|_| vec![zeros(8, 4)]).collect();
    // Not among the records that the loader looks at first.
    samples[39] = vec![zeros(256, 256)];
    write(folder.path(), &["ct"], &samples, None);
    let mut config = config(&open(folder.path(), Access::Mmap), vec![group(&["ct"], &[Some(4); 3])]);
    (config.order, config.memory) = (Order::Sequential, Some(1 << 20));
    let mut loader = Loader::new(&config).unwrap();
    let error = (0..10).find_map(|_| loader.next_batch().err()).unwrap();
    assert!(matches!(error, Error::ArrayScratch { needed: 16_777_216, .. }), "{error}");
    assert!(error.to_string().contains("raise the memory budget"));
    config.memory = Some(64 << 20);
    let mut loader = Loader::new(&config).unwrap();
    assert_eq!(
        (0..10)
            .map(|_| loader.next_batch().unwrap().unwrap().valid().iter().filter(|valid| **valid).count())
            .sum::<usize>(),
        40
    );
}

/// Returns a zstd frame of zeros: blocks of one repeated byte, of at most 128 KiB each (RFC 8878, 3.1.1.2).
fn zstd_of_zeros(bytes: u32) -> Vec<u8> {
    const BLOCK: u32 = 128 << 10;
    // Magic, a descriptor (content size of four bytes, a single segment), the content size.
    let mut frame = [&[0x28, 0xb5, 0x2f, 0xfd, 0xa0][..], &bytes.to_le_bytes()].concat();
    for block in 0..bytes / BLOCK {
        let last = u32::from(block + 1 == bytes / BLOCK);
        frame.extend_from_slice(&(BLOCK << 3 | 1 << 1 | last).to_le_bytes()[..3]);
        frame.push(0);
    }
    frame
}
