//! Manifests that are damaged, are not JSON, or have wrong members.

use super::refused;
use crate::bytes::manifest::{self, TAIL};
use crate::dataset::Files;
use crate::golden::Case;
use crate::golden::tiny::tiny;

/// The files of `tiny` with another manifest.
pub(super) fn with_manifest(text: Vec<u8>) -> Files {
    let mut files = tiny().files();
    files.insert("dataset.json".to_owned(), text);
    files
}

fn text() -> Vec<u8> {
    tiny().files()["dataset.json"].clone()
}

/// A manifest that was damaged after it was written.
fn damaged(name: &str, change: impl FnOnce(&mut Vec<u8>)) -> Case {
    let mut text = text();
    change(&mut text);
    refused(name, with_manifest(text))
}

/// A manifest with one part replaced, and its CRC corrected.
pub(super) fn replaced(name: &str, from: &str, to: impl AsRef<[u8]>) -> Case {
    refused(name, with_manifest(manifest::replace(&text(), from, to.as_ref())))
}

/// A manifest with everything before its last member changed, and its CRC corrected.
fn forged(name: &str, change: impl FnOnce(&mut Vec<u8>)) -> Case {
    refused(name, with_manifest(manifest::forge(&text(), change)))
}

pub(super) fn all() -> Vec<Case> {
    let mut cases = ends();
    cases.extend(json());
    cases.extend(versions());
    cases.extend(members());
    cases
}

/// The end of the file, and the CRC.
fn ends() -> Vec<Case> {
    // Any other spelling of the end, with the CRC of that file.
    let end = |name: &str, tail: &str| {
        let text = text();
        let zeros = [&text[..text.len() - TAIL], tail.as_bytes()].concat();
        let crc = format!("{:08x}", crate::bytes::crc::crc32c(&zeros));
        let tail = tail.replace("00000000", &crc);
        refused(name, with_manifest([&text[..text.len() - TAIL], tail.as_bytes()].concat()))
    };
    vec![
        damaged("ManifestCrc-flipped-bit", |m| m[40] ^= 1),
        damaged("ManifestCrc-first-byte", |m| m[0] = b'['),
        damaged("ManifestCrc-truncated", |m| m.truncate(300)),
        damaged("ManifestCrc-empty", |m| m.clear()),
        damaged("ManifestCrc-absent", |m| {
            m.truncate(m.len() - ",\n".len() - TAIL);
            m.extend(b"\n}\n");
        }),
        damaged("ManifestCrc-upper-case", |m| {
            let digits = m.len() - "hhhhhhhh\"\n}\n".len();
            assert!(m[digits..digits + 8].iter().any(u8::is_ascii_lowercase), "upper case makes a difference");
            m[digits..digits + 8].make_ascii_uppercase();
        }),
        damaged("ManifestCrc-line-ends", |m| {
            *m = m
                .iter()
                .flat_map(|b| if *b == b'\n' { &b"\r\n"[..] } else { std::slice::from_ref(b) })
                .copied()
                .collect();
        }),
        damaged("ManifestCrc-version-2", |m| *m = manifest_with_version(m)),
        end("ManifestCrc-not-on-a-line", " \"crc32c\": \"00000000\"\n}\n"),
        end("ManifestCrc-one-space", " \n \"crc32c\": \"00000000\"\n}\n"),
        end("ManifestCrc-no-space", "  \"crc32c\":\"00000000\"\n}\n"),
        end("ManifestCrc-no-last-line-end", "  \"crc32c\": \"00000000\"\n}"),
        end("ManifestCrc-empty-line", "  \"crc32c\": \"00000000\"\n}\n\n"),
        end("ManifestCrc-not-last", "  \"crc32c\": \"00000000\",\n  \"x-\": \"\"\n}\n"),
        end("ManifestCrc-other-name", "  \"crc32C\": \"00000000\"\n}\n"),
    ]
}

/// Another version whose CRC was not corrected.
fn manifest_with_version(text: &[u8]) -> Vec<u8> {
    String::from_utf8(text.to_vec()).expect("a manifest is UTF-8").replacen("\"1.0\"", "\"2.0\"", 1).into_bytes()
}

const OFFSET: &str = "\"label_offset\": 0,";
const RECORDS: &str = "\"records\": 2";

/// What is not JSON, and numbers and strings that JSON allows but a manifest does not.
fn json() -> Vec<Case> {
    vec![
        replaced("ManifestSyntax-json", OFFSET, "\"label_offset\": 0,,"),
        replaced("ManifestSyntax-comment", OFFSET, "\"label_offset\": 0, // comment\n"),
        replaced("ManifestSyntax-trailing-comma", "\"dog\"", "\"dog\","),
        replaced("ManifestSyntax-single-quotes", "\"dog\"", "'dog'"),
        replaced("ManifestSyntax-nan", OFFSET, "\"label_offset\": 0, \"later\": NaN,"),
        replaced("ManifestSyntax-infinity", OFFSET, "\"label_offset\": 0, \"later\": -Infinity,"),
        replaced("ManifestSyntax-leading-zero", OFFSET, "\"label_offset\": 00,"),
        replaced("ManifestSyntax-plus", OFFSET, "\"label_offset\": +1,"),
        replaced("ManifestSyntax-no-digits", OFFSET, "\"label_offset\": 0, \"later\": 1.,"),
        replaced("ManifestSyntax-literal", OFFSET, "\"label_offset\": 0, \"later\": True,"),
        replaced("ManifestSyntax-control-character", "\"dog\"", "\"d\tog\""),
        replaced("ManifestSyntax-escape", "\"dog\"", "\"\\dog\""),
        replaced("ManifestSyntax-short-escape", "\"dog\"", "\"\\u00g0\""),
        replaced("ManifestSyntax-white-space", OFFSET, "\"label_offset\":\u{a0}0,"),
        replaced("ManifestSyntax-form-feed", OFFSET, "\"label_offset\":\u{c}0,"),
        replaced("ManifestSyntax-not-utf8", "\"dog\"", b"\"d\xf6g\""),
        replaced("ManifestSyntax-surrogate-bytes", "\"dog\"", b"\"\xed\xa0\x80\""),
        replaced("ManifestSyntax-lone-surrogate", "\"dog\"", "\"\\ud800\""),
        replaced("ManifestSyntax-lone-low-surrogate", "\"dog\"", "\"\\udc00\""),
        replaced("ManifestSyntax-surrogates-exchanged", "\"dog\"", "\"\\udc00\\ud800\""),
        replaced("ManifestSyntax-surrogate-of-ignored-member", OFFSET, "\"label_offset\": 0, \"later\": \"\\ud800x\","),
        replaced("ManifestSyntax-surrogate-in-ignored-name", OFFSET, "\"label_offset\": 0, \"later\\udc00\": 1,"),
        forged("ManifestSyntax-byte-order-mark", |m| drop(m.splice(0..0, *b"\xef\xbb\xbf"))),
        forged("ManifestSyntax-array", |m| m[0] = b'['),
        forged("ManifestSyntax-two-objects", |m| drop(m.splice(0..0, *b"{}"))),
        replaced("ManifestSyntax-unclosed", "  ],\n  \"splits\"", "  \"splits\""),
        replaced("ManifestSyntax-minus-zero", OFFSET, "\"label_offset\": -0,"),
        replaced("ManifestSyntax-fraction", OFFSET, "\"label_offset\": 0.0,"),
        replaced("ManifestSyntax-exponent", RECORDS, "\"records\": 2e0"),
        replaced("ManifestSyntax-negative", RECORDS, "\"records\": -2"),
        replaced("ManifestSyntax-u64", RECORDS, "\"records\": 18446744073709551616"),
        replaced("ManifestSyntax-i64", OFFSET, "\"label_offset\": 9223372036854775808,"),
        replaced("ManifestSyntax-i64-negative", OFFSET, "\"label_offset\": -9223372036854775809,"),
        replaced("ManifestSyntax-huge-number", RECORDS, format!("\"records\": {}", "9".repeat(400))),
    ]
}

const VERSION: &str = "\"version\": \"1.0\",\n";

fn versions() -> Vec<Case> {
    let version = |name: &str, version: &str| replaced(name, VERSION, format!("\"version\": \"{version}\",\n"));
    let requires =
        |name: &str, requires: &str| replaced(name, VERSION, format!("{VERSION}  \"requires\": {requires},\n"));
    vec![
        version("ManifestVersion-2", "2.0"),
        version("ManifestVersion-0", "0.1"),
        version("ManifestVersion-10", "10.0"),
        version("ManifestVersion-major-only", "1"),
        version("ManifestVersion-no-minor", "1."),
        version("ManifestVersion-three-parts", "1.0.0"),
        version("ManifestVersion-leading-zero", "01.0"),
        version("ManifestVersion-minor-leading-zero", "1.00"),
        version("ManifestVersion-space", "1.0 "),
        version("ManifestVersion-line-end", "1.0\\n"),
        version("ManifestVersion-letter", "1.0a"),
        version("ManifestVersion-sign", "1.+1"),
        version("ManifestVersion-other-digits", "1.٣"),
        version("ManifestVersion-empty", ""),
        replaced("ManifestVersion-absent", VERSION, ""),
        replaced("ManifestVersion-other-format", "\"shardtool\"", "\"tar\""),
        replaced("ManifestVersion-format-case", "\"shardtool\"", "\"Shardtool\""),
        replaced("ManifestVersion-no-format", "\"format\": \"shardtool\",\n  ", ""),
        // The version decides before other members are looked at.
        refused("ManifestVersion-before-members", {
            let other = manifest::replace(&text(), "\"1.0\"", b"\"2.0\"");
            with_manifest(manifest::replace(&other, "\"splits\"", b"\"spoons\""))
        }),
        requires("ManifestRequires-unknown", "[\"holograms\"]"),
        requires("ManifestRequires-second", "[\"sequence-example\", \"zoetropes\"]"),
        requires("ManifestRequires-private", "[\"x-own\"]"),
        requires("ManifestRequires-case", "[\"Sequence-Example\"]"),
        requires("ManifestRequires-empty-string", "[\"\"]"),
        requires("ManifestSyntax-requires-string", "\"sequence-example\""),
        requires("ManifestSyntax-requires-null", "null"),
        requires("ManifestSyntax-requires-number", "[1]"),
        requires("ManifestSyntax-requires-twice", "[],\n  \"requires\": []"),
    ]
}

/// Members that are absent, twice, or of another type.
fn members() -> Vec<Case> {
    let feature = "{\"name\": \"image/width\", \"type\": \"int64\"}";
    vec![
        replaced("ManifestSyntax-absent-member", "\"splits\"", "\"spoons\""),
        replaced("ManifestSyntax-no-label-offset", "  \"label_offset\": 0,\n", ""),
        replaced("ManifestSyntax-no-features", "\"features\"", "\"Features\""),
        replaced("ManifestSyntax-no-classes", "\"classes\"", "\"class\""),
        replaced("ManifestSyntax-no-file", "\"file\"", "\"name\""),
        replaced("ManifestSyntax-no-records", "\"records\"", "\"record\""),
        replaced("ManifestSyntax-no-index-crc", "\"index_crc32c\"", "\"index_crc\""),
        replaced("ManifestSyntax-no-shards", "\"shards\"", "\"shard\""),
        replaced("ManifestSyntax-no-type", feature, "{\"name\": \"image/width\"}"),
        replaced("ManifestSyntax-type", "\"int64\"", "\"int32\""),
        replaced("ManifestSyntax-type-null", feature, "{\"name\": \"image/width\", \"type\": null}"),
        replaced("ManifestSyntax-member-twice", OFFSET, "\"label_offset\": 0,\n  \"label_offset\": 1,"),
        replaced("ManifestSyntax-member-twice-equal", OFFSET, "\"label_offset\": 0,\n  \"label_off\\u0073et\": 0,"),
        replaced(
            "ManifestSyntax-format-twice",
            "\"format\": \"shardtool\"",
            "\"format\": \"shardtool\", \"format\": \"shardtool\"",
        ),
        replaced("ManifestSyntax-version-twice", VERSION, "\"version\": \"1.0\", \"version\": \"2.0\",\n"),
        replaced("ManifestSyntax-crc-twice", OFFSET, "\"label_offset\": 0,\n  \"crc32c\": \"00000000\","),
        replaced("ManifestSyntax-member-of-shard-twice", RECORDS, "\"records\": 2, \"records\": 2"),
        replaced(
            "ManifestSyntax-member-of-split-twice",
            "\"name\": \"train\"",
            "\"name\": \"train\", \"name\": \"train\"",
        ),
        replaced(
            "ManifestSyntax-member-of-feature-twice",
            feature,
            "{\"name\": \"image/width\", \"type\": \"int64\", \"type\": \"int64\"}",
        ),
        replaced("ManifestSyntax-format-number", "\"shardtool\"", "1"),
        replaced("ManifestSyntax-version-number", "\"1.0\"", "1.0"),
        replaced("ManifestSyntax-created-by", "\"shardtool fixtures\"", "null"),
        replaced("ManifestSyntax-image-number", "\"image\": \"image/encoded\"", "\"image\": 1"),
        replaced("ManifestSyntax-label-array", "\"label\": \"image/class/label\"", "\"label\": []"),
        replaced("ManifestSyntax-offset-string", OFFSET, "\"label_offset\": \"0\","),
        replaced("ManifestSyntax-offset-bool", OFFSET, "\"label_offset\": false,"),
        replaced("ManifestSyntax-class-number", "\"dog\"", "1"),
        replaced("ManifestSyntax-class-null", "\"dog\"", "null"),
        replaced("ManifestSyntax-feature-array", feature, "[\"image/width\", \"int64\"]"),
        replaced("ManifestSyntax-features-object", "\"features\": [", "\"features\": {}, \"old\": ["),
        replaced("ManifestSyntax-splits-object", "\"splits\": [", "\"splits\": {}, \"old\": ["),
        replaced("ManifestSyntax-split-null", "{\"name\": \"train\"", "null, {\"name\": \"train\""),
        replaced("ManifestSyntax-shard-string", "{\"file\"", "\"train\", {\"file\""),
        replaced("ManifestSyntax-file-null", "\"train-00000.tfrecord\"", "null"),
        replaced("ManifestSyntax-records-true", RECORDS, "\"records\": true"),
        replaced(
            "ManifestSyntax-upper-case-crc",
            "\"index_crc32c\": \"",
            "\"index_crc32c\": \"ABCDEF00\", \"was\": \"",
        ),
        replaced("ManifestSyntax-crc-of-seven-digits", "\"crc32c\": \"", "\"crc32c\": \"1234567\", \"was\": \""),
        replaced("ManifestSyntax-crc-of-nine-digits", "\"crc32c\": \"", "\"crc32c\": \"123456789\", \"was\": \""),
        replaced("ManifestSyntax-crc-number", "\"crc32c\": \"", "\"crc32c\": 12345678, \"was\": \""),
        replaced("ManifestSyntax-sha256-short", RECORDS, format!("\"records\": 2, \"sha256\": \"{}\"", "0".repeat(63))),
        replaced(
            "ManifestSyntax-sha256-upper-case",
            RECORDS,
            format!("\"records\": 2, \"sha256\": \"{}A\"", "0".repeat(63)),
        ),
        replaced("ManifestSyntax-sha256-null", RECORDS, "\"records\": 2, \"sha256\": null"),
        replaced("ManifestSyntax-private-number", OFFSET, "\"label_offset\": 0,\n  \"x-a\": 1,"),
        replaced("ManifestSyntax-private-null", OFFSET, "\"label_offset\": 0,\n  \"x-\": null,"),
        replaced("ManifestSyntax-private-twice", OFFSET, "\"label_offset\": 0,\n  \"x-a\": \"\", \"x-a\": \"\","),
    ]
}
