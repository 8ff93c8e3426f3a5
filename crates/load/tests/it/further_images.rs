//! Further images of a record that hold values: moved as label maps are, delivered as they are stored.

use crate::dataset::MASK;
use crate::decoded_cache::cache;
use crate::masks::{WIDE, config, image, mask, split, wide_quarters};
use shardtool_decode::{LabelDtype, Pipeline, PixelFormat, Transform};
use shardtool_load::{
    Config, Custom, Error, Field, FurtherImage, FurtherKind, InvalidOptions, Loader, Mode, OnBad, SampleError,
};

fn values() -> Field {
    FurtherImage::of_kind(MASK, FurtherKind::Values).into()
}

/// Compares the values of a further image with the same file as a label map, both in `config`, in all epochs.
fn equal_to_masks(config: &Config) {
    let mut loader = Loader::new(config).unwrap();
    let mut rows = 0;
    for _ in 0..3 {
        while let Some(batch) = loader.next_batch().unwrap() {
            let further = batch.pictures().find(|array| array.feature == Some(MASK)).unwrap();
            assert_eq!((further.pixel_format, further.output.is_none()), (PixelFormat::GRAY16, true));
            assert!(further.values && batch.pictures().filter(|array| array.values).count() == 1);
            assert_eq!((further.shape, batch.row_length()), ([batch.len(), 32, 32, 1], None));
            let (row, masks) = (further.bytes.len() / batch.len(), batch.masks().next().unwrap());
            for (row, (valid, (values, mask))) in
                batch.valid().iter().zip(further.bytes.chunks(row).zip(masks.bytes.chunks(row))).enumerate()
            {
                match valid {
                    true => assert_eq!(values, mask, "row {row}"),
                    false => assert!(values.iter().all(|value| *value == 0)),
                }
                rows += 1;
            }
            let stored = |value: &[u8; 2]| u16::from_le_bytes(*value).is_multiple_of(WIDE / 3);
            assert!(further.bytes.as_chunks().0.iter().all(stored), "no value is mixed");
        }
    }
    assert!(rows > 60);
}

#[test]
fn values_move_as_label_maps_whatever_is_done_to_the_image() {
    let folder = tempfile::tempdir().unwrap();
    let samples: Vec<_> = (0..21).map(wide_quarters).collect();
    let mut config = config(split(folder.path(), &samples), MASK).with(values());
    let twice = Loader::new(&config.clone().with(values())).map(drop).unwrap_err();
    assert!(matches!(&twice, Error::Options(InvalidOptions::Twice { field }) if field == "\"mask\""), "{twice}");
    let given = mask(&mut config);
    (given.dtype, given.fill) = (LabelDtype::U16, Some(0));
    equal_to_masks(&config);
    image(&mut config).pixels.decoded_cache = Some(cache(40, 1 << 22));
    equal_to_masks(&config);
    let given = &mut image(&mut config).pixels;
    (given.mean, given.std) = (Some(vec![0.5; 3]), Some(vec![0.25; 3]));
    given.custom = Some(Custom(std::sync::Arc::new(|pixels, _| pixels.data.fill(7))));
    equal_to_masks(&config);
}

#[test]
fn unstated_kind_of_16_bits_is_refused_where_values_would_change() {
    let folder = tempfile::tempdir().unwrap();
    let samples: Vec<_> = (0..21).map(wide_quarters).collect();
    let mut config = config(split(folder.path(), &samples), MASK);
    config.fields[1] = FurtherImage::new(MASK).into();
    let refused = |config: &Config| match Loader::new(config).map(drop).unwrap_err() {
        Error::FurtherImage { source, .. } => matches!(*source, SampleError::FurtherKind { .. }),
        error => panic!("{error}"),
    };
    assert!(refused(&config));
    let pixels = &mut image(&mut config).pixels;
    (pixels.mode, pixels.bits) = (Mode::L, Some(16));
    assert!(refused(&config), "the crop is resized by a filter");
    let moves = vec![Transform::CenterCrop { size: [32; 2] }, Transform::HorizontalFlip { p: 0.5 }];
    image(&mut config).views[0].pipeline = Pipeline::new(moves).unwrap();
    assert!(Loader::new(&config).is_ok());
    image(&mut config).pixels.decoded_cache = Some(cache(40, 1 << 22));
    assert!(refused(&config), "the cache resizes by a filter");
    config.fields[1] = FurtherImage::of_kind(MASK, FurtherKind::Color).into();
    assert!(Loader::new(&config).is_ok());
}

#[test]
fn values_of_another_format_are_a_bad_sample() {
    let folder = tempfile::tempdir().unwrap();
    let mut samples: Vec<_> = (0..21).map(wide_quarters).collect();
    samples[17].mask = samples[17].image.clone().unwrap().0;
    samples[18].mask = vec![];
    let mut config = config(split(folder.path(), &samples), MASK);
    config.fields[1] = values();
    (config.bad_samples.on_bad, config.epochs) = (Some(OnBad::Mask), Some(1));
    let mut loader = Loader::new(&config).unwrap();
    while loader.next_batch().unwrap().is_some() {}
    let mut bad = loader.bad_samples();
    bad.sort_by_key(|sample| sample.id);
    let SampleError::FurtherFormat { expected, found, .. } = &bad[0].error else { panic!("{:?}", bad[0].error) };
    assert_eq!((*expected, *found), (Some("grey of 16 bits"), Some("RGB of 8 bits")));
    assert!(matches!(bad[1].error, SampleError::NoFurtherImage { .. }));
    assert_eq!(bad.len(), 2);
}

/// Returns the PNG with its samples and an opaque alpha, of 16 bits.
fn with_alpha(png: &[u8]) -> Vec<u8> {
    let image = image::load_from_memory(png).unwrap();
    let mut file = std::io::Cursor::new(vec![]);
    image::DynamicImage::from(image.into_luma_alpha16()).write_to(&mut file, image::ImageFormat::Png).unwrap();
    file.into_inner()
}

#[test]
fn values_with_alpha_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let mut samples: Vec<_> = (0..21).map(wide_quarters).collect();
    samples[17].mask = with_alpha(&samples[17].mask);
    let mut config = config(split(folder.path(), &samples), MASK);
    config.fields[1] = values();
    (config.bad_samples.on_bad, config.epochs) = (Some(OnBad::Mask), Some(1));
    let mut loader = Loader::new(&config).unwrap();
    while loader.next_batch().unwrap().is_some() {}
    let bad = loader.bad_samples();
    assert_eq!(bad.len(), 1);
    let message = bad[0].error.to_string();
    assert!(message.contains("an image with alpha, which is dropped: expected grey of 16 bits"), "{message}");
}
