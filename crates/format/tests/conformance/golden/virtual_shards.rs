//! Datasets whose shards are not stored: their bytes lie in other files of the dataset's folder.

use super::Case;
use super::tiny::{CAT, DOG, cat, dog, tiny, with};
use super::versions::{BITMAPS, FIRST};
use crate::bytes::example::{ints, text};
use crate::bytes::index::{Column, I64};
use crate::bytes::{frame, manifest};
use crate::dataset::{Dataset, Shard};
use crate::version::{Change, Companion, Deleted, Version};
use crate::virtual_shard::{Piece, tar};

pub(crate) const CAT_FILE: &str = "photos/cat.raw";
pub(crate) const DOG_FILE: &str = "photos/dog.raw";
pub(crate) const TAR: &str = "archive.tar";
pub(crate) const TEXTS: &str = "texts/..b c.txt";

const IMAGE: &str = "image/encoded";

/// The records of `tiny`, whose images are files.
pub(crate) fn virtual_files() -> Dataset {
    let samples = vec![cat(), dog()];
    let rows =
        [vec![Piece::value(&samples[0], IMAGE, CAT_FILE, 0)], vec![Piece::value(&samples[1], IMAGE, DOG_FILE, 0)]];
    let shard = Shard::new("train", 0, samples).described(&[(CAT_FILE, &CAT), (DOG_FILE, &DOG)], &rows);
    let shard = Shard { sha256: true, ..shard };
    Dataset { requires: vec!["foreign"], classes: vec!["cat", "dog"], ..Dataset::new(vec![("train", vec![shard])]) }
}

/// A tar that two shards share, and a stored shard. A record of two files, one of no file, one whose frame is a member of
/// the tar, and one whose image lies in two ranges, the second part first.
pub(crate) fn virtual_tar() -> Dataset {
    let captioned = |key, label, caption: &str| with(key, label, vec![("caption", text(caption))]);
    let (a, b, c) = (with("a", 0, vec![]), captioned("b", 1, "of b"), with("c", 2, vec![]));
    let (d, e, f) = (with("d", 3, vec![]), captioned("e", 4, "whole"), with("f", 5, vec![]));
    let whole = frame(&e.data);
    let members: [(&str, &[u8]); 5] = [
        ("a.raw", &[0, 7, 9]),
        ("b.raw", &[1, 7, 9]),
        ("d.raw", &[3, 7, 9]),
        ("e.frame", &whole),
        ("f.raw", &[9, 5, 7]),
    ];
    let (tar, at) = tar(&members);
    let texts = b"a line\nof b";
    let files: [(&'static str, &[u8]); 2] = [(TAR, &tar), (TEXTS, texts)];
    let first = [
        vec![Piece::value(&a, IMAGE, TAR, at[0])],
        vec![Piece::value(&b, "caption", TEXTS, 7), Piece::value(&b, IMAGE, TAR, at[1])],
        vec![],
    ];
    let image = Piece::value(&f, IMAGE, TAR, at[4]);
    let second = [
        vec![Piece::value(&d, IMAGE, TAR, at[2])],
        vec![Piece { file: TAR, at: at[3], from: 0, length: whole.len() }],
        vec![Piece { at: image.at + 1, length: 2, ..image }, Piece { from: image.from + 2, length: 1, ..image }],
    ];
    let shards = vec![
        Shard::new("train", 0, vec![a, b, c]).described(&files, &first),
        Shard::new("train", 1, vec![d, e, f]).described(&files[..1], &second),
    ];
    let stored = vec![Shard::new("test", 0, vec![with("stored", 6, vec![])])];
    Dataset { requires: vec!["foreign"], ..Dataset::new(vec![("test", stored), ("train", shards)]) }
}

/// A virtual shard of which a row is deleted, and a feature replaced.
pub(crate) fn virtual_versions() -> Dataset {
    let numbered = |key, label, n| with(key, label, vec![("n", ints([n]))]);
    let samples = vec![numbered("a", 0, 1), numbered("b", 1, 2), numbered("c", 2, 3)];
    let files: [(&'static str, &[u8]); 3] = [("0.raw", &[0, 7, 9]), ("1.raw", &[1, 7, 9]), ("2.raw", &[2, 7, 9])];
    let rows: Vec<_> =
        samples.iter().zip(&files).map(|(sample, (file, _))| vec![Piece::value(sample, IMAGE, file, 0)]).collect();
    let shard = Shard::new("train", 0, samples).described(&files, &rows);
    let mut dataset = Dataset { requires: vec!["foreign"], ..Dataset::new(vec![("train", vec![shard])]) };
    let version = Version::after(&dataset, "column replace");
    dataset.requires.push("versions");
    dataset.version = Some(Version { columns: vec![("n", Change::Column("int64"))], ..version });
    let shard = dataset.shard();
    shard.deleted = Some(Deleted::new(shard, BITMAPS, 0, &[1]));
    let column = Column::nullable("feature:n", I64, &[Some((-1i64).to_le_bytes()), Some([0; 8]), None]);
    shard.companions = vec![Companion::new(shard, FIRST, 0, column)];
    shard.rows = Some(vec![Some(numbered("a", 0, -1)), None, Some(with("c", 2, vec![]))]);
    dataset
}

/// Without the requirement, the members of virtual shards are unknown ones, and the shard is stored.
pub(super) fn not_virtual() -> Case {
    let dataset = tiny();
    let mut files = dataset.files();
    let text = manifest::replace(
        &files["dataset.json"],
        "{\"file\"",
        b"{\"virtual\": true, \"virtual\": 7, \"source\": \"../x\", \"file\"",
    );
    files.insert("dataset.json".to_owned(), text);
    super::case("not-virtual", &dataset, files)
}
