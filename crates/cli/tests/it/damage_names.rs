//! Compares the names of damage in `verify --json`, over all hostile fixtures, with the specification's tables.

use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Returns the names in the first column of a table of the specification.
fn documented(heading: &str) -> Vec<String> {
    let spec = include_str!("../../../../format-spec.md");
    let section = spec.split_once(heading).unwrap().1.split("\n#").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    rows.map(|(name, _)| name.to_owned()).collect()
}

#[test]
fn verify_reports_exactly_the_names_of_the_specification() {
    let hostile = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/conformance/hostile");
    let mut found = BTreeSet::new();
    for folder in std::fs::read_dir(hostile).unwrap() {
        let folder = folder.unwrap().path();
        let verify = |options: &[&str]| {
            Command::new(env!("CARGO_BIN_EXE_shardtool")).arg("verify").arg(&folder).args(options).output().unwrap()
        };
        // A source file that the user did not allow ends the command, which names the option.
        if folder.file_name().unwrap().to_string_lossy().starts_with("ForeignSource-") {
            let output = verify(&["--json"]);
            assert_eq!(output.status.code(), Some(2), "{}", folder.display());
            assert!(String::from_utf8_lossy(&output.stderr).contains("is not in the dataset's folder"));
            found.insert("ForeignSource".to_owned());
            continue;
        }
        let mut output = verify(&["--decode", "--json"]);
        // Nothing to decode: records without images and arrays.
        if output.status.code() == Some(2) {
            output = verify(&["--json"]);
        }
        if folder.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"ForeignSource")) {
            // Not a finding: verify opens no file that the user did not allow, and ends.
            assert_eq!(output.status.code(), Some(2), "{}", folder.display());
            assert!(String::from_utf8_lossy(&output.stderr).contains("is not in the dataset's folder"));
            found.insert("ForeignSource".to_owned());
            continue;
        }
        assert_eq!(output.status.code(), Some(1), "{}", folder.display());
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        found.extend(document["damages"].as_array().unwrap().iter().map(|d| d["name"].as_str().unwrap().to_owned()));
    }
    let documented = [documented("\n### Errors of bytes\n"), documented("\n### Errors of datasets\n")].concat();
    assert_eq!(found, documented.into_iter().collect());
}
