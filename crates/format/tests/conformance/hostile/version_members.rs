//! Members of manifests of changed datasets.

use super::refused;
use crate::bytes::manifest;
use crate::golden::Case;
use crate::golden::versions::versions;

/// `versions` with one part of its manifest replaced, and the CRC corrected.
fn replaced(name: &str, from: &str, to: &str) -> Case {
    let mut files = versions().files();
    let text = manifest::replace(&files["dataset.json"], from, to.as_bytes());
    files.insert("dataset.json".to_owned(), text);
    refused(name, files)
}

pub(super) fn all() -> Vec<Case> {
    let mut cases = syntax();
    cases.extend(versions_and_tags());
    cases.extend(columns());
    cases.extend(shards());
    cases
}

/// Members that are absent, twice, or of another type.
fn syntax() -> Vec<Case> {
    let number = "\"number\": 3, \"parent\"";
    vec![
        replaced("ManifestSyntax-dataset_version-absent", "\"dataset_version\"", "\"dataset_versions\""),
        replaced(
            "ManifestSyntax-dataset_version-null",
            "\"dataset_version\": {",
            "\"dataset_version\": null, \"was\": {",
        ),
        replaced("ManifestSyntax-dataset_version-twice", "\"tags\": [", "\"dataset_version\": {}, \"tags\": ["),
        replaced("ManifestSyntax-dataset_version-number-absent", number, "\"parent\""),
        replaced("ManifestSyntax-dataset_version-number-negative", number, "\"number\": -3, \"parent\""),
        replaced("ManifestSyntax-dataset_version-number-twice", number, "\"number\": 3, \"number\": 3, \"parent\""),
        replaced("ManifestSyntax-dataset_version-parent-absent", "\"parent\"", "\"parents\""),
        replaced("ManifestSyntax-dataset_version-parent-upper-case", "6ed14a8e", "6ED14A8E"),
        replaced("ManifestSyntax-dataset_version-command-absent", "\"command\"", "\"commands\""),
        replaced("ManifestSyntax-dataset_version-message-number", "\"message\": ", "\"message\": 1, \"was\": "),
        replaced("ManifestSyntax-dataset_version-author-null", "\"author\": \"ada\"", "\"author\": null"),
        replaced("ManifestSyntax-tags-object", "\"tags\": [", "\"tags\": {}, \"were\": ["),
        replaced("ManifestSyntax-tags-null", "\"tags\": [", "\"tags\": null, \"were\": ["),
        replaced("ManifestSyntax-tag-number-absent", "\"Paper\", \"number\": 1", "\"Paper\""),
        replaced("ManifestSyntax-tag-number-text", "\"Paper\", \"number\": 1", "\"Paper\", \"number\": \"1\""),
        replaced("ManifestSyntax-columns-null", "\"columns\": [\n", "\"columns\": null, \"were\": [\n"),
        replaced("ManifestSyntax-column-neither", "\"name\": \"old\", \"dropped\": true", "\"name\": \"old\""),
        replaced("ManifestSyntax-column-both", "\"dropped\": true", "\"dropped\": true, \"type\": \"bytes\""),
        replaced("ManifestSyntax-column-dropped-text", "\"dropped\": true", "\"dropped\": \"true\""),
        replaced("ManifestSyntax-column-type-unknown", "\"cap\", \"type\": \"bytes\"", "\"cap\", \"type\": \"text\""),
        replaced("ManifestSyntax-column-logical-of-int64", "\"cap\", \"type\": \"bytes\"", CAP_LOGICAL),
        replaced("ManifestSyntax-deleted-null", "\"deleted\": {", "\"deleted\": null, \"was\": {"),
        replaced("ManifestSyntax-deleted-rows-absent", "\"rows\": 1, ", ""),
        replaced("ManifestSyntax-deleted-file-absent", "\"file\": \"00000000000000d1.deleted\", ", ""),
        replaced("ManifestSyntax-deleted-crc-upper-case", "b34623a6", "B34623A6"),
        replaced("ManifestSyntax-shard-columns-null", "\"columns\": [{", "\"columns\": null, \"were\": [{"),
        replaced("ManifestSyntax-companion-name-absent", "\"name\": \"feature:cap\", ", ""),
        replaced("ManifestSyntax-companion-bytes-absent", "\"offset\": 64, \"bytes\": 576", "\"offset\": 64"),
        replaced("ManifestSyntax-companion-offset-negative", "\"offset\": 64", "\"offset\": -64"),
        replaced("ManifestSyntax-companion-offset-twice", "\"offset\": 64", "\"offset\": 64, \"offset\": 64"),
        replaced("ManifestSyntax-companion-crc-absent", "\"crc32c\": \"61abebf2\"", "\"crc\": \"61abebf2\""),
    ]
}

const CAP_LOGICAL: &str = "\"cap\", \"type\": \"int64\", \"logical\": \"float64\"";

/// Version 0, which no tag names.
fn version_0() -> Case {
    let mut files = versions().files();
    let text = manifest::replace(&files["dataset.json"], "\"number\": 3, \"parent\"", b"\"number\": 0, \"parent\"");
    let text = manifest::replace(&text, "\"tags\": [", b"\"tags\": [], \"were\": [");
    files.insert("dataset.json".to_owned(), text);
    refused("ManifestValue-dataset_version-0-without-tags", files)
}

fn versions_and_tags() -> Vec<Case> {
    let tag = |name: &str, to: &str| replaced(name, "{\"name\": \"Paper\", \"number\": 1}", to);
    let named = |name: &str, to: &str| tag(name, &format!("{{\"name\": \"{to}\", \"number\": 1}}"));
    vec![
        version_0(),
        replaced("ManifestValue-dataset_version-0", "\"number\": 3, \"parent\"", "\"number\": 0, \"parent\""),
        tag("ManifestValue-tags-order", "{\"name\": \"z\", \"number\": 1}"),
        tag("ManifestValue-tags-case", "{\"name\": \"q\", \"number\": 1}"),
        named("ManifestValue-tags-twice", "labels.v2"),
        tag("ManifestValue-tag-of-version-0", "{\"name\": \"Paper\", \"number\": 0}"),
        tag("ManifestValue-tag-of-a-later-version", "{\"name\": \"Paper\", \"number\": 4}"),
        named("ManifestValue-tag-empty", ""),
        named("ManifestValue-tag-digit", "3rd"),
        named("ManifestValue-tag-underscore", "_a"),
        named("ManifestValue-tag-space", "a b"),
        named("ManifestValue-tag-not-ascii", "Ä"),
        named("ManifestValue-tag-at", "a@1"),
        named("ManifestValue-tag-checksum", "abcdef01"),
        named("ManifestValue-tag-of-101-characters", &"A".repeat(101)),
    ]
}

fn columns() -> Vec<Case> {
    let cap = "{\"name\": \"cap\", \"type\": \"bytes\"}";
    let old = "{\"name\": \"old\", \"dropped\": true}";
    let label = "{\"name\": \"image/class/label\", \"type\": \"int64\"},\n    {\"name\": \"n\", \"type\": \"int64\"},\n    {\"name\": \"old\", \"dr";
    let dropped = "{\"name\": \"image/class/label\", \"dropped\": true},\n    {\"name\": \"n\", \"type\": \"int64\"},\n    {\"name\": \"old\", \"dr";
    let both = format!("{old},\n    {{\"name\": \"old\", \"type\": \"bytes\"}}");
    let twice = format!("{cap},\n    {cap}");
    vec![
        replaced(
            "ManifestValue-columns-order",
            &format!("{cap},\n"),
            &format!("{{\"name\": \"zap\", \"type\": \"bytes\"}},\n    {cap},\n"),
        ),
        replaced("ManifestValue-columns-twice", cap, &twice),
        replaced("ManifestValue-columns-dropped-and-listed", old, &both),
        replaced(
            "ManifestValue-columns-dropped-order",
            cap,
            &format!("{cap},\n    {{\"name\": \"score\", \"dropped\": true}}"),
        ),
        replaced(
            "ManifestValue-columns-other-type",
            "\"score\", \"type\": \"float\"}\n  ],\n  \"columns\"",
            "\"score\", \"type\": \"int64\"}\n  ],\n  \"columns\"",
        ),
        replaced("ManifestValue-columns-dropped-unknown", old, "{\"name\": \"olf\", \"dropped\": true}"),
        replaced("ManifestValue-columns-dropped-label", label, dropped),
    ]
}

fn shards() -> Vec<Case> {
    let (file, columns) = ("00000000000000d1.deleted", "0123456789abcdef.columns");
    let cap = "\"offset\": 64, \"bytes\": 576";
    let first = "\"file\": \"0123456789abcdef.columns\", \"offset\": 64";
    let at = |offset: &str| format!("\"offset\": {offset}, \"bytes\": 576");
    let bitmap = "\"offset\": 0, \"bytes\": 1,";
    vec![
        replaced("ManifestValue-deleted-rows-0", "\"rows\": 1", "\"rows\": 0"),
        replaced("ManifestValue-deleted-rows-more-than-records", "\"rows\": 1", "\"rows\": 4"),
        replaced("ManifestValue-deleted-bytes", bitmap, "\"offset\": 0, \"bytes\": 2,"),
        replaced("ManifestValue-deleted-no-bytes", bitmap, "\"offset\": 0, \"bytes\": 0,"),
        replaced("ManifestValue-deleted-file-end", file, "00000000000000d1.columns"),
        replaced("ManifestValue-deleted-file-digits", file, "00000000000000D1.deleted"),
        replaced("ManifestValue-deleted-file-short", file, "0000000000000d1.deleted"),
        replaced("ManifestValue-deleted-file-folder", file, "../0000000000d1.deleted"),
        replaced("ManifestValue-deleted-end", bitmap, "\"offset\": 18446744073709551615, \"bytes\": 1,"),
        replaced("ManifestValue-companion-offset", cap, &at("65")),
        replaced("ManifestValue-companion-offset-32", cap, &at("32")),
        replaced("ManifestValue-companion-end", cap, &at("18446744073709551040")),
        replaced("ManifestValue-companion-file-end", columns, "0123456789abcdef.deleted"),
        replaced("ManifestValue-companion-file-long", columns, "00123456789abcdef.columns"),
        replaced("ManifestValue-companion-file-letter", columns, "0123456789abcdeg.columns"),
        replaced(
            "ManifestValue-companion-file-path",
            first,
            "\"file\": \"_columns/0123456789abcdef.columns\", \"offset\": 64",
        ),
        replaced("ManifestValue-companion-not-listed", "\"name\": \"feature:cap\"", "\"name\": \"feature:caption\""),
        replaced("ManifestValue-companion-dropped", "\"name\": \"feature:score\"", "\"name\": \"feature:old\""),
        replaced("ManifestValue-companion-other-prefix", "\"name\": \"feature:cap\"", "\"name\": \"values:cap\""),
        replaced("ManifestValue-companion-without-prefix", "\"name\": \"feature:cap\"", "\"name\": \"cap\""),
        replaced("ManifestValue-companions-order", "\"name\": \"feature:cap\"", "\"name\": \"feature:when\""),
        replaced(
            "ManifestValue-companions-twice",
            "\"name\": \"feature:n\"",
            "\"name\": \"encoded:image/class/label\"",
        ),
        replaced("ManifestValue-split-of-versions", "\"name\": \"train\"", "\"name\": \"_versions\""),
        replaced("ManifestValue-split-of-columns", "\"name\": \"train\"", "\"name\": \"_Columns\""),
        replaced("ManifestValue-file-of-versions", "\"train-00001.tfrecord\"", "\"_VERSIONS\""),
        replaced("ManifestValue-file-of-columns", "\"train-00001.tfrecord\"", "\"_columns\""),
    ]
}
