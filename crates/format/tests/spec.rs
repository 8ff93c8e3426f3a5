//! Compares `format-spec.md` with the code and the fixtures: every table of fields and names, the annotated hex, and
//! the test vectors.

use shardtool_format::example::{Column, Example, Feature, encode};
use shardtool_format::frame::{self, Check};
use shardtool_format::index::{self, Builder, Element, Index};
use shardtool_format::manifest::{DType, Manifest, Shard, Split};
use shardtool_format::{Damage, Error, checksum, names};
use std::collections::BTreeSet;

const DOCUMENT: &str = include_str!("../../../format-spec.md");
const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/conformance");

/// The part of the document under a heading, up to the next heading of any level.
fn section(heading: &str) -> &'static str {
    let after = DOCUMENT.split_once(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("no {heading}")).1;
    after.split("\n#").next().unwrap_or(after)
}

/// Cells of the rows of every table in a text, without the header and the delimiter row.
fn tables(text: &str) -> Vec<Vec<Vec<&str>>> {
    let mut tables = vec![];
    let mut rows = vec![];
    for line in text.lines().chain([""]) {
        match line.strip_prefix('|').and_then(|line| line.strip_suffix('|')) {
            Some(row) => rows.push(row.split('|').map(str::trim).collect()),
            None if !rows.is_empty() => tables.push(std::mem::take(&mut rows).split_off(2)),
            None => {}
        }
    }
    tables
}

fn table(heading: &str) -> Vec<Vec<&'static str>> {
    tables(section(heading)).swap_remove(0)
}

/// The parts of a cell between backticks.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

fn hex(text: &str) -> Vec<u8> {
    text.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).expect("hex")).collect()
}

fn number(cell: &str) -> usize {
    cell.parse().unwrap_or_else(|_| panic!("not a number: {cell}"))
}

#[test]
fn frames_match_the_specification() {
    let data = b"some data";
    let bytes = [&frame::header(9), &data[..], &frame::footer(checksum::crc32c(data))].concat();
    let masked = |bytes: &[u8]| checksum::mask(checksum::crc32c(bytes)).to_le_bytes().to_vec();
    let expected = [9u64.to_le_bytes().to_vec(), masked(&9u64.to_le_bytes()), data.to_vec(), masked(data)];
    let rows = table("### Frame");
    assert_eq!(rows.len(), expected.len());
    let mut end = 0;
    for (row, expected) in rows.iter().zip(expected) {
        let value = |cell: &str| cell.split(" + ").map(|term| if term == "`length`" { 9 } else { number(term) }).sum();
        let (offset, length): (usize, usize) = (value(row[0]), value(row[1]));
        assert_eq!(offset, end, "{row:?}");
        assert_eq!(bytes[offset..offset + length], expected, "{row:?}");
        end = offset + length;
        if let Some(name) = quoted(row[4]).next() {
            let mut damaged = bytes.clone();
            // The damaged length gets a matching CRC and is longer than the file.
            damaged[offset] ^= 0x40;
            if offset == 0 {
                damaged[..12].copy_from_slice(&frame::header(9 + 0x40));
            }
            assert_eq!(frame::data(&damaged, 0, Check::Data).unwrap_err().damage().name(), name, "{row:?}");
        }
    }
    assert_eq!(end, bytes.len());
}

/// An index in which the values of the fields differ from each other.
fn sample() -> Vec<u8> {
    let mut b = Builder::new(3, 0x1122_3344_5566_7788, 0xdead_beef);
    b.fixed(index::RECORD_OFFSET, &[0u64, 300, 700]);
    b.variable(index::KEY, ["a", "", "hello"]);
    b.fixed("feature:weight", &[0.5f32, -1.0, 2.0]);
    b.finish()
}

fn first_error(file: &[u8]) -> Result<(), Error> {
    let index = Index::parse(file)?;
    (0..index.columns().len()).try_for_each(|column| index.check(column))
}

fn set_crc(file: &mut [u8], of: std::ops::Range<usize>, at: usize) {
    let crc = checksum::crc32c(&file[of]);
    file[at..at + 4].copy_from_slice(&crc.to_le_bytes());
}

/// Checks that fields are contiguous, have the expected values, and when changed give an error that their row names.
fn check_fields(heading: &str, at: usize, expected: &[(&str, Vec<u8>)], repair: impl Fn(&mut [u8], usize)) {
    let file = sample();
    let rows = table(heading);
    assert_eq!(rows.len(), expected.len());
    let mut end = 0;
    for (row, (field, value)) in rows.iter().zip(expected) {
        let (offset, length) = (number(row[0]), number(row[1]));
        assert_eq!(offset, end, "{row:?}");
        end += length;
        assert!(row[3].starts_with(field), "{row:?} is not about {field}");
        assert_eq!(&file[at + offset..at + end], value, "{row:?}");
        let width = row[2].trim_start_matches('u').parse().map_or(length, |bits: usize| bits / 8);
        assert_eq!(length, width, "{row:?}");
        let mut wrong = file.clone();
        wrong[at + offset] ^= 8;
        repair(&mut wrong, offset);
        match first_error(&wrong) {
            Err(error) => assert!(quoted(row[4]).any(|name| name == error.damage().name()), "{row:?}: {error}"),
            Ok(()) => assert!(row[4].contains("manifest") || row[4].contains("none"), "{row:?}: no error"),
        }
    }
    assert_eq!(end, if at == 0 { index::HEADER_BYTES } else { index::ENTRY_BYTES });
}

#[test]
fn index_header_matches_the_specification() {
    let file = sample();
    let names = [index::RECORD_OFFSET, index::KEY, "feature:weight"].concat().len();
    let directory = 3 * index::ENTRY_BYTES + names;
    let magic = quoted(table("### Index header")[0][3]).next().map(hex).expect("the magic bytes");
    assert_eq!(magic, index::MAGIC);
    let expected = [
        ("magic", magic),
        ("major version", index::MAJOR_VERSION.to_le_bytes().to_vec()),
        ("minor version", index::MINOR_VERSION.to_le_bytes().to_vec()),
        ("required flags", vec![0; 4]),
        ("optional flags", vec![0; 4]),
        ("number of columns", 3u32.to_le_bytes().to_vec()),
        ("records", 3u64.to_le_bytes().to_vec()),
        ("length of the shard", 0x1122_3344_5566_7788u64.to_le_bytes().to_vec()),
        ("CRC32C of the whole shard", 0xdead_beefu32.to_le_bytes().to_vec()),
        ("length of the directory", (directory as u32).to_le_bytes().to_vec()),
        ("length of the index", (file.len() as u64).to_le_bytes().to_vec()),
        ("CRC32C of the directory", checksum::crc32c(&file[64..64 + directory]).to_le_bytes().to_vec()),
        ("CRC32C of the 60 bytes before", checksum::crc32c(&file[..60]).to_le_bytes().to_vec()),
    ];
    check_fields("### Index header", 0, &expected, |file, offset| {
        if offset < 60 {
            set_crc(file, 0..60, 60);
        }
    });
}

#[test]
fn directory_entries_match_the_specification() {
    let file = sample();
    let names = [index::RECORD_OFFSET, index::KEY, "feature:weight"];
    let directory = 3 * index::ENTRY_BYTES + names.concat().len();
    assert_eq!(&file[64 + 3 * index::ENTRY_BYTES..64 + directory], names.concat().as_bytes());
    // Parts of 24 bytes (values of record_offset), then 32 and 6 (offsets and values of key): each at the next multiple of
    // 64 after the directory.
    let first = (64 + directory).next_multiple_of(64);
    let (offsets, bytes) = (first + 64, first + 128);
    let u64_bytes = |value: usize| (value as u64).to_le_bytes().to_vec();
    let crc = |from: usize, length: usize| checksum::crc32c(&file[from..from + length]).to_le_bytes().to_vec();
    let fixed = [
        ("kind", vec![0]),
        ("element type", vec![2]),
        ("length of the name", (names[0].len() as u16).to_le_bytes().to_vec()),
        ("reserved", vec![0; 4]),
        ("offset of the validity", u64_bytes(0)),
        ("length of the validity", u64_bytes(0)),
        ("offset of the offsets", u64_bytes(0)),
        ("length of the offsets", u64_bytes(0)),
        ("offset of the values", u64_bytes(first)),
        ("length of the values", u64_bytes(24)),
        ("CRC32C of the validity", vec![0; 4]),
        ("CRC32C of the offsets", vec![0; 4]),
        ("CRC32C of the values", crc(first, 24)),
        ("reserved", vec![0; 4]),
    ];
    let mut variable = fixed.clone();
    variable[0].1 = vec![1];
    variable[1].1 = vec![0];
    variable[2].1 = (names[1].len() as u16).to_le_bytes().to_vec();
    variable[6].1 = u64_bytes(offsets);
    variable[7].1 = u64_bytes(32);
    variable[8].1 = u64_bytes(bytes);
    variable[9].1 = u64_bytes(6);
    variable[11].1 = crc(offsets, 32);
    variable[12].1 = crc(bytes, 6);
    for (at, expected) in [(64, fixed), (64 + index::ENTRY_BYTES, variable)] {
        check_fields("### Directory entry", at, &expected, |file, _| {
            set_crc(file, 64..64 + directory, 56);
            set_crc(file, 0..60, 60);
        });
    }
}

#[test]
fn elements_and_columns_match_the_specification() {
    let elements = tables(section("### Directory entry")).swap_remove(1);
    let known = [
        ("bytes", Element::Bytes),
        ("u32", Element::U32),
        ("u64", Element::U64),
        ("i64", Element::I64),
        ("f32", Element::F32),
    ];
    assert_eq!(elements.len(), known.len());
    for (row, (name, element)) in elements.iter().zip(known) {
        assert_eq!((row[0], number(row[1]), number(row[2])), (name, element as usize, element.width()));
    }
    let columns: Vec<_> = table("### Columns").iter().flat_map(|row| quoted(row[0])).collect();
    let (feature, values) = (format!("{}NAME", index::FEATURE_PREFIX), format!("{}NAME", index::VALUES_PREFIX));
    let expected = [
        index::RECORD_OFFSET,
        index::IMAGE_OFFSET,
        index::IMAGE_LENGTH,
        index::KEY,
        &feature,
        &values,
        index::JPEG_ENTRIES,
        index::VIRTUAL_FILES,
        index::VIRTUAL_RANGES,
        index::VIRTUAL_BYTES,
    ];
    assert_eq!(columns, expected);
    // Kinds and elements of the required columns are those of a fixture's index.
    let file = std::fs::read(format!("{FIXTURES}/golden/tiny/_index/train-00000.tfrecord.index")).expect("a fixture");
    let index = Index::parse(&file).expect("a good index");
    for row in table("### Columns").iter().filter(|row| row[3] == "yes") {
        let column = index.position(quoted(row[0]).next().expect("a name")).expect("a column");
        let element = known.iter().find(|(name, _)| *name == row[2]).expect("an element").1;
        assert_eq!(index.columns()[column].element(), element, "{row:?}");
        assert_eq!(index.variable(column).is_some(), row[1] == "variable", "{row:?}");
    }
}

/// Strings between `"` in source code that pass the filter.
fn literals(source: &'static str, wanted: impl Fn(&str) -> bool) -> BTreeSet<&'static str> {
    source.split('"').skip(1).step_by(2).filter(|text| wanted(text)).collect()
}

#[test]
fn feature_names_match_the_specification() {
    let documented: BTreeSet<_> = table("### Feature names").iter().flat_map(|row| quoted(row[0])).collect();
    assert_eq!(documented, literals(include_str!("../src/names.rs"), |text| text.starts_with("image/")));
    assert!(DOCUMENT.contains(&format!("`{}`", names::MANIFEST)) && DOCUMENT.contains(names::INDEX_FOLDER));
}

#[test]
fn logical_types_match_the_specification() {
    let documented: Vec<_> = table("#### Logical types").iter().flat_map(|row| quoted(row[0])).collect();
    let logical = DType::ALL.into_iter().filter(|dtype| dtype.is_logical()).map(DType::name);
    assert_eq!(documented, logical.collect::<Vec<_>>());
}

#[test]
fn every_damage_is_documented_and_has_a_fixture() {
    let names = |heading| table(heading).iter().flat_map(|row| quoted(row[0])).collect::<Vec<_>>();
    let (bytes, datasets) = (names("### Errors of bytes"), names("### Errors of datasets"));
    assert_eq!(Damage::ALL.iter().map(|damage| damage.name()).collect::<Vec<_>>(), [&bytes[..], &datasets].concat());
    for damage in Damage::ALL {
        assert_eq!((damage.name().parse(), damage.to_string()), (Ok(*damage), damage.name().to_owned()));
    }
    // The errors of this crate are those of bytes.
    let source = include_str!("../src/error.rs").split_once("fn damage(").expect("the function that names errors").1;
    let found: Vec<_> = source.split("Damage::").skip(1).filter_map(|rest| rest.split(',').next()).collect();
    assert_eq!(found, bytes);
    let all: BTreeSet<_> = Damage::ALL.iter().map(|damage| damage.name()).collect();
    let folders: Vec<_> = std::fs::read_dir(format!("{FIXTURES}/hostile")).expect("fixtures").collect();
    let folders = folders.into_iter().map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"));
    let fixtures: BTreeSet<_> = folders.map(|name| name.split('-').next().expect("a name").to_owned()).collect();
    assert_eq!(fixtures, all.iter().map(|name| name.to_string()).collect());
    for cell in tables(DOCUMENT).iter().flatten().filter_map(|row| row.get(4).or(row.last())) {
        for name in quoted(cell).filter(|text| text.starts_with(|c: char| c.is_ascii_uppercase())) {
            assert!(all.contains(name) || name.contains("NAME"), "{name} is not the name of a damage");
        }
    }
}

/// The contents of the fenced block whose opening line is "```" and `tag`.
fn block(tag: &str) -> &'static str {
    DOCUMENT
        .split_once(&format!("\n```{tag}\n"))
        .unwrap_or_else(|| panic!("no {tag}"))
        .1
        .split("```")
        .next()
        .expect("an end")
}

#[test]
fn manifest_matches_the_specification() {
    let example = block("json");
    let manifest = Manifest::parse(example.as_bytes()).expect("the example is a manifest");
    assert_eq!(manifest.to_json(), example);
    let tables = tables(section("## Manifest"));
    let documented = |table: usize| tables[table].iter().flat_map(|row| quoted(row[0])).collect::<Vec<_>>();
    let members = example.lines().filter_map(|line| line.strip_prefix("  \"")?.split_once('"')).map(|(name, _)| name);
    assert_eq!(documented(0), members.collect::<Vec<_>>());
    let shard = example.lines().find(|line| line.contains("\"file\"")).expect("a shard");
    let members = shard.split('"').collect::<Vec<_>>();
    let members = members.windows(2).filter(|pair| pair[1].starts_with(": ")).map(|pair| pair[0]);
    assert_eq!(documented(1), members.collect::<Vec<_>>());
}

#[test]
fn hex_in_the_specification_equals_the_fixture() {
    for path in ["train-00000.tfrecord", "_index/train-00000.tfrecord.index"] {
        let mut bytes = vec![];
        for line in block(&format!("hex tiny/{path}")).lines() {
            let (offset, rest) = line.split_once("  ").expect("an offset");
            assert_eq!(usize::from_str_radix(offset, 16).expect("hex"), bytes.len(), "{line}");
            let shown = rest.split("  ").next().expect("bytes");
            match shown.strip_prefix("00 x ") {
                Some(count) => bytes.resize(bytes.len() + number(count.trim()), 0),
                None => bytes.extend(hex(shown)),
            }
        }
        let fixture = std::fs::read(format!("{FIXTURES}/golden/tiny/{path}")).expect("a fixture");
        assert!(bytes == fixture, "{path}");
    }
    let json = block("text tiny/dataset.json");
    assert_eq!(json.as_bytes(), std::fs::read(format!("{FIXTURES}/golden/tiny/dataset.json")).expect("a fixture"));
    let fingerprint = Manifest::parse(json.as_bytes()).expect("a manifest").splits[0].fingerprint();
    assert!(DOCUMENT.contains(&format!("Its fingerprint is `{fingerprint:08x}`.")));
}

#[test]
fn test_vectors_match_the_code() {
    let mut kinds = BTreeSet::new();
    for row in tables(section("## Test vectors")).iter().flatten() {
        let cell = |at: usize| row[at].trim_matches('`');
        let (kind, input, result) = (cell(0), cell(1), cell(2));
        let u32_of = |digits: &str| u32::from_str_radix(digits, 16).expect("hex");
        match kind {
            "crc32c" => assert_eq!(checksum::crc32c(&hex(input)), u32_of(result), "{row:?}"),
            "masked" => {
                assert_eq!(checksum::mask(u32_of(input)), u32_of(result), "{row:?}");
                assert_eq!(checksum::unmask(u32_of(result)), u32_of(input), "{row:?}");
            }
            "varint" => {
                let value = input.parse().expect("an integer");
                let mut data = vec![];
                encode(&mut [("", Column::Int64(&[value]))], &mut data);
                assert!(data.ends_with(&hex(result)), "{row:?}");
                let example = Example::parse(&data).expect("an Example");
                assert!(matches!(example.get(""), Some(Feature::Int64(list)) if list.single() == Some(value)));
            }
            "frame" => {
                let (data, frame) = (hex(input), hex(result));
                assert_eq!(frame::data(&frame, 0, Check::Data).expect("a frame"), data);
                let length = data.len() as u64;
                let footer = frame::footer(checksum::crc32c(&data));
                assert_eq!([&frame::header(length), &data[..], &footer].concat(), frame);
            }
            "fingerprint" => {
                let shard = |fields: &str| match fields.split(',').collect::<Vec<_>>()[..] {
                    [records, bytes, crc] => Shard {
                        file: String::new(),
                        records: number(records) as u64,
                        bytes: number(bytes) as u64,
                        crc32c: u32_of(crc),
                        index_bytes: 0,
                        index_crc32c: 0,
                        sha256: None,
                        companions: Default::default(),
                        foreign: Default::default(),
                    },
                    _ => panic!("{row:?}"),
                };
                let split = Split { name: String::new(), shards: input.split(';').map(shard).collect() };
                assert_eq!(split.fingerprint(), u32_of(result), "{row:?}");
            }
            _ => panic!("{row:?}"),
        }
        kinds.insert(kind);
    }
    assert_eq!(kinds.len(), 5);
}
