//! Classes of two splits that differ.

use std::fmt;

/// The first difference between the classes of two splits.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClassDifference {
    /// A label has another name, or has a name in one split only.
    Names {
        /// The class id.
        label: usize,
        /// The first split, and its name of the class.
        first: (String, Option<String>),
        /// The second one.
        second: (String, Option<String>),
    },
    /// One split names its classes, the other has numbers only.
    Numbers {
        /// The split with names.
        named: String,
        /// How many names it has.
        classes: usize,
        /// The split with numbers only.
        numbers: String,
    },
    /// Labels are mapped by name, and a split has no names.
    Unnamed {
        /// The split.
        split: String,
    },
}

impl fmt::Display for ClassDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClassDifference::Names { label, first, second } => {
                write!(f, "the classes of the splits differ: label {label} ")?;
                for (n, (split, class)) in [first, second].into_iter().enumerate() {
                    let separator = if n == 0 { "" } else { ", and " };
                    match class {
                        Some(class) => write!(f, "{separator}is {class:?} in {split}")?,
                        None => write!(f, "{separator}has no name in {split}")?,
                    }
                }
                f.write_str(
                    ". Map labels by name with `classes` (the union, or a list of names), or pack all splits with one list \
                     of class names",
                )
            }
            ClassDifference::Numbers { named, classes, numbers } => write!(
                f,
                "the classes of the splits differ: {named} names its {classes} classes, {numbers} has numbers only. If \
                 equal numbers mean equal classes, say so with `classes` (\"ids\"); else pack all splits with one list of \
                 class names"
            ),
            ClassDifference::Unnamed { split } => write!(
                f,
                "{split} does not name its classes, so its labels cannot be mapped by name. If its numbers are the class \
                 ids of the other splits, say so with `classes` (\"ids\"); else pack it with a list of class names"
            ),
        }
    }
}
