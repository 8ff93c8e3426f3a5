//! The vectors in `fixtures/conformance/order/` equal the results of this code, of a Python implementation of the
//! specification, and the vectors printed in the specification; they cover its reasons and registered names.

#[path = "../../examples/vectors/cases/mod.rs"]
mod cases;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn folder() -> PathBuf {
    root().join("fixtures/conformance/order")
}

fn parse(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

fn spec() -> String {
    std::fs::read_to_string(root().join("order-spec.md")).expect("order-spec.md")
}

/// The vectors of this folder, and those of buckets, packing and schedules, which other tests compare.
fn stored() -> Vec<Value> {
    let folders =
        ["batching", "scheduled"].map(|name| std::fs::read_dir(folder().with_file_name(name)).expect("a folder"));
    let others = folders.into_iter().flatten().map(|file| file.expect("a file").path());
    let others = others.filter(|path| path.extension() == Some("jsonl".as_ref()));
    let files = cases::files().into_iter().map(|(name, _)| folder().join(name)).chain(others);
    files.flat_map(|path| parse(&std::fs::read_to_string(path).expect("the file of vectors"))).collect()
}

/// The names in backticks in the section of that heading.
fn names<'a>(spec: &'a str, heading: &str) -> BTreeSet<&'a str> {
    let (_, section) = spec.split_once(&format!("\n## {heading}\n")).expect("the section");
    let section = section.split_once("\n## ").map_or(section, |(section, _)| section);
    section.split('`').skip(1).step_by(2).collect()
}

#[test]
fn code_computes_the_committed_vectors() {
    for (name, text) in cases::files() {
        let stored = std::fs::read_to_string(folder().join(name)).expect("the file of vectors");
        let (stored, computed) = (parse(&stored), parse(&text));
        assert_eq!(stored.len(), computed.len(), "{name}");
        for (i, (stored, computed)) in stored.iter().zip(&computed).enumerate() {
            assert_eq!(stored, computed, "{name}, line {}", i + 1);
        }
    }
}

#[test]
fn independent_implementation_computes_the_same_vectors() {
    let out = Command::new("python3").arg(folder().join("check.py")).output().expect("python3 is installed");
    assert!(out.status.success(), "{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
}

#[test]
fn vectors_printed_in_the_specification_are_committed() {
    let (stored, spec) = (stored(), spec());
    let printed =
        spec.split("```json vectors\n").skip(1).flat_map(|part| parse(part.split("```").next().unwrap_or("")));
    let mut count = 0;
    for vector in printed {
        assert!(stored.contains(&vector), "not among the vectors: {vector}");
        count += 1;
    }
    assert!(count >= 10, "the specification prints {count} vectors");
}

#[test]
fn every_reason_has_a_vector() {
    let (spec, stored) = (spec(), stored());
    let capitalised = |name: &&str| name.starts_with(|c: char| c.is_ascii_uppercase());
    let reasons: BTreeSet<&str> = names(&spec, "Checks").into_iter().filter(capitalised).collect();
    let refused: BTreeSet<&str> = stored.iter().filter_map(|vector| vector["refused"].as_str()).collect();
    assert_eq!(reasons, refused);
}

#[test]
fn every_registered_name_occurs_in_a_vector() {
    fn collect<'a>(value: &'a Value, into: &mut BTreeSet<&'a str>) {
        match value {
            Value::String(text) => drop(into.insert(text)),
            Value::Array(values) => values.iter().for_each(|value| collect(value, into)),
            Value::Object(members) => members.values().for_each(|value| collect(value, into)),
            _ => {}
        }
    }
    let (spec, stored) = (spec(), stored());
    let mut values = BTreeSet::new();
    stored.iter().for_each(|vector| collect(vector, &mut values));
    let registered = names(&spec, "Registries");
    assert!(registered.len() > 15, "{registered:?}");
    for name in registered.into_iter().filter(|name| *name != "x-") {
        assert!(values.contains(name), "{name}");
    }
}

#[test]
fn every_member_of_a_vector_is_documented() {
    let (spec, stored) = (spec(), stored());
    // Those of states are in another table.
    let documented: BTreeSet<&str> = &names(&spec, "Vectors") | &names(&spec, "Resume state");
    for vector in &stored {
        let members = vector.as_object().expect("an object");
        for name in members.keys() {
            assert!(documented.contains(name.as_str()), "{name}");
        }
    }
}
