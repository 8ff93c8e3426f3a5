//! The manifest as the writer sees it: read, compared with a new split, and replaced with a split put in or taken out.

use crate::commit::{self, Lock};
use crate::source::Described;
use crate::{Error, Plan, record};
use shardtool_format::manifest::{FeatureType, Manifest, Split};
use shardtool_format::names;
use std::path::Path;

/// What wrote the manifest.
pub(crate) const CREATED_BY: &str = concat!("shardtool ", env!("CARGO_PKG_VERSION"));
/// Held while the manifest is read and replaced.
const LOCK: &str = ".dataset.lock";

/// The manifest of a folder; `None` if it has none.
///
/// # Errors
/// [`Error::Manifest`], [`Error::Io`].
pub(crate) fn read(folder: &Path) -> Result<Option<Manifest>, Error> {
    let path = folder.join(names::MANIFEST);
    let parse = |json: Vec<u8>| Manifest::parse(&json).map_err(|source| Error::Manifest { path: path.clone(), source });
    commit::read(&path)?.map(parse).transpose()
}

/// A manifest without splits, for what a plan will write.
pub(crate) fn of_plan(plan: &Plan) -> Manifest {
    of_described(plan.described())
}

/// A manifest without splits, for samples of which `described` is true.
pub(crate) fn of_described(described: &Described) -> Manifest {
    Manifest {
        image: described.images.then(|| names::IMAGE_ENCODED.to_owned()),
        label: described.labelled.then(|| names::CLASS_LABEL.to_owned()),
        features: record::features(described),
        classes: described.classes.clone(),
        ..Manifest::new(CREATED_BY)
    }
}

/// Puts a split in place, beside those that are there. `described` is the split's manifest without splits.
///
/// # Errors
/// [`Error::SplitExists`], [`Error::Incompatible`], and those of [`read`] and of writing.
pub(crate) fn add_split(folder: &Path, described: &Manifest, split: Split) -> Result<(), Error> {
    let _lock = Lock::wait(folder.join(LOCK))?;
    let mut manifest = joined(folder, described, &split.name, false)?;
    manifest.splits.push(split);
    manifest.splits.sort_by(|a, b| a.name.cmp(&b.name));
    write(folder, &manifest)
}

/// Takes a split out, if it is there. Its files stay.
///
/// # Errors
/// Those of [`read`] and of writing.
pub(crate) fn remove_split(folder: &Path, split: &str) -> Result<(), Error> {
    let _lock = Lock::wait(folder.join(LOCK))?;
    if let Some(mut manifest) = read(folder)?
        && manifest.split(split).is_some()
    {
        manifest.splits.retain(|s| s.name != split);
        write(folder, &manifest)?;
    }
    Ok(())
}

/// Replaces the manifest.
///
/// # Errors
/// [`Error::Io`].
pub(crate) fn replace(folder: &Path, manifest: &Manifest) -> Result<(), Error> {
    let _lock = Lock::wait(folder.join(LOCK))?;
    write(folder, manifest)
}

/// Checks that a split can join the dataset in a folder, in place of one of its name where `replacing`; returns what it
/// joins, without that one.
///
/// # Errors
/// As [`add_split`], without those of writing.
pub(crate) fn joined(folder: &Path, described: &Manifest, split: &str, replacing: bool) -> Result<Manifest, Error> {
    let destination = || folder.to_owned();
    let mut there = read(folder)?.unwrap_or_else(|| described.clone());
    if there.split(split).is_some() && !replacing {
        return Err(Error::SplitExists { destination: destination(), split: split.to_owned() });
    }
    there.splits.retain(|s| s.name != split);
    if there.splits.is_empty() {
        // Nothing to agree with: a dataset whose only split is replaced may change its classes.
        return Ok(described.clone());
    }
    match Difference::between(&there, described) {
        Some(difference) => {
            Err(Error::Incompatible { destination: destination(), split: split.to_owned(), difference })
        }
        None => Ok(there),
    }
}

fn write(folder: &Path, manifest: &Manifest) -> Result<(), Error> {
    commit::publish(folder.join(names::MANIFEST), manifest.to_json().as_bytes())?;
    commit::sync_folder(folder)
}

/// How a new split differs from the dataset that it would join.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Difference {
    /// Other classes.
    Classes {
        /// Classes that only the dataset has.
        missing: Vec<String>,
        /// Classes that only the split has.
        added: Vec<String>,
    },
    /// The same classes under other ids.
    ClassOrder {
        /// The first class whose id differs.
        class: String,
    },
    /// Other features, or features of other types.
    Features {
        /// What only the dataset has.
        missing: Vec<FeatureType>,
        /// What only the split has.
        added: Vec<FeatureType>,
    },
    /// Another image or label feature, or another label offset.
    Convention {
        /// Which member of the manifest.
        member: &'static str,
        /// Its value in the dataset.
        there: String,
        /// Its value for the split.
        here: String,
    },
}

impl Difference {
    pub(crate) fn between(there: &Manifest, here: &Manifest) -> Option<Self> {
        let only = |a: &[String], b: &[String]| {
            let b: std::collections::HashSet<_> = b.iter().collect();
            a.iter().filter(|class| !b.contains(class)).cloned().collect::<Vec<_>>()
        };
        if there.classes != here.classes {
            let (missing, added) = (only(&there.classes, &here.classes), only(&here.classes, &there.classes));
            let moved = here.classes.iter().zip(&there.classes).find(|(a, b)| a != b);
            return Some(match moved {
                Some((class, _)) if missing.is_empty() && added.is_empty() => {
                    Difference::ClassOrder { class: class.clone() }
                }
                _ => Difference::Classes { missing, added },
            });
        }
        if there.features != here.features {
            let only = |a: &[FeatureType], b: &[FeatureType]| a.iter().filter(|f| !b.contains(f)).cloned().collect();
            return Some(Difference::Features {
                missing: only(&there.features, &here.features),
                added: only(&here.features, &there.features),
            });
        }
        let text = |name: &Option<String>| name.clone().unwrap_or("none".to_owned());
        let members = [
            ("image", text(&there.image), text(&here.image)),
            ("label", text(&there.label), text(&here.label)),
            ("label_offset", there.label_offset.to_string(), here.label_offset.to_string()),
        ];
        let differs = members.into_iter().find(|(_, there, here)| there != here);
        differs.map(|(member, there, here)| Difference::Convention { member, there, here })
    }
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let features = |list: &[FeatureType]| list.iter().map(|t| format!("{}:{}", t.name, t.kind.name())).collect();
        match self {
            Difference::Classes { missing, added } => {
                write!(f, "the dataset has {} other classes{}, ", missing.len(), some(missing))?;
                write!(f, "the split {}{}; ", added.len(), some(added))?;
                f.write_str("give both the same names, in one file, with --classes")
            }
            Difference::ClassOrder { class } => {
                write!(f, "class `{class}` has another id there; give the dataset's names in its order with --classes")
            }
            Difference::Features { missing, added } => {
                let (missing, added): (Vec<_>, Vec<_>) = (features(missing), features(added));
                write!(f, "the dataset has {} other features{}, ", missing.len(), some(&missing))?;
                write!(f, "the split {}{}; ", added.len(), some(&added))?;
                f.write_str("all splits have the same features of the same types")
            }
            Difference::Convention { member, there, here } => {
                write!(f, "{member} is {there} there, {here} here; all splits share it")
            }
        }
    }
}

/// The first few names, in parentheses.
fn some(names: &[String]) -> String {
    match names {
        [] => String::new(),
        _ => {
            let shown: Vec<_> = names.iter().take(5).map(|name| format!("`{name}`")).collect();
            format!(" ({}{})", shown.join(", "), if names.len() > 5 { " …" } else { "" })
        }
    }
}
