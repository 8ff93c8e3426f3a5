//! The datasets under `fixtures/conformance/` and what a reader must find in them come from these builders. They are
//! written from `format-spec.md` apart from the crates, and from values: nothing that they expect was read from a file.
//! Existing fixtures never change; new ones are added by running this test with `SHARDTOOL_BUILD_FIXTURES=1`, which writes
//! those that are absent.

mod bytes;
mod column;
mod dataset;
mod expected;
mod golden;
mod hostile;
mod sample;
mod variants;
mod version;
mod virtual_shard;
mod written;

use dataset::Files;
use shardtool_format::checksum::crc32c;
use shardtool_format::example::Feature;
use shardtool_format::frame::{self, Check};
use shardtool_format::index::{self, Element, FramePart, Index, SourceFile, VirtualColumns, frame_parts};
use shardtool_format::manifest::{DType, FilePart, Manifest, Shard};
use shardtool_format::{DeletedRows, Error, names};
use std::path::{Path, PathBuf};

const KIT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/conformance");

/// All files, by path in the kit.
fn built() -> Files {
    let golden = golden::all().into_iter().map(|case| ("golden", case));
    let (hostile, variants) = variants::divided(hostile::all());
    let hostile = hostile.into_iter().map(|case| ("hostile", case));
    let mut built = Files::from([("variants.jsonl".to_owned(), variants.into_bytes())]);
    for (part, (name, files, expected)) in golden.chain(hostile) {
        let folder = format!("{part}/{name}");
        assert!(!built.contains_key(&format!("{folder}/expected.json")), "{folder} occurs twice");
        built.insert(format!("{folder}/expected.json"), expected.text().into_bytes());
        built.extend(files.into_iter().map(|(path, bytes)| (format!("{folder}/{path}"), bytes)));
    }
    built
}

fn files_under(folder: &Path, prefix: &str, files: &mut Files) {
    for entry in std::fs::read_dir(folder).expect("a folder of fixtures") {
        let entry = entry.expect("an entry");
        let name = format!("{prefix}{}", entry.file_name().to_str().expect("plain names"));
        if entry.path().is_dir() {
            files_under(&entry.path(), &format!("{name}/"), files);
        } else {
            files.insert(name, std::fs::read(entry.path()).expect("a fixture"));
        }
    }
}

#[test]
fn builders_reproduce_the_committed_files() {
    let (kit, built) = (PathBuf::from(KIT), built());
    if std::env::var_os("SHARDTOOL_BUILD_FIXTURES").is_some() {
        for (path, bytes) in built.iter().filter(|(path, _)| !kit.join(path).exists()) {
            let path = kit.join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder for the fixture");
            std::fs::write(path, bytes).expect("the fixture is written");
        }
    }
    let mut committed =
        Files::from([("variants.jsonl".to_owned(), std::fs::read(kit.join("variants.jsonl")).expect("a file"))]);
    for part in ["golden", "hostile"] {
        files_under(&kit.join(part), &format!("{part}/"), &mut committed);
    }
    assert_eq!(built.keys().collect::<Vec<_>>(), committed.keys().collect::<Vec<_>>());
    for (path, bytes) in &built {
        assert!(bytes == &committed[path], "{path} differs from its builder's output");
    }
    let total: usize = committed.values().map(Vec::len).sum();
    assert!(total < 1_600_000, "fixtures stay small: {total} bytes");
}

/// The first error that this crate finds in the manifest, an index or a shard of a dataset.
fn first_error(files: &Files) -> Result<(), Error> {
    let manifest = Manifest::parse(&files[names::MANIFEST])?;
    for shard in manifest.splits.iter().flat_map(|split| &split.shards) {
        let path = format!("{}/{}", names::INDEX_FOLDER, names::index_file(&shard.file));
        let Some(file) = files.get(&path) else { continue };
        let index = Index::parse(file)?;
        index.required()?;
        let columns = if shard.foreign.is_virtual { Some(index.virtual_columns()?) } else { None };
        (0..index.columns().len()).try_for_each(|column| index.check(column))?;
        if let Some(columns) = columns {
            frames_of_sources(&index, columns, shard, files)?;
            continue;
        }
        let Some(bytes) = files.get(&shard.file) else { continue };
        let position = index.position(index::RECORD_OFFSET).expect("a required column");
        for offset in index.fixed::<u64>(position).expect("an u64 column").iter().flatten() {
            let Some(rest) = bytes.get(offset as usize..) else { continue };
            let data = frame::data(rest, offset, Check::Data)?;
            if !manifest.is_opaque() {
                manifest.message().parse(data)?;
            }
        }
        companions(&manifest, shard, files)?;
    }
    Ok(())
}

/// Checks the frames of a virtual shard, as far as the index and the source files have their bytes.
fn frames_of_sources(
    index: &Index<&Vec<u8>>,
    columns: VirtualColumns,
    shard: &Shard,
    files: &Files,
) -> Result<(), Error> {
    let [described, ranges, bytes] =
        [columns.files, columns.ranges, columns.bytes].map(|column| index.variable(column).expect("a column of bytes"));
    let offsets = index.fixed::<u64>(index.required()?.record_offset).expect("an u64 column");
    for row in 0..index.records() {
        let start = offsets.get(row).expect("an offset");
        let length = offsets.get(row + 1).unwrap_or(shard.bytes).checked_sub(start);
        let rows = (ranges.get(row).expect("a row"), bytes.get(row).expect("a row"));
        let Some(parts) = length.and_then(|length| frame_parts(rows.0, rows.1, length).ok()) else { continue };
        let part = |part: &FramePart<'_>| match part {
            FramePart::Bytes(bytes) => Some(bytes.to_vec()),
            FramePart::Source(range) => {
                let file = SourceFile::decode(described.values(), range.file).filter(SourceFile::has_plain_name)?;
                let end = range.offset.checked_add(u64::from(range.length))?;
                Some(files.get(file.name)?.get(range.offset as usize..end as usize)?.to_vec())
            }
        };
        let Some(frame) = parts.iter().map(part).collect::<Option<Vec<_>>>() else { continue };
        frame::data(&frame.concat(), start, Check::Data)?;
    }
    Ok(())
}

/// Checks the bitmap and the companions of a shard that are whole and have the CRC of the manifest.
fn companions(manifest: &Manifest, shard: &Shard, files: &Files) -> Result<(), Error> {
    let part = |part: &FilePart| {
        let file = files.get(&format!("{}/{}", names::COLUMNS_FOLDER, part.file))?;
        file.get(part.offset as usize..part.end()? as usize)
    };
    if let Some((deleted, bits)) = shard.companions.deleted.as_ref().and_then(|d| Some((d, part(&d.bitmap)?)))
        && crc32c(bits) == deleted.bitmap.crc32c
    {
        DeletedRows::parse(bits, shard.records, deleted.rows)?;
    }
    for companion in &shard.companions.columns {
        let Some(index) = part(&companion.index).map(Index::parse_companion).transpose()? else { continue };
        let element = match manifest.dtype(companion.feature()).map(DType::stored) {
            Some(DType::Int64) if !companion.is_encoded() => Element::I64,
            Some(DType::Float) if !companion.is_encoded() => Element::F32,
            _ => Element::Bytes,
        };
        let column = companion.name.clone();
        if !matches!(index.columns(), [only] if only.name() == column && only.element() == element) {
            return Err(Error::IndexColumn { column });
        }
        if index.records() != shard.records {
            continue;
        }
        index.check(0)?;
        let rows = index.variable(0).filter(|_| companion.is_encoded());
        for (row, message) in (0..).zip(rows.iter().flat_map(|rows| rows.iter())) {
            if message.is_some_and(|message| Feature::parse(message).is_err()) {
                return Err(Error::ColumnValue { column, row, problem: "not a Feature" });
            }
        }
    }
    Ok(())
}

#[test]
fn golden_datasets_have_no_damage() {
    for (name, files, _) in golden::all() {
        first_error(&files).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

/// Errors of datasets as a whole belong to the reader; this crate must find all others and no more.
#[test]
fn hostile_datasets_have_the_damage_in_their_name() {
    const OF_DATASETS: [&str; 15] = [
        "MissingShard",
        "MissingIndex",
        "ShardLength",
        "ShardCrc",
        "ShardSha256",
        "IndexCrc",
        "MissingCompanion",
        "CompanionCrc",
        "RecordCount",
        "MissingSource",
        "SourceLength",
        "ForeignSource",
        "IndexMismatch",
        "PixelsLength",
        "ImageDecode",
    ];
    let mut wrong = vec![];
    for (name, files, _) in hostile::all() {
        let expected = name.split('-').next().expect("a name");
        match first_error(&files).map_err(|error| error.damage().name()) {
            Ok(()) if OF_DATASETS.contains(&expected) => {}
            Err(found) if found == expected => {}
            // The file's first bytes distinguish compressed records from a damaged length, which is the reader's task; and
            // where frames begin somewhere else, or the file ends, frames look damaged.
            Err("LengthCrc") if ["CompressedRecords", "IndexMismatch"].contains(&expected) => {}
            Err("TruncatedFrame") if ["ShardLength", "IndexMismatch"].contains(&expected) => {}
            other => wrong.push(format!("{name}: {other:?}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Writers of this crate write the bytes that the builders wrote apart from it.
#[test]
fn this_crate_writes_the_same_bytes() {
    let mut records = 0;
    for (name, dataset) in golden::canonical() {
        let manifest = &dataset.files()[names::MANIFEST];
        let written = Manifest::parse(manifest).expect("a golden manifest").to_json();
        assert_eq!(written.as_bytes(), manifest, "{name}");
        for shard in dataset.splits.iter().flat_map(|(_, shards)| shards) {
            assert_eq!(written::index(shard), shard.index, "{name}: {}", shard.file);
            for sample in &shard.samples {
                let Some(features) = &sample.features else { continue };
                let canonical = bytes::example::example(&features.clone().into_iter().collect::<Vec<_>>());
                assert_eq!(written::example(features), canonical, "{name}");
                records += usize::from(canonical == sample.data);
            }
        }
    }
    assert!(records > 100, "{records} canonical records");
}
