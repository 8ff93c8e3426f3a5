//! A dataset on disk, through the loader, onto the stand-in device: batches are those that the host loader delivers.

#[path = "child/mod.rs"]
mod child;
#[path = "../../load/tests/dataset/mod.rs"]
mod dataset;
#[path = "../../load/tests/it/samples.rs"]
mod samples;

use child::with_standin;
use shardtool_cuda::{Config, Device, DeviceLoader, Dtype, Error, ImageLoader, Layout, Output, Part};
use shardtool_decode::{Filter, Pipeline, Transform};
use shardtool_load::{BatchTransform, Field, Image, Loader, Mosaic, Pairs, Values};
use shardtool_order::{Remainder, Replica};
use shardtool_read::Dataset;
use std::sync::Arc;

/// A loader over 50 photographs in batches of 8.
fn config(folder: &std::path::Path) -> shardtool_load::Config {
    dataset::write(folder, "train", &samples::photographs(50), 20);
    let split = Dataset::open(folder).unwrap().split("train").unwrap().clone();
    let steps = vec![Transform::RandomResizedCrop {
        size: [12, 10],
        scale: [0.1, 1.0],
        ratio: [0.75, 1.33],
        interpolation: Filter::Bilinear,
    }];
    let mut config = shardtool_load::Config::new(split, [Image::new(Pipeline::new(steps).unwrap())], 8);
    config.workers = Some(2);
    config
}

/// The configuration with pixels of values 0 to 255, which are whole numbers in f32.
fn as_bytes(config: &shardtool_load::Config) -> shardtool_load::Config {
    let mut config = config.clone();
    if let Some(pixels) = config.pixels_mut() {
        (pixels.std, pixels.layout) = (Some(vec![1.0 / 255.0; 3]), Some(Layout::Nhwc));
    }
    config
}

/// The same as the output of a device loader.
fn bytes() -> Config {
    let output = Output::new(Dtype::F32, Layout::Nhwc, [0.0; 3], [1.0 / 255.0; 3]).unwrap();
    let mut config = Config::default();
    config.output = output;
    config
}

fn on_device(device: &Device, config: &shardtool_load::Config) -> Result<DeviceLoader<Loader>, Error> {
    DeviceLoader::new(device, bytes(), |pinned| {
        let mut config = config.clone();
        config.alloc = Arc::new(pinned.clone());
        Ok(Loader::new(&config)?)
    })
}

#[test]
fn device_batches_equal_host_batches_also_after_resume() {
    let name = "device_batches_equal_host_batches_also_after_resume";
    let report = with_standin(name, &[("STANDIN_DELAY_US", "1000")], || {
        let folder = tempfile::tempdir().unwrap();
        let config = config(folder.path());
        let device = Device::open(0).unwrap();
        let stream = device.context().new_stream().unwrap();
        let mut host = Loader::new(&config).unwrap();
        let mut loader = on_device(&device, &config).unwrap();
        let mut third = None;
        for _epoch in 0..2 {
            let mut steps = 0;
            loop {
                let (ours, theirs) = (loader.next_batch().unwrap(), host.next_batch().unwrap());
                let (Some(ours), Some(theirs)) = (&ours, &theirs) else {
                    assert!(ours.is_none() && theirs.is_none());
                    break;
                };
                assert_eq!((ours.rows().ids.as_slice(), ours.rows().valid.as_slice()), (theirs.ids(), theirs.valid()));
                assert_eq!(loader.state(), Some(&theirs.state_after()));
                let values = ours.view::<f32>(Part::Images, &stream).unwrap().to_host().unwrap();
                let pixels: Vec<f32> = theirs.images().unwrap().iter().map(|b| f32::from(*b)).collect();
                assert_eq!(values, pixels);
                steps += 1;
                if third.is_none() && steps == 3 {
                    third = loader.state().cloned();
                }
            }
            assert_eq!(steps, 6);
        }
        // Resume after the third batch of the first epoch, with other batches uploaded ahead.
        let state = third.unwrap();
        loader.with_feed(|feed| feed.load_state(&state)).unwrap().unwrap();
        host.load_state(&state).unwrap();
        let (ours, theirs) = (loader.next_batch().unwrap().unwrap(), host.next_batch().unwrap().unwrap());
        assert_eq!(ours.rows().ids, theirs.ids());
    });
    if let Some(report) = report {
        report.assert_clean();
    }
}

/// Two replicas, each on its device, with one set of workers: their batches are those of two host loaders in a world of
/// two.
#[test]
fn one_set_of_workers_feeds_two_devices() {
    let environment = [("STANDIN_DEVICES", "2"), ("STANDIN_DELAY_US", "1000")];
    let report = with_standin("one_set_of_workers_feeds_two_devices", &environment, || {
        let folder = tempfile::tempdir().unwrap();
        let mut config = config(folder.path());
        config.remainder = Some(Remainder::Mask);
        config.replica = Replica::new(0, 2).unwrap();
        let devices = [Device::named("cuda:0").unwrap(), Device::named("cuda:1").unwrap()];
        let mut group = ImageLoader::group(&devices, Config::default(), &as_bytes(&config), &[0, 1]).unwrap();
        let mut hosts = Loader::group(&config, &[0, 1]).unwrap();
        assert!(matches!(
            ImageLoader::group(&devices, Config::default(), &as_bytes(&config), &[0]).err(),
            Some(Error::Load(shardtool_load::Error::Ranks { .. }))
        ));
        let mut shown = Vec::new();
        for _step in 0..4 {
            for ((loader, host), device) in group.iter_mut().zip(&mut hosts).zip(&devices) {
                let (ours, theirs) = (loader.next_batch().unwrap().unwrap(), host.next_batch().unwrap().unwrap());
                assert_eq!((ours.ordinal(), loader.ordinal()), (device.ordinal(), device.ordinal()));
                assert_eq!((ours.rows().ids.as_slice(), ours.rows().valid.as_slice()), (theirs.ids(), theirs.valid()));
                let stream = device.context().new_stream().unwrap();
                let values = ours.view::<f32>(Part::Images, &stream).unwrap().to_host().unwrap();
                assert!(values.iter().zip(theirs.images().unwrap()).all(|(v, b)| *v == f32::from(*b)));
                shown.extend(theirs.ids().iter().copied().filter(|id| *id >= 0));
            }
        }
        for loader in &mut group {
            assert!(loader.next_batch().unwrap().is_none());
            assert_eq!((loader.state().epoch, loader.state().p, loader.len()), (1, 0, 4));
        }
        shown.sort_unstable();
        assert_eq!(shown, (0..50).collect::<Vec<i64>>());
        assert!(group[0].stats().samples >= 50);
    });
    if let Some(report) = report {
        report.assert_clean();
    }
}

/// Epochs and states count the consumer's batches, not those uploaded ahead; a rejected state changes nothing.
#[test]
fn epochs_and_states_are_those_of_the_consumer() {
    let report = with_standin("epochs_and_states_are_those_of_the_consumer", &[("STANDIN_DELAY_US", "500")], || {
        let folder = tempfile::tempdir().unwrap();
        let config = config(folder.path());
        let device = Device::open(0).unwrap();
        let mut loader = ImageLoader::new(&device, Config::default(), &as_bytes(&config)).unwrap();
        let mut host = Loader::new(&config).unwrap();
        let ids = |loader: &mut ImageLoader| loader.next_batch().unwrap().unwrap().rows().ids.clone();
        let theirs = |host: &mut Loader| host.next_batch().unwrap().unwrap().ids().to_vec();
        // All batches of an epoch, without its end; then the next epoch.
        let steps: Vec<_> = (0..6).map(|_| (ids(&mut loader), theirs(&mut host))).collect();
        assert!(steps.iter().all(|(ours, theirs)| ours == theirs));
        assert_eq!((loader.state(), loader.state().epoch), (host.state(), 1));
        loader.start_epoch(1).unwrap();
        host.start_epoch(1);
        assert_eq!(ids(&mut loader), theirs(&mut host));
        let state = host.state();
        loader.start_epoch(5).unwrap();
        host.start_epoch(5);
        assert_eq!(ids(&mut loader), theirs(&mut host));
        let mut seeded = config.clone();
        seeded.seed = 9;
        let other = Loader::new(&seeded).unwrap().state();
        let refused = loader.load_state(&other);
        assert!(matches!(refused, Err(Error::Load(shardtool_load::Error::Order(_)))));
        assert_eq!(ids(&mut loader), theirs(&mut host));
        loader.load_state(&state).unwrap();
        host.load_state(&state).unwrap();
        assert_eq!(loader.state(), state);
        assert_eq!(ids(&mut loader), theirs(&mut host));
    });
    if let Some(report) = report {
        report.assert_clean();
    }
}

/// Batches that the device mixes are those that the host's loader mixes, pixels and soft labels: for two replicas on two
/// devices, with a last step of one sample and a masked row, and after a resume.
#[test]
fn batches_mixed_on_devices_equal_those_mixed_on_the_host() {
    let environment = [("STANDIN_DEVICES", "2"), ("STANDIN_DELAY_US", "800")];
    let report = with_standin("batches_mixed_on_devices_equal_those_mixed_on_the_host", &environment, || {
        let folder = tempfile::tempdir().unwrap();
        let mut config = config(folder.path());
        dataset::write(folder.path(), "train", &samples::photographs(49), 20);
        config.splits = vec![Dataset::open(folder.path()).unwrap().split("train").unwrap().clone()];
        (config.remainder, config.replica, config.batch_size) = (Some(Remainder::Mask), Replica::new(0, 2).unwrap(), 8);
        let mut mosaic = Mosaic::default();
        (mosaic.p, mosaic.center, mosaic.num_classes) = (0.7, [0.2, 0.8], Some(5));
        let pairs = |alpha| {
            let mut pairs = Pairs::default();
            (pairs.alpha, pairs.num_classes) = (alpha, Some(5));
            pairs
        };
        config.batch_transform =
            vec![BatchTransform::MixUp(pairs(0.8)), BatchTransform::CutMix(pairs(1.0)), BatchTransform::Mosaic(mosaic)];
        let devices = [Device::named("cuda:0").unwrap(), Device::named("cuda:1").unwrap()];
        let mut group = ImageLoader::group(&devices, Config::default(), &as_bytes(&config), &[0, 1]).unwrap();
        let mut hosts = Loader::group(&config, &[0, 1]).unwrap();
        let same = |group: &mut [ImageLoader], hosts: &mut [Loader]| {
            let mut valid = 0;
            for ((loader, host), device) in group.iter_mut().zip(hosts).zip(&devices) {
                let stream = device.context().new_stream().unwrap();
                let (ours, theirs) = (loader.next_batch().unwrap().unwrap(), host.next_batch().unwrap().unwrap());
                assert!(theirs.mix().is_none());
                assert_eq!((ours.rows().ids.as_slice(), ours.rows().valid.as_slice()), (theirs.ids(), theirs.valid()));
                let values = ours.view::<f32>(Part::Images, &stream).unwrap().to_host().unwrap();
                assert!(values.iter().zip(theirs.images().unwrap()).all(|(v, b)| *v == f32::from(*b)));
                let Some(Values::Float(soft)) = theirs.column("image/class/label") else { panic!("soft labels") };
                assert_eq!(ours.shape(Part::Column("image/class/label")).unwrap(), [8, 5]);
                let label = ours.view::<f32>(Part::Column("image/class/label"), &stream).unwrap();
                assert_eq!(&label.to_host().unwrap(), soft);
                valid += theirs.valid().iter().filter(|valid| **valid).count();
            }
            valid
        };
        for _epoch in 0..2 {
            assert_eq!([16, 16, 16, 1].map(|_| same(&mut group, &mut hosts)), [16, 16, 16, 1]);
            assert!(group.iter_mut().all(|loader| loader.next_batch().unwrap().is_none()));
            assert!(hosts.iter_mut().all(|loader| loader.next_batch().unwrap().is_none()));
        }
        // Resume in the middle of an epoch, with other batches uploaded ahead.
        let mut at_two = Loader::group(&config, &[0, 1]).unwrap();
        at_two.iter_mut().for_each(|loader| (0..2).for_each(|_| drop(loader.next_batch().unwrap())));
        let state = at_two[0].state();
        group.iter_mut().for_each(|loader| loader.load_state(&state).unwrap());
        hosts.iter_mut().for_each(|loader| loader.load_state(&state).unwrap());
        assert_eq!([16, 1].map(|_| same(&mut group, &mut hosts)), [16, 1]);
    });
    let Some(report) = report else { return };
    report.assert_clean();
    assert!(report.number("mixed") > 8, "the device mixes: {}", report.0);
}

/// Numbers alone are delivered; records stay on the host, and a loader of records is refused.
#[test]
fn columns_are_delivered_without_images_and_records_are_refused() {
    let name = "columns_are_delivered_without_images_and_records_are_refused";
    let report = with_standin(name, &[], || {
        let folder = tempfile::tempdir().unwrap();
        dataset::write(folder.path(), "train", &samples::numbers(20), 20);
        let split = Dataset::open(folder.path()).unwrap().split("train").unwrap().clone();
        let mut config = shardtool_load::Config::new(split, [] as [Field; 0], 4);
        let device = Device::open(0).unwrap();
        let stream = device.context().new_stream().unwrap();
        let mut loader = ImageLoader::new(&device, Config::default(), &as_bytes(&config)).unwrap();
        let mut host = Loader::new(&config).unwrap();
        for _ in 0..5 {
            let (ours, theirs) = (loader.next_batch().unwrap().unwrap(), host.next_batch().unwrap().unwrap());
            assert_eq!(ours.view::<i64>(Part::Ids, &stream).unwrap().to_host().unwrap(), theirs.ids());
            let Some(Values::Int64(label)) = theirs.column("image/class/label") else { panic!("labels") };
            let ours = ours.view::<i64>(Part::Column("image/class/label"), &stream).unwrap().to_host().unwrap();
            assert_eq!(&ours, label);
        }
        config.fields.push(Field::Record);
        assert!(matches!(ImageLoader::new(&device, Config::default(), &as_bytes(&config)).err(), Some(Error::Records)));
    });
    if let Some(report) = report {
        report.assert_clean();
    }
}

/// Every view is normalised on the device, whatever its size.
#[test]
fn views_equal_those_of_the_host() {
    let report = with_standin("views_equal_those_of_the_host", &[("STANDIN_DELAY_US", "500")], || {
        let folder = tempfile::tempdir().unwrap();
        let mut config = config(folder.path());
        let Field::Image(image) = &mut config.fields[0] else { unreachable!() };
        let steps = vec![Transform::CenterCrop { size: [7, 5] }];
        let pipeline = Pipeline::new(steps).unwrap();
        image.views[0].name = "large".to_owned();
        image.views.push(shardtool_load::View::new("small", pipeline));
        let device = Device::open(0).unwrap();
        let stream = device.context().new_stream().unwrap();
        let mut loader = ImageLoader::new(&device, Config::default(), &as_bytes(&config)).unwrap();
        let mut host = Loader::new(&config).unwrap();
        let mut steps = 0;
        while let Some(theirs) = host.next_batch().unwrap() {
            let ours = loader.next_batch().unwrap().unwrap();
            assert_eq!(theirs.pictures().map(|picture| picture.view).collect::<Vec<_>>(), ["large", "small"]);
            for picture in theirs.pictures() {
                let part = Part::Picture { feature: None, view: picture.view };
                assert_eq!(ours.shape(part).unwrap(), picture.shape);
                let values = ours.view::<f32>(part, &stream).unwrap().to_host().unwrap();
                assert!(values.into_iter().eq(picture.bytes.iter().map(|b| f32::from(*b))), "{}", picture.view);
            }
            let first = Part::Picture { feature: None, view: "large" };
            assert_eq!(ours.address(Part::Images).unwrap(), ours.address(first).unwrap());
            steps += 1;
        }
        assert!(steps == 6 && loader.next_batch().unwrap().is_none());
    });
    if let Some(report) = report {
        report.assert_clean();
    }
}
