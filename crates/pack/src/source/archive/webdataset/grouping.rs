//! Which members of a tar are one sample, and whether that is in doubt.

use super::super::files::ArchiveFile;
use crate::error::ArchiveError;
use crate::{Error, MemberKey};
use std::collections::{BTreeMap, BTreeSet};

/// Names of members that a message lists, at most.
const LISTED: usize = 6;

/// Splits a member's path into key and field. Returns `None` if the member belongs to no sample: its name has no dot,
/// is hidden, or is `__NAME__`, which WebDataset reserves.
pub(super) fn split(path: &str, key: MemberKey) -> Option<(&str, &str)> {
    let own = !path.contains('/') && path.starts_with("__") && path.ends_with("__");
    let last = path.rfind('/').map_or(0, |slash| slash + 1);
    let dot = last
        + match key {
            MemberKey::FirstDot => path[last..].find('.')?,
            MemberKey::LastDot => path[last..].rfind('.')?,
        };
    let hidden = path[last..].starts_with('.');
    (dot > last && !hidden && !own).then(|| (&path[..dot], &path[dot + 1..]))
}

/// Finds samples of a tar whose members may be several samples: fields by the first dot with further dots, such as those of
/// `cam_0.00.jpg` and `cam_0.05.jpg`, which are not fields like `seg.png`.
#[derive(Default)]
pub(super) struct Doubts {
    /// The fields of the first sample of which all have several dots.
    dotted: Option<BTreeSet<String>>,
}

impl Doubts {
    /// Checks a sample.
    ///
    /// # Errors
    /// [`ArchiveError::MemberKeys`].
    pub(super) fn check<'f>(
        &mut self,
        file: &ArchiveFile,
        key: &str,
        fields: impl Iterator<Item = &'f str> + Clone,
    ) -> Result<(), Error> {
        if !fields.clone().any(|field| field.contains('.')) {
            return Ok(());
        }
        // The extensions of each sample by the last dot.
        let mut extensions = BTreeMap::<&str, BTreeSet<&str>>::new();
        for field in fields.clone() {
            let (prefix, extension) = field.rsplit_once('.').unwrap_or(("", field));
            extensions.entry(prefix).or_default().insert(extension);
        }
        if !self.is_doubtful(&extensions) {
            return Ok(());
        }
        let name = key.rsplit('/').next().unwrap_or(key);
        let member = |field: &str| format!("{name}.{field}");
        let samples: Vec<_> =
            extensions.keys().map(|prefix| if prefix.is_empty() { name.to_owned() } else { member(prefix) }).collect();
        let names: Vec<_> = fields.map(member).collect();
        Err(Error::Archive(ArchiveError::MemberKeys {
            file: file.name.clone(),
            members: listed(&names),
            first: name.to_owned(),
            last: listed(&samples),
        }))
    }

    fn is_doubtful(&mut self, extensions: &BTreeMap<&str, BTreeSet<&str>>) -> bool {
        let plain = extensions.contains_key("");
        let mut several = extensions.values().filter(|set| set.len() > 1).collect::<Vec<_>>();
        let all = several.len();
        several.sort();
        several.dedup();
        // `1.jpg`, `1.cls`, `1.5.jpg`, `1.5.cls`: the same extensions twice; without a member `1.jpg`, no label is found.
        if several.len() < all || (!plain && all > 0) {
            return true;
        }
        if plain || extensions.len() < 2 {
            return false;
        }
        let numbered = extensions.keys().any(|prefix| prefix.starts_with(|c: char| c.is_ascii_digit()));
        // Fields occur again in other samples.
        let fields: BTreeSet<String> = extensions.keys().map(|prefix| (*prefix).to_owned()).collect();
        let others = *self.dotted.get_or_insert_with(|| fields.clone()) != fields;
        numbered || others
    }
}

fn listed(names: &[String]) -> String {
    match names.len() {
        ..=LISTED => names.join(", "),
        all => format!("{} and {} more", names[..LISTED].join(", "), all - LISTED),
    }
}
