//! Manifests in other forms than a writer's, unusual names, and shards with unusual frames.

use super::tiny::{cat, dog, tiny};
use super::{Case, case};
use crate::bytes::example::ints;
use crate::bytes::manifest;
use crate::dataset::{Dataset, Shard};
use crate::sample::Sample;

/// Names that are close to those that are refused.
pub(super) fn file_names() -> Dataset {
    let files = [
        "a",
        "COM",
        "COM10",
        "LPT1x.tfrecord",
        "CONIN",
        "aux-00000.tfrecord",
        "nul~.x",
        "dataset.json.bak",
        "_index.x",
        "rejected-a.json",
        "xrejected-a.jsonl",
        " leading space",
        "two  spaces",
        "größe-é",
        "e\u{301}",
        "日本語.tfrecord",
        "quote'",
        "$#%&+,;=@[]^`{}~!()",
        "COM⁴.x",
        "PRNT",
        "0",
        "-",
        "con-",
        "a..b",
        "CLOCK$",
    ];
    let shards = files.iter().enumerate().map(|(row, file)| Shard::named(file, None, vec![numbered(row)]));
    let mut splits: Vec<(&str, Vec<Shard>)> = vec![("files", shards.collect())];
    let names = ["0", "A", "_", "_a", "a", "a-", "a.", "a..b", "a.b-c_d", "aux-1", "conx", "train", LONGEST];
    for (row, name) in names.into_iter().enumerate() {
        let file = format!("split-{row:05}.tfrecord");
        splits.push((name, vec![Shard::named(&file, None, vec![numbered(row)])]));
    }
    splits.sort_by_key(|(name, _)| *name);
    Dataset { image: None, label: None, ..Dataset::new(splits) }
}

fn numbered(row: usize) -> Sample {
    Sample::new([("n", ints([row as i64]))])
}

/// A name of 100 characters.
const LONGEST: &str =
    "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz";

/// `tiny` with private members and the shard's SHA-256.
pub(super) fn private() -> Dataset {
    let mut dataset = Dataset { private: vec![("x-", "no name"), ("x-licence", "CC BY 4.0\n\"é\"")], ..tiny() };
    dataset.shard().sha256 = true;
    dataset
}

/// `tiny`, whose objects have keypoints with names.
pub(super) fn keypoints() -> Dataset {
    let described = "{\"names\": [\"nose\", \"left \\\"eye\\\"\", \"œil droit\"], \"flip_index\": [0, 2, 1], \
                     \"skeleton\": [[0, 1], [2, 0]]}";
    Dataset { keypoints: Some(described), ..tiny() }
}

/// A dataset without splits.
pub(super) fn nothing() -> Dataset {
    Dataset { image: None, label: None, opaque: true, ..Dataset::new(vec![]) }
}

/// Frames of 0, 1 and 376 bytes: the length of the last one looks like the beginning of a zlib file. And a shard that
/// begins with it.
pub(super) fn frames() -> Dataset {
    let zlib = vec![0x5a; 0x0178];
    let first = [vec![], vec![0], zlib.clone(), vec![]].map(Sample::opaque).into();
    let second = vec![Sample::opaque(zlib)];
    let shards = [first, second, vec![]].into_iter().enumerate();
    let shards = shards.map(|(n, samples)| Shard::named(&format!("s-{n:05}.tfrecord"), None, samples)).collect();
    Dataset { image: None, label: None, opaque: true, ..Dataset::new(vec![("s", shards)]) }
}

/// A manifest with all the white space, order and escapes that JSON allows, and unknown members everywhere.
pub(super) fn other_json() -> Case {
    let shard = |number: usize, sample: Sample| {
        Shard::named(&format!("train-{number:05}.tfrecord"), None, vec![Sample { pixels: None, ..sample }])
    };
    let dataset = Dataset {
        label_offset: i64::MIN,
        classes: vec!["\0", "cat", "\u{10ffff}/é", "😀"],
        image: None,
        label: None,
        ..Dataset::new(vec![("a", vec![]), ("train", vec![shard(0, cat()), shard(1, dog())])])
    };
    let [first, second] = &dataset.splits[1].1[..] else { unreachable!() };
    let line = |shard: &Shard, more: &str| {
        let line = shard.line();
        let mut members: Vec<&str> = line[1..line.len() - 1].split(", ").collect();
        members.reverse();
        format!("{{{more}{}}}", members.join("\t,\r\n"))
    };
    // With the outermost object as deep as a reader must accept.
    let nested = format!("{}1{}", "[".repeat(126), "]".repeat(126));
    let body = [
        "\t\r\n {\"splits\" :[{\"shards\":[],\"name\":\"a\"},{\"name\":\"tr\\u0061in\",\"x-a\":1,\"x-a\":null,\"shards\":[",
        &line(first, "\"x-a\":[1],\"x-a\":{},"),
        ",",
        &line(second, "\"sha512\":\"later\","),
        "]}],\"classes\":[\"\\u0000\",\"\\u0063at\",\"\\udbFF\\uDFFF\\/\\u00e9\",\"\\ud83d\\ude00\"],",
        "\"features\":[{\"type\":\"int64\",\"name\":\"image\\/class/label\"},{\"name\":\"image/encoded\",\"type\":\"byt\\u0065s\"},",
        "{\"name\":\"image/format\",\"type\":\"bytes\",\"type \":1},{\"name\":\"image/height\",\"type\":\"int64\"},",
        "{\"name\":\"image/key\",\"type\":\"bytes\"},{\"name\":\"image/width\",\"type\":\"int64\"}],",
        "\"later\":{\"a\":1,\"a\":[true,false,null,-0,1.5,1e400,-1E-400,123456789012345678901234567890]},\"later\":",
        &nested,
        ",\"label_offset\":-9223372036854775808,\"requires\":[ ],\"\\u0076ersion\":\"1.10\",\"format\":\"shardt\\u006fol\",\n",
    ];
    let mut files = dataset.files();
    files.insert("dataset.json".to_owned(), manifest::sealed(body.concat().as_bytes()));
    case("other-json", &dataset, files)
}
