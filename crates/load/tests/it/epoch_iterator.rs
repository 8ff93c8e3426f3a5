//! The batches of an epoch as an iterator; typed and owned access to them.

use crate::arrays_dataset::{Stored, open, write};
use crate::{dataset, samples};
use shardtool_decode::Pipeline;
use shardtool_load::{
    Arrays, BadSamples, Column, Config, Error, Field, Image, Loader, OnBad, Pairs, PixelDtype, Values,
};
use shardtool_order::{Order, Remainder, ResumeState};
use shardtool_read::{Access, Dataset, Split};

fn numbers(folder: &tempfile::TempDir, count: u64) -> Split {
    dataset::write(folder.path(), "train", &samples::numbers(count), 5);
    Dataset::open(folder.path()).unwrap().split("train").unwrap().clone()
}

fn ids(loader: &mut Loader) -> Vec<i64> {
    let mut epoch = loader.epoch();
    let expected = epoch.len();
    let ids: Vec<_> = epoch.by_ref().map(|batch| batch.unwrap().ids().to_vec()).collect();
    assert_eq!((ids.len(), epoch.len()), (expected, 0));
    assert!(epoch.next().is_none() && epoch.next().is_none(), "it is fused");
    ids.concat()
}

#[test]
fn each_call_is_an_epoch_or_the_rest_of_one() {
    let folder = tempfile::tempdir().unwrap();
    let split = numbers(&folder, 21);
    let config = Config::new(split, [Field::Record], 4).with_seed(3).with_remainder(Remainder::Drop).with_epochs(4);
    let mut plain = Loader::new(&config).unwrap();
    let epochs: Vec<Vec<i64>> = (0..4)
        .map(|_| std::iter::from_fn(|| plain.next_batch().unwrap()).flat_map(|batch| batch.ids().to_vec()).collect())
        .collect();

    let mut loader = Loader::new(&config).unwrap();
    assert_eq!(ids(&mut loader), epochs[0]);
    // All batches without the end, then nothing of this epoch.
    let whole: Vec<_> = loader.epoch().take(5).flat_map(|batch| batch.unwrap().ids().to_vec()).collect();
    assert_eq!(whole, epochs[1]);
    // A part, then the rest, perhaps by a resumed loader.
    let part: Vec<_> = loader.epoch().take(2).flat_map(|batch| batch.unwrap().ids().to_vec()).collect();
    assert_eq!(part, epochs[2][..8]);
    let mut resumed = Loader::new(&config).unwrap();
    resumed.load_state(&loader.state().to_string().parse::<ResumeState>().unwrap()).unwrap();
    for loader in [&mut loader, &mut resumed] {
        assert_eq!(loader.epoch().len(), 3);
        assert_eq!(ids(loader), epochs[2][8..]);
        assert_eq!(ids(loader), epochs[3]);
        // The run has four epochs.
        assert_eq!(loader.epoch().len(), 0);
        assert!(ids(loader).is_empty());
    }
}

#[test]
fn an_error_ends_the_iterator_and_names_the_record() {
    let folder = tempfile::tempdir().unwrap();
    let mut all = samples::photographs(9);
    all[5].image = Some((b"no image".to_vec(), (30, 30)));
    dataset::write(folder.path(), "train", &all, 5);
    let split = Dataset::open(folder.path()).unwrap().split("train").unwrap().clone();
    let mut bad_samples = BadSamples::default();
    bad_samples.on_bad = Some(OnBad::Error);
    let image = Image::new(Pipeline::eval(16, 16).unwrap());
    let config = Config::new(split, [image], 2).with_order(Order::Sequential).with_bad_samples(bad_samples);
    let mut loader = Loader::new(&config).unwrap();
    let mut epoch = loader.epoch();
    assert!(epoch.next().unwrap().is_ok() && epoch.next().unwrap().is_ok());
    let error = epoch.next().unwrap().unwrap_err();
    assert!(epoch.next().is_none() && epoch.len() == 0);
    let text = error.to_string();
    let key = all[5].key.clone();
    for part in ["record 0 of", "train-00001", "id 5", &key, "image"] {
        assert!(text.contains(part), "`{part}` in: {text}");
    }
    let Error::BadSample(bad) = error else { panic!("{error:?}") };
    assert!(format!("{bad:?}").contains(&format!("{key:?}")), "{bad:?}");
}

#[test]
fn typed_access_is_to_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let volumes: Vec<_> =
        (0..6u16).map(|n| vec![Stored::u16("ct", &[2, 3], &[2, 3], "raw", &[n, n + 1, n + 2, 7, 8, 9])]).collect();
    write(folder.path(), &["ct"], &volumes, Some(&dataset::jpeg(1, 40, 30)));
    let split = open(folder.path(), Access::Mmap);
    let image = || Image::new(Pipeline::eval(16, 16).unwrap());
    let config = |image: Image| {
        let arrays = Arrays::new(vec!["ct".to_owned()]);
        Config::new(split.clone(), [image], 4).with(arrays).with(Column::new("image/key")).with_order(Order::Sequential)
    };
    let first = |config: &Config| Loader::new(config).unwrap().epoch().next().unwrap().unwrap();

    let bytes = first(&config(image()));
    assert!(bytes.images_f32().is_none(), "u8");
    let batch = first(&config(image().with_normalization([0.5; 3], [0.25; 3])));
    let pixels = batch.images_f32().unwrap();
    assert_eq!((pixels.len(), pixels.as_ptr().addr() % 64), (4 * 3 * 16 * 16, 0));
    for (at, value) in bytes.images().unwrap().iter().enumerate() {
        let (row, pixel, channel) = (at / 768, at % 768 / 3, at % 3);
        let expected = (f32::from(*value) / 255.0 - 0.5) / 0.25;
        let found = pixels[row * 768 + channel * 256 + pixel];
        assert!((found - expected).abs() < 1e-5, "{found}, {expected}");
    }
    let mut half = image().with_normalization([0.5; 3], [0.25; 3]);
    half.pixels.dtype = Some(PixelDtype::Float16);
    assert!(first(&config(half)).images_f32().is_none(), "float16");

    let array = batch.arrays().next().unwrap();
    assert_eq!(array.values::<u16>().unwrap()[6..12], [1, 2, 3, 7, 8, 9]);
    assert!(array.values::<i16>().is_none() && array.values::<f32>().is_none());
    assert_eq!(batch.labels().unwrap().len(), 4);
    assert!(batch.soft_labels().is_none());
    let keys = batch.column("image/key").unwrap();
    let Values::Bytes { offsets, values } = keys else { panic!("{keys:?}") };
    let text = |row: usize| &values[offsets[row] as usize..offsets[row + 1] as usize];
    assert!((0..4).all(|row| keys.row_bytes(row) == Some(text(row))) && keys.row_bytes(4).is_none());
    assert!(keys.as_int64().is_none() && keys.row_floats(0).is_none());

    let mut pairs = Pairs::default();
    pairs.num_classes = Some(10);
    let mixed = config(image()).with_batch_transform(shardtool_load::BatchTransform::MixUp(pairs));
    let mixed = first(&mixed);
    assert!(mixed.labels().is_none());
    assert_eq!(mixed.soft_labels().unwrap().len(), 4 * 10);

    // Pixels that are owned keep the memory of their batch, without a copy, after the loader.
    let address = batch.images().unwrap().as_ptr();
    let copy = batch.images().unwrap().to_vec();
    let owned: Box<dyn AsRef<[u8]> + Send + 'static> = Box::new(batch.into_images().unwrap());
    assert_eq!(owned.as_ref().as_ref().as_ptr(), address);
    assert_eq!(owned.as_ref().as_ref(), copy);
    let records = Config::new(split.clone(), [Field::Record], 2);
    assert!(first(&records).into_images().is_none());
}
