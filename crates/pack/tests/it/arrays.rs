//! Arrays from `.npy` files that a list names, and from a program: chunks compared with element-wise indexing.

use crate::support::{chain, manifest, put, records, rejected};
use shardtool_format::array::{ArrayDtype, ArrayFeatures, ArrayLayout, Codec};
use shardtool_format::example::{Example, Feature};
use shardtool_format::index::{Index, ValueRange};
use shardtool_pack::{
    Array, ArrayColumn, Error, Options, Sample, SampleProblem, Value, Writer, WriterError, WriterOptions, pack,
};
use shardtool_read::{Dataset, verify};
use std::fs;
use std::path::Path;

/// A file as `numpy.save` writes it.
fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    let header = format!("{header:<117}\n");
    [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), data].concat()
}

/// The elements of a volume of u16, each its offset.
fn elements(shape: [u64; 3]) -> Vec<u8> {
    (0..shape.iter().product::<u64>() as u16).flat_map(u16::to_le_bytes).collect()
}

/// Reads an array of u16 back, chunk by chunk, each element at its index.
fn read(example: &Example<'_>, name: &str) -> Option<(Vec<i64>, Vec<u8>)> {
    let array = ArrayFeatures::of(example, name)?;
    let (shape, chunk): (Vec<_>, Vec<_>) = (array.shape.iter().collect(), array.chunk.iter().collect());
    let layout = ArrayLayout::new(&shape, &chunk, array.dtype, array.codec).unwrap();
    assert_eq!((layout.dtype(), array.chunk_count()), (ArrayDtype::U16, layout.chunks()));
    let mut data = vec![0xa5; layout.bytes() as usize];
    for (number, chunk) in (0..).zip(array.chunks.unwrap().iter()) {
        let chunk = match layout.codec() {
            Codec::Raw => chunk.to_vec(),
            Codec::Zstd => zstd::decode_all(chunk).unwrap(),
        };
        let region: Vec<_> = layout.region(number).collect();
        let mut elements = chunk.as_chunks::<2>().0.iter();
        for i in region[0].clone() {
            for j in region[1].clone() {
                for k in region[2].clone() {
                    let at = ((i as i64 * shape[1] + j as i64) * shape[2] + k as i64) as usize;
                    data[2 * at..2 * at + 2].copy_from_slice(elements.next().unwrap());
                }
            }
        }
        assert!(elements.next().is_none());
    }
    Some((shape, data))
}

/// The records of a split's first shard, and its index.
fn shard(folder: &Path, split: &str) -> (Vec<u8>, Vec<u8>) {
    let manifest = manifest(folder);
    let file = &manifest.split(split).unwrap().shards[0].file;
    (fs::read(folder.join(file)).unwrap(), fs::read(folder.join("_index").join(format!("{file}.index"))).unwrap())
}

/// Verifies a dataset with its arrays decoded.
fn verified(folder: &Path) {
    let mut options = verify::Options::default();
    options.decode = true;
    let report = verify::verify(&Dataset::open(folder).unwrap(), &options);
    assert!(report.findings.is_empty(), "{report:?}");
}

fn options(root: &Path, chunk: &[Option<u64>], codec: Codec) -> Options {
    let mut ct = ArrayColumn::new("ct");
    (ct.chunk, ct.codec) = (chunk.to_vec(), codec);
    with!(Options::new(root.join("list.jsonl"), root.join("dataset")), arrays = vec![ct], seed = None)
}

#[test]
fn npy_files_of_a_list_become_chunked_arrays() {
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path();
    let shapes = [[6, 8, 10], [1, 9, 20]];
    put(&root.join("a.npy"), &npy("<u2", "(6, 8, 10)", &elements(shapes[0])));
    put(&root.join("volumes/b.npy"), &npy("<u2", "(1, 9, 20)", &elements(shapes[1])));
    put(&root.join("c.npy"), b"not an array");
    put(&root.join("d.npy"), &npy("<c8", "(2,)", &[0; 16]));
    put(&root.join("e.npy"), &npy("<u2", "(4,)", &[0; 8]));
    let rows = [
        r#"{"key": "a", "ct": "a.npy", "age": 61}"#,
        r#"{"key": "b", "ct": "volumes/b.npy", "age": 35}"#,
        r#"{"key": "none", "ct": null, "age": 40}"#,
        r#"{"key": "c", "ct": "c.npy", "age": 1}"#,
        r#"{"key": "d", "ct": "d.npy", "age": 1}"#,
        r#"{"key": "e", "ct": "e.npy", "age": 1}"#,
    ];
    put(&root.join("list.jsonl"), rows.join("\n").as_bytes());
    for (codec, folder) in [(Codec::Zstd, "zstd"), (Codec::Raw, "raw")] {
        let mut options = options(root, &[Some(4), None, Some(7)], codec);
        options.destination = root.join(folder);
        let summary = pack(&options, &()).unwrap();
        assert_eq!((summary.split.records(), summary.rejected), (3, 3));
        let reasons = rejected(summary.rejected_file.as_deref().unwrap());
        for ((input, reason), expected) in reasons.iter().zip([
            ("c", "not a .npy file"),
            ("d", "type `<c8`"),
            ("e", "shape [4], but its chunks have 3 dimensions"),
        ]) {
            assert!(input == expected.0 && reason.contains("column `ct`") && reason.contains(expected.1), "{reason}");
        }
        let (file, index) = shard(&options.destination, "train");
        let records = records(&file);
        let examples: Vec<_> = records.iter().map(|(_, data)| Example::parse(data).unwrap()).collect();
        for (example, shape) in examples.iter().zip(shapes) {
            let expected = (shape.map(|length| length as i64).to_vec(), elements(shape));
            assert_eq!(read(example, "ct"), Some(expected));
        }
        let Some(Feature::Int64(chunk)) = examples[1].get("ct/chunk") else { panic!("no chunk") };
        assert_eq!(chunk.iter().collect::<Vec<_>>(), [1, 9, 7], "no longer than the array");
        assert_eq!(examples[2].int64("age"), Some(40));
        assert!(examples[2].features().iter().all(|(name, _)| !name.starts_with("ct")), "no array, not a damaged one");
        // A crop finds its chunks by the index.
        let index = Index::parse(&index).unwrap();
        let ranges = index.variable(index.position("values:ct").unwrap()).unwrap();
        let ranges: Vec<_> = ValueRange::decode(ranges.get(0).unwrap()).collect();
        let chunks = ArrayFeatures::of(&examples[0], "ct").unwrap().chunks.unwrap();
        let bytes = ranges.iter().map(|range| &records[0].1[range.offset as usize..][..range.length as usize]);
        assert!(bytes.eq(chunks.iter()));
        verified(&options.destination);
    }
}

#[test]
fn a_pack_with_other_chunks_is_another_plan() {
    let temp = tempfile::tempdir().unwrap();
    put(&temp.path().join("a.npy"), &npy("<u2", "(6, 8, 10)", &elements([6, 8, 10])));
    put(&temp.path().join("list.jsonl"), br#"{"key": "a", "ct": "a.npy"}"#);
    pack(&options(temp.path(), &[], Codec::Zstd), &()).unwrap();
    assert!(pack(&options(temp.path(), &[], Codec::Zstd), &()).unwrap().already_complete);
    let error = pack(&options(temp.path(), &[Some(2); 3], Codec::Zstd), &()).unwrap_err();
    assert!(chain(&error).contains("arrays"), "{}", chain(&error));
    let zero = pack(&options(temp.path(), &[Some(0)], Codec::Raw), &()).unwrap_err();
    assert!(matches!(zero, Error::Option { .. }));
    put(&temp.path().join("list.jsonl"), br#"{"key": "a", "ct": "a.npy", "ct/shape": 3}"#);
    let error = pack(&with!(options(temp.path(), &[], Codec::Raw), force = true), &()).unwrap_err();
    assert!(chain(&error).contains("column `ct/shape`"), "{}", chain(&error));
}

#[test]
fn a_writer_stores_arrays() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("dataset");
    let options = with!(WriterOptions::new(&folder, "train"), arrays = vec![ArrayColumn::new("ct")], images = false);
    let writer = Writer::open(&options).unwrap();
    let array = |shape: [u64; 3]| {
        Value::Array(Array { shape: shape.to_vec(), dtype: ArrayDtype::U16, data: elements(shape).into() })
    };
    let write = |key: &str, values| writer.write(&Sample { key, image: None, label: None, values });
    write("a", vec![("ct", array([3, 100, 200]))]).unwrap();
    write("b", vec![]).unwrap();
    let problem = |error: Error| match error {
        Error::Writer(WriterError::Sample { problem, .. }) => problem,
        other => panic!("{other}"),
    };
    let bytes = problem(write("c", vec![("ct", Value::Bytes(vec![]))]).unwrap_err());
    assert!(matches!(*bytes, SampleProblem::NoArray { .. }));
    let empty = Value::Array(Array { shape: vec![], dtype: ArrayDtype::U8, data: vec![1].into() });
    let number = problem(write("c", vec![("ct", empty)]).unwrap_err());
    assert!(matches!(*number, SampleProblem::Array { .. }), "{number:?}");
    let twice = problem(write("c", vec![("ct", array([1, 1, 1])), ("ct", array([1, 1, 1]))]).unwrap_err());
    assert!(matches!(*twice, SampleProblem::Twice { .. }));
    writer.finish().unwrap();
    let (file, _) = shard(&folder, "train");
    let examples: Vec<_> = records(&file).iter().map(|(_, data)| Example::parse(data).unwrap()).collect();
    assert_eq!(read(&examples[0], "ct"), Some((vec![3, 100, 200], elements([3, 100, 200]))));
    assert_eq!(read(&examples[1], "ct"), None);
    verified(&folder);
}
