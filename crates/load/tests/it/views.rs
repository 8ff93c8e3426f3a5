//! Several views of one image, decoded once.

use crate::dataset;
use crate::samples::photographs;
use shardtool_decode::{Filter, Pipeline, Transform};
use shardtool_load::{Config, Error, Image, InvalidOptions, Loader, Objects, Part, View};
use shardtool_order::Remainder;
use shardtool_read::{Dataset, Split};
use std::path::Path;

fn split(folder: &Path, samples: u64) -> Split {
    dataset::write(folder, "train", &photographs(samples), 4);
    Dataset::open(folder).unwrap().split("train").unwrap().clone()
}

fn view(name: &str, steps: Vec<Transform>) -> View {
    View::new(name, Pipeline::new(steps).unwrap())
}

fn crop(side: u32, scale: [f64; 2]) -> Vec<Transform> {
    let crop =
        Transform::RandomResizedCrop { size: [side; 2], scale, ratio: [0.75, 1.33], interpolation: Filter::Bilinear };
    vec![crop, Transform::HorizontalFlip { p: 0.5 }]
}

fn config(split: Split, views: Vec<View>) -> Config {
    let mut config = Config::new(split, [Image::with_views(views)], 4);
    (config.remainder, config.seed) = (Some(Remainder::Mask), 11);
    config
}

/// Two global and three local crops.
fn dino() -> Vec<View> {
    let globals = (0..2).map(|n| view(&format!("global.{n}"), crop(32, [0.4, 1.0])));
    globals.chain((0..3).map(|n| view(&format!("local.{n}"), crop(12, [0.05, 0.4])))).collect()
}

/// Names and pixels of every view of an epoch's batches.
fn epoch(loader: &mut Loader) -> Vec<Vec<(String, Vec<u8>)>> {
    let mut batches = vec![];
    while let Some(batch) = loader.next_batch().unwrap() {
        batches.push(batch.pictures().map(|p| (p.view.to_owned(), p.bytes.to_vec())).collect());
    }
    batches
}

#[test]
fn each_view_is_what_a_loader_of_its_own_makes() {
    let folder = tempfile::tempdir().unwrap();
    let split = split(folder.path(), 10);
    // Of steps without random numbers, since the views of a sample draw their own.
    let whole = || vec![Transform::ResizeTo { size: [16, 20], interpolation: Filter::Bilinear }];
    let middle = || vec![Transform::CenterCrop { size: [9, 9] }];
    let mut both = Loader::new(&config(split.clone(), vec![view("whole", whole()), view("middle", middle())])).unwrap();
    let both = epoch(&mut both);
    for (number, steps) in [whole(), middle()].into_iter().enumerate() {
        let alone = epoch(&mut Loader::new(&config(split.clone(), vec![view("", steps)])).unwrap());
        assert_eq!(alone.len(), both.len());
        for (alone, both) in alone.iter().zip(&both) {
            assert_eq!(alone[0].1, both[number].1);
        }
    }
}

#[test]
fn views_differ_and_do_not_depend_on_the_workers() {
    let folder = tempfile::tempdir().unwrap();
    let split = split(folder.path(), 10);
    let mut first = Loader::new(&config(split.clone(), dino())).unwrap();
    let expected = [epoch(&mut first), epoch(&mut first)];
    assert_ne!(expected[0], expected[1]);
    for batch in expected.iter().flatten() {
        let names: Vec<_> = batch.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["global.0", "global.1", "local.0", "local.1", "local.2"]);
        assert!(batch[0].1 != batch[1].1 && batch[2].1 != batch[3].1 && batch[3].1 != batch[4].1);
    }
    for workers in [1, 3] {
        let mut config = config(split.clone(), dino());
        config.workers = Some(workers);
        let mut loader = Loader::new(&config).unwrap();
        assert_eq!([epoch(&mut loader), epoch(&mut loader)], expected, "{workers} workers");
    }
}

/// A step that is added changes no random number of the others.
#[test]
fn steps_draw_independently() {
    let folder = tempfile::tempdir().unwrap();
    let split = split(folder.path(), 8);
    let erase = Transform::RandomErasing {
        p: 1.0,
        scale: [0.1, 0.2],
        ratio: [0.5, 2.0],
        value: shardtool_decode::EraseValue::Color([1, 2, 3]),
    };
    let pixels =
        |steps: Vec<Transform>| epoch(&mut Loader::new(&config(split.clone(), vec![view("", steps)])).unwrap());
    let plain = pixels(crop(32, [0.2, 1.0]));
    let erased = pixels([crop(32, [0.2, 1.0]), vec![erase]].concat());
    let mut changed = 0;
    for (plain, erased) in plain.iter().zip(&erased) {
        for (plain, erased) in plain[0].1.as_chunks::<3>().0.iter().zip(erased[0].1.as_chunks::<3>().0) {
            assert!(plain == erased || *erased == [1, 2, 3]);
            changed += u32::from(plain != erased);
        }
    }
    assert!((8 * 32 * 32 / 12..8 * 32 * 32 / 4).contains(&changed), "{changed} pixels are erased");
}

#[test]
fn a_run_resumes_with_the_same_views() {
    let folder = tempfile::tempdir().unwrap();
    let split = split(folder.path(), 22);
    let expected = epoch(&mut Loader::new(&config(split.clone(), dino())).unwrap());
    let mut loader = Loader::new(&config(split.clone(), dino())).unwrap();
    for done in 0..expected.len() {
        let mut config = config(split.clone(), dino());
        config.workers = Some(1 + done % 3);
        let mut resumed = Loader::new(&config).unwrap();
        resumed.load_state(&loader.state()).unwrap();
        assert_eq!(epoch(&mut resumed), expected[done..], "after {done} batches");
        loader.next_batch().unwrap();
    }
}

#[test]
fn views_without_names_or_with_what_follows_one_geometry_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let split = split(folder.path(), 4);
    let error = |views| Loader::new(&config(split.clone(), views)).err().unwrap();
    assert!(matches!(error(vec![]), Error::Zero { option: "views" }));
    let twice = vec![view("a", crop(8, [0.5, 1.0])), view("a", crop(9, [0.5, 1.0]))];
    assert!(matches!(error(twice), Error::ViewName { name } if name == "a"));
    let crop = r#"[{"random_apply":{"transforms":[{"random_iou_crop":{}}]}},{"resize_to":{"size":[8,8]}}]"#;
    let view = View::new("", serde_json::from_str(crop).unwrap());
    assert!(matches!(error(vec![view]), Error::NoBoxes { step: "random_iou_crop" }));
    let mut objects = Objects::default();
    objects.boxes = "boxes".to_owned();
    let excluded = Loader::new(&config(split.clone(), dino()).with(objects)).err().unwrap();
    let Error::Options(InvalidOptions::Excluded { part, other, .. }) = excluded else { panic!("{excluded}") };
    assert_eq!((part, other), (Part::SeveralViews, Part::Objects));
}
