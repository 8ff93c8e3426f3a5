//! `--strip-metadata` of `pack` and `compact`, and what `report` says: every byte of every file of a dataset is searched for the
//! coordinates, the serial number and the comment of its images.

use crate::made;
use serde_json::Value;
use shardtool_decode::{DecodeOptions, decode};
use shardtool_read::Dataset;
use std::path::Path;

const SERIAL: &[u8] = b"SERIAL-0815";
const COMMENT: &[u8] = b"taken at 48.1516 N 23.42 E";
/// Degrees, minutes and seconds of the latitude, as they are in EXIF: numerators and denominators of 4 bytes.
const LATITUDE: [u32; 6] = [48, 1, 9, 1, 57_600, 1000];

fn latitude() -> Vec<u8> {
    LATITUDE.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// Returns EXIF metadata: an orientation, a serial number and a position.
fn exif() -> Vec<u8> {
    let entry = |tag: u16, kind: u16, count: u32, value: u32| {
        [&tag.to_le_bytes()[..], &kind.to_le_bytes(), &count.to_le_bytes(), &value.to_le_bytes()].concat()
    };
    // The first directory at byte 8 with 3 entries ends at 50; the GPS directory with one entry at 68.
    let mut out = b"II*\0\x08\0\0\0\x03\0".to_vec();
    out.extend(entry(0x0112, 3, 1, 8));
    out.extend(entry(0xc62f, 2, SERIAL.len() as u32, 50));
    out.extend(entry(0x8825, 4, 1, 68));
    out.extend([0; 4]);
    out.extend(SERIAL);
    out.resize(68, 0);
    out.extend([1, 0]);
    out.extend(entry(0x0002, 5, 3, 68 + 2 + 12 + 4));
    out.extend([0; 4]);
    out.extend(latitude());
    out
}

/// Inserts EXIF metadata and a comment after the first marker of a JPEG.
fn add_metadata(file: &Path) {
    let jpeg = std::fs::read(file).unwrap();
    let mut out = jpeg[..2].to_vec();
    for (marker, body) in [(0xe1, [b"Exif\0\0", &exif()[..]].concat()), (0xfe, COMMENT.to_vec())] {
        out.extend([0xff, marker]);
        out.extend((body.len() as u16 + 2).to_be_bytes());
        out.extend(body);
    }
    out.extend_from_slice(&jpeg[2..]);
    std::fs::write(file, out).unwrap();
}

fn run(folder: &Path, arguments: &str, status: i32) -> String {
    let output = made::run(folder, arguments);
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert_eq!(output.status.code(), Some(status), "{arguments}: {text}");
    text
}

fn document(folder: &Path, arguments: &str, status: i32) -> Value {
    serde_json::from_str(&run(folder, &format!("{arguments} --json"), status)).unwrap()
}

/// Returns how many files below a folder hold a part of the metadata.
fn files_with_metadata(folder: &Path) -> usize {
    let mut found = 0;
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            found += files_with_metadata(&entry);
            continue;
        }
        let bytes = std::fs::read(&entry).unwrap();
        let parts = [SERIAL, COMMENT, &latitude()];
        found += usize::from(parts.iter().any(|part| bytes.windows(part.len()).any(|window| window == *part)));
    }
    found
}

/// Returns key, orientation, and upright pixels of all records.
fn records(path: &Path) -> Vec<(Vec<u8>, i64, Vec<u8>)> {
    let dataset = Dataset::open(path).unwrap();
    let split = dataset.split("train").unwrap();
    let mut records: Vec<_> = (0..split.len())
        .map(|id| {
            let record = split.get(id).unwrap();
            let orientation = record.example().unwrap().int64("image/orientation").unwrap();
            let options = DecodeOptions::default().with_apply_orientation(true);
            let pixels = decode(record.image().unwrap().unwrap(), &options).unwrap();
            (record.key().unwrap().into_owned(), orientation, pixels.data)
        })
        .collect();
    records.sort();
    records
}

/// Makes `photos` of two classes, half of the images with metadata.
fn photos(folder: &Path) {
    // Large enough for JPEG entry points, whose offsets change with the metadata.
    made::photos(folder, 2, 4, (640, 480));
    for class in ["class00", "class01"] {
        (0..2).for_each(|image| add_metadata(&folder.join(format!("photos/{class}/{image:03}.jpg"))));
    }
}

#[test]
fn packed_shards_do_not_hold_the_coordinates() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    photos(folder);
    let kept = document(folder, "pack photos kept --shards 2", 0);
    assert_eq!((files_with_metadata(&folder.join("kept")), &kept["metadata_removed"]), (2, &0.into()));
    let text = run(folder, "pack photos clean --shards 2 --strip-metadata", 0);
    assert!(text.contains("metadata removed from the images of 4 records"), "{text}");
    assert_eq!(files_with_metadata(&folder.join("clean")), 0);
    assert!(folder.join("clean/dataset.json").exists());
    assert_eq!(records(&folder.join("kept")), records(&folder.join("clean")));
    assert_eq!(records(&folder.join("clean")).iter().filter(|(_, orientation, _)| *orientation == 8).count(), 4);
    run(folder, "verify clean --decode", 0);

    let counts = |dataset: &str| {
        let report = document(folder, &format!("report {dataset}"), 0);
        let split = &report["splits"][0];
        ["images", "images_with_position", "images_with_thumbnail"].map(|name| split[name].as_u64().unwrap())
    };
    assert_eq!((counts("kept"), counts("clean")), ([8, 4, 0], [8, 0, 0]));
    for format in ["", "--markdown"] {
        let text = run(folder, &format!("report kept {format} --thumbnails 0"), 0);
        assert!(text.contains("4 of 8 images have a GPS position, and 0 an embedded thumbnail"), "{text}");
        assert!(text.contains("--strip-metadata"), "{text}");
        let text = run(folder, &format!("report clean {format} --thumbnails 0"), 0);
        assert!(text.contains("0 of 8 images have a GPS position") && !text.contains("--strip-metadata"), "{text}");
    }

    // The option is part of what was packed.
    let refused = run(folder, "pack photos clean --shards 2", 2);
    assert!(refused.contains("strip_metadata: true before, nothing now"), "{refused}");
}

#[test]
fn other_images_of_a_sample_are_stripped_and_others_are_rejected_by_name() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    made::list(folder, "list", "other", (0..3).map(|row| format!("other/{row}")));
    std::fs::create_dir(folder.join("other")).unwrap();
    let jpeg = std::fs::read(folder.join("images/000.jpg")).unwrap();
    std::fs::write(folder.join("other/0"), &jpeg).unwrap();
    add_metadata(&folder.join("other/0"));
    std::fs::write(folder.join("other/1"), [b"\0\0\0\x18ftypavif\0\0\0\0avifmif1", COMMENT].concat()).unwrap();
    std::fs::write(folder.join("other/2"), [b"P6\n# ", COMMENT, b"\n1 1\n255\nabc"].concat()).unwrap();
    document(folder, "pack list.csv kept --column other:file", 0);
    assert_eq!(files_with_metadata(&folder.join("kept")), 1);

    let packed = document(folder, "pack list.csv clean --column other:file --strip-metadata", 1);
    let [samples, images, rejected, removed] =
        ["samples", "images", "rejected", "metadata_removed"].map(|name| packed[name].as_u64().unwrap());
    assert_eq!((samples, images, rejected, removed), (3, 1, 2, 1));
    assert_eq!(files_with_metadata(&folder.join("clean")), 0);
    let dataset = Dataset::open(folder.join("clean")).unwrap();
    let record = dataset.split("train").unwrap().get(0).unwrap();
    assert_eq!(decode(record.example().unwrap().bytes("other").unwrap(), &DecodeOptions::default()).unwrap().data, {
        decode(&jpeg, &DecodeOptions::default()).unwrap().data
    });
    let reasons = std::fs::read_to_string(folder.join("clean/rejected-train.jsonl")).unwrap();
    assert!(reasons.contains("the metadata of this avif cannot be removed"), "{reasons}");
    assert!(reasons.contains("the Netpbm image cannot be converted to PNG: its feature is not named"), "{reasons}");
}

#[test]
fn compact_strips_existing_records_once() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    photos(folder);
    document(folder, "pack photos set --shards 2", 0);
    let before = records(&folder.join("set"));
    // Nothing to do without the option.
    assert!(run(folder, "compact set --shards 2", 0).contains("no new version"));
    let dry = run(folder, "compact set --shards 2 --strip-metadata --dry-run", 0);
    assert!(dry.contains("split train: 2 shards to compact") && dry.contains("nothing was written"), "{dry}");
    let text = run(folder, "compact set --shards 2 --strip-metadata", 0);
    assert!(text.contains("version 2") && text.contains("gc set --keep 1 --yes"), "{text}");
    assert_eq!(records(&folder.join("set")), before);
    run(folder, "verify set --decode", 0);
    // The earlier version still has it.
    assert_eq!(files_with_metadata(&folder.join("set")), 2);
    run(folder, "gc set --keep 1 --yes", 0);
    assert_eq!(files_with_metadata(&folder.join("set")), 0);
    assert!(run(folder, "compact set --shards 2 --strip-metadata", 0).contains("no new version"));
    let report = document(folder, "report set", 0);
    assert_eq!(report["splits"][0]["images_with_position"], 0);
}

#[test]
fn compact_names_the_image_that_it_cannot_strip() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    made::list(folder, "list", "other", (0..2).map(|row| format!("other/{row}")));
    std::fs::create_dir(folder.join("other")).unwrap();
    for row in 0..2 {
        std::fs::write(folder.join(format!("other/{row}")), b"\0\0\0\x18ftypavif\0\0\0\0avifmif1 and more").unwrap();
    }
    document(folder, "pack list.csv set --column other:file", 0);
    let refused = run(folder, "compact set --strip-metadata", 2);
    assert!(refused.contains("`other` of the record `images/00"), "{refused}");
    assert!(refused.contains("the metadata of this avif cannot be removed"), "{refused}");
    assert!(records_are_unchanged(&folder.join("set")));
}

fn records_are_unchanged(path: &Path) -> bool {
    Dataset::open(path).unwrap().version() == 1
}
