//! Indexes: round trip, detection of every flipped bit, inconsistent directories.

use proptest::collection::vec;
use proptest::prelude::*;
use shardtool_format::index::{self, Builder, Index};
use shardtool_format::{Error, checksum};

fn small() -> Vec<u8> {
    let mut b = Builder::new(3, 1000, 0xdead_beef);
    b.fixed(index::RECORD_OFFSET, &[0u64, 300, 700]);
    b.fixed(index::IMAGE_LENGTH, &[10u32, 0, 30]);
    b.variable(index::KEY, &[1, 1, 6], b"ahello".to_vec());
    b.fixed("feature:weight", &[0.5f32, -1.0, 2.0]);
    b.finish()
}

fn check_all(file: &[u8]) -> Result<Index<&[u8]>, Error> {
    let index = Index::parse(file)?;
    (0..index.columns().len()).try_for_each(|c| index.check(c))?;
    Ok(index)
}

#[test]
fn parses_what_it_writes() {
    let file = small();
    let index = check_all(&file).unwrap();
    assert_eq!((index.records(), index.shard_bytes(), index.shard_crc()), (3, 1000, 0xdead_beef));
    let at = |name| index.position(name).unwrap();
    let offsets = index.fixed::<u64>(at(index::RECORD_OFFSET)).unwrap();
    assert_eq!(offsets.iter().collect::<Vec<_>>(), [0, 300, 700]);
    assert_eq!((offsets.get(2), offsets.get(3), offsets.get(u64::MAX)), (Some(700), None, None));
    assert_eq!(offsets.as_bytes().as_ptr().addr() - file.as_ptr().addr(), 320, "a multiple of 64");
    assert!(index.fixed::<u32>(at(index::RECORD_OFFSET)).is_none());
    let keys = index.variable(at(index::KEY)).unwrap();
    assert_eq!(keys.iter().collect::<Vec<_>>(), [&b"a"[..], b"", b"hello"]);
    assert_eq!(keys.get(3), None);
    assert_eq!(index.fixed::<f32>(at("feature:weight")).unwrap().get(1), Some(-1.0));
    assert_eq!(index.position("feature:absent"), None);
}

#[test]
fn detects_every_flipped_bit() {
    let good = small();
    for bit in 0..good.len() * 8 {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        assert!(check_all(&bad).is_err(), "bit {bit}");
    }
}

#[test]
fn detects_every_truncation_and_a_trailing_byte() {
    let good = small();
    for cut in 0..good.len() {
        assert!(matches!(check_all(&good[..cut]), Err(Error::IndexTruncated { .. })), "cut at {cut}");
    }
    let longer = [&good[..], &[0]].concat();
    assert!(matches!(check_all(&longer), Err(Error::IndexLayout { .. })));
}

#[test]
fn accepts_the_index_of_an_empty_shard() {
    let mut b = Builder::new(0, 0, 0);
    b.fixed::<u64>(index::RECORD_OFFSET, &[]);
    b.variable(index::KEY, &[], vec![]);
    let file = b.finish();
    assert_eq!(check_all(&file).unwrap().records(), 0);
}

/// Changes the file, then corrects the CRCs of header and directory.
fn forged(change: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let mut file = small();
    change(&mut file);
    let directory = u32::from_le_bytes(file[44..48].try_into().unwrap()) as usize;
    if let Some(directory) = file.get(64..64 + directory) {
        let crc = checksum::crc32c(directory);
        file[56..60].copy_from_slice(&crc.to_le_bytes());
    }
    let crc = checksum::crc32c(&file[..60]);
    file[60..64].copy_from_slice(&crc.to_le_bytes());
    file
}

#[test]
fn refuses_inconsistent_directories_with_the_right_error() {
    let cases: [(&str, usize, u8, &str); 12] = [
        ("major version", 8, 2, "IndexVersion"),
        ("required flag", 12, 4, "IndexFlags"),
        ("column count", 20, 200, "IndexLayout"),
        ("record count", 24, 4, "IndexLayout"),
        ("directory length", 47, 0x7f, "IndexLayout"),
        ("file length", 48, 0, "IndexLayout"),
        ("kind", 64, 2, "IndexLayout"),
        ("element", 65, 9, "IndexLayout"),
        ("name length", 66, 250, "IndexLayout"),
        ("reserved", 68, 1, "IndexLayout"),
        ("part offset", 72, 1, "IndexLayout"),
        ("part length", 87, 0xff, "IndexLayout"),
    ];
    for (what, at, value, name) in cases {
        let file = forged(|f| f[at] = value);
        assert_eq!(check_all(&file).unwrap_err().damage().name(), name, "{what}");
    }
    assert!(check_all(&forged(|_| {})).is_ok(), "correcting the CRCs alone keeps the index valid");
}

#[test]
fn refuses_row_ends_that_decrease_or_run_past_the_bytes() {
    for (row, value) in [(0u64, 99u64), (1, 0), (2, 5)] {
        let mut file = small();
        // The ends of `key` lie in the third column's first part: forge them, their CRC, and the directory's.
        let entry = 64 + 2 * 48;
        let part = u64::from_le_bytes(file[entry + 8..entry + 16].try_into().unwrap()) as usize;
        file[part + 8 * row as usize..][..8].copy_from_slice(&value.to_le_bytes());
        let crc = checksum::crc32c(&file[part..part + 24]);
        file[entry + 40..entry + 44].copy_from_slice(&crc.to_le_bytes());
        let directory = u32::from_le_bytes(file[44..48].try_into().unwrap()) as usize;
        let crc = checksum::crc32c(&file[64..64 + directory]);
        file[56..60].copy_from_slice(&crc.to_le_bytes());
        let crc = checksum::crc32c(&file[..60]);
        file[60..64].copy_from_slice(&crc.to_le_bytes());
        let index = Index::parse(&file).unwrap();
        assert!(matches!(index.check(2), Err(Error::ColumnValue { .. })), "row {row}");
        let keys = index.variable(2).unwrap();
        assert!(keys.iter().count() == 3, "unchecked columns still never panic");
    }
}

proptest! {
    #[test]
    fn columns_round_trip(
        rows in 0..40usize, shard_bytes: u64, shard_crc: u32,
        integers in vec(any::<i64>(), 40), floats in vec(any::<u32>(), 40), offsets in vec(any::<u64>(), 40),
        keys in vec(vec(any::<u8>(), 0..70), 40), name in "[a-zé/]{0,20}",
    ) {
        let floats: Vec<f32> = floats[..rows].iter().map(|bits| f32::from_bits(*bits)).collect();
        let ends: Vec<u64> = keys[..rows].iter().scan(0, |end, key| { *end += key.len() as u64; Some(*end) }).collect();
        let mut builder = Builder::new(rows as u64, shard_bytes, shard_crc);
        builder.fixed(index::RECORD_OFFSET, &offsets[..rows]);
        builder.variable(index::KEY, &ends, keys[..rows].concat());
        builder.fixed(&format!("{}{name}", index::FEATURE_PREFIX), &integers[..rows]);
        builder.fixed("weights", &floats);
        let file = builder.finish();
        let index = check_all(&file).unwrap();
        prop_assert_eq!((index.records(), index.shard_bytes(), index.shard_crc()), (rows as u64, shard_bytes, shard_crc));
        prop_assert_eq!(index.fixed::<u64>(0).unwrap().iter().collect::<Vec<_>>(), &offsets[..rows]);
        prop_assert_eq!(index.variable(1).unwrap().iter().collect::<Vec<_>>(), &keys[..rows]);
        prop_assert_eq!(index.columns()[2].feature(), Some(name.as_str()));
        prop_assert_eq!(index.fixed::<i64>(2).unwrap().iter().collect::<Vec<_>>(), &integers[..rows]);
        let bits = |value: f32| value.to_bits();
        prop_assert_eq!(
            index.fixed::<f32>(3).unwrap().iter().map(bits).collect::<Vec<_>>(),
            floats.iter().copied().map(bits).collect::<Vec<_>>()
        );
        prop_assert!(index.fixed::<f32>(2).is_none() && index.variable(0).is_none(), "of another type");
    }
}
