//! The committed images.

use std::path::{Path, PathBuf};

/// The committed images, by name.
pub(crate) fn images() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut images: Vec<_> = files(&folder)
        .into_iter()
        .filter(|p| p.extension().is_some_and(|e| e == "jpg"))
        .map(|p| (p.file_stem().unwrap().to_string_lossy().into_owned(), std::fs::read(&p).unwrap()))
        .collect();
    images.sort();
    assert!(images.len() >= 18, "the committed images are missing");
    images
}

/// Returns all files below a folder, sorted.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
        if entry.is_dir() { found.extend(files(&entry)) } else { found.push(entry) }
    }
    found.sort();
    found
}
