//! Members of manifests with virtual shards.

use super::{SHARD, no_records, refused};
use crate::bytes::manifest::{self, string};
use crate::golden::Case;
use crate::golden::virtual_shards::virtual_files;

const VIRTUAL: &str = ", \"virtual\": true}";

/// `virtual-files` with one part of its manifest replaced, and the CRC corrected.
fn replaced(name: &str, from: &str, to: &str) -> Case {
    let mut files = virtual_files().files();
    let text = manifest::replace(&files["dataset.json"], from, to.as_bytes());
    files.insert("dataset.json".to_owned(), text);
    let (name, files, mut expected) = refused(name, files);
    expected.requires = vec!["foreign".to_owned()];
    (name, files, expected)
}

/// The members of the shard, as JSON.
fn members(name: &str, to: &str) -> Case {
    replaced(name, VIRTUAL, &format!(", {to}}}"))
}

pub(super) fn all() -> Vec<Case> {
    let mut cases = syntax();
    cases.extend(values());
    cases.extend(clones());
    cases
}

/// Shards that lie in datasets that the user did not name: neither the shard nor its index is opened.
fn clones() -> Vec<Case> {
    let source = |detail: &str, source: &str| {
        let (name, files, _) =
            members(&format!("ForeignSource-shard-{detail}"), &format!("\"source\": {}", string(source)));
        let expected = no_records(virtual_files().expected(), "ForeignSource");
        (name, files, expected.finds("ForeignSource", SHARD, None, None))
    };
    vec![
        source("folder", "/nonexistent-dataset"),
        source("root", "/"),
        source("s3", "s3://bucket/dataset"),
        source("http", "http://127.0.0.1:9/dataset"),
        source("file-url", "file:///nonexistent-dataset"),
    ]
}

/// Members of another type, or twice.
fn syntax() -> Vec<Case> {
    let virtual_is = |detail: &str, to: &str| members(&format!("ManifestSyntax-virtual-{detail}"), to);
    let source_is = |detail: &str, to: &str| {
        members(&format!("ManifestSyntax-source-{detail}"), &format!("\"virtual\": true, \"source\": {to}"))
    };
    vec![
        virtual_is("number", "\"virtual\": 1"),
        virtual_is("string", "\"virtual\": \"true\""),
        virtual_is("null", "\"virtual\": null"),
        virtual_is("array", "\"virtual\": [true]"),
        virtual_is("twice", "\"virtual\": true, \"virtual\": true"),
        source_is("number", "5"),
        source_is("null", "null"),
        source_is("boolean", "true"),
        source_is("array", "[\"/a\"]"),
        source_is("twice", "\"/a\", \"source\": \"/a\""),
    ]
}

/// Values that cannot be.
fn values() -> Vec<Case> {
    let source = |detail: &str, source: &str| {
        let to = format!("\"virtual\": true, \"source\": {}", string(source));
        members(&format!("ManifestValue-source-{detail}"), &to)
    };
    let requires = |name: &str, to: &str| replaced(name, "\"requires\": [\"foreign\"]", &format!("\"requires\": {to}"));
    vec![
        members("ManifestValue-virtual-false", "\"virtual\": false"),
        members("ManifestValue-virtual-false-with-source", "\"virtual\": false, \"source\": \"/a\""),
        source("empty", ""),
        source("relative", "photos"),
        source("relative-dot", "./photos"),
        source("home", "~/photos"),
        source("drive", "C:/photos"),
        source("drive-backslash", "C:\\photos"),
        source("one-slash", "s3:/bucket"),
        source("no-scheme", "://bucket/a"),
        source("space-in-scheme", "s 3://bucket/a"),
        source("slash-in-scheme", "a/b://bucket/a"),
        source("parent", "/a/../b"),
        source("parent-last", "/a/.."),
        source("dot", "/a/./b"),
        source("dot-last", "/."),
        source("parent-in-url", "s3://bucket/../other"),
        source("dot-in-url", "https://host/a/."),
        source("dot-as-host", "s3://./a"),
        source("line-end", "/a\n"),
        source("zero", "/a\0b"),
        source("delete", "/a\u{7f}"),
        source("c1-control", "s3://bucket/\u{85}"),
        source("user", "https://ada@host/a"),
        source("password", "s3://ada:secret@bucket/a"),
        source("query", "https://host/a?b=c"),
        source("query-of-host", "https://host?b=c"),
        source("fragment", "https://host/a#b"),
        // 2,049 characters, 4,097 bytes.
        source("too-long", &format!("/{}", "ä".repeat(2048))),
        requires("ManifestValue-foreign-twice", "[\"foreign\", \"foreign\"]"),
        requires("ManifestRequires-foreign-and-unknown", "[\"foreign\", \"x-later\"]"),
    ]
}
