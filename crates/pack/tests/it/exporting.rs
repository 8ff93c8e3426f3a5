//! Exports are complete or absent, every path lies inside the destination, and damage is reported. Other libraries read
//! exports in `crates/cli/tests/with_formats.py`.

use crate::support::{chain, check, class_folders, jpeg, manifest, names, put, records, snapshot, without_record};
use shardtool_format::example::{self, Column};
use shardtool_format::frame;
use shardtool_pack::DestinationError;
use shardtool_pack::{
    AdoptOptions, Error, ExportKind, ExportOptions, Options, PixelStore, Progress, Shards, adopt, export, pack,
};
use shardtool_read::Dataset;
use std::fs;
use std::num::NonZeroUsize;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const KINDS: [ExportKind; 4] = [
    ExportKind::Tfrecord { dali_index: true, allow_damage: false },
    ExportKind::Webdataset,
    ExportKind::Folder,
    #[cfg(feature = "parquet")]
    ExportKind::Parquet,
    #[cfg(not(feature = "parquet"))]
    ExportKind::Tfrecord { dali_index: false, allow_damage: false },
];

fn options(kind: ExportKind) -> ExportOptions {
    with!(ExportOptions::new(kind), jobs = NonZeroUsize::new(3).unwrap())
}

fn packed() -> (tempfile::TempDir, PathBuf) {
    let temp = tempfile::tempdir().unwrap();
    class_folders(&temp.path().join("photos"), 8);
    let set = temp.path().join("set");
    let shards = Shards::Count(3);
    pack(&with!(Options::new(temp.path().join("photos"), &set), shards = shards), &()).unwrap();
    (temp, set)
}

fn run(set: &Path, out: &Path, options: &ExportOptions) -> Result<shardtool_pack::Exported, Error> {
    export(Dataset::open(set).unwrap().splits(), out, options, &())
}

/// Records of foreign conventions with hostile keys, adopted as a dataset.
fn adopted(folder: &Path, keys: &[&str]) {
    let mut file = vec![];
    for (i, key) in keys.iter().enumerate() {
        let (image, key) = (jpeg(i as u32, 20, 20), [key.as_bytes()]);
        let (image, class, label) = ([&image[..]], [b"../up".as_slice()], [1]);
        let mut data = vec![];
        let mut features = [
            ("image/encoded", Column::Bytes(&image)),
            ("image/key", Column::Bytes(&key)),
            ("image/class/label", Column::Int64(&label)),
            ("image/class/text", Column::Bytes(&class)),
        ];
        example::encode(&mut features, &mut data);
        file.extend(frame::header(data.len() as u64));
        file.extend(&data);
        file.extend(frame::footer(shardtool_format::checksum::crc32c(&data)));
    }
    put(&folder.join("train-00000.tfrecord"), &file);
    adopt(&[folder.join("train-00000.tfrecord")], &AdoptOptions::default(), &()).unwrap();
}

#[test]
fn writes_the_same_bytes_for_any_number_of_threads() {
    let (temp, set) = packed();
    for kind in KINDS {
        let out = |jobs: usize| {
            let out = temp.path().join(format!("out-{jobs}"));
            let exported = run(&set, &out, &with!(options(kind), jobs = NonZeroUsize::new(jobs).unwrap())).unwrap();
            assert_eq!((exported.records, exported.refused.len()), (24, 0));
            let files = without_record(&out);
            assert_eq!(exported.files, files.len() as u64, "{kind:?}");
            fs::remove_dir_all(&out).unwrap();
            files
        };
        assert!(out(1) == out(4), "{kind:?}");
    }
    let left = names(temp.path());
    assert!(left.iter().all(|name| name.starts_with("photos/") || name.starts_with("set/")), "{left:?}");
}

#[test]
fn exported_folders_hold_every_image_and_can_be_packed() {
    let (temp, set) = packed();
    let out = temp.path().join("out");
    run(&set, &out, &options(ExportKind::Folder)).unwrap();
    assert!(without_record(&out) == snapshot(&temp.path().join("photos")));
    let other = with!(Options::new(&out, &set), split = Some("val".to_owned()));
    pack(&other, &()).unwrap();
    let both = temp.path().join("both");
    run(&set, &both, &options(ExportKind::Folder)).unwrap();
    assert!(snapshot(&both.join("train")) == snapshot(&both.join("val")));
}

#[test]
fn tfrecords_are_links_with_an_index_of_each_record() {
    let (temp, set) = packed();
    let out = temp.path().join("out");
    run(&set, &out, &options(ExportKind::Tfrecord { dali_index: true, allow_damage: false })).unwrap();
    for shard in &manifest(&set).split("train").unwrap().shards {
        let (ours, theirs) = (set.join(&shard.file), out.join(&shard.file));
        assert_eq!(fs::metadata(&ours).unwrap().ino(), fs::metadata(&theirs).unwrap().ino());
        let file = fs::read(&theirs).unwrap();
        let lines = fs::read_to_string(theirs.with_extension("idx")).unwrap();
        let expected: Vec<_> =
            records(&file).iter().map(|(at, data)| format!("{at} {}", data.len() + frame::OVERHEAD_BYTES)).collect();
        assert_eq!(lines.lines().collect::<Vec<_>>(), expected);
    }
}

#[test]
fn exports_every_record_inside_the_destination() {
    let temp = tempfile::tempdir().unwrap();
    let set = temp.path().join("theirs");
    let keys = ["../../x.jpg", "/etc/passwd", "a/b.jpg", "A/B.png", "a//b", "..", "", "a.jpg/c", "a", "same", "same"];
    adopted(&set, &keys);
    for kind in [ExportKind::Folder, ExportKind::Webdataset] {
        let out = temp.path().join("deep/er/out");
        let exported = run(&set, &out, &options(kind)).unwrap();
        assert_eq!((exported.records, exported.refused.len()), (keys.len() as u64, 0), "{:?}", exported.refused);
        if kind == ExportKind::Folder {
            let images: Vec<_> = without_record(&out).into_values().collect();
            assert_eq!(images.len(), keys.len());
            assert!((0..keys.len() as u32).all(|i| images.contains(&jpeg(i, 20, 20))));
            let paths = without_record(&out).into_keys().map(|path| path.to_str().unwrap().to_owned());
            assert!(paths.into_iter().all(|name| name.starts_with("_./up/") || name.starts_with("_._up/")));
        } else {
            let tar = fs::read(out.join("train-00000.tar")).unwrap();
            let mut tar = tar::Archive::new(&tar[..]);
            let paths: Vec<_> =
                tar.entries().unwrap().map(|e| e.unwrap().path().unwrap().to_str().unwrap().to_owned()).collect();
            assert!(paths.iter().all(|p| !p.starts_with('/') && !p.split('/').any(|part| part == "..")), "{paths:?}");
            let mut unique = paths.clone();
            unique.sort();
            unique.dedup();
            assert_eq!(unique.len(), 3 * keys.len(), "{paths:?}");
        }
        assert_eq!(
            names(temp.path())
                .iter()
                .filter(|name| !name.starts_with("theirs/") && !name.starts_with("deep/er/out/"))
                .count(),
            0
        );
        fs::remove_dir_all(&out).unwrap();
    }
}

#[test]
fn keeps_existing_files_unless_forced_and_leaves_no_partial_export() {
    let (temp, set) = packed();
    let out = temp.path().join("out");
    put(&out.join("mine.txt"), b"mine");
    let refused = run(&set, &out, &options(ExportKind::Webdataset)).unwrap_err();
    assert!(matches!(refused, Error::Destination(DestinationError::NotEmpty { .. })), "{refused}");
    assert_eq!(names(&out), ["mine.txt"]);
    put(&out.join("train-00001.tar"), b"old");
    run(&set, &out, &with!(options(ExportKind::Webdataset), force = true)).unwrap();
    assert_eq!(names(&out), ["mine.txt", "train-00000.tar", "train-00001.tar", "train-00002.tar"]);
    assert_ne!(fs::read(out.join("train-00001.tar")).unwrap(), b"old");
    // A missing shard ends the export, which leaves no file.
    fs::remove_file(set.join("train-00002.tfrecord")).unwrap();
    for kind in KINDS {
        let half = temp.path().join("half");
        assert!(run(&set, &half, &options(kind)).is_err(), "{kind:?}");
        assert!(!half.exists());
        let left: Vec<_> = fs::read_dir(temp.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert!(left.iter().all(|name| !name.to_str().unwrap().contains("half")), "{left:?}");
    }
}

#[test]
fn leaves_out_only_damaged_records() {
    let (temp, set) = packed();
    let path = set.join("train-00001.tfrecord");
    let mut file = fs::read(&path).unwrap();
    let at = records(&file)[2].0 as usize;
    file[at + 100] ^= 1;
    fs::write(&path, file).unwrap();
    for kind in &KINDS {
        let out = temp.path().join("out");
        let exported = run(&set, &out, &options(*kind)).unwrap();
        assert_eq!((exported.records, exported.refused.len()), (23, 1), "{kind:?}");
        let reason = chain(&exported.refused[0].reason);
        assert!(reason.contains("train-00001") && reason.contains("CRC"), "{reason}");
        fs::remove_dir_all(&out).unwrap();
    }
}

/// Damages a record of the second shard. Returns the shard's path and its records before.
fn damaged(set: &Path) -> (PathBuf, Vec<Vec<u8>>) {
    let path = set.join("train-00001.tfrecord");
    let mut file = fs::read(&path).unwrap();
    let all: Vec<_> = records(&file).into_iter().map(|(at, data)| (at as usize, data.to_vec())).collect();
    file[all[2].0 + 100] ^= 1;
    fs::write(&path, file).unwrap();
    (path, all.into_iter().map(|(_, data)| data).collect())
}

#[test]
fn tfrecords_of_a_damaged_shard_hold_its_good_records_only() {
    let (temp, set) = packed();
    let (shard, mut good) = damaged(&set);
    good.remove(2);
    let out = temp.path().join("out");
    run(&set, &out, &options(ExportKind::Tfrecord { dali_index: true, allow_damage: false })).unwrap();
    let file = fs::read(out.join(shard.file_name().unwrap())).unwrap();
    let (at, data): (Vec<_>, Vec<_>) = records(&file).into_iter().map(|(at, data)| (at, data.to_vec())).unzip();
    assert!(data == good, "every other record, byte for byte");
    let index = fs::read_to_string(out.join("train-00001.idx")).unwrap();
    let expected: Vec<_> =
        at.iter().zip(&data).map(|(at, data)| format!("{at} {}", data.len() + frame::OVERHEAD_BYTES)).collect();
    assert_eq!(index.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn tfrecords_with_damage_are_exported_if_it_is_allowed_and_reported() {
    let (temp, set) = packed();
    let (shard, _) = damaged(&set);
    let out = temp.path().join("out");
    let allowed = options(ExportKind::Tfrecord { dali_index: false, allow_damage: true });
    let exported = run(&set, &out, &allowed).unwrap();
    assert_eq!((exported.records, exported.refused.len(), exported.damaged.len()), (24, 0, 1));
    assert!(fs::read(out.join(shard.file_name().unwrap())).unwrap() == fs::read(&shard).unwrap());
}

#[test]
fn tfrecords_never_contain_what_a_link_points_to_unless_it_is_the_shard() {
    let (temp, set) = packed();
    let shard = set.join("train-00001.tfrecord");
    let length = fs::metadata(&shard).unwrap().len() as usize;
    let secret = temp.path().join("secret");
    fs::write(&secret, "s3cr3t ".repeat(length / 7 + 1)).unwrap();
    fs::remove_file(&shard).unwrap();
    std::os::unix::fs::symlink(&secret, &shard).unwrap();
    for allow_damage in [false, true] {
        let out = temp.path().join("out");
        let exported = run(&set, &out, &options(ExportKind::Tfrecord { dali_index: false, allow_damage })).unwrap();
        assert_eq!(exported.records, 16);
        assert!(!exported.refused.is_empty());
        assert_eq!(fs::read(out.join("train-00001.tfrecord")).unwrap(), b"");
        fs::remove_dir_all(&out).unwrap();
    }
}

#[test]
fn exports_raw_pixels_as_pixmaps() {
    let (temp, _) = packed();
    let set = temp.path().join("raw");
    let pixels = PixelStore::RawZstd { level: 1 };
    pack(&with!(Options::new(temp.path().join("photos"), &set), pixels = pixels), &()).unwrap();
    let out = temp.path().join("out");
    run(&set, &out, &options(ExportKind::Folder)).unwrap();
    for (key, _) in check(&set, "train") {
        let ppm = fs::read(out.join(key.replace(".jpg", ".ppm"))).unwrap();
        let decoded = image::load_from_memory(&fs::read(temp.path().join("photos").join(&key)).unwrap()).unwrap();
        let header = format!("P6\n{} {}\n255\n", decoded.width(), decoded.height());
        assert!(ppm.starts_with(header.as_bytes()));
        assert_eq!(ppm.len(), header.len() + decoded.to_rgb8().len());
    }
}

#[test]
fn refuses_a_second_export_to_the_same_destination() {
    struct Nested<'a>(&'a Path, &'a Path);
    impl Progress for Nested<'_> {
        fn total(&self, _: u64, _: u64) {
            let refused = run(self.0, self.1, &options(ExportKind::Folder)).unwrap_err();
            assert!(matches!(refused, Error::Destination(DestinationError::Locked { .. })), "{refused}");
        }
    }
    let (temp, set) = packed();
    let out = temp.path().join("out");
    let dataset = Dataset::open(&set).unwrap();
    export(dataset.splits(), &out, &options(ExportKind::Folder), &Nested(&set, &out)).unwrap();
    assert_eq!(without_record(&out).len(), 24);
}
