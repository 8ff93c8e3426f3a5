//! Runs every target over the committed fixtures, archives made of them, and random mutations. `FUZZ_SECONDS` sets the time
//! per target (default 1) or `FUZZ_EXECUTIONS` the number of mutations, `FUZZ_SEED` the seed, `FUZZ_TARGETS` which ones.

use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use shardtool_format::frame;
use shardtool_format::index::{SourceFile, SourceRange};
use shardtool_fuzz::{TARGETS, Target, sources};
use shardtool_order::{Domain, Rng, key};
use shardtool_pack::{ExportKind, ExportOptions, Options, SourceKind, export, index_source, pack, plan};
use shardtool_read::Dataset;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn corpus() -> Vec<Vec<u8>> {
    let mut found = vec![vec![]];
    collect(&fixtures(), &mut found);
    assert!(found.len() > 100, "the fixtures");
    found
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures")
}

/// Returns what a target mutates: archives and lists of three photographs, or the fixtures that may be its input.
fn seeds(name: &str, corpus: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let text = |texts: &[&str]| texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    let parts: Vec<Vec<u8>> = match name {
        "webdataset" | "tar_in_place" => exported(ExportKind::Webdataset),
        "parquet" => exported(ExportKind::Parquet),
        "parquet_in_place" => [Compression::UNCOMPRESSED, Compression::SNAPPY].map(parquet).to_vec(),
        "mds" => vec![sources::mds_shard(), sources::mds_index(sources::mds_shard().len()).into_bytes()],
        "tfrecord" => {
            corpus.iter().filter(|bytes| frame::data(bytes, 0, frame::Check::Data).is_ok()).cloned().collect()
        }
        "list" => text(&[
            "path,label,score\na.jpg,cat,0.5\n\"b, c.jpg\",dog,\n",
            "{\"path\": \"a.jpg\", \"label\": 1, \"boxes\": [[1, 2, 3.5, 4]]}\n{\"path\": \"b.jpg\", \"text\": \"\\u00e9\"}\n",
            "{\"path\": \"a.jpg\", \"objects\": {\"bbox\": [[1, 2, 3, 4]], \"category\": [0]}, \"nested\": {\"a\": [1]}}\n",
        ]),
        "coco" => text(&["{\"images\": [{\"id\": 7, \"file_name\": \"a.jpg\", \"width\": 4, \"height\": 3}], \
            \"categories\": [{\"id\": 1, \"name\": \"cat\"}], \"annotations\": [{\"id\": 1, \"image_id\": 7, \
            \"category_id\": 1, \"bbox\": [1, 1, 2, 2], \"area\": 4, \"iscrowd\": 0}]}"]),
        "voc" => text(&[
            "<annotation><size><width>4</width><height>3</height></size><segmented>0</segmented><object><name>cat</name>\
            <difficult>0</difficult><part><name>head</name></part><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>3.5</xmax>\
            <ymax>3</ymax></bndbox></object></annotation>",
        ]),
        "yolo" => text(&[
            "0 0.5 0.5 0.25 0.5\n\n1 0.5 0.5 1 1\n",
            "0 0.1 0.2 0.5 0.9 0.3 0.4\n",
            "1 0.5 0.5 0.25 0.5 0.1 0.2 2 0 0 0\n",
        ]),
        "hub_list" => text(&[
            r#"[{"type": "file", "oid": "0a", "size": 12, "path": "data/a.tar"}, {"type": "directory", "path": "data/b"}]"#,
            r#"[{"type": "file", "size": 12, "path": "a.parquet", "lfs": {"oid": "0b", "size": 12}}]"#,
        ]),
        "segmentation" => text(&[
            "[[0, 0, 3.5, 0.25, 3, 3, 1, 2.75]]",
            "[[1, 1, 2, 1, 2, 2], [0, 0, 4, 0, 4, 4, 0, 4]]",
            r#"{"size": [4, 5], "counts": [3, 4, 2, 5, 6]}"#,
            r#"{"size": [4, 5], "counts": "34251"}"#,
        ]),
        "conversion" => converted(),
        "fax" => vec![
            // A white row and rows like it in Group 4; end-of-line codes, and a white row in Group 3.
            vec![0xff; 6],
            [0x00, 0x1d, 0x9a, 0x80, 0x0e, 0xcd, 0x40, 0x07, 0x66, 0xa0, 0x03, 0xb3, 0x50].repeat(12),
            [0x26, 0xb1, 0x3c, 0x00, 0x17].repeat(30),
        ],
        "virtual_frame" => {
            let (mut frame, mut file) = (37u16.to_le_bytes().to_vec(), vec![]);
            SourceRange { file: 0, offset: 512, length: 5, crc: 7, before: 20 }.encode(&mut frame);
            frame.extend([9; 32]);
            SourceFile { length: 600, name: "a/b.jpg" }.encode(&mut file);
            vec![frame, file]
        }
        "jpeg" => corpus.iter().filter(|bytes| bytes.starts_with(&[0xff, 0xd8])).cloned().collect(),
        _ => corpus.to_vec(),
    };
    assert!(!parts.is_empty(), "{name}");
    parts
}

/// Returns a Parquet file of photographs, each of them longer than a value that lies in the index.
fn parquet(codec: Compression) -> Vec<u8> {
    let schema = "message m { required binary image; required binary name (UTF8); }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = WriterProperties::builder().set_dictionary_enabled(false).set_compression(codec).build();
    let mut out = SerializedFileWriter::new(vec![], schema, Arc::new(properties)).unwrap();
    let mut group = out.next_row_group().unwrap();
    let images = ["colour.jpg", "grey.jpg", "progressive-turned.jpg"].map(|name| fixtures().join("sources").join(name));
    let mut rng = Rng::new(3);
    let images = images.map(|path| {
        let mut image = std::fs::read(path).unwrap();
        // A segment that no codec makes shorter, as most of a photograph.
        let segment = [0xff, 0xef, 0x08, 0x02].into_iter().chain((0..0x800).map(|_| rng.below(256) as u8));
        image.splice(2..2, segment).for_each(drop);
        ByteArray::from(image)
    });
    for values in [images, ["a", "b", "c"].map(ByteArray::from)] {
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<ByteArrayType>().write_batch(&values, None, None).unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    out.into_inner().unwrap()
}

/// Returns an image of each format that is stored as PNG.
fn converted() -> Vec<Vec<u8>> {
    let grey: Vec<u8> = (0..60).map(|i| i * 4).collect();
    let with = |head: &[u8], samples: &[u8]| [head, samples].concat();
    let tga = |image: u8, bits: u8| [0, 0, image, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 4, 0, bits, 0];
    let palette = [0, 1, 9, 0, 0, 2, 0, 24, 0, 0, 0, 0, 5, 0, 4, 0, 8, 0, 1, 2, 3, 4, 5, 6, 0x93, 1];
    let dib = [&[40, 0, 0, 0, 5, 0, 0, 0, 8, 0, 0, 0, 1, 0, 32, 0][..], &[0; 24], &[77; 80], &[0; 16]].concat();
    let entry = [&[5, 4, 0, 0, 1, 0, 32, 0][..], &(dib.len() as u32).to_le_bytes(), &[22, 0, 0, 0]].concat();
    let png = std::fs::read(fixtures().join("sources/alpha.png")).unwrap();
    let with_png = [&[0, 0, 0, 0, 1, 0, 32, 0][..], &(png.len() as u32).to_le_bytes(), &[22, 0, 0, 0]].concat();
    vec![
        with(b"P1\n5 4\n", b"1 0 1 0 1 00000 11111 01010"),
        with(b"P2\n5 4\n20\n", &b"7 "[..].repeat(20)),
        with(b"P3 5 4 300 # 12\n", &b"299 "[..].repeat(60)),
        with(b"P4 5 4\n", &grey[..4]),
        with(b"P5 5 4 1000\n", &grey[..40]),
        with(b"P6 5 4 255\n", &grey),
        with(b"P7\nWIDTH 5\nHEIGHT 4\nDEPTH 2\nMAXVAL 255\nTUPLTYPE GRAYSCALE_ALPHA\nENDHDR\n", &grey[..40]),
        with(b"qoif\0\0\0\x05\0\0\0\x04\x03\0", &[0xfe, 1, 2, 3, 0xd2, 0, 0, 0, 0, 0, 0, 0, 1]),
        with(&tga(2, 24), &grey),
        with(&tga(2, 16), &grey[..40]),
        with(&tga(10, 32), &[0x93, 1, 2, 3, 4]),
        palette.into(),
        [&b"\0\0\x01\0\x01\0"[..], &entry, &dib].concat(),
        [&b"\0\0\x01\0\x01\0"[..], &with_png, &png].concat(),
    ]
}

/// Returns the files of an export of three photographs.
fn exported(kind: ExportKind) -> Vec<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for (class, file) in [("cat", "colour.jpg"), ("cat", "alpha.png"), ("dog", "grey.jpg")] {
        std::fs::create_dir_all(at("photos").join(class)).unwrap();
        std::fs::copy(fixtures().join("sources").join(file), at("photos").join(class).join(file)).unwrap();
    }
    pack(&Options::new(at("photos"), at("set")), &()).unwrap();
    let dataset = Dataset::open(at("set")).unwrap();
    export(dataset.splits(), &at("out"), &ExportOptions::new(kind), &()).unwrap();
    let files = std::fs::read_dir(at("out")).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<_> = files.filter(|path| path.extension().is_some_and(|e| e == "tar" || e == "parquet")).collect();
    files.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// Adds every file below a folder; of text with one JSON document per line, each line, and the documents in it.
fn collect(folder: &Path, found: &mut Vec<Vec<u8>>) {
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect(&path, found);
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        if path.file_name().is_some_and(|name| name == "states.jsonl") {
            // Each line quotes a state in its member `json`.
            let text = String::from_utf8(bytes).unwrap();
            let states = text.lines().filter_map(|line| line.split_once(r#""json":""#)?.1.split_once("}\","));
            found.extend(states.map(|(state, _)| format!("{}}}", state.replace('\\', "")).into_bytes()));
        } else if bytes.len() <= 64 << 10 {
            found.push(bytes);
        }
    }
}

/// Changes a few places of `bytes`: flips bits, sets, removes, repeats or inserts bytes, or splices another input in.
fn mutate(bytes: &mut Vec<u8>, corpus: &[Vec<u8>], rng: &mut Rng) {
    for _ in 0..=rng.below(4) {
        let at = rng.below(bytes.len() as u32 + 1) as usize;
        let end = (at + 1 + rng.below(16) as usize).min(bytes.len());
        match rng.below(7) {
            0 | 1 if at < bytes.len() => bytes[at] ^= 1 << rng.below(8),
            2 if at < bytes.len() => bytes[at] = [0, 1, 0x7f, 0x80, 0xff, b'0', b'"', b','][rng.below(8) as usize],
            3 => drop(bytes.drain(at..end.max(at))),
            4 => bytes
                .splice(at..at, (0..=rng.below(8)).map(|i| i as u8 ^ rng.below(256) as u8).collect::<Vec<_>>())
                .for_each(drop),
            5 if at < end => {
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part).for_each(drop);
            }
            6 => {
                let other = &corpus[rng.below(corpus.len() as u32) as usize];
                let from = rng.below(other.len() as u32 + 1) as usize;
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
            _ => bytes.truncate(at),
        }
    }
}

fn run(name: &str, target: Target) {
    let number = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let (seconds, executions) = (number("FUZZ_SECONDS").unwrap_or(1), number("FUZZ_EXECUTIONS"));
    let corpus = corpus();
    let seeds = seeds(name, &corpus);
    let check = |input: &[u8]| {
        if catch_unwind(AssertUnwindSafe(|| target(input))).is_err() {
            let hex: String = input.iter().map(|byte| format!("{byte:02x}")).collect();
            panic!("target {name} fails on {} bytes: {hex}", input.len());
        }
    };
    corpus.iter().chain(&seeds).for_each(|input| check(input));
    let (start, mut inputs) = (Instant::now(), 0u64);
    let mut rng = Rng::new(key(Domain::Augment, number("FUZZ_SEED").unwrap_or(1), 0, 0));
    let more = |inputs| executions.map_or(start.elapsed() < Duration::from_secs(seconds), |count| inputs < count);
    while more(inputs) {
        let mut input = seeds[rng.below(seeds.len() as u32) as usize].clone();
        mutate(&mut input, &corpus, &mut rng);
        check(&input);
        inputs += 1;
    }
    println!("{name}: {} fixtures, {inputs} mutations, {:.0} s", corpus.len(), start.elapsed().as_secs_f64());
    assert!(inputs > 0);
}

#[test]
fn targets_hold_on_fixtures_and_mutations() {
    // Panics of libraries are caught and part of the result; those of ours still print.
    shardtool_decode::silence_decoder_panics();
    let only = std::env::var("FUZZ_TARGETS").ok();
    let chosen = |name: &str| only.as_ref().is_none_or(|only| only.split(',').any(|one| one == name));
    let threads = TARGETS.iter().filter(|(name, _)| chosen(name)).map(|&(name, target)| {
        let thread = std::thread::Builder::new().name(name.to_owned());
        thread.spawn(move || run(name, target)).unwrap()
    });
    let threads: Vec<_> = threads.collect();
    let failed = threads.into_iter().filter_map(|thread| thread.join().err()).count();
    assert_eq!(failed, 0, "targets failed: see their messages");
}

/// The laws are checked: an input of every kind is accepted, so that the targets get behind the first check.
#[test]
fn fixtures_reach_behind_the_checks() {
    use shardtool_format::{example::Example, index::Index, manifest::Manifest};
    let corpus = corpus();
    let count = |accepts: &dyn Fn(&[u8]) -> bool| corpus.iter().filter(|bytes| accepts(bytes)).count();
    assert!(count(&|bytes| frame::data(bytes, 0, frame::Check::Data).is_ok()) > 5);
    assert!(count(&|bytes| Index::parse(bytes).is_ok()) > 5);
    assert!(count(&|bytes| Manifest::parse(bytes).is_ok()) > 5);
    assert!(count(&|bytes| Example::parse(bytes).is_ok_and(|e| e.features().is_empty())) > 0);
    assert!(count(&|bytes| shardtool_decode::sniff(bytes).is_some()) > 3);
    let states =
        |bytes: &[u8]| std::str::from_utf8(bytes).is_ok_and(|text| shardtool_order::ResumeState::parse(text).is_ok());
    assert!(count(&states) > 3);
    // What the targets of sources mutate can be packed.
    for (name, kind, file) in [
        ("webdataset", SourceKind::Webdataset, "a.tar"),
        ("parquet", SourceKind::Parquet, "a.parquet"),
        ("parquet_in_place", SourceKind::Parquet, "a.parquet"),
        ("tfrecord", SourceKind::Tfrecord, "a.tfrecord"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(file);
        let mut options = Options::new(&path, folder.path().join("set"));
        options.from = Some(kind);
        let seeds = seeds(name, &corpus);
        let planned = seeds.iter().filter(|bytes| {
            std::fs::write(&path, bytes).unwrap();
            plan(&options).is_ok_and(|plan| plan.images() > 0)
        });
        assert!(planned.count() > 0, "{name}");
        if name == "parquet_in_place" {
            // Snappy leaves most of these images as they are.
            for bytes in &seeds {
                std::fs::write(&path, bytes).unwrap();
                let _ = std::fs::remove_dir_all(folder.path().join("set"));
                let indexed = index_source(&options, &[], &()).unwrap();
                assert_eq!(indexed.splits[0].split.records(), 3);
            }
        }
    }
}
