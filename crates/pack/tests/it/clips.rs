//! Clips: folders of frames, and lists that name frames.

use crate::support::{chain, jpeg, manifest, picture, put, rejected};
use image::ImageFormat;
use shardtool_decode::Truncated;
use shardtool_format::Damage;
use shardtool_format::manifest::DType;
use shardtool_pack::{
    Error, JpegLayout, Options, PixelStore, Progress, Reason, Sample, SourceKind, Writer, WriterOptions, pack,
};
use shardtool_read::{Dataset, Split, Value, verify};
use std::fs;
use std::path::{Path, PathBuf};

fn png(seed: u32, width: u32, height: u32) -> Vec<u8> {
    let mut out = std::io::Cursor::new(vec![]);
    picture(seed, width, height).write_to(&mut out, ImageFormat::Png).unwrap();
    out.into_inner()
}

/// Writes JPEGs as frames of a clip, numbered from 1 without leading zeros.
fn clip(folder: &Path, seed: u32, frames: u32) -> Vec<Vec<u8>> {
    let frames: Vec<_> = (0..frames).map(|i| jpeg(seed * 100 + i, 40, 30)).collect();
    frames.iter().zip(1..).for_each(|(frame, i)| put(&folder.join(format!("img{i}.jpg")), frame));
    frames
}

fn options(source: impl Into<PathBuf>, destination: &Path) -> Options {
    with!(Options::new(source, destination), from = Some(SourceKind::Clips))
}

fn train(folder: &Path) -> Split {
    Dataset::open(folder).unwrap().split("train").unwrap().clone()
}

/// Returns the id of a key.
fn id(split: &Split, key: &str) -> u64 {
    let has = |id: &u64| split.get(*id).unwrap().key().unwrap().as_ref() == key.as_bytes();
    (0..split.len()).find(has).expect("the key")
}

fn value(split: &Split, key: &str, feature: &str) -> Option<Value<'static>> {
    let (shard, row) = split.locate(id(split, key)).unwrap();
    split.shard(shard).unwrap().value(row, feature).unwrap().map(Value::into_owned)
}

fn bytes(text: &str) -> Option<Value<'static>> {
    Some(Value::Bytes(text.as_bytes().to_vec().into()))
}

/// Returns an option's name and what was expected.
fn refused(options: &Options) -> (&'static str, &'static str) {
    match pack(options, &()) {
        Err(Error::Option { option, expected }) => (option, expected),
        other => panic!("{:?}", other.map(|summary| summary.split.records())),
    }
}

#[test]
fn folders_of_frames_are_clips_in_natural_order() {
    let folder = tempfile::tempdir().unwrap();
    let (source, destination) = (folder.path().join("videos"), folder.path().join("dataset"));
    let long = clip(&source.join("run/a"), 1, 12);
    let short = clip(&source.join("run/deep/b"), 2, 1);
    let other = clip(&source.join("jump/a"), 3, 4);
    put(&source.join("jump/a/.hidden"), b"not a frame");
    let options = with!(options(&source, &destination), fps = Some(29.97), sha256 = true);
    let summary = pack(&options, &()).unwrap();
    assert_eq!((summary.split.records(), summary.rejected), (3, 0));
    assert_eq!(summary.classes, 2);
    assert_eq!(manifest(&destination).classes, ["jump", "run"]);
    let features: Vec<_> = manifest(&destination).features.into_iter().map(|f| (f.name, f.dtype)).collect();
    let expected = [
        ("frames", DType::Bytes),
        ("frames/format", DType::Bytes),
        ("frames/fps", DType::Float),
        ("image/class/label", DType::Int64),
        ("image/class/text", DType::Bytes),
        ("image/key", DType::Bytes),
    ];
    assert_eq!(features, expected.map(|(name, dtype)| (name.to_owned(), dtype)));
    let split = train(&destination);
    for (key, frames, label) in [("run/a", &long, 1), ("run/deep/b", &short, 1), ("jump/a", &other, 0)] {
        let id = id(&split, key);
        assert_eq!(split.values(id, "frames", None).unwrap().as_ref(), Some(frames), "{key}");
        assert_eq!(value(&split, key, "frames/format"), bytes("jpeg"));
        assert_eq!(value(&split, key, "frames/fps"), Some(Value::Float(29.97)));
        assert_eq!(value(&split, key, "image/class/label"), Some(Value::Int64(label)));
        let (shard, row) = split.locate(id).unwrap();
        let ranges = split.shard(shard).unwrap().value_ranges(row, "frames").unwrap().expect("value ranges");
        assert_eq!(
            ranges.iter().map(|r| r.length as usize).collect::<Vec<_>>(),
            frames.iter().map(Vec::len).collect::<Vec<_>>()
        );
    }
    let report = verify::verify(&Dataset::open(&destination).unwrap(), &verify::Options::default());
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    assert!(pack(&options, &()).unwrap().already_complete);
    put(&source.join("run/a/img7.jpg"), &jpeg(999, 40, 30));
    let error = chain(&pack(&options, &()).unwrap_err());
    assert!(error.contains("--force"), "another source: {error}");
}

#[test]
fn clips_directly_below_the_source_have_no_class() {
    let folder = tempfile::tempdir().unwrap();
    let (source, destination) = (folder.path().join("videos"), folder.path().join("dataset"));
    let frames = clip(&source.join("b"), 1, 3);
    clip(&source.join("a"), 2, 2);
    let summary = pack(&options(&source, &destination), &()).unwrap();
    assert_eq!((summary.split.records(), summary.classes), (2, 0));
    let split = train(&destination);
    assert_eq!(split.values(id(&split, "b"), "frames", None).unwrap().unwrap(), frames);
    assert_eq!(value(&split, "b", "frames/fps"), None);
    assert_eq!(value(&split, "b", "image/class/label"), None);
}

#[test]
fn bad_frame_rejects_its_clip_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let (source, destination) = (folder.path().join("videos"), folder.path().join("dataset"));
    for (name, at, frame) in [
        ("text", 3, b"hello".to_vec()),
        ("empty", 1, vec![]),
        ("truncated", 2, jpeg(7, 40, 30)[..700].to_vec()),
        ("size", 2, jpeg(7, 40, 31)),
        ("format", 2, png(7, 40, 30)),
    ] {
        clip(&source.join("run").join(name), 1, 3);
        put(&source.join("run").join(name).join(format!("img{at}.jpg")), &frame);
    }
    fs::create_dir_all(source.join("run/nothing")).unwrap();
    clip(&source.join("run/link"), 1, 2);
    std::os::unix::fs::symlink("missing.jpg", source.join("run/link/img3.jpg")).unwrap();
    std::os::unix::fs::symlink("..", source.join("run/loop")).unwrap();
    clip(&source.join("run/good"), 1, 2);
    clip(&source.join("outside"), 1, 2);
    put(&source.join("run/notes.txt"), b"text");
    put(&source.join("notes.txt"), b"text");
    let summary = pack(&options(&source, &destination), &()).unwrap();
    assert_eq!((summary.split.records(), summary.rejected), (1, 11));
    let rejected = rejected(&destination.join("rejected-train.jsonl"));
    let reason = |input: &str| {
        let found = rejected.iter().find(|(found, _)| found == input);
        found.unwrap_or_else(|| panic!("{input} of {rejected:?}")).1.clone()
    };
    let first =
        "but the first frame is jpeg of 40x30 pixels; decode all frames of a clip with the same size and format";
    assert!(reason("run/text").starts_with("frame `img3.jpg`: "), "{}", reason("run/text"));
    assert_eq!(reason("run/empty"), "frame `img1.jpg`: an empty file: 0 bytes");
    assert!(reason("run/truncated").starts_with("frame `img2.jpg`: "), "{}", reason("run/truncated"));
    assert_eq!(reason("run/size"), format!("frame `img2.jpg`: jpeg of 40x31 pixels, {first}"));
    assert_eq!(reason("run/format"), format!("frame `img2.jpg`: png of 40x30 pixels, {first}"));
    assert_eq!(reason("run/nothing"), "a clip without a frame");
    assert!(reason("run/link").starts_with("frame `img3.jpg`: no such file"), "{}", reason("run/link"));
    assert!(reason("run/loop").contains("link back"), "{}", reason("run/loop"));
    assert!(reason("outside").contains("has no class"));
    assert!(reason("run/notes.txt").contains("belongs to no clip"));
    assert!(reason("notes.txt").contains("belongs to no clip"));
}

#[test]
fn source_without_a_clip_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    put(&folder.path().join("videos/img1.jpg"), &jpeg(1, 40, 30));
    let error = pack(&options(folder.path().join("videos"), &folder.path().join("dataset")), &()).unwrap_err();
    assert!(
        chain(&error).contains("nothing to pack: img1.jpg: a file next to folders belongs to no clip"),
        "{}",
        chain(&error)
    );
}

#[test]
fn lists_name_folders_or_files_of_frames() {
    let folder = tempfile::tempdir().unwrap();
    let frames = clip(&folder.path().join("videos/a"), 1, 11);
    clip(&folder.path().join("videos/b"), 2, 2);
    put(
        &folder.path().join("list.csv"),
        b"key,view,label,view/fps\nx,videos/a,run,25\ny,videos/b,jump,12.5\nz,,run,\nw,videos/c,run,1\n",
    );
    let destination = folder.path().join("dataset");
    let options = |list: &str, destination: &Path| {
        with!(Options::new(folder.path().join(list), destination), frames = vec!["view".to_owned()])
    };
    let summary = pack(&options("list.csv", &destination), &()).unwrap();
    assert_eq!((summary.split.records(), summary.rejected), (3, 1));
    let rejects = rejected(&destination.join("rejected-train.jsonl"));
    assert!(
        rejects[0].0 == "w" && rejects[0].1.starts_with("the file named in column `view`: no such file"),
        "{rejects:?}"
    );
    let split = train(&destination);
    assert_eq!(split.values(id(&split, "x"), "view", None).unwrap().unwrap(), frames);
    assert_eq!(value(&split, "x", "view/fps"), Some(Value::Float(25.0)));
    assert_eq!(value(&split, "x", "view/format"), bytes("jpeg"));
    assert!(split.values(id(&split, "z"), "view", None).unwrap().is_none_or(|values| values.is_empty()));
    assert_eq!(value(&split, "z", "view/format"), None);

    let lines = [
        r#"{"key": "one", "view": ["videos/a/img3.jpg", "videos/a/img1.jpg", "videos/a/img3.jpg"]}"#,
        r#"{"key": "two", "view": ["videos/a/img3.jpg", "videos/a/nothing.jpg"]}"#,
        r#"{"key": "none", "view": []}"#,
        r#"{"key": "folder", "view": "videos/a"}"#,
    ];
    put(&folder.path().join("list.jsonl"), lines.join("\n").as_bytes());
    let destination = folder.path().join("from jsonl");
    let options = with!(options("list.jsonl", &destination), fps = Some(30.0));
    assert_eq!(pack(&options, &()).unwrap().rejected, 2);
    let split = train(&destination);
    let expected = vec![frames[2].clone(), frames[0].clone(), frames[2].clone()];
    assert_eq!(split.values(id(&split, "one"), "view", None).unwrap().unwrap(), expected);
    assert_eq!(split.values(id(&split, "folder"), "view", None).unwrap().unwrap(), frames);
    assert_eq!(value(&split, "one", "view/fps"), Some(Value::Float(30.0)));
    let mut rejects = rejected(&destination.join("rejected-train.jsonl"));
    rejects.sort();
    assert_eq!(rejects[0], ("none".to_owned(), "the file named in column `view`: a clip without a frame".to_owned()));
    assert!(rejects[1].1.contains("frame `videos/a/nothing.jpg`: no such file"), "{rejects:?}");
}

#[test]
fn options_that_do_not_fit_clips_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (source, destination) = (folder.path().join("videos"), folder.path().join("dataset"));
    clip(&source.join("a"), 1, 2);
    put(&folder.path().join("list.csv"), b"key,view,view/fps\nx,videos/a,25\n");
    let clips = options(&source, &destination);
    assert_eq!(refused(&with!(clips.clone(), fps = Some(0.0))).0, "fps");
    assert_eq!(refused(&with!(clips.clone(), fps = Some(f32::NAN))).0, "fps");
    assert_eq!(refused(&with!(clips.clone(), pixels = PixelStore::Raw)).0, "size or pixels");
    assert_eq!(refused(&with!(clips.clone(), jpeg = JpegLayout::Optimize)).0, "JPEG layout");
    assert_eq!(refused(&with!(clips.clone(), frames = vec!["view".to_owned()])).0, "column");
    assert_eq!(refused(&with!(Options::new(&source, &destination), fps = Some(25.0))).0, "fps");
    let list = with!(Options::new(folder.path().join("list.csv"), &destination), frames = vec!["view".to_owned()]);
    let error = chain(&pack(&with!(list, fps = Some(25.0)), &()).unwrap_err());
    assert!(error.contains("column `view/fps`: pack writes a feature of this name itself"), "{error}");
}

/// Adds a frame to a clip after the source was listed.
struct AddFrame<'a>(&'a Path);

impl Progress for AddFrame<'_> {
    fn total(&self, _images: u64, _bytes: u64) {
        put(self.0, &jpeg(50, 40, 30));
    }
}

#[test]
fn clip_that_changes_after_it_was_listed_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let (source, destination) = (folder.path().join("videos"), folder.path().join("dataset"));
    clip(&source.join("a"), 1, 2);
    clip(&source.join("b"), 1, 2);
    let summary = pack(&options(&source, &destination), &AddFrame(&source.join("a/img3.jpg"))).unwrap();
    assert_eq!((summary.split.records(), summary.rejected), (1, 1));
    let expected = ("a".to_owned(), Reason::FramesChanged.to_string());
    assert_eq!(rejected(&destination.join("rejected-train.jsonl")), [expected]);
}

#[test]
fn verify_decodes_each_frame_and_names_those_that_fail() {
    let temp = tempfile::tempdir().unwrap();
    let destination = temp.path().join("set");
    let features = [("video", DType::Bytes), ("video/format", DType::Bytes), ("video/width", DType::Int64)];
    let more = [("video/height", DType::Int64), ("note", DType::Bytes), ("note/format", DType::Bytes)];
    let features = features.into_iter().chain(more).map(|(name, dtype)| (name.to_owned(), dtype)).collect();
    let options = with!(WriterOptions::new(&destination, "train"), images = false, features = features);
    let writer = Writer::open(&options).unwrap();
    let frames: Vec<_> = (0..4).map(|seed| jpeg(seed, 40, 30)).collect();
    let with = |number: usize, frame: Vec<u8>| {
        let mut frames = frames.clone();
        frames[number] = frame;
        frames
    };
    let cut = frames[2][..frames[2].len() / 2].to_vec();
    let clips = [frames.clone(), with(2, cut), with(0, png(1, 40, 30)), with(3, jpeg(1, 30, 40)), with(1, vec![])];
    for (key, clip) in clips.into_iter().enumerate() {
        use shardtool_pack::Value;
        let values = vec![
            ("video", Value::Bytes(clip)),
            ("video/format", Value::Bytes(vec![b"jpeg".to_vec()])),
            ("video/width", Value::Int64(vec![40])),
            ("video/height", Value::Int64(vec![30])),
            // Not an image format, so these are no frames.
            ("note", Value::Bytes(vec![b"text".to_vec(), vec![b'x'; 300]])),
            ("note/format", Value::Bytes(vec![b"markdown".to_vec()])),
        ];
        writer.write(&Sample { key: &key.to_string(), image: None, label: None, values }).unwrap();
    }
    writer.finish().unwrap();
    let verified = |decode: bool| {
        let mut options = verify::Options::default();
        options.decode = decode;
        let mut findings = verify::verify(&Dataset::open(&destination).unwrap(), &options).findings;
        findings.sort_by_key(|finding| finding.key.clone());
        findings.into_iter().map(|f| (f.damage, f.key.unwrap(), f.offset.is_some(), f.message)).collect::<Vec<_>>()
    };
    assert_eq!(verified(false), [], "the CRCs are right");
    let findings = verified(true);
    let expected = [("1", "frame 2"), ("2", "frame 0"), ("3", "frame 3"), ("4", "frame 1")];
    assert_eq!(findings.len(), expected.len(), "{findings:?}");
    for ((damage, key, has_offset, message), (record, frame)) in findings.iter().zip(expected) {
        assert_eq!((*damage, key.as_str(), *has_offset), (Some(Damage::ImageDecode), record, true));
        assert!(message.contains(&format!("{frame} of `video` does not decode: ")), "{message}");
    }
    assert!(findings[1].3.contains("recorded as jpeg, but it is png"), "{}", findings[1].3);
    assert!(findings[2].3.contains("30x40 pixels"), "{}", findings[2].3);
}

#[test]
fn clips_with_cut_frames_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("videos");
    clip(&source.join("run/whole"), 1, 3);
    let frames = clip(&source.join("run/cut"), 2, 4);
    for at in [1, 2] {
        let frame = &frames[at];
        put(&source.join(format!("run/cut/img{}.jpg", at + 1)), &frame[..frame.len() - 100]);
    }
    let options = options(&source, &folder.path().join("dataset"));
    let filled = with!(options.clone(), truncated = Truncated::Fill);
    let summary = pack(&filled, &()).unwrap();
    assert_eq!((summary.split.records(), summary.rejected, summary.truncated, summary.converted), (2, 0, 1, 0));
    let strict = with!(options, destination = folder.path().join("strict"));
    let summary = pack(&strict, &()).unwrap();
    assert_eq!((summary.split.records(), summary.rejected, summary.truncated), (1, 1, 0));
}
