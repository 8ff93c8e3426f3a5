//! Targets for what `pack` and `index` read: archives and lists, as files. Whatever they hold, `plan` surveys them or returns an error,
//! and what is read in place is what is packed.

use shardtool_pack::{Options, SourceKind, index_source, pack_splits, plan};
use shardtool_read::Dataset;
use std::cell::LazyCell;
use std::num::NonZeroUsize;
use std::path::Path;
use tempfile::TempDir;

thread_local! {
    static FOLDER: LazyCell<TempDir> = LazyCell::new(|| {
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        folder.expect("a temporary folder")
    });
}

/// Writes files into this thread's folder, and plans a pack of the source below it.
fn survey(kind: SourceKind, source: &str, files: &[(&str, &[u8])]) {
    FOLDER.with(|folder| {
        for (name, bytes) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, bytes).expect("written");
        }
        let mut options = Options::new(folder.path().join(source), folder.path().join("set"));
        (options.from, options.jobs) = (Some(kind), NonZeroUsize::MIN);
        if let Ok(plan) = plan(&options) {
            let images: u64 = plan.shards().map(|shard| shard.images).sum();
            assert_eq!(images, plan.images(), "every image has a shard");
        }
    });
}

/// Indexes an archive, and packs it: each accepts what the other does, and the records are the same.
fn in_place(kind: SourceKind, name: &str, bytes: &[u8]) {
    FOLDER.with(|folder| {
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at(name), bytes).expect("written");
        let (place, set) = (at("in place"), at("packed"));
        for folder in [&place, &set] {
            let _ = std::fs::remove_dir_all(folder);
        }
        let options = |destination: &Path| {
            let mut options = Options::new(at(name), destination);
            (options.from, options.jobs) = (Some(kind), NonZeroUsize::MIN);
            options
        };
        let Ok(indexed) = index_source(&options(&place), &[], &()) else { return };
        let packed = pack_splits(&options(&set), &()).expect("what is indexed can be packed");
        let counts = |splits: &[shardtool_pack::Summary]| -> Vec<_> {
            splits.iter().map(|split| (split.samples, split.rejected, split.split.fingerprint())).collect()
        };
        assert_eq!(counts(&indexed.splits), counts(&packed));
        let source = folder.path().to_str().expect("UTF-8").to_owned();
        let read = shardtool_read::Options::default().with_sources([source]);
        let (place, set) =
            (Dataset::open_with(&place, read).expect("a dataset"), Dataset::open(&set).expect("a dataset"));
        for (one, other) in place.splits().iter().zip(set.splits()) {
            for id in 0..other.len() {
                let (one, other) = (one.get(id).expect("a record in place"), other.get(id).expect("a packed record"));
                assert_eq!(one.data(), other.data(), "record {id}");
            }
        }
    });
}

/// WebDataset tars that stay where they are.
pub fn tar_in_place(bytes: &[u8]) {
    in_place(SourceKind::Webdataset, "b.tar", bytes);
}

/// Parquet files that stay where they are.
pub fn parquet_in_place(bytes: &[u8]) {
    in_place(SourceKind::Parquet, "b.parquet", bytes);
}

/// WebDataset tars.
pub fn webdataset(bytes: &[u8]) {
    survey(SourceKind::Webdataset, "a.tar", &[("a.tar", bytes)]);
}

/// Parquet files.
pub fn parquet(bytes: &[u8]) {
    survey(SourceKind::Parquet, "a.parquet", &[("a.parquet", bytes)]);
}

/// TFRecord files as a source.
pub fn tfrecord(bytes: &[u8]) {
    survey(SourceKind::Tfrecord, "a.tfrecord", &[("a.tfrecord", bytes)]);
}

/// An MDS index, if it begins like JSON, and otherwise a shard with an index that fits its length.
pub fn mds(bytes: &[u8]) {
    let (index, shard) = if bytes.starts_with(b"{") {
        (bytes.to_vec(), mds_shard())
    } else {
        (mds_index(bytes.len()).into_bytes(), bytes.to_vec())
    };
    let files = [("index.json", &*index), ("shard.00000.mds", &*shard)];
    survey(SourceKind::Mds, "", &files);
}

/// JSONL lists, if they begin like JSON, and otherwise CSV lists.
pub fn list(bytes: &[u8]) {
    let name = if bytes.starts_with(b"{") { "a.jsonl" } else { "a.csv" };
    survey(SourceKind::List, name, &[(name, bytes)]);
}

/// COCO annotations.
pub fn coco(bytes: &[u8]) {
    survey(SourceKind::Coco, "a.json", &[("a.json", bytes)]);
}

/// Annotations of Pascal VOC.
pub fn voc(bytes: &[u8]) {
    survey(SourceKind::Voc, "voc", &[("voc/JPEGImages/a.jpg", GREY), ("voc/Annotations/a.xml", bytes)]);
}

/// Labels of YOLO, of boxes and polygons if the first byte is even, and of keypoints otherwise. A mutated `data.yaml` might name any
/// folder of the machine.
pub fn yolo(bytes: &[u8]) {
    let points = if bytes.first().is_some_and(|first| first % 2 == 1) { "kpt_shape: [2, 3]\n" } else { "" };
    let yaml = format!("train: images\nnames: [cat, dog]\n{points}");
    let files = [("yolo/images/a.jpg", GREY), ("yolo/labels/a.txt", bytes), ("yolo/data.yaml", yaml.as_bytes())];
    survey(SourceKind::Yolo, "yolo", &files);
}

/// A grey image.
const GREY: &[u8] = include_bytes!("../../fixtures/sources/grey.jpg");

/// An MDS index of one shard with two samples, which has `bytes` bytes.
pub fn mds_index(bytes: usize) -> String {
    format!(
        r#"{{"shards": [{{"column_encodings": ["jpeg", "int"], "column_names": ["image", "label"],
        "column_sizes": [null, 8], "compression": null, "format": "mds", "hashes": [],
        "raw_data": {{"basename": "shard.00000.mds", "bytes": {bytes}, "hashes": {{}}}}, "samples": 2,
        "size_limit": 67108864, "version": 2, "zip_data": null}}], "version": 2}}"#
    )
}

/// The shard of [`mds_index`].
pub fn mds_shard() -> Vec<u8> {
    let image = include_bytes!("../../fixtures/sources/grey.jpg");
    let sample = |label: u64| [&(image.len() as u32).to_le_bytes()[..], image, &label.to_le_bytes()].concat();
    let (first, second) = (sample(0), sample(1));
    let begin = 4 * 4;
    let offsets = [begin, begin + first.len(), begin + first.len() + second.len()];
    let head = [2].into_iter().chain(offsets).flat_map(|number| (number as u32).to_le_bytes());
    head.chain(first.iter().copied()).chain(second.iter().copied()).collect()
}
