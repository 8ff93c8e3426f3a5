//! Lossless transcoding of JPEGs: the same pixels, fewer bytes, and a count of images that were kept.

use crate::support::{check, jpeg, put};
use shardtool_format::index::{self, Index};
use shardtool_pack::DestinationError;
use shardtool_pack::{Error, JpegLayout, Optimized, Options, PixelStore, PlanDifference, Resize, Shards, pack};
use std::fs;
use std::path::Path;

/// The JPEG crate's own test images, which Pillow made.
fn pillows(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../jpeg/tests/data").join(name)).unwrap()
}

fn pixels(jpeg: &[u8]) -> image::RgbImage {
    image::load_from_memory_with_format(jpeg, image::ImageFormat::Jpeg).unwrap().into_rgb8()
}

/// Statistics of packing `images`, and the stored images by key.
fn optimized(
    images: &[(&str, Vec<u8>)],
    resize: Option<Resize>,
) -> (Optimized, Vec<(String, Vec<u8>)>, tempfile::TempDir) {
    let temp = tempfile::tempdir().unwrap();
    let (source, destination) = (temp.path().join("photos"), temp.path().join("set"));
    images.iter().for_each(|(name, bytes)| put(&source.join(name), bytes));
    let layout = JpegLayout::Optimize;
    let options = with!(Options::new(&source, &destination), jpeg = layout, resize = resize);
    let summary = pack(&options, &()).unwrap();
    assert_eq!(summary.rejected, 0);
    let stored = check(&destination, "train").into_iter().map(|(key, (image, _))| (key, image)).collect();
    (summary.optimized.unwrap(), stored, temp)
}

#[test]
fn transcodes_each_image_only_if_it_is_an_improvement() {
    let smooth = jpeg(1, 80, 60);
    let best = shardtool_jpeg::transcode(&smooth, &mut shardtool_jpeg::Decoder::new()).unwrap().jpeg;
    let mut cmyk = vec![];
    jpeg_encoder::Encoder::new(&mut cmyk, 90)
        .encode(&[77; 40 * 30 * 4], 40, 30, jpeg_encoder::ColorType::Cmyk)
        .unwrap();
    // The end of the scan is missing, but the EOI marker is present.
    let broken = [&smooth[..smooth.len() * 3 / 4], &[0xff, 0xd9]].concat();
    let progressive = pillows("progressive-420.jpg");
    let png = crate::support::encoded(3, image::ImageFormat::Png);
    let images = [
        ("best.jpg", best.clone()),
        ("broken.jpg", broken.clone()),
        ("cmyk.jpg", cmyk.clone()),
        ("picture.png", png.clone()),
        ("progressive.jpg", progressive.clone()),
        ("smooth.jpg", smooth.clone()),
    ];
    let (gained, stored, temp) = optimized(&images, None);
    let names: Vec<_> = stored.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(names, images.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    for (i, untouched) in [best, broken, cmyk, png].iter().enumerate() {
        assert!(stored[i].1 == *untouched, "{} was changed", stored[i].0);
    }
    for (i, original) in [(4, &progressive), (5, &smooth)] {
        assert_eq!(pixels(&stored[i].1), pixels(original), "{}", stored[i].0);
        assert_eq!(stored[i].1[..2], [0xff, 0xd8]);
    }
    assert!(stored[5].1.len() < smooth.len());
    let refused = [("4 colour components".to_owned(), 1), ("damaged data".to_owned(), 1)];
    let expected = with!(
        Optimized::default(),
        images = 2,
        opened = 1,
        bytes_before = (progressive.len() + smooth.len()) as u64,
        bytes_after = (stored[4].1.len() + stored[5].1.len()) as u64,
        kept = 1,
        refused = refused.into(),
    );
    assert_eq!(gained, expected);

    // The index has entry points of the bytes as stored: a progressive image has none, the transcoded one has.
    let index_file = fs::read(temp.path().join("set/_index/train-00000.tfrecord.index")).unwrap();
    let index = Index::parse(&index_file).unwrap();
    let column = |name| index.variable(index.position(name).unwrap()).unwrap();
    let (keys, entries) = (column(index::KEY), column(index::JPEG_ENTRIES));
    let row = (0..index.records()).find(|&row| keys.get(row) == Some(b"progressive.jpg")).unwrap();
    assert!(entries.get(row).is_some_and(|e| e.len() > 2));
}

#[test]
fn re_encoded_images_are_transcoded_too() {
    let large = jpeg(5, 90, 70);
    let (gained, stored, _temp) = optimized(&[("large.jpg", large)], Some(Resize::MaxSide(45)));
    assert_eq!((gained.images, gained.kept, gained.refused.len()), (1, 0, 0));
    assert_eq!(gained.bytes_after, stored[0].1.len() as u64);
    assert!(gained.bytes_after < gained.bytes_before);
    assert_eq!(pixels(&stored[0].1).dimensions(), (45, 35));
}

#[test]
fn the_layout_is_part_of_the_plan_and_does_not_change_pixels() {
    let temp = tempfile::tempdir().unwrap();
    let (source, destination) = (temp.path().join("photos"), temp.path().join("set"));
    for i in 0..8 {
        put(&source.join(format!("{i}.jpg")), &jpeg(i, 40, 40));
    }
    let options = with!(Options::new(&source, &destination), shards = Shards::Count(4));
    struct Stop;
    impl shardtool_pack::Progress for Stop {
        fn after(&self, step: shardtool_pack::Step) -> std::ops::ControlFlow<()> {
            match step {
                shardtool_pack::Step::Index => std::ops::ControlFlow::Break(()),
                _ => std::ops::ControlFlow::Continue(()),
            }
        }
    }
    let optimize = with!(options.clone(), jpeg = JpegLayout::Optimize);
    assert!(matches!(pack(&optimize, &Stop), Err(Error::Stopped)));
    match pack(&options, &()) {
        Err(Error::Destination(DestinationError::OtherPlan { difference, .. })) => {
            let PlanDifference { member, before, now, .. } = *difference;
            assert_eq!((&*member, &*before, &*now), ("jpeg", "\"optimize\"", "\"keep\""));
        }
        other => panic!("{other:?}"),
    }
    let summary = pack(&optimize, &()).unwrap();
    let counted = summary.optimized.unwrap();
    assert!(summary.resumed_shards > 0 && counted.images < 8, "images of resumed shards are not counted");
    for (key, (image, _)) in check(&destination, "train") {
        let original = fs::read(source.join(&key)).unwrap();
        assert!(image.len() < original.len() && pixels(&image) == pixels(&original), "{key}");
    }
    let raw = with!(optimize, pixels = PixelStore::Raw);
    assert!(matches!(pack(&raw, &()), Err(Error::Option { option: "JPEG layout", .. })));
}
