//! The structure that documents promise: which modules of a crate import each other in a circle, which hold `unsafe`, which the
//! table of their parent names, and that none computes values with functions that differ by system. Reads `use` lines and paths of
//! the sources; imports through re-exports are those of the module that re-exports.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The exceptions of today, which may only become fewer.
const KNOWN: &str = include_str!("structure.txt");

/// The modules of a crate: path of names to source without comments and tests.
type Modules = BTreeMap<Vec<String>, String>;

fn crates() -> Vec<(String, PathBuf)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("src/lib.rs").is_file())
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), path.join("src")))
        .collect();
    found.sort();
    assert!(found.len() > 10, "crates of {}", folder.display());
    found
}

fn modules(folder: &Path, names: &[String], found: &mut Modules) {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        let inner: Vec<_> = names.iter().cloned().chain([stem.clone()]).collect();
        if path.is_dir() {
            modules(&path, &inner, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") && stem != "main" {
            let name = if ["lib", "mod"].contains(&&*stem) { names.to_vec() } else { inner };
            found.insert(name, code(&fs::read_to_string(&path).unwrap()));
        }
    }
}

/// Returns source without comments, and without what follows `#[cfg(test)]` of a module at the end.
fn code(source: &str) -> String {
    let end = source.find("#[cfg(test)]\nmod ").unwrap_or(source.len());
    source[..end].lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// Returns the modules that a module imports: the longest beginning of each path that is one.
fn imports(modules: &Modules, of: &[String]) -> BTreeSet<Vec<String>> {
    let mut found = BTreeSet::new();
    let text = &modules[of];
    let bytes = text.as_bytes();
    for (root, base) in [("crate::", vec![]), ("super::", of[..of.len().saturating_sub(1)].to_vec())] {
        for (at, _) in text.match_indices(root) {
            if at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || b"_:".contains(&bytes[at - 1])) {
                continue;
            }
            let mut base = base.clone();
            let mut rest = &text[at + root.len()..];
            while let Some(more) = rest.strip_prefix("super::") {
                base.pop();
                rest = more;
            }
            for path in paths(rest) {
                let full: Vec<_> = base.iter().cloned().chain(path).collect();
                let module = (1..=full.len()).rev().map(|n| &full[..n]).find(|name| modules.contains_key(*name));
                found.extend(module.filter(|name| *name != of).map(<[String]>::to_vec));
            }
        }
    }
    found
}

/// Returns the paths that `text` begins with: one, or those of a group in braces.
fn paths(text: &str) -> Vec<Vec<String>> {
    let name: String = text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    if let Some(group) = text.strip_prefix('{') {
        let (mut depth, mut start, mut all) = (0, 0, vec![]);
        for (at, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                ',' | '}' if depth == 0 => {
                    all.extend(paths(group[start..at].trim_start()));
                    start = at + 1;
                    if c == '}' {
                        break;
                    }
                }
                '}' => depth -= 1,
                _ => {}
            }
        }
        return all;
    }
    match text[name.len()..].strip_prefix("::") {
        _ if name.is_empty() => vec![],
        Some(rest) if rest.starts_with(|c: char| c == '{' || c == '_' || c.is_alphanumeric()) => {
            let deeper = paths(rest);
            deeper.into_iter().map(|path| [vec![name.clone()], path].concat()).collect()
        }
        _ => vec![vec![name]],
    }
}

/// Returns the sets of modules that import each other in a circle.
fn circles(graph: &BTreeMap<Vec<String>, BTreeSet<Vec<String>>>) -> Vec<BTreeSet<String>> {
    let reached = |from: &Vec<String>| {
        let (mut seen, mut left) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(at) = left.pop() {
            left.extend(graph[&at].iter().filter(|next| seen.insert((*next).clone())).cloned());
        }
        seen
    };
    let reach: BTreeMap<_, _> = graph.keys().map(|name| (name, reached(name))).collect();
    let mut found: BTreeSet<BTreeSet<String>> = BTreeSet::new();
    for (name, seen) in &reach {
        let circle: BTreeSet<_> =
            seen.iter().filter(|other| reach[*other].contains(*name)).map(|m| m.join("::")).collect();
        if circle.len() > 1 {
            found.insert(circle);
        }
    }
    found.into_iter().collect()
}

/// Returns what the list knows of a kind: of each crate, sets of names.
fn known(kind: &str) -> Vec<(String, BTreeSet<String>)> {
    let lines = KNOWN.lines().filter_map(|line| line.strip_prefix(kind)?.trim().split_once(": "));
    lines.map(|(name, set)| (name.to_owned(), set.split_whitespace().map(str::to_owned).collect())).collect()
}

#[test]
fn no_new_modules_import_each_other_in_a_circle() {
    let (known, mut used) = (known("circle"), BTreeSet::new());
    let mut wrong = vec![];
    for (name, folder) in crates() {
        let mut all = Modules::new();
        modules(&folder, &[], &mut all);
        // The root re-exports everything, and a parent knows its children: neither makes a circle.
        let inner = |module: &[String]| {
            let seen = imports(&all, module);
            seen.into_iter().filter(|other| !module.starts_with(other) && !other.starts_with(module)).collect()
        };
        let graph = all.keys().map(|module| (module.clone(), inner(module))).collect();
        for circle in circles(&graph) {
            match known.iter().position(|(of, set)| *of == name && circle.is_subset(set)) {
                Some(line) if known[line].1 == circle => drop(used.insert(line)),
                Some(_) => wrong.push(format!("became less: circle {name}: {}", text(&circle))),
                None => wrong.push(format!("new: circle {name}: {}", text(&circle))),
            }
        }
    }
    let gone = known.iter().enumerate().filter(|(line, _)| !used.contains(line));
    wrong.extend(gone.map(|(_, (name, set))| format!("gone or less: circle {name}: {}", text(set))));
    assert!(wrong.is_empty(), "structure.txt:\n{}", wrong.join("\n"));
}

#[test]
fn no_other_modules_hold_unsafe_code() {
    let mut found = vec![];
    for (name, folder) in crates() {
        let mut all = Modules::new();
        modules(&folder, &[], &mut all);
        let holds = |code: &str| code.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "unsafe");
        let set: BTreeSet<_> = all.iter().filter(|(_, code)| holds(code)).map(|(m, _)| m.join("::")).collect();
        if !set.is_empty() {
            found.push((name, set));
        }
    }
    assert_eq!(lines("unsafe", &found), lines("unsafe", &known("unsafe")), "structure.txt");
}

#[test]
fn no_value_depends_on_the_functions_of_a_system() {
    // Their last bits differ between systems and processors: the package `libm` is the same everywhere. Pages and the demo may
    // use them.
    let inexact =
        "acos asin atan atan2 cbrt cos cosh exp exp2 exp_m1 hypot ln ln_1p log10 log2 powf sin sin_cos sinh tan tanh";
    let mut found = vec![];
    for (name, folder) in crates().into_iter().filter(|(name, _)| !["cli", "view"].contains(&&**name)) {
        let mut modules = Modules::new();
        self::modules(&folder, &[], &mut modules);
        for (module, code) in modules {
            let called = |function: &&str| {
                [".", "f32::", "f64::"].iter().any(|before| code.contains(&format!("{before}{function}(")))
            };
            found.extend(
                inexact.split(' ').filter(called).map(|function| format!("{name} {}: {function}", module.join("::"))),
            );
        }
    }
    assert_eq!(found, [""; 0], "use the functions of `libm`");
}

#[test]
fn tables_name_every_module() {
    let mut found = vec![];
    for (name, folder) in crates() {
        let mut missing = BTreeSet::new();
        unnamed(&folder, &mut missing);
        if !missing.is_empty() {
            found.push((name, missing));
        }
    }
    assert_eq!(lines("unnamed", &found), lines("unnamed", &known("unnamed")), "structure.txt");
}

/// Adds the modules that the table of the file that declares them does not name, if it has one.
fn unnamed(folder: &Path, missing: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            unnamed(&path, missing);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = fs::read_to_string(&path).unwrap();
            let table: String = source.lines().filter(|line| line.starts_with("//! |")).collect();
            // Others list items, or features of a format.
            let of_modules = ["//! | module |", "//! | file |"].iter().any(|header| table.starts_with(header));
            let declared = source.lines().filter_map(|line| {
                let line = ["pub(crate) ", "pub(super) ", "pub "]
                    .iter()
                    .find_map(|prefix| line.strip_prefix(prefix))
                    .unwrap_or(line);
                line.strip_prefix("mod ")?.strip_suffix(';')
            });
            let parent = path.file_stem().unwrap().to_string_lossy().into_owned();
            let parent = if parent == "mod" {
                path.parent().unwrap().file_name().unwrap().to_string_lossy().into_owned()
            } else {
                parent
            };
            let left =
                declared.filter(|module| of_modules && *module != "tests" && !table.contains(&format!("`{module}")));
            missing.extend(left.map(|module| format!("{parent}::{module}")));
        }
    }
}

/// Returns lines as in the list.
fn lines(kind: &str, sets: &[(String, BTreeSet<String>)]) -> String {
    sets.iter().map(|(name, set)| format!("{kind} {name}: {}", text(set))).collect::<Vec<_>>().join("\n")
}

fn text(set: &BTreeSet<String>) -> String {
    set.iter().cloned().collect::<Vec<_>>().join(" ")
}
