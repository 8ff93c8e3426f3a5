//! Images of formats that are not stored become PNGs with the same pixels, whatever the source.

use crate::support::{check, jpeg, picture, put, records, rejected, snapshot, tar};
use image::{DynamicImage, GenericImageView};
use shardtool_format::example::Example;
use shardtool_pack::{
    CommitOptions, Error, Image, Options, Part, Progress, Sample, Shards, SourceKind, Step, Writer, WriterOptions,
    commit_split, pack, pack_part,
};
use shardtool_read::{Access, Dataset, verify};
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

const SIZE: (u32, u32) = (20, 10);

fn rgb(seed: u32) -> Vec<u8> {
    picture(seed, SIZE.0, SIZE.1).into_raw()
}

fn netpbm(kind: &str, maximum: &str, samples: &[u8]) -> Vec<u8> {
    [format!("{kind}\n{} {}\n{maximum}", SIZE.0, SIZE.1).as_bytes(), samples].concat()
}

fn ppm(seed: u32) -> Vec<u8> {
    netpbm("P6", "255\n", &rgb(seed))
}

/// Every pixel in full.
fn qoi(seed: u32) -> Vec<u8> {
    let head = [b"qoif".as_slice(), &SIZE.0.to_be_bytes(), &SIZE.1.to_be_bytes(), &[3, 0]].concat();
    let pixels = rgb(seed).chunks_exact(3).flat_map(|p| [0xfe, p[0], p[1], p[2]]).collect::<Vec<_>>();
    [&head, &pixels[..], &[0, 0, 0, 0, 0, 0, 0, 1]].concat()
}

/// Without a footer; the first row is the top one.
fn tga(seed: u32) -> Vec<u8> {
    let [(w, h), bits] = [(SIZE.0 as u8, SIZE.1 as u8), (24, 0x20)];
    let head = [0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, w, 0, h, 0, bits.0, bits.1];
    [&head[..], &rgb(seed).chunks_exact(3).flat_map(|p| [p[2], p[1], p[0]]).collect::<Vec<_>>()].concat()
}

fn png(seed: u32) -> Vec<u8> {
    crate::support::encoded(seed, image::ImageFormat::Png)
}

fn ico(seed: u32) -> Vec<u8> {
    let image = png(seed);
    let entry = [&[20, 10, 0, 0, 1, 0, 32, 0][..], &(image.len() as u32).to_le_bytes(), &22u32.to_le_bytes()].concat();
    [b"\0\0\x01\0\x01\0".as_slice(), &entry, &image].concat()
}

fn decoded(png: &[u8]) -> DynamicImage {
    image::load_from_memory_with_format(png, image::ImageFormat::Png).unwrap()
}

fn texts(example: &Example<'_>, name: &str) -> String {
    String::from_utf8(example.bytes(name).unwrap().to_vec()).unwrap()
}

/// A folder of one image of each format. Returns the pixels that those with colours have.
fn folder(root: &Path) -> Vec<(&'static str, u32)> {
    let colours = [("b.ppm", 1), ("c.qoi", 2), ("d.tga", 3), ("e.ico", 4)];
    for ((name, seed), bytes) in colours.iter().zip([ppm(1), qoi(2), tga(3), ico(4)]) {
        assert!(*seed > 0);
        put(&root.join(name), &bytes);
    }
    put(&root.join("a.jpg"), &jpeg(7, 30, 30));
    let deep: Vec<u8> = (0..200u16).flat_map(|i| (i * 321).to_be_bytes()).collect();
    put(&root.join("f.pgm"), &netpbm("P5", "65535\n", &deep));
    put(&root.join("g.pbm"), &netpbm("P4", "", &[0b1010_0000, 0xff, 0x10].repeat(10)));
    put(&root.join("h.ppm"), &ppm(5)[..300]);
    put(&root.join("i.ppm"), b"P6 99999 99999 255\n");
    colours.into()
}

#[test]
fn pack_stores_other_formats_as_png_with_the_same_pixels() {
    let temp = tempfile::tempdir().unwrap();
    let (source, set) = (temp.path().join("photos"), temp.path().join("set"));
    let colours = folder(&source);
    let options = with!(Options::new(&source, &set), shards = Shards::Count(3));
    let summary = pack(&options, &()).unwrap();
    assert_eq!((summary.converted, summary.rejected, summary.split.records()), (6, 2, 7));
    let mut refused = rejected(&summary.rejected_file.unwrap());
    refused.sort();
    assert_eq!([&*refused[0].0, &*refused[1].0], ["h.ppm", "i.ppm"]);
    assert!(refused[0].1.contains("Netpbm image cannot be converted to PNG: its data ends early"), "{refused:?}");
    assert!(refused[1].1.contains("exceed the limit"), "{refused:?}");

    let stored = check(&set, "train");
    for (name, seed) in colours {
        let image = decoded(&stored[name].0);
        assert_eq!((image.dimensions(), image.into_rgb8().into_raw()), (SIZE, rgb(seed)), "{name}");
    }
    assert_eq!(stored["e.ico"].0, png(4), "the PNG itself");
    assert_eq!(stored["a.jpg"].0, jpeg(7, 30, 30));
    let deep = decoded(&stored["f.pgm"].0);
    assert!(matches!(deep, DynamicImage::ImageLuma16(_)));
    assert_eq!(deep.into_luma16().into_raw(), (0..200u16).map(|i| i * 321).collect::<Vec<_>>());
    let bitmap = decoded(&stored["g.pbm"].0).into_luma8().into_raw();
    // 1 is black.
    assert_eq!(bitmap[..9], [0, 255, 0, 255, 255, 255, 255, 255, 0]);
    // The bit depth follows length, name and sides of the first chunk.
    assert_eq!((stored["g.pbm"].0[24], stored["f.pgm"].0[24]), (1, 16));

    let mut examples = 0;
    for shard in 0..3 {
        let file = fs::read(set.join(format!("train-{shard:05}.tfrecord"))).unwrap();
        for (_, data) in records(&file) {
            let example = Example::parse(data).unwrap();
            let [key, name, format] =
                ["image/key", "image/filename", "image/format"].map(|feature| texts(&example, feature));
            assert_eq!((&*name, &*format), (&*key, if key == "a.jpg" { "jpeg" } else { "png" }));
            examples += 1;
        }
    }
    assert_eq!(examples, 7);
    let mut checks = verify::Options::default();
    (checks.access, checks.decode) = (Access::Pread, true);
    assert!(verify::verify(&Dataset::open(&set).unwrap(), &checks).findings.is_empty());
    let again = pack(&options, &()).unwrap();
    assert!(again.already_complete && again.converted == 0);
}

#[test]
fn stopped_packs_and_packs_in_parts_convert_to_the_same_bytes() {
    let temp = tempfile::tempdir().unwrap();
    let (source, set) = (temp.path().join("photos"), temp.path().join("set"));
    folder(&source);
    let options = with!(Options::new(&source, &set), shards = Shards::Count(3));
    pack(&options, &()).unwrap();
    let expected = snapshot(&set);
    struct StopAt(AtomicUsize);
    impl Progress for StopAt {
        fn after(&self, _: Step) -> ControlFlow<()> {
            match self.0.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)) {
                Ok(_) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        }
    }
    for steps in 0..12 {
        fs::remove_dir_all(&set).unwrap();
        let stopped = pack(&options, &StopAt(AtomicUsize::new(steps)));
        assert!(matches!(stopped, Ok(_) | Err(Error::Stopped)), "{stopped:?}");
        pack(&options, &()).unwrap();
        assert!(snapshot(&set) == expected, "stopped after {steps} steps");
    }
    let parts = with!(options.clone(), destination = temp.path().join("parts"));
    let converted: u64 =
        (0..2).map(|part| pack_part(&parts, Part::new(part, 2).unwrap(), &()).unwrap().converted).sum();
    assert_eq!(converted, 6);
    commit_split(&CommitOptions::new(&parts.destination, "train"), &()).unwrap();
    let shards = |files: std::collections::BTreeMap<std::path::PathBuf, Vec<u8>>| -> Vec<_> {
        files.into_iter().filter(|(path, _)| path.extension().is_some_and(|e| e == "tfrecord")).collect()
    };
    assert_eq!(shards(snapshot(&parts.destination)), shards(expected));
}

#[test]
fn tars_and_writers_convert_images_and_masks() {
    let temp = tempfile::tempdir().unwrap();
    let (source, set) = (temp.path().join("a.tar"), temp.path().join("set"));
    let labels: Vec<u8> = (0..200).map(|i| i % 7).collect();
    let mask = netpbm("P5", "255\n", &labels);
    // Labels up to 6 with that as their maximum are not scaled.
    let low = netpbm("P5", "6\n", &labels);
    let members: [(&str, &[u8]); 7] = [
        ("1.ppm", &ppm(1)),
        ("1.mask.pgm", &mask),
        ("2.tga", &tga(2)),
        ("2.mask.pgm", &mask),
        ("3.qoi", &qoi(3)),
        ("3.mask.pgm", &low),
        ("3.right.txt", b"P5 is text"),
    ];
    put(&source, &tar(&members));
    let summary = pack(&Options::new(&source, &set), &()).unwrap();
    assert_eq!((summary.converted, summary.rejected), (3, 0));
    let stored = check(&set, "train");
    for (key, seed) in [("1", 1), ("2", 2), ("3", 3)] {
        assert_eq!(decoded(&stored[key].0).into_rgb8().into_raw(), rgb(seed));
    }
    let file = fs::read(set.join("train-00000.tfrecord")).unwrap();
    for (_, data) in records(&file) {
        let example = Example::parse(data).unwrap();
        let mask = decoded(example.bytes("mask.pgm").unwrap());
        assert_eq!(mask.into_luma8().into_raw(), labels);
    }

    // A depth map next to the image is a feature; two images are asked about.
    let alone = temp.path().join("b.tar");
    put(&alone, &tar(&[("1.rgb.png", &png(1)), ("1.depth.pgm", &mask)]));
    pack(&Options::new(&alone, temp.path().join("depth")), &()).unwrap();
    assert_eq!(check(&temp.path().join("depth"), "train")["1"].0, png(1));
    put(&alone, &tar(&[("1.left.ppm", &ppm(1)), ("1.right.ppm", &ppm(2))]));
    let asked = pack(&Options::new(&alone, temp.path().join("pair")), &()).unwrap_err();
    assert!(matches!(asked, Error::Archive(_)), "{asked}");

    let options = WriterOptions::new(temp.path().join("written"), "train");
    let writer = Writer::open(&options).unwrap();
    let write = |key: &str, image: &[u8]| {
        writer.write(&Sample { key, image: Some(Image::File(image)), label: None, values: vec![] })
    };
    write("a", &ppm(1)).unwrap();
    write("b.tga", &tga(2)).unwrap();
    let unknown = write("c", &tga(2));
    assert!(unknown.is_err(), "a TGA without a footer and without a name that identifies it");
    writer.finish().unwrap();
    let stored = check(&options.destination, "train");
    assert_eq!(decoded(&stored["a"].0).into_rgb8().into_raw(), rgb(1));
    assert_eq!(decoded(&stored["b.tga"].0).into_rgb8().into_raw(), rgb(2));
}

/// Returns a feature of the only record of a dataset.
fn feature(set: &Path, name: &str) -> Vec<u8> {
    let file = fs::read(set.join("train-00000.tfrecord")).unwrap();
    let all = records(&file);
    let [(_, data)] = all[..] else { panic!("{} records", all.len()) };
    Example::parse(data).unwrap().bytes(name).unwrap().to_vec()
}

#[test]
fn files_next_to_the_image_keep_their_numbers() {
    let temp = tempfile::tempdir().unwrap();
    let depths: Vec<u16> = (0..200).map(|i| i * 20 + 1).collect();
    let depth = netpbm("P5", "4095\n", &depths.iter().flat_map(|value| value.to_be_bytes()).collect::<Vec<_>>());
    let parts: Vec<u8> = (0..200).map(|i| i % 20).collect();
    let valid = netpbm("P4", "", &[0b1010_0000, 0xff, 0x10].repeat(10));
    let head = "P7\nWIDTH 20\nHEIGHT 10\nDEPTH 1\nMAXVAL 20\nTUPLTYPE GRAYSCALE\nENDHDR\n";
    let members: [(&str, &[u8]); 5] = [
        ("1.png", &png(1)),
        ("1.depth.pgm", &depth),
        ("1.parts.pgm", &netpbm("P5", "20\n", &parts)),
        ("1.valid_mask.pbm", &valid),
        ("1.mask.pam", &[head.as_bytes(), &parts].concat()),
    ];
    let from_tar = temp.path().join("a.tar");
    put(&from_tar, &tar(&members));
    members.iter().for_each(|(name, bytes)| put(&temp.path().join(name), bytes));
    put(
        &temp.path().join("list.csv"),
        b"path,depth.pgm,parts.pgm,valid_mask.pbm,mask.pam\n1.png,1.depth.pgm,1.parts.pgm,1.valid_mask.pbm,1.mask.pam\n",
    );
    let files = members[1..].iter().map(|(name, _)| name[2..].to_owned()).collect();
    let listed = with!(Options::new(temp.path().join("list.csv"), temp.path().join("listed")), files = files);
    for options in [Options::new(&from_tar, temp.path().join("tarred")), listed] {
        let summary = pack(&options, &()).unwrap();
        // Records are counted, not their images.
        assert_eq!((summary.converted, summary.rejected), (1, 0));
        let image = |name: &str| decoded(&feature(&options.destination, name));
        let DynamicImage::ImageLuma16(stored) = image("depth.pgm") else { panic!("16 bits") };
        assert_eq!(stored.into_raw(), depths);
        for name in ["parts.pgm", "mask.pam"] {
            let DynamicImage::ImageLuma8(stored) = image(name) else { panic!("8 bits") };
            assert_eq!(stored.into_raw(), parts);
        }
        let DynamicImage::ImageLuma8(stored) = image("valid_mask.pbm") else { panic!("8 bits") };
        assert_eq!(stored.into_raw()[..9], [1, 0, 1, 0, 0, 0, 0, 0, 1]);
    }
    // `mask.pam` is a mask, so other bytes in it are refused.
    put(&from_tar, &tar(&[("1.png", &png(1)), ("1.mask.pam", b"no image")]));
    let empty = with!(Options::new(&from_tar, temp.path().join("bad")), allow_empty = true);
    let refused = rejected(&pack(&empty, &()).unwrap().rejected_file.unwrap());
    assert!(refused[0].1.contains("mask.pam"), "{refused:?}");
}

/// Name and content.
type Member<'a> = (&'a str, &'a [u8]);

#[test]
fn tars_ask_which_of_a_stored_and_a_converted_picture_is_the_image() {
    let temp = tempfile::tempdir().unwrap();
    let source = temp.path().join("a.tar");
    let grey = netpbm("P5", "255\n", &[7; 200]);
    let packed = |name: &str, members: &[Member<'_>]| {
        put(&source, &tar(members));
        let set = temp.path().join(name);
        pack(&Options::new(&source, &set), &()).map(|_| check(&set, "train")["1"].0.clone()).map_err(|e| e.to_string())
    };
    let asked: [(&[Member<'_>], &str); 5] = [
        (&[("1.rgb.ppm", &ppm(1)), ("1.depth.png", &png(2))], "rgb.ppm, depth.png"),
        (&[("1.ppm", &ppm(1)), ("1.png", &png(2))], "ppm, png"),
        (&[("1.ppm", &ppm(1)), ("1.png", &png(2)), ("1.pgm", &grey)], "ppm, png"),
        (&[("1.left.qoi", &qoi(1)), ("1.right.png", &png(2))], "left.qoi, right.png"),
        (&[("1.color.tga", &tga(1)), ("1.ids.png", &png(2)), ("1.depth.pgm", &grey)], "color.tga, ids.png"),
    ];
    for (members, fields) in asked {
        let message = packed("asked", members).unwrap_err();
        assert!(message.contains(&format!("which field is the image? {fields} may be")), "{message}");
    }
    let photo = jpeg(3, SIZE.0, SIZE.1);
    let clear: [(&[Member<'_>], &[u8]); 6] = [
        (&[("1.jpg", &photo), ("1.ppm", &ppm(1))], &photo),
        (&[("1.jpg", &photo), ("1.normals.ppm", &ppm(1)), ("1.ids.png", &png(2))], &photo),
        (&[("1.image", &png(2)), ("1.ppm", &ppm(1))], &png(2)),
        (&[("1.png", &png(2)), ("1.pgm", &grey)], &png(2)),
        (&[("1.png", &png(2)), ("1.left.ppm", &ppm(1))], &png(2)),
        (&[("1.rgb.png", &png(2)), ("1.depth.pgm", &grey), ("1.valid.pbm", &netpbm("P4", "", &[0; 30]))], &png(2)),
    ];
    for (at, (members, image)) in clear.into_iter().enumerate() {
        assert_eq!(packed(&at.to_string(), members).unwrap(), image, "{at}");
    }
    for (at, members) in
        [[("1.pgm", grey.as_slice()), ("1.ppm", &ppm(1))], [("1.depth.pgm", grey.as_slice()), ("1.rgb.ppm", &ppm(1))]]
            .iter()
            .enumerate()
    {
        let image = packed(&format!("converted{at}"), members).unwrap();
        assert_eq!(decoded(&image).into_rgb8().into_raw(), rgb(1), "{at}");
    }
    put(&source, &tar(&[("1.rgb.ppm", &ppm(1)), ("1.depth.png", &png(2))]));
    let mapped = with!(
        Options::new(&source, temp.path().join("mapped")),
        map = vec![("image".to_owned(), "rgb.ppm".to_owned())]
    );
    pack(&mapped, &()).unwrap();
    assert_eq!(decoded(&check(&mapped.destination, "train")["1"].0).into_rgb8().into_raw(), rgb(1));
}

#[test]
fn clips_count_records_with_converted_frames() {
    let temp = tempfile::tempdir().unwrap();
    let source = temp.path().join("videos");
    for (clip, frames) in [("run/a", [ppm(1), ppm(2)]), ("run/b", [png(3), qoi(4)]), ("run/c", [png(5), png(6)])] {
        let names =
            [1, 2].map(|at| format!("{clip}/{at}.{}", if frames[at - 1].starts_with(b"P6") { "ppm" } else { "png" }));
        names.iter().zip(&frames).for_each(|(name, frame)| put(&source.join(name), frame));
    }
    let set = temp.path().join("set");
    let options = with!(Options::new(&source, &set), from = Some(SourceKind::Clips));
    let summary = pack(&options, &()).unwrap();
    assert_eq!((summary.split.records(), summary.rejected, summary.converted), (3, 0, 2));
    assert_eq!(summary.truncated, 0);
}
