//! Generates images and folders, and reads datasets without the code under test.

use image::codecs::jpeg::JpegEncoder;
use image::{ImageFormat, RgbImage};
use shardtool_format::checksum::crc32c;
use shardtool_format::example::Example;
use shardtool_format::frame::{self, Check};
use shardtool_format::index::{self, Index};
use shardtool_format::manifest::Manifest;
use std::collections::BTreeMap;
use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};

/// The record of a command that filled a folder.
pub(crate) const RECORD: &str = ".shardtool-result.json";

/// An error and its sources as one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    shardtool_format::Chain(error).to_string()
}

/// A value with some of its fields replaced.
macro_rules! with {
    ($base:expr, $($field:ident = $value:expr),+ $(,)?) => {{
        let mut base = $base;
        $(base.$field = $value;)+
        base
    }};
}

/// A smooth image that depends on `seed`.
pub(crate) fn picture(seed: u32, width: u32, height: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, y| {
        image::Rgb([(x * 3 + seed * 17) as u8, (y * 5 + seed) as u8, ((x ^ y) + seed * 31) as u8])
    })
}

pub(crate) fn jpeg(seed: u32, width: u32, height: u32) -> Vec<u8> {
    let mut out = vec![];
    JpegEncoder::new_with_quality(&mut out, 85).encode_image(&picture(seed, width, height)).unwrap();
    out
}

pub(crate) fn encoded(seed: u32, format: ImageFormat) -> Vec<u8> {
    let mut out = Cursor::new(vec![]);
    picture(seed, 20, 10).write_to(&mut out, format).unwrap();
    out.into_inner()
}

pub(crate) fn put(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// A tar of these members.
pub(crate) fn tar(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = tar::Builder::new(vec![]);
    for (name, bytes) in members {
        let mut header = tar::Header::new_ustar();
        // Bypasses the tar crate's checks of names, since other programs write such names.
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        out.append(&header, *bytes).unwrap();
    }
    out.into_inner().unwrap()
}

/// Class folders `cat`, `dog` and `emu` with `each` JPEGs of different sizes.
pub(crate) fn class_folders(root: &Path, each: u32) {
    for (c, class) in ["cat", "dog", "emu"].iter().enumerate() {
        for i in 0..each {
            let seed = c as u32 * 1000 + i;
            put(&root.join(class).join(format!("{i:04}.jpg")), &jpeg(seed, 24 + (seed * 7) % 40, 20 + (seed * 5) % 30));
        }
    }
}

/// Every file below a folder, by relative path.
pub(crate) fn snapshot(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.insert(path.strip_prefix(root).unwrap().to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    found
}

/// Every file below a folder that a command filled, except its record.
pub(crate) fn without_record(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = snapshot(root);
    files.remove(Path::new(RECORD)).expect("the command's record");
    files
}

/// Every file below a folder except lock files, which a killed process may leave.
pub(crate) fn unlocked(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = snapshot(root);
    files.retain(|path, bytes| !(bytes.is_empty() && path.extension().is_some_and(|e| e == "lock")));
    files
}

pub(crate) fn names(root: &Path) -> Vec<String> {
    snapshot(root).keys().map(|path| path.to_str().unwrap().to_owned()).collect()
}

/// The number of shards whose index is in place.
pub(crate) fn finished_shards(root: &Path) -> u64 {
    names(root).iter().filter(|name| name.starts_with("_index/") && name.ends_with(".index")).count() as u64
}

/// The data of a TFRecord file's records, with their offsets.
pub(crate) fn records(file: &[u8]) -> Vec<(u64, &[u8])> {
    let (mut offset, mut found) = (0, vec![]);
    while offset < file.len() {
        let data = frame::data(&file[offset..], offset as u64, Check::Data).unwrap();
        found.push((offset as u64, data));
        offset += data.len() + frame::OVERHEAD_BYTES;
    }
    found
}

/// Checks manifest, lengths, CRCs and indexes of a dataset against the records themselves; returns key → image bytes
/// and label of a split.
pub(crate) fn check(folder: &Path, split: &str) -> BTreeMap<String, (Vec<u8>, Option<i64>)> {
    let manifest = manifest(folder);
    let mut found = BTreeMap::new();
    for shard in &manifest.split(split).expect("the split").shards {
        let file = fs::read(folder.join(&shard.file)).unwrap();
        let index_file = fs::read(folder.join("_index").join(format!("{}.index", shard.file))).unwrap();
        assert_eq!((file.len() as u64, crc32c(&file)), (shard.bytes, shard.crc32c), "{}", shard.file);
        assert_eq!((index_file.len() as u64, crc32c(&index_file)), (shard.index_bytes, shard.index_crc32c));
        let index = Index::parse(&index_file).unwrap();
        (0..index.columns().len()).for_each(|column| index.check(column).unwrap());
        assert_eq!(
            (index.records(), index.shard_bytes(), index.shard_crc()),
            (shard.records, shard.bytes, shard.crc32c)
        );
        let at = |name| index.position(name).unwrap();
        let offsets = index.fixed::<u64>(at(index::RECORD_OFFSET)).unwrap();
        let starts = index.fixed::<u32>(at(index::IMAGE_OFFSET)).unwrap();
        let lengths = index.fixed::<u32>(at(index::IMAGE_LENGTH)).unwrap();
        let keys = index.variable(at(index::KEY)).unwrap();
        let records = records(&file);
        assert_eq!(records.len() as u64, shard.records);
        for (row, (offset, data)) in records.into_iter().enumerate() {
            let row = row as u64;
            assert_eq!(offsets.get(row), Some(offset));
            let example = Example::parse(data).unwrap();
            let image = example.bytes("image/encoded").unwrap_or_default();
            let (start, length) = (starts.get(row).unwrap() as usize, lengths.get(row).unwrap() as usize);
            assert_eq!(&data[start..start + length], image);
            let key = String::from_utf8(keys.get(row).unwrap().to_vec()).unwrap();
            for (name, feature) in example.features() {
                let column = index.position(&format!("feature:{name}"));
                if let (shardtool_format::example::Feature::Int64(list), Some(column)) = (feature, column) {
                    assert_eq!(index.fixed::<i64>(column).unwrap().get(row), list.single(), "{name}");
                }
            }
            let label = example.int64("image/class/label");
            assert!(found.insert(key, (image.to_vec(), label)).is_none(), "a key twice");
        }
    }
    found
}

pub(crate) fn manifest(folder: &Path) -> Manifest {
    Manifest::parse(&fs::read(folder.join("dataset.json")).unwrap()).unwrap()
}

/// The lines of a list of rejects: input and reason.
pub(crate) fn rejected(file: &Path) -> Vec<(String, String)> {
    let text = fs::read_to_string(file).unwrap();
    let parse = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        (line["input"].as_str().unwrap().to_owned(), line["reason"].as_str().unwrap().to_owned())
    };
    text.lines().map(parse).collect()
}
