//! `?` converts every error that a public function returns into `shardtool::Error`.

use std::collections::BTreeSet;
use std::path::Path;

fn converts<E: Into<shardtool::Error>>() -> &'static str {
    std::any::type_name::<E>()
}

/// The errors that convert.
fn known() -> Vec<&'static str> {
    vec![
        converts::<shardtool_format::Error>(),
        converts::<shardtool_format::array::ArrayError>(),
        converts::<shardtool_format::manifest::SidesError>(),
        converts::<shardtool_order::Error>(),
        converts::<shardtool_decode::Error>(),
        converts::<shardtool_decode::OutputError>(),
        converts::<shardtool_decode::SegmentationError>(),
        converts::<shardtool_read::Error>(),
        converts::<shardtool_read::ConditionError>(),
        converts::<shardtool_pack::Error>(),
        converts::<shardtool_load::Error>(),
        converts::<shardtool_load::InvalidOptions>(),
        converts::<std::io::Error>(),
    ]
}

/// Adds the names of the error types in the signatures of public functions below a folder.
fn errors(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            errors(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            for signature in text.split("pub fn ").skip(1) {
                let signature = &signature[..signature.find('{').unwrap_or(signature.len())];
                // The last word before the end of a `Result<…, Error>`.
                if let Some((_, result)) = signature.split_once("Result<")
                    && let Some((_, error)) = result.rsplit_once(", ")
                {
                    let name: String =
                        error.chars().take_while(|letter| letter.is_alphanumeric() || *letter == ':').collect();
                    found.insert(name.rsplit("::").next().unwrap_or_default().to_owned());
                }
            }
        }
    }
}

#[test]
fn every_error_converts() {
    let mut found = BTreeSet::new();
    for crate_name in ["format", "order", "decode", "read", "pack", "load"] {
        errors(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(crate_name).join("src"), &mut found);
    }
    let known: BTreeSet<_> = known().into_iter().map(|name| name.rsplit("::").next().unwrap()).collect();
    // A size as text, a list of conditions with the wrong one, and generic errors of closures are not of the façade's items.
    let other = ["String", "ConditionError", "E", "T", "S", "D"];
    let errors: Vec<_> = found.iter().filter(|name| name.ends_with("Error") || name.ends_with("Options")).collect();
    let missing = errors.into_iter().filter(|name| !known.contains(name.as_str()) && !other.contains(&name.as_str()));
    let missing: Vec<_> = missing.collect();
    assert!(missing.is_empty(), "not convertible: {missing:?}");
    assert!(found.contains("Error") && found.contains("ArrayError"), "{found:?}");
}

#[test]
fn an_error_of_the_system_converts() {
    let open = || -> shardtool::Result<shardtool::Cache> {
        Ok(shardtool::Cache::open(Path::new("/proc/no folder can be made here"), None)?)
    };
    assert!(matches!(open(), Err(shardtool::Error::Io(_))));
}

#[test]
fn the_text_of_an_error_names_its_file() {
    let error = shardtool::Dataset::open("nowhere").unwrap_err();
    let error = shardtool::Error::from(error);
    assert!(shardtool::Chain(&error).to_string().contains("nowhere"), "{error}");
}
