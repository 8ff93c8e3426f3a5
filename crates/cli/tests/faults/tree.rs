//! The files of a folder: snapshots and copies.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A folder, a file or a link.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Node {
    Folder,
    File(Vec<u8>),
    Link(PathBuf),
}

/// All names below a folder, relative to it.
pub(crate) type Tree = BTreeMap<PathBuf, Node>;

/// Returns the names below `folder`. Files that vanish meanwhile are left out.
pub(crate) fn snapshot(folder: &Path) -> Tree {
    let mut tree = Tree::new();
    let mut left = vec![folder.to_owned()];
    while let Some(path) = left.pop() {
        for entry in fs::read_dir(&path).into_iter().flatten().map_while(io::Result::ok) {
            let path = entry.path();
            let node = match entry.file_type() {
                Ok(kind) if kind.is_dir() => Ok(Node::Folder),
                Ok(kind) if kind.is_symlink() => fs::read_link(&path).map(Node::Link),
                _ => fs::read(&path).map(Node::File),
            };
            let Ok(node) = node else { continue };
            if node == Node::Folder {
                left.push(path.clone());
            }
            tree.insert(path.strip_prefix(folder).expect("a path below").to_owned(), node);
        }
    }
    tree
}

/// Replaces `to` by a copy of `from`, with the same times of modification.
pub(crate) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            copy(&source, &target)?;
        } else {
            fs::copy(&source, &target)?;
            fs::File::options().write(true).open(&target)?.set_modified(entry.metadata()?.modified()?)?;
        }
    }
    Ok(())
}

/// Returns whether a name is one that readers look at: no part of it begins with a dot.
pub(crate) fn is_final(path: &Path) -> bool {
    !path.iter().any(|part| part.as_encoded_bytes().starts_with(b"."))
}

/// Returns the names that differ, with what became of them.
pub(crate) fn differences(expected: &Tree, found: &Tree) -> Vec<String> {
    let names = expected.keys().chain(found.keys().filter(|path| !expected.contains_key(*path)));
    let differ = names.filter(|path| expected.get(*path) != found.get(*path));
    differ
        .map(|path| match (expected.get(path), found.get(path)) {
            (Some(_), None) => format!("{} is missing", path.display()),
            (None, Some(_)) => format!("{} is left", path.display()),
            _ => format!("{} has other contents", path.display()),
        })
        .collect()
}
