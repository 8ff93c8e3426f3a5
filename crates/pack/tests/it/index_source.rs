//! A source that stays where it is: its records are those of the packed source, every change of its files is found, and only files
//! that the user meant are opened.

use crate::support::{chain, class_folders, encoded, jpeg, manifest, names, put, snapshot, tar};
use image::ImageFormat;
use shardtool_format::Damage;
use shardtool_format::index::Index;
use shardtool_format::manifest::{Foreign, Manifest, Shard};
use shardtool_order::Rng;
use shardtool_pack::{
    ChosenRecords, CompactOptions, DeleteOptions, Error, IndexedAs, Options, PixelStore, PurgeOptions, RepairOptions,
    Shards, SourceKind, compact, copy, delete, index_source, indexed_as, pack_splits, purge, repair,
};
use shardtool_read::{Access, Dataset, verify};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// A WebDataset shard: images, classes, JSON, long texts, and masks as PNG.
fn web(first: u32, samples: u32) -> Vec<u8> {
    let mut members = vec![];
    for i in first..first + samples {
        let text = format!("caption {i} ").repeat(i as usize % 80);
        let json = format!(r#"{{"score": {}, "long": "{text}"}}"#, f64::from(i) / 2.0);
        members.push((format!("a/{i:06}.jpg"), jpeg(i, 20 + i % 9, 30)));
        members.push((format!("a/{i:06}.cls"), (i % 3).to_string().into_bytes()));
        members.push((format!("a/{i:06}.json"), json.into_bytes()));
        members.push((format!("a/{i:06}.txt"), text.into_bytes()));
        members.push((format!("a/{i:06}.depth.bin"), jpeg(i + 1000, 30, 20)));
    }
    tar(&members.iter().map(|(name, bytes)| (name.as_str(), &bytes[..])).collect::<Vec<_>>())
}

/// An MDS shard with images, labels and captions, and its index.
fn mds(folder: &Path) {
    let sample = |i: u32| {
        let (image, text) = (jpeg(i, 30, 20), format!("text {i} ").repeat(60));
        let sizes = [image.len() as u32, text.len() as u32].map(u32::to_le_bytes).concat();
        [&sizes, &image[..], &i64::from(i % 2).to_le_bytes(), text.as_bytes()].concat()
    };
    let samples: Vec<_> = (0..9).map(sample).collect();
    let mut offset = 4 * (samples.len() + 2);
    let mut shard = (samples.len() as u32).to_le_bytes().to_vec();
    for sample in &samples {
        shard.extend((offset as u32).to_le_bytes());
        offset += sample.len();
    }
    shard.extend((offset as u32).to_le_bytes());
    shard.extend(samples.concat());
    let index = format!(
        r#"{{"version": 2, "shards": [{{"format": "mds", "compression": null, "column_names": ["image", "label", "text"],
        "column_encodings": ["jpeg", "int", "str"], "column_sizes": [null, 8, null], "samples": {},
        "raw_data": {{"basename": "s.mds", "bytes": {}}}, "zip_data": null}}]}}"#,
        samples.len(),
        shard.len()
    );
    put(&folder.join("s.mds"), &shard);
    put(&folder.join("index.json"), index.as_bytes());
}

/// Writes a source of each kind, each into another folder; returns the path that names it.
pub(crate) fn sources(root: &Path) -> Vec<(&'static str, PathBuf)> {
    let at = |name: &str| root.join(name);
    class_folders(&at("classes"), 7);
    // Not a format that is stored: it is in the index.
    put(&at("classes/cat/grey.pgm"), &[&b"P5 4 3 255\n"[..], &[7; 12]].concat());
    put(&at("classes/dog/broken.jpg"), b"no image");
    for i in 0..5 {
        put(&at("flat").join(format!("{i}.png")), &encoded(i, ImageFormat::Png));
        put(&at("splits").join(format!("train/cat/{i}.jpg")), &jpeg(i, 24, 24));
        put(&at("splits").join(format!("val/dog/{i}.jpg")), &jpeg(i + 50, 24, 24));
        put(&at("splits").join(format!("val/cat/{i}.jpg")), &jpeg(i + 70, 24, 24));
    }
    let mut list = "path,label,caption,second\n".to_owned();
    for i in 0..6 {
        put(&at("list").join(format!("images/{i}.jpg")), &jpeg(i, 20, 10));
        put(&at("list").join(format!("second/{i}.png")), &encoded(i + 9, ImageFormat::Png));
        list += &format!("images/{i}.jpg,{},{},second/{i}.png\n", ["a", "b"][i as usize % 2], "long text ".repeat(40));
    }
    put(&at("list/list.csv"), list.as_bytes());
    for i in 0..3 {
        put(&at("tars").join(format!("set-{i:05}.tar")), &web(i * 20, 13 + i));
    }
    mds(&at("mds"));
    for clip in 0..3 {
        for frame in 0..4 {
            put(&at("clips").join(format!("c{clip}/{frame:03}.jpg")), &jpeg(clip * 9 + frame, 30, 20));
        }
    }
    let others = [
        ("classes", "classes"),
        ("flat", "flat"),
        ("splits", "splits"),
        ("list", "list/list.csv"),
        ("tars", "tars"),
        ("mds", "mds"),
        ("clips", "clips"),
    ];
    #[cfg(feature = "parquet")]
    let parquet = crate::parquet_source::sources(root);
    #[cfg(not(feature = "parquet"))]
    let parquet: [&str; 0] = [];
    others.into_iter().chain(parquet.map(|kind| (kind, kind))).map(|(kind, path)| (kind, at(path))).collect()
}

/// The options of a kind of source.
pub(crate) fn options(kind: &str, source: &Path, destination: &Path) -> Options {
    let mut options = Options::new(source, destination);
    options.shards = if matches!(kind, "tars" | "mds") || kind.starts_with("parquet") {
        Shards::Size(10_000)
    } else {
        Shards::Count(2)
    };
    options.from = (kind == "clips").then_some(SourceKind::Clips);
    if kind == "list" {
        options.files = vec!["second".to_owned()];
    }
    options
}

/// What a manifest says of a dataset, without where bytes lie.
fn plain(manifest: &Manifest) -> Manifest {
    let mut plain = Manifest { created_by: String::new(), ..manifest.clone() };
    for shard in plain.splits.iter_mut().flat_map(|split| &mut split.shards) {
        *shard = Shard { index_bytes: 0, index_crc32c: 0, foreign: Foreign::default(), ..shard.clone() };
    }
    plain
}

/// Every column of an index with its bytes, without those of virtual shards.
fn columns(index: &[u8]) -> BTreeMap<String, Vec<Option<Vec<u8>>>> {
    let index = Index::parse(index).unwrap();
    let mut found = BTreeMap::new();
    for (at, column) in index.columns().iter().enumerate().filter(|(_, c)| !c.name().starts_with("virtual_")) {
        index.check(at).unwrap();
        let rows = 0..index.records();
        let bytes = |bytes: Option<&[u8]>| bytes.map(<[u8]>::to_vec);
        let values: Vec<_> = match (index.variable(at), index.fixed::<u64>(at), index.fixed::<u32>(at)) {
            (Some(rows_of), ..) => rows.map(|row| bytes(rows_of.get(row))).collect(),
            (_, Some(numbers), _) => rows.map(|row| numbers.get(row).map(|n| n.to_le_bytes().to_vec())).collect(),
            (.., Some(numbers)) => rows.map(|row| numbers.get(row).map(|n| n.to_le_bytes().to_vec())).collect(),
            _ => match (index.fixed::<i64>(at), index.fixed::<f32>(at)) {
                (Some(numbers), _) => rows.map(|row| numbers.get(row).map(|n| n.to_le_bytes().to_vec())).collect(),
                (_, Some(numbers)) => rows.map(|row| numbers.get(row).map(|n| n.to_le_bytes().to_vec())).collect(),
                _ => panic!("{}", column.name()),
            },
        };
        found.insert(column.name().to_owned(), values);
    }
    found
}

/// The data of all records, by split.
pub(crate) fn data(dataset: &Dataset) -> BTreeMap<String, Vec<Vec<u8>>> {
    let split = |split: &shardtool_read::Split| {
        let records = (0..split.len()).map(|id| split.get(id).unwrap().data().to_vec());
        (split.name().to_owned(), records.collect())
    };
    dataset.splits().iter().map(split).collect()
}

#[test]
fn a_source_that_stays_has_the_records_the_index_and_the_manifest_of_the_packed_one() {
    let temp = tempfile::tempdir().unwrap();
    for (kind, source) in sources(&temp.path().join("sources")) {
        let packed = temp.path().join(format!("packed-{kind}"));
        let expected = pack_splits(&options(kind, &source, &packed), &()).unwrap();
        let folder = if source.is_dir() { source.clone() } else { source.parent().unwrap().to_owned() };
        let before = snapshot(&folder);
        let indexed = index_source(&options(kind, &source, Path::new("")), &[], &()).unwrap();
        assert_eq!(indexed.dataset, folder, "{kind}");
        for (one, other) in indexed.splits.iter().zip(&expected) {
            let counts = |s: &shardtool_pack::Summary| (s.samples, s.rejected, s.classes, s.converted, s.source_bytes);
            assert_eq!((counts(one), one.split.fingerprint()), (counts(other), other.split.fingerprint()), "{kind}");
        }
        // The source is as it was.
        let after = snapshot(&folder);
        before.iter().for_each(|(path, bytes)| assert_eq!(after.get(path), Some(bytes), "{kind}: {path:?}"));
        assert!(after.keys().all(|path| path.extension().is_none_or(|end| end != "tfrecord")), "{kind}");
        let (here, there) = (manifest(&folder), manifest(&packed));
        assert_eq!(plain(&here), plain(&there), "{kind}");
        let bytes: u64 = there.splits.iter().map(|split| split.bytes()).sum();
        let text = fs::read_to_string(folder.join("dataset.json")).unwrap();
        assert!(text.contains("\"version\": \"1.1\",\n  \"requires\": [\"foreign\"],"), "{text}");
        for shard in there.splits.iter().flat_map(|split| &split.shards) {
            let index = |set: &Path| fs::read(set.join("_index").join(format!("{}.index", shard.file))).unwrap();
            assert_eq!(columns(&index(&folder)), columns(&index(&packed)), "{kind}: {}", shard.file);
        }
        // Images lie in the source: the index is smaller than the shards, but for sources of tiny images.
        let virtual_bytes: usize = here
            .splits
            .iter()
            .flat_map(|split| &split.shards)
            .map(|shard| {
                let index = fs::read(folder.join("_index").join(format!("{}.index", shard.file))).unwrap();
                let index = Index::parse(index).unwrap();
                index.variable(index.virtual_columns().unwrap().bytes).unwrap().values().len()
            })
            .sum();
        assert!((virtual_bytes as u64) < bytes * 7 / 10, "{kind}: {virtual_bytes} of {bytes} bytes are in the index");
        let dataset = Dataset::open(&folder).unwrap();
        assert_eq!(data(&dataset), data(&Dataset::open(&packed).unwrap()), "{kind}");
        let mut checks = verify::Options::default();
        checks.decode = true;
        let report = verify::verify(&dataset, &checks);
        assert!(report.findings.is_empty(), "{kind}: {:?}", report.findings);
        assert!(verify::quick(&dataset, None).unwrap().report.findings.is_empty(), "{kind}");
        // A pack of the folder ignores what the index wrote there.
        let again = temp.path().join(format!("again-{kind}"));
        let packed_again = pack_splits(&options(kind, &source, &again), &()).unwrap();
        assert_eq!(snapshot(&again), snapshot(&packed), "{kind}");
        assert_eq!(packed_again.len(), expected.len());
    }
}

#[test]
fn a_second_call_writes_nothing_or_describes_the_source_anew() {
    let temp = tempfile::tempdir().unwrap();
    let source = temp.path().join("photos");
    class_folders(&source, 4);
    let index = || index_source(&options("classes", &source, Path::new("")), &[], &()).unwrap();
    assert!(!index().splits[0].already_complete);
    let first = snapshot(&source);
    assert!(index().splits[0].already_complete);
    assert_eq!(snapshot(&source), first);
    // Only times are others.
    let file = source.join("cat/0001.jpg");
    let good = fs::read(&file).unwrap();
    fs::write(&file, &good).unwrap();
    assert!(index().splits[0].already_complete);
    assert!(verify::verify(&Dataset::open(&source).unwrap(), &verify::Options::default()).findings.is_empty());
    // Other bytes of the same length, another file, a file less, a class more.
    let other = jpeg(77, 24, 20);
    for change in 0..4 {
        match change {
            0 => fs::write(
                &file,
                [&other[..good.len().min(other.len())], &vec![0; good.len()][other.len().min(good.len())..]].concat(),
            )
            .unwrap(),
            1 => put(&source.join("cat/new.jpg"), &other),
            2 => fs::remove_file(source.join("dog/0002.jpg")).unwrap(),
            _ => put(&source.join("zebra/1.jpg"), &other),
        }
        let indexed = index();
        assert!(!indexed.splits[0].already_complete, "{change}");
        let packed = temp.path().join(format!("packed-{change}"));
        pack_splits(&options("classes", &source, &packed), &()).unwrap();
        assert_eq!(plain(&manifest(&source)), plain(&manifest(&packed)), "{change}");
        let dataset = Dataset::open(&source).unwrap();
        assert_eq!(data(&dataset), data(&Dataset::open(&packed).unwrap()), "{change}");
    }
}

/// What was done to a source file.
fn change(path: &Path, rng: &mut Rng) -> String {
    let bytes = fs::read(path).unwrap();
    let at = rng.below(bytes.len() as u32) as usize;
    let mut changed = bytes.clone();
    let what = match rng.below(7) {
        0 | 1 => {
            changed[at] ^= 1 << rng.below(8);
            "a bit"
        }
        2 => {
            changed.truncate(at);
            "cut"
        }
        3 => {
            changed.extend_from_slice(&bytes[..at.min(600)]);
            "grown"
        }
        4 => {
            // Another file of the same length.
            changed.iter_mut().enumerate().for_each(|(i, byte)| *byte = byte.wrapping_add((i % 7) as u8));
            "replaced"
        }
        5 => {
            fs::remove_file(path).unwrap();
            return format!("removed {path:?}");
        }
        _ => {
            // As a program that writes the file again, and changes nothing.
            "the time"
        }
    };
    fs::write(path, &changed).unwrap();
    format!("{what} at {at} of {path:?}")
}

/// Every change of a source file is found, or harmless: each record that is delivered is the one that was indexed.
#[test]
fn no_change_of_a_source_file_is_delivered() {
    let changes = std::env::var("SHARDTOOL_SOURCE_CHANGES").ok().and_then(|n| n.parse().ok()).unwrap_or(70);
    let temp = tempfile::tempdir().unwrap();
    let (mut found, mut harmless) = (0, 0);
    for (kind, source) in sources(temp.path()) {
        let folder = if source.is_dir() { source.clone() } else { source.parent().unwrap().to_owned() };
        let files: Vec<_> = snapshot(&folder).into_keys().collect();
        index_source(&options(kind, &source, Path::new("")), &[], &()).unwrap();
        let dataset = Dataset::open(&folder).unwrap();
        let expected = data(&dataset);
        for number in 0..changes / 7 {
            let mut rng = Rng::new(number * 31 + kind.len() as u64);
            let file = folder.join(&files[rng.below(files.len() as u32) as usize]);
            let before = fs::read(&file).unwrap();
            let what = change(&file, &mut rng);
            let changed = Dataset::open(&folder).unwrap();
            let mut damaged = 0;
            for split in changed.splits() {
                for id in 0..split.len() {
                    match split.get(id) {
                        Ok(record) => {
                            assert!(record.data() == expected[split.name()][id as usize], "{kind} {id}: {what}");
                        }
                        Err(error) => {
                            let known = [Damage::DataCrc, Damage::SourceLength, Damage::MissingSource];
                            assert!(error.damage().is_some_and(|damage| known.contains(&damage)), "{what}: {error}");
                            assert!(error.is_bad_sample() && chain(&error).contains(file.to_str().unwrap()), "{error}");
                            damaged += 1;
                        }
                    }
                }
            }
            let report = verify::verify(&changed, &verify::Options::default());
            assert_eq!(report.findings.len(), damaged, "{kind}: {what}: {:?}", report.findings);
            let is_used = fs::read(&file).ok().as_ref() != Some(&before);
            assert!(is_used || damaged == 0, "{what}");
            if damaged > 0 {
                found += 1
            } else {
                harmless += 1
            }
            fs::write(&file, before).unwrap();
        }
    }
    println!("{found} changes found, {harmless} harmless");
    assert!(found * 3 > changes && harmless > 0, "{found} {harmless}");
}

#[test]
fn other_places_need_the_users_word() {
    let temp = tempfile::tempdir().unwrap();
    let (source, out) = (temp.path().join("photos"), temp.path().join("set"));
    class_folders(&source, 2);
    index_source(&options("classes", &source, &out), &[], &()).unwrap();
    let source = source.canonicalize().unwrap();
    let text = source.to_str().unwrap();
    assert_eq!(manifest(&out).sources(), [text]);
    let refused = |dataset: &Dataset| {
        let error = dataset.split("train").unwrap().get(0).map(drop).unwrap_err();
        assert!(matches!(error, shardtool_read::Error::ForeignSource { .. }), "{error}");
        assert!(!error.is_bad_sample(), "a run must end");
        chain(&error)
    };
    let error = refused(&Dataset::open(&out).unwrap());
    assert!(error.contains(&format!("--source {text}")), "{error}");
    let open =
        |prefix: &str| Dataset::open_with(&out, shardtool_read::Options::default().with_sources([prefix])).unwrap();
    for near in [format!("{text}x"), format!("{text}/cat"), "relative".to_owned(), format!("{text}/../none")] {
        let dataset = open(&near);
        let all = (0..dataset.split("train").unwrap().len()).map(|id| dataset.split("train").unwrap().get(id).is_err());
        assert!(all.filter(|refused| *refused).count() >= 4, "{near}");
    }
    for good in [text.to_owned(), format!("{text}/"), temp.path().to_str().unwrap().to_owned(), "/".to_owned()] {
        assert_eq!(data(&open(&good))["train"].len(), 6, "{good}");
    }
    // A folder inside the dataset's own needs no word.
    let inside = temp.path().join("all");
    class_folders(&inside.join("photos"), 2);
    index_source(&options("classes", &inside.join("photos"), &inside), &[], &()).unwrap();
    assert_eq!(manifest(&inside).sources(), [""; 0]);
    assert_eq!(data(&Dataset::open(&inside).unwrap())["train"].len(), 6);
    fs::rename(&inside, temp.path().join("moved")).unwrap();
    assert_eq!(data(&Dataset::open(temp.path().join("moved")).unwrap())["train"].len(), 6);
}

#[test]
fn links_that_lead_out_and_what_is_no_file_are_not_opened() {
    let temp = tempfile::tempdir().unwrap();
    let (source, secret) = (temp.path().join("photos"), temp.path().join("secret"));
    class_folders(&source, 3);
    put(&secret.join("key.jpg"), &jpeg(5, 24, 20));
    let file = source.join("cat/0001.jpg");
    let inner = source.join("dog/0001.jpg");
    // A link inside the folder is good; one that leads out is rejected by name, unless the user allows it.
    fs::rename(&inner, source.join("dog/target.jpg")).unwrap();
    symlink("target.jpg", &inner).unwrap();
    symlink(secret.join("key.jpg"), source.join("emu/out.jpg")).unwrap();
    // A class that is a link to a folder elsewhere.
    class_folders(&temp.path().join("other"), 1);
    symlink(temp.path().join("other/dog"), source.join("fox")).unwrap();
    let indexed = index_source(&options("classes", &source, Path::new("")), &[], &()).unwrap();
    assert_eq!((indexed.splits[0].split.records(), indexed.splits[0].rejected), (10, 2));
    let rejected = fs::read_to_string(indexed.splits[0].rejected_file.as_ref().unwrap()).unwrap();
    assert!(["emu/out.jpg", "fox/0000.jpg", "--source"].iter().all(|part| rejected.contains(part)), "{rejected}");
    let allowed = [&secret, &temp.path().join("other")].map(|path| path.to_str().unwrap().to_owned());
    let indexed = index_source(&options("classes", &source, Path::new("")), &allowed, &()).unwrap();
    assert_eq!((indexed.splits[0].split.records(), indexed.splits[0].rejected), (12, 0));
    let open = |sources: &[String]| {
        Dataset::open_with(&source, shardtool_read::Options::default().with_sources(sources.to_vec())).unwrap()
    };
    assert_eq!(data(&open(&allowed))["train"].len(), 12);
    let train = open(&[]).split("train").unwrap().clone();
    let refused = (0..12).filter_map(|id| train.get(id).err()).collect::<Vec<_>>();
    assert_eq!(refused.len(), 2, "{refused:?}");
    assert!(refused.iter().all(|error| error.damage() == Some(Damage::ForeignSource)), "{refused:?}");
    assert!(open(&[]).check_sources().is_err());
    // What takes the place of a file: a FIFO would block, a device may do something, a socket is neither.
    fs::remove_file(source.join("emu/out.jpg")).unwrap();
    fs::remove_file(&file).unwrap();
    let id = |key: &str| train.find(key.as_bytes()).unwrap().unwrap();
    let made: [&dyn Fn(); 4] = [
        &|| rustix::fs::mknodat(rustix::fs::CWD, &file, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap(),
        &|| drop(std::os::unix::net::UnixListener::bind(&file).unwrap()),
        &|| fs::create_dir(&file).unwrap(),
        &|| symlink("/dev/zero", &file).unwrap(),
    ];
    for (number, make) in made.into_iter().enumerate() {
        make();
        let error = open(&["/dev".to_owned()]).split("train").unwrap().get(id("cat/0001.jpg")).map(drop).unwrap_err();
        assert_eq!(error.damage(), Some(Damage::MissingSource), "{number}: {error}");
        if number == 3 {
            let error = open(&[]).split("train").unwrap().get(id("cat/0001.jpg")).map(drop).unwrap_err();
            assert_eq!(error.damage(), Some(Damage::ForeignSource), "{error}");
        }
        fs::remove_file(&file).or_else(|_| fs::remove_dir(&file)).unwrap();
    }
}

#[test]
fn sources_and_commands_that_need_stored_shards_are_refused_by_name() {
    let temp = tempfile::tempdir().unwrap();
    let tars = temp.path().join("gz");
    let mut gzip = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, &web(0, 5)).unwrap();
    put(&tars.join("a.tar.gz"), &gzip.finish().unwrap());
    let error = chain(&index_source(&options("tars", &tars, Path::new("")), &[], &()).unwrap_err());
    assert!(error.contains("a.tar.gz") && error.contains("compressed") && error.contains("shardtool pack"), "{error}");
    assert_eq!(names(&tars), ["a.tar.gz"], "a refused index leaves no file");
    let photos = temp.path().join("photos");
    class_folders(&photos, 4);
    let raw = with!(options("classes", &photos, Path::new("")), pixels = PixelStore::Raw);
    assert!(matches!(index_source(&raw, &[], &()), Err(Error::Option { option: "pixels", .. })));
    // Into a folder with a packed dataset: that is not replaced.
    let set = temp.path().join("set");
    pack_splits(&options("classes", &photos, &set), &()).unwrap();
    let before = snapshot(&set);
    let error = chain(&index_source(&options("classes", &photos, &set), &[], &()).unwrap_err());
    assert!(error.contains("train"), "{error}");
    assert_eq!(snapshot(&set), before);
    index_source(&options("classes", &photos, Path::new("")), &[], &()).unwrap();
    let before = snapshot(&photos);
    let copied = copy(&photos, &temp.path().join("copy"), &Default::default(), &()).map(drop);
    let repaired = repair(&photos, &RepairOptions::default(), &()).map(drop);
    for (error, words) in [(copied, "reshard"), (repaired, "shardtool index")] {
        let error = chain(&error.unwrap_err());
        assert!(error.contains(words), "{error}");
    }
    assert_eq!(snapshot(&photos), before);
    assert!(!temp.path().join("copy").exists());
    // A purge could not remove the bytes.
    delete(&photos, &DeleteOptions::new(ChosenRecords::Ids(vec![1])), &()).unwrap();
    let before = snapshot(&photos);
    let error = chain(&purge(&photos, &PurgeOptions::default(), &()).unwrap_err());
    assert!(error.contains("virtual shards") && error.contains("compact"), "{error}");
    assert_eq!(snapshot(&photos), before);
    // Neither is a changed dataset described again.
    put(&photos.join("cat/new.jpg"), &jpeg(3, 20, 20));
    let error = chain(&index_source(&options("classes", &photos, Path::new("")), &[], &()).unwrap_err());
    assert!(error.contains("2 versions"), "{error}");
    assert_eq!(data(&Dataset::open(&photos).unwrap())["train"].len(), 11);
}

#[test]
fn names_that_an_index_cannot_hold_are_rejected_and_others_are_made_plain() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("odd");
    class_folders(&folder, 2);
    put(&folder.join("cat/a\nb.jpg"), &jpeg(1, 24, 20));
    put(&folder.join("cat/ a?b%20é.jpg"), &jpeg(2, 24, 20));
    let indexed = index_source(&options("classes", &folder, Path::new("")), &[], &()).unwrap();
    assert_eq!((indexed.splits[0].split.records(), indexed.splits[0].rejected), (7, 1));
    let rejected = fs::read_to_string(indexed.splits[0].rejected_file.as_ref().unwrap()).unwrap();
    assert!(rejected.contains("control characters"), "{rejected}");
    assert!(verify::verify(&Dataset::open(&folder).unwrap(), &verify::Options::default()).findings.is_empty());
    // Paths of a list.
    let list = temp.path().join("list");
    for name in ["a.jpg", "in/b.jpg", "in/c.jpg"] {
        put(&list.join(name), &jpeg(name.len() as u32, 24, 20));
    }
    let full = list.join("in/c.jpg");
    let rows = format!("path\n./a.jpg\nin/../in//b.jpg\n{}\n../list/in/./b.jpg\n", full.display());
    put(&list.join("list.csv"), rows.as_bytes());
    put(&temp.path().join("outside.jpg"), &jpeg(9, 24, 20));
    let options = |out: &Path| with!(Options::new(list.join("list.csv"), out), seed = None);
    let indexed = index_source(&options(Path::new("")), &[], &()).unwrap();
    pack_splits(&options(&temp.path().join("packed")), &()).unwrap();
    assert_eq!(indexed.splits[0].rejected, 0);
    assert_eq!(data(&Dataset::open(&list).unwrap()), data(&Dataset::open(temp.path().join("packed")).unwrap()));
    put(&list.join("list.csv"), b"path\na.jpg\n../outside.jpg\n");
    let indexed = index_source(&options(Path::new("")), &[], &()).unwrap();
    assert_eq!((indexed.splits[0].split.records(), indexed.splits[0].rejected), (1, 1));
    let rejected = fs::read_to_string(indexed.splits[0].rejected_file.as_ref().unwrap()).unwrap();
    assert!(rejected.contains("outside.jpg") && rejected.contains("is not in"), "{rejected}");
}

#[test]
fn a_dataset_among_its_source_is_refused_and_a_damaged_index_is_made_again() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("photos");
    class_folders(&folder, 3);
    let error = chain(&index_source(&options("classes", &folder, &folder.join("new/set")), &[], &()).unwrap_err());
    assert!(error.contains("lies inside the source"), "{error}");
    assert_eq!(names(&folder).len(), 9, "a refused index leaves no file");
    let hidden = index_source(&options("classes", &folder, &folder.join(".set")), &[], &()).unwrap();
    assert_eq!(hidden.splits[0].classes, 3);
    let again = index_source(&options("classes", &folder, &folder.join(".set")), &[], &()).unwrap();
    assert_eq!((again.splits[0].classes, again.splits[0].already_complete), (3, true));
    index_source(&options("classes", &folder, Path::new("")), &[], &()).unwrap();
    let good = snapshot(&folder);
    let index = folder.join("_index/train-00001.tfrecord.index");
    for damage in 0..2 {
        match damage {
            0 => fs::write(&index, b"damaged").unwrap(),
            _ => fs::remove_file(&index).unwrap(),
        }
        assert!(
            !index_source(&options("classes", &folder, Path::new("")), &[], &()).unwrap().splits[0].already_complete
        );
        assert_eq!(snapshot(&folder), good);
    }
    // Another source does not take its place.
    let other = temp.path().join("other");
    class_folders(&other, 2);
    let set = temp.path().join("set");
    index_source(&options("classes", &folder, &set), &[], &()).unwrap();
    let before = snapshot(&set);
    let error = chain(&index_source(&options("classes", &other, &set), &[], &()).unwrap_err());
    assert!(error.contains("train"), "{error}");
    assert_eq!(snapshot(&set), before);
    // A compaction writes shards.
    compact(&folder, &CompactOptions::default(), &()).unwrap();
    let compacted = Dataset::open(&folder).unwrap();
    assert!(!compacted.manifest().has_virtual_shards());
    let version = Dataset::open_with(&folder, shardtool_read::Options::default().with_version("1")).unwrap();
    assert_eq!(data(&compacted), data(&version));
}

#[test]
fn tfrecord_files_are_shards_as_they_are() {
    let temp = tempfile::tempdir().unwrap();
    let (photos, set) = (temp.path().join("photos"), temp.path().join("set"));
    class_folders(&photos, 2);
    pack_splits(&options("classes", &photos, &set), &()).unwrap();
    let files = ["train-00000.tfrecord", "train-00001.tfrecord"].map(|name| set.join(name)).to_vec();
    assert_eq!(indexed_as(&set, None).unwrap(), IndexedAs::Shards(files));
    assert_eq!(indexed_as(&photos, None).unwrap(), IndexedAs::VirtualShards);
    let error = chain(&indexed_as(&photos.join("cat/0000.jpg"), None).unwrap_err());
    assert!(error.contains("unknown format"), "{error}");
}

#[test]
fn mapped_or_read_the_bytes_are_the_same() {
    let temp = tempfile::tempdir().unwrap();
    for (kind, source) in sources(temp.path()).into_iter().filter(|(kind, _)| matches!(*kind, "tars" | "list")) {
        let folder = index_source(&options(kind, &source, Path::new("")), &[], &()).unwrap().dataset;
        let open =
            |access| Dataset::open_with(&folder, shardtool_read::Options::default().with_access(access)).unwrap();
        assert_eq!(data(&open(Access::Mmap)), data(&open(Access::Pread)), "{kind}");
        // Any range of a shard is that of the file that it would be.
        let packed = temp.path().join(format!("packed-{kind}"));
        pack_splits(&options(kind, &source, &packed), &()).unwrap();
        let split = open(Access::Auto).split("train").unwrap().clone();
        let mut rng = Rng::new(5);
        for number in 0..split.entry().shards.len() {
            let (shard, file) = (split.shard(number).unwrap(), &split.entry().shards[number].file);
            let expected = fs::read(packed.join(file)).unwrap();
            for _ in 0..40 {
                let mut ends = [0; 2].map(|_| u64::from(rng.below(expected.len() as u32 + 1)));
                ends.sort_unstable();
                let mut bytes = vec![];
                shard.bytes().read_into(ends[0]..ends[1], &mut bytes).unwrap();
                assert!(bytes == expected[ends[0] as usize..ends[1] as usize], "{kind} {file} {ends:?}");
            }
            assert!(shard.bytes().read_into(0..expected.len() as u64 + 1, &mut vec![]).is_err());
        }
    }
}
