//! What a sample has next to its image: masks, other images, areas and boxes that follow it or are refused.

use crate::adopt::{example, framed};
use crate::nested::{Found, features};
use crate::support::{chain, jpeg, put, rejected};
use serde_json::{Value, json};
use shardtool_format::example::Column;
use shardtool_format::manifest::DType;
use shardtool_pack::{
    AdoptOptions, Image, Options, PixelStore, Resize, Sample, Summary, Writer, WriterOptions, adopt, pack,
};
use shardtool_read::{Dataset, verify};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A JPEG with an EXIF orientation.
pub(crate) fn oriented(width: u32, height: u32, orientation: u8) -> Vec<u8> {
    let jpeg = jpeg(0, width, height);
    let mut exif = b"\xff\xe1\x00\x22Exif\0\0MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0".to_vec();
    exif.extend([orientation, 0, 0, 0, 0, 0, 0]);
    [&jpeg[..2], &exif, &jpeg[2..]].concat()
}

struct Made(tempfile::TempDir);

impl Made {
    /// Images of 40 × 20 with the orientations 1, 3 and 6, and one of 20 × 20 with 6.
    fn new() -> Self {
        let made = Made(tempfile::tempdir().unwrap());
        for orientation in [1, 3, 6] {
            put(&made.path(&format!("{orientation}.jpg")), &oriented(40, 20, orientation));
        }
        put(&made.path("square.jpg"), &oriented(20, 20, 6));
        made
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Packs a list of one row.
    fn row(&self, row: Value) -> Options {
        put(&self.path("list.jsonl"), row.to_string().as_bytes());
        self.options("list.jsonl")
    }

    fn options(&self, source: &str) -> Options {
        with!(Options::new(self.path(source), self.path("set")), allow_empty = true, force = true)
    }
}

fn packed(options: &Options) -> BTreeMap<String, Found> {
    let summary = pack(options, &()).unwrap();
    assert_eq!(reasons(&summary), Vec::<String>::new());
    features(&options.destination).into_values().next().unwrap()
}

fn reasons(summary: &Summary) -> Vec<String> {
    summary.rejected_file.as_ref().map_or(vec![], |file| rejected(file).into_iter().map(|(_, reason)| reason).collect())
}

fn refused(options: &Options, expected: &str) {
    let reasons = reasons(&pack(options, &()).unwrap());
    assert!(reasons.len() == 1 && reasons[0].contains(expected), "{expected}: {reasons:?}");
}

/// A PNG of 8-bit samples.
fn png(width: u32, height: u32, color: png::ColorType) -> Vec<u8> {
    let mut file = vec![];
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(color);
    let bytes = (width * height) as usize * color.samples();
    encoder.write_header().unwrap().write_image_data(&vec![1; bytes]).unwrap();
    file
}

#[test]
fn what_is_in_pixels_follows_a_smaller_image_or_is_refused() {
    let made = Made::new();
    let half = |options: Options| with!(options, resize = Some(Resize::Shorter(10)));
    let row = json!({"path": "1.jpg", "objects": [{"bbox": [4, 4, 20, 10], "area": 201}]});
    assert_eq!(packed(&half(made.row(row)))["image/object/area"], Found::Int(vec![50]));
    // Another image of the sample would keep its size.
    put(&made.path("other.jpg"), &jpeg(1, 40, 20));
    let listed =
        |path: &str| with!(made.row(json!({"path": path, "depth": "other.jpg"})), files = vec!["depth".to_owned()]);
    refused(&half(listed("1.jpg")), "`depth` is an image or an array of its pixels");
    refused(&with!(listed("6.jpg"), pixels = PixelStore::Raw), "`depth` is an image or an array of its pixels");
    packed(&listed("6.jpg"));
    let tar = crate::support::tar(&[
        ("a.jpg", &oriented(40, 20, 1)),
        ("a.mask.png", &png(40, 20, png::ColorType::Grayscale)),
    ]);
    put(&made.path("set.tar"), &tar);
    refused(
        &with!(half(made.options("set.tar")), map = vec![("image".to_owned(), "jpg".to_owned())]),
        "`mask.png` is an image or an array of its pixels",
    );
}

#[test]
fn boxes_of_nothing_are_named() {
    let made = Made::new();
    for bbox in [[4, 4, 0, 10], [4, 4, 10, 0]] {
        refused(&made.row(json!({"path": "1.jpg", "objects": [{"bbox": bbox}]})), "no width or no height");
    }
}

#[test]
fn what_is_named_a_mask_is_one() {
    let made = Made::new();
    let grey = png::ColorType::Grayscale;
    let files = [
        ("good.png", png(40, 20, grey), None),
        ("text.png", b"not an image at all".to_vec(), Some("not an image")),
        ("rgb.png", png(40, 20, png::ColorType::Rgb), Some("not a label map")),
        ("turned.png", png(20, 40, grey), Some("20x40 pixels, but the stored image has 40x20")),
        ("photo.jpg", jpeg(1, 40, 20), Some("not a label map")),
    ];
    for (name, bytes, problem) in &files {
        put(&made.path(name), bytes);
        let options = with!(made.row(json!({"path": "6.jpg", "mask": name})), files = vec!["mask".to_owned()]);
        let tar = crate::support::tar(&[("a.jpg", &oriented(40, 20, 6)), ("a.mask.png", bytes)]);
        put(&made.path("set.tar"), &tar);
        let archive = with!(made.options("set.tar"), map = vec![("image".to_owned(), "jpg".to_owned())]);
        match problem {
            None => assert!(packed(&options).contains_key("mask") && packed(&archive).contains_key("mask.png")),
            Some(problem) => {
                refused(&options, "`mask` is not a mask");
                refused(&options, problem);
                refused(&archive, problem);
            }
        }
        // A program's writer refuses the same.
        let mut options = WriterOptions::new(made.path(&format!("written-{name}")), "train");
        options.features = vec![("eye_mask".to_owned(), DType::Bytes)];
        let writer = Writer::open(&options).unwrap();
        let image = jpeg(0, 40, 20);
        let values = vec![("eye_mask", shardtool_pack::Value::Bytes(vec![bytes.clone()]))];
        let sample = Sample { key: "a", image: Some(Image::File(&image)), label: None, values };
        let found = writer.write(&sample);
        assert_eq!(found.is_err(), problem.is_some(), "{name}");
        if let (Err(error), Some(problem)) = (found, problem) {
            assert!(chain(&error).contains(problem), "{error}");
        }
    }
}

#[test]
fn verify_finds_masks_that_are_none() {
    let temp = tempfile::tempdir().unwrap();
    let grey = |width, height| png(width, height, png::ColorType::Grayscale);
    let masks = [grey(40, 20), b"a text".to_vec(), grey(20, 40), png(40, 20, png::ColorType::Rgb)];
    let image = jpeg(0, 40, 20);
    let record = |mask: &Vec<u8>| {
        let (image, mask) = ([&image[..]], [&mask[..]]);
        framed(&example(vec![("image/encoded", Column::Bytes(&image)), ("image/mask", Column::Bytes(&mask))]))
    };
    let file = temp.path().join("train-00000.tfrecord");
    put(&file, &masks.iter().flat_map(record).collect::<Vec<_>>());
    adopt(&[file], &AdoptOptions::default(), &()).unwrap();
    let found = |decode| {
        let mut options = verify::Options::default();
        options.decode = decode;
        let report = verify::verify(&Dataset::open(temp.path()).unwrap(), &options);
        report.findings.into_iter().map(|finding| finding.message).collect::<Vec<_>>()
    };
    assert_eq!(found(false), Vec::<String>::new());
    let found = found(true);
    assert_eq!(found.len(), 3, "{found:?}");
    for (message, expected) in found.iter().zip(["not an image", "20x40", "not a label map"]) {
        assert!(message.contains("`image/mask` is not a mask of the image") && message.contains(expected), "{message}");
    }
}
