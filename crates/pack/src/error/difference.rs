//! How two manifests, or two plans, differ.

use shardtool_format::manifest::{DType, FeatureType, Keypoints, Manifest};
use std::collections::HashSet;

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
    /// Other keypoints, or their names are known of one side only.
    Keypoints {
        /// Those of the dataset.
        there: Option<Box<Keypoints>>,
        /// Those of the split.
        here: Option<Box<Keypoints>>,
    },
    /// Appended records have a feature of another type than the dataset.
    OtherType {
        /// The feature.
        name: String,
        /// Its type in the dataset.
        there: DType,
        /// Its type in the source.
        here: DType,
    },
    /// Appended records have features that the dataset lacks.
    NewFeatures(Vec<FeatureType>),
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
            let b: HashSet<_> = b.iter().collect();
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
        // What records of new shards must have is what the others store; columns of a version lie elsewhere.
        let (there_features, here_features) = (there.stored_features(), here.stored_features());
        if there_features != here_features {
            let only = |a: &[FeatureType], b: &[FeatureType]| {
                let b: HashSet<_> = b.iter().map(|f| (&f.name, f.dtype.name())).collect();
                a.iter().filter(|f| !b.contains(&(&f.name, f.dtype.name()))).cloned().collect()
            };
            return Some(Difference::Features {
                missing: only(there_features, here_features),
                added: only(here_features, there_features),
            });
        }
        if joined_keypoints(there, here).is_none() {
            let boxed = |manifest: &Manifest| manifest.keypoints.clone().map(Box::new);
            return Some(Difference::Keypoints { there: boxed(there), here: boxed(here) });
        }
        let requires = |manifest: &Manifest| manifest.without_versions().requires.join(", ");
        let text = |name: &Option<String>| name.clone().unwrap_or("none".to_owned());
        let members = [
            ("requires", requires(there), requires(here)),
            ("image", text(&there.image), text(&here.image)),
            ("label", text(&there.label), text(&here.label)),
            ("label_offset", there.label_offset.to_string(), here.label_offset.to_string()),
        ];
        let differs = members.into_iter().find(|(_, there, here)| there != here);
        differs.map(|(member, there, here)| Difference::Convention { member, there, here })
    }
}

/// Returns what two manifests say together of their keypoints; `None` if they contradict each other, or one says nothing.
pub(crate) fn joined_keypoints(there: &Manifest, here: &Manifest) -> Option<Option<Keypoints>> {
    match (&there.keypoints, &here.keypoints) {
        (None, None) => Some(None),
        (Some(there), Some(here)) => there.joined(here).map(Some),
        _ => None,
    }
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let features = |list: &[FeatureType]| list.iter().map(|t| format!("{}:{}", t.name, t.dtype.name())).collect();
        match self {
            Difference::Classes { missing, added } => {
                write!(f, "the dataset has {} classes{} that the split lacks, ", missing.len(), some(missing))?;
                write!(f, "the split has {}{} that the dataset lacks; ", added.len(), some(added))?;
                f.write_str(
                    "use one file of class names for both, with --classes (and --column label:bytes where the names are numbers); pack a split \
                     without labels into another dataset",
                )
            }
            Difference::ClassOrder { class } => {
                write!(
                    f,
                    "class `{class}` has a different id in the dataset; give the dataset's names in its order with --classes"
                )
            }
            Difference::Features { missing, added } => {
                let (missing, added): (Vec<_>, Vec<_>) = (features(missing), features(added));
                write!(f, "the dataset has {} features{} that the split lacks, ", missing.len(), some(&missing))?;
                write!(f, "the split has {}{} that the dataset lacks; ", added.len(), some(&added))?;
                f.write_str("all splits must have the same features with the same types")
            }
            Difference::Keypoints { there, here } => {
                let described = |keypoints: &Option<Box<Keypoints>>| match keypoints {
                    None => "not described".to_owned(),
                    Some(keypoints) => match keypoints.names.is_empty() {
                        true => format!("{} without names", keypoints.count()),
                        false => format!("{}{}", keypoints.count(), some(&keypoints.names)),
                    },
                };
                let more = match described(there) == described(here) {
                    true => ", which change places or are joined in another way",
                    false => "",
                };
                let (there, here) = (described(there), described(here));
                write!(
                    f,
                    "the keypoints of objects are {there} in the dataset and {here} in the split{more}; all splits must have \
                     the same: say it for the split, or write all splits again"
                )
            }
            Difference::OtherType { name, there, here } => {
                let (there, here) = (there.name(), here.name());
                write!(
                    f,
                    "`{name}` is {there} in the dataset and {here} in the source; --column {name}:{there} declares it"
                )
            }
            Difference::NewFeatures(new) => {
                let new: Vec<_> = features(new);
                write!(f, "the source has features that the dataset lacks{}; ", some(&new))?;
                f.write_str("leave them out, or add them to the dataset with `shardtool column add`")
            }
            Difference::Convention { member, there, here } => {
                write!(f, "`{member}` is {there} in the dataset and {here} in the split; all splits must agree")
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

/// The first difference between a pack and the one that a plan file describes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlanDifference {
    /// The first member that differs.
    pub member: String,
    /// Its value in the plan file.
    pub before: String,
    /// Its value now.
    pub now: String,
}

impl std::fmt::Display for PlanDifference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "different {}: {} before, {} now", self.member, self.before, self.now)
    }
}
