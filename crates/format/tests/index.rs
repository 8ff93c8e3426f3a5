//! Indexes: round trip, detection of every flipped bit, inconsistent directories.

use proptest::collection::vec;
use proptest::prelude::*;
use shardtool_format::index::{self, Builder, Index, ValueRange};
use shardtool_format::{Error, checksum};

fn small() -> Vec<u8> {
    let mut b = Builder::new(3, 1000, 0xdead_beef);
    b.fixed(index::RECORD_OFFSET, &[0u64, 300, 700]);
    b.fixed(index::IMAGE_LENGTH, &[10u32, 0, 30]);
    b.variable(index::KEY, ["a", "", "hello"]);
    b.fixed("feature:weight", &[0.5f32, -1.0, 2.0]);
    b.fixed_nullable("feature:age", [Some(-7i64), None, Some(i64::MAX)]);
    b.variable_nullable("feature:caption", [None, Some("zwölf"), Some("")]);
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
    assert_eq!(offsets.iter().flatten().collect::<Vec<_>>(), [0, 300, 700]);
    assert_eq!((offsets.get(2), offsets.get(3), offsets.get(u64::MAX)), (Some(700), None, None));
    // 64 + 6 entries of 72 + 69 bytes of names = 565, so the first part begins at 576.
    assert_eq!(offsets.values().as_ptr().addr() - file.as_ptr().addr(), 576, "a multiple of 64");
    assert_eq!(offsets.validity(), None);
    assert!(index.fixed::<u32>(at(index::RECORD_OFFSET)).is_none());
    let keys = index.variable(at(index::KEY)).unwrap();
    assert_eq!(keys.iter().flatten().collect::<Vec<_>>(), [&b"a"[..], b"", b"hello"]);
    assert_eq!((keys.get(3), keys.get(u64::MAX)), (None, None));
    assert_eq!((keys.len(), keys.values()), (3, &b"ahello"[..]));
    assert_eq!(keys.offsets(), [0i64, 1, 1, 6].map(i64::to_le_bytes).concat());
    assert_eq!(index.fixed::<f32>(at("feature:weight")).unwrap().get(1), Some(-1.0));
    assert_eq!(index.position("feature:absent"), None);
    let ages = index.fixed::<i64>(at("feature:age")).unwrap();
    assert_eq!(ages.iter().collect::<Vec<_>>(), [Some(-7), None, Some(i64::MAX)]);
    assert_eq!((ages.get(1), ages.get(3), ages.get(1 << 40)), (None, None, None));
    assert_eq!(ages.validity(), Some(&[0b101][..]));
    assert_eq!(ages.values(), [-7i64, 0, i64::MAX].map(i64::to_le_bytes).concat());
    let captions = index.variable(at("feature:caption")).unwrap();
    assert_eq!(captions.iter().collect::<Vec<_>>(), [None, Some("zwölf".as_bytes()), Some(b"")]);
    assert_eq!(captions.validity(), Some(&[0b110][..]));
    let nullable = |name| index.columns()[at(name)].nullable();
    assert!(nullable("feature:age") && nullable("feature:caption") && !nullable("feature:weight"));
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
    b.variable(index::KEY, [""; 0]);
    b.fixed_nullable::<i64>("feature:age", []);
    let file = b.finish();
    let index = check_all(&file).unwrap();
    assert_eq!((index.records(), index.columns()[2].nullable()), (0, false));
    assert_eq!(index.variable(1).unwrap().offsets(), 0i64.to_le_bytes());
}

/// The offset of an entry of the directory.
const fn entry(column: usize) -> usize {
    64 + 72 * column
}

/// The columns of `small`.
const KEY: usize = 2;
const AGE: usize = 4;
const CAPTION: usize = 5;

fn u64_at(file: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(file[at..at + 8].try_into().unwrap())
}

/// Changes the file, then corrects the CRCs of all parts that still lie in the file, of the directory and of the header.
fn forged(change: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let mut file = small();
    change(&mut file);
    for column in 0..6 {
        for part in 0..3 {
            let at = entry(column) + 8 + 16 * part;
            let (offset, length) = (u64_at(&file, at), u64_at(&file, at + 8));
            let bytes = file.get(offset as usize..).and_then(|f| f.get(..length as usize));
            if let Some(crc) = bytes.filter(|_| offset > 0).map(checksum::crc32c) {
                file[entry(column) + 56 + 4 * part..][..4].copy_from_slice(&crc.to_le_bytes());
            }
        }
    }
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
    let cases: &[(&str, usize, u8, &str)] = &[
        ("major version", 8, 2, "IndexVersion"),
        ("required flag", 12, 4, "IndexFlags"),
        ("column count", 20, 200, "IndexLayout"),
        ("record count", 24, 4, "IndexLayout"),
        ("directory length", 47, 0x7f, "IndexLayout"),
        ("file length", 48, 1, "IndexLayout"),
        ("kind", 64, 2, "IndexLayout"),
        ("kind that its element cannot have", 64, 1, "IndexLayout"),
        ("element", 65, 9, "IndexLayout"),
        ("element that its kind cannot have", 65, 0, "IndexLayout"),
        ("name length", 66, 250, "IndexLayout"),
        ("empty name", 66, 0, "IndexLayout"),
        ("first reserved field", 68, 1, "IndexLayout"),
        ("last reserved field", 64 + 68, 1, "IndexLayout"),
        ("offset of absent validity", 72, 64, "IndexLayout"),
        ("length of absent validity", 80, 1, "IndexLayout"),
        ("CRC of absent validity", 64 + 56, 1, "IndexLayout"),
        ("length of validity", entry(AGE) + 16, 2, "IndexLayout"),
        ("offset of offsets of a fixed-width column", 88, 64, "IndexLayout"),
        ("length of offsets of a fixed-width column", 96, 8, "IndexLayout"),
        ("CRC of offsets of a fixed-width column", 64 + 60, 1, "IndexLayout"),
        ("length of offsets", entry(KEY) + 32, 24, "IndexLayout"),
        ("offset of values", 104, 1, "IndexLayout"),
        ("length of values", 112, 16, "IndexLayout"),
        ("end of values", 119, 0xff, "IndexLayout"),
    ];
    for (what, at, value, name) in cases {
        let file = forged(|f| f[*at] = *value);
        assert_eq!(check_all(&file).unwrap_err().damage().name(), *name, "{what}");
    }
    assert!(check_all(&forged(|_| {})).is_ok(), "correcting the CRCs alone keeps the index valid");
}

#[test]
fn tells_an_index_of_version_0_1_what_to_do() {
    let file = forged(|f| f[3] = b'X');
    let error = check_all(&file).unwrap_err();
    assert!(matches!(error, Error::IndexMagic { .. }) && error.to_string().contains("shardtool repair"), "{error}");
}

#[test]
fn refuses_impossible_values() {
    // The offset of a part's bytes in the file.
    let part = |file: &[u8], column: usize, part: usize| u64_at(file, entry(column) + 8 + 16 * part) as usize;
    type Case<'a> = (&'a str, usize, usize, usize, &'a [u8], u64);
    let cases: &[Case<'_>] = &[
        ("first offset", KEY, 1, 0, &1i64.to_le_bytes(), 0),
        ("falling offset", KEY, 1, 16, &0i64.to_le_bytes(), 1),
        ("negative offset", KEY, 1, 8, &(-1i64).to_le_bytes(), 0),
        ("last offset before the end", KEY, 1, 24, &5i64.to_le_bytes(), 2),
        ("last offset past the end", KEY, 1, 24, &i64::MAX.to_le_bytes(), 2),
        ("unused bit", AGE, 0, 0, &[0b1101], 3),
        ("no null row", AGE, 0, 0, &[0b111], 0),
        ("number in a null row", AGE, 2, 15, &[0x80], 1),
        ("bytes in a null row", CAPTION, 0, 0, &[0b101], 1),
    ];
    for (what, column, number, at, bytes, row) in cases {
        let file = forged(|f| {
            let at = part(f, *column, *number) + at;
            f[at..at + bytes.len()].copy_from_slice(bytes);
        });
        let index = Index::parse(&file).unwrap();
        match index.check(*column) {
            Err(Error::ColumnValue { row: found, .. }) => assert_eq!(found, *row, "{what}"),
            other => panic!("{what}: {other:?}"),
        }
        // Unchecked columns still never panic.
        assert!(index.variable(*column).is_none_or(|c| c.iter().count() == 3));
        assert!(index.fixed::<i64>(*column).is_none_or(|c| c.iter().count() == 3));
    }
}

#[test]
fn refuses_value_ranges_that_are_not_whole() {
    let mut row = vec![];
    ValueRange { offset: 1, length: 2, crc: 3 }.encode(&mut row);
    for (rows, good) in [([&row[..], b""], true), ([b"", &row[..11]], false)] {
        let mut b = Builder::new(2, 0, 0);
        b.variable("values:frames", rows);
        let file = b.finish();
        assert_eq!(Index::parse(&file).unwrap().columns()[0].values_of(), Some("frames"));
        match check_all(&file) {
            Ok(_) => assert!(good),
            Err(error) => assert!(!good && matches!(error, Error::ColumnValue { row: 1, .. }), "{error}"),
        }
    }
}

/// Returns the column that `Index::required` refuses in an index of one record with the required columns, of which `name`
/// is replaced or added by `add`.
fn refused(name: &str, add: impl Fn(&mut Builder) -> &mut Builder) -> Option<String> {
    let mut b = Builder::new(1, 0, 0);
    add(&mut b);
    for required in [index::RECORD_OFFSET, index::IMAGE_OFFSET, index::IMAGE_LENGTH, index::KEY] {
        match required {
            _ if required == name => &mut b,
            index::RECORD_OFFSET => b.fixed(required, &[0u64]),
            index::KEY => b.variable(required, ["k"]),
            _ => b.fixed(required, &[0u32]),
        };
    }
    match Index::parse(b.finish()).unwrap().required() {
        Ok(_) => None,
        Err(Error::IndexColumn { column }) => Some(column),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn requires_each_known_column_to_have_its_type() {
    for required in [index::RECORD_OFFSET, index::IMAGE_OFFSET, index::IMAGE_LENGTH, index::KEY] {
        assert_eq!(refused(required, |b| b).as_deref(), Some(required));
    }
    // Which of u32, u64, i64, f32 and bytes are accepted, and whether a row may be null.
    for (name, types, nullable) in [
        (index::RECORD_OFFSET, [false, true, false, false, false], false),
        (index::IMAGE_OFFSET, [true, false, false, false, false], false),
        (index::IMAGE_LENGTH, [true, false, false, false, false], false),
        (index::KEY, [false, false, false, false, true], false),
        (index::JPEG_ENTRIES, [false, false, false, false, true], false),
        ("values:a", [false, false, false, false, true], false),
        ("feature:a", [false, false, true, true, true], true),
        ("later", [true; 5], true),
    ] {
        for null in [false, true] {
            let found = [
                refused(name, |b| b.fixed_nullable(name, [(!null).then_some(1u32)])),
                refused(name, |b| b.fixed_nullable(name, [(!null).then_some(1u64)])),
                refused(name, |b| b.fixed_nullable(name, [(!null).then_some(1i64)])),
                refused(name, |b| b.fixed_nullable(name, [(!null).then_some(1f32)])),
                refused(name, |b| b.variable_nullable(name, [(!null).then_some("")])),
            ];
            let expected = types.map(|good| (!good || (null && !nullable)).then(|| name.to_owned()));
            assert_eq!(found, expected, "{name}, null: {null}");
        }
    }
}

proptest! {
    #[test]
    fn columns_round_trip(
        rows in 0..40usize, shard_bytes: u64, shard_crc: u32,
        integers in vec(any::<Option<i64>>(), 40), floats in vec(any::<u32>(), 40), offsets in vec(any::<u64>(), 40),
        keys in vec(vec(any::<u8>(), 0..70), 40), texts in vec(proptest::option::of(vec(any::<u8>(), 0..9)), 40),
        name in "[a-zé/]{0,20}",
    ) {
        let floats: Vec<f32> = floats[..rows].iter().map(|bits| f32::from_bits(*bits)).collect();
        let mut builder = Builder::new(rows as u64, shard_bytes, shard_crc);
        builder.fixed(index::RECORD_OFFSET, &offsets[..rows]);
        builder.variable(index::KEY, &keys[..rows]);
        builder.fixed_nullable(&format!("{}{name}", index::FEATURE_PREFIX), integers[..rows].iter().copied());
        builder.fixed("weights", &floats);
        builder.variable_nullable("texts", texts[..rows].iter().map(Option::as_ref));
        let file = builder.finish();
        let index = check_all(&file).unwrap();
        prop_assert_eq!((index.records(), index.shard_bytes(), index.shard_crc()), (rows as u64, shard_bytes, shard_crc));
        prop_assert_eq!(index.fixed::<u64>(0).unwrap().iter().flatten().collect::<Vec<_>>(), &offsets[..rows]);
        prop_assert_eq!(index.variable(1).unwrap().iter().flatten().collect::<Vec<_>>(), &keys[..rows]);
        prop_assert_eq!(index.columns()[2].feature(), Some(name.as_str()));
        prop_assert_eq!(index.fixed::<i64>(2).unwrap().iter().collect::<Vec<_>>(), &integers[..rows]);
        prop_assert_eq!(index.columns()[2].nullable(), integers[..rows].contains(&None));
        let bits = |value: f32| value.to_bits();
        prop_assert_eq!(
            index.fixed::<f32>(3).unwrap().iter().flatten().map(bits).collect::<Vec<_>>(),
            floats.iter().copied().map(bits).collect::<Vec<_>>()
        );
        let texts: Vec<_> = texts[..rows].iter().map(Option::as_deref).collect();
        prop_assert_eq!(index.variable(4).unwrap().iter().collect::<Vec<_>>(), texts);
        prop_assert!(index.fixed::<f32>(2).is_none() && index.variable(0).is_none(), "of another type");
    }
}
