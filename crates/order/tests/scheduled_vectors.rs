//! The vectors of schedules, which a Python implementation of the specification has computed, equal the results of this code.

#[path = "answers/scheduled.rs"]
mod answers;
#[path = "../examples/vectors/cases/configuration.rs"]
mod configuration;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/conformance/scheduled")
}

#[test]
fn code_computes_the_vectors() {
    for name in ["keys", "turns", "steps", "substitutes", "refusals", "states", "resumes"] {
        let text = std::fs::read_to_string(folder().join(name).with_extension("jsonl")).expect("the file of vectors");
        for (line, text) in (1..).zip(text.lines()) {
            let vector: Value = serde_json::from_str(text).expect("a line of JSON");
            let Value::Object(computed) = answers::answer(name, &vector) else { panic!("{name}, line {line}") };
            assert!(!computed.is_empty());
            for (member, value) in computed {
                assert_eq!(vector[&member], value, "{name}, line {line}, {member}: {text:.300}");
            }
        }
    }
}

#[test]
fn independent_implementation_computes_the_same_vectors() {
    let out = Command::new("python3").arg(folder().join("check.py")).output().expect("python3 is installed");
    assert!(out.status.success(), "{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
}
