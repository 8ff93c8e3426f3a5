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

fn compare(name: &str, text: &str) {
    let vector: Value = serde_json::from_str(text).expect("a line of JSON");
    let Value::Object(computed) = answers::answer(name, &vector) else { panic!("{name}: {text:.300}") };
    assert!(!computed.is_empty());
    for (member, value) in computed {
        assert_eq!(vector[&member], value, "{name}, {member}: {text:.300}");
    }
}

#[test]
fn code_computes_the_vectors() {
    for name in ["keys", "turns", "steps", "substitutes", "refusals", "states", "resumes"] {
        let text = std::fs::read_to_string(folder().join(name).with_extension("jsonl")).expect("the file of vectors");
        text.lines().for_each(|line| compare(name, line));
    }
}

/// `SHARDTOOL_SCHEDULES` is the number of schedules, `SHARDTOOL_SCHEDULE_SEED` the first seed.
#[test]
fn code_computes_random_schedules_as_the_python_model_does() {
    let number = |name: &str, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
    let (count, seed) = (number("SHARDTOOL_SCHEDULES", "15"), number("SHARDTOOL_SCHEDULE_SEED", "0"));
    let out = Command::new("python3").arg(folder().join("make.py")).args(["--random", &count, &seed]).output();
    let out = out.expect("python3 is installed");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout).expect("UTF-8");
    for line in text.lines() {
        let (_, name) = line.split_once(r#""file": ""#).expect("the name of a file");
        compare(name.split('"').next().expect("a name"), line);
    }
    assert_eq!(text.lines().count(), 6 * count.parse::<usize>().expect("a number"));
}

#[test]
fn independent_implementation_computes_the_same_vectors() {
    let out = Command::new("python3").arg(folder().join("check.py")).output().expect("python3 is installed");
    assert!(out.status.success(), "{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
}
