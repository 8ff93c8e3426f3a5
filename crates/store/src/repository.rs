//! Which dataset of the Hugging Face Hub, and which revision of it, a URL names.
//!
//! Source: `HfFileSystem` of huggingface_hub, which takes the same URLs.

/// Digits of a commit.
const COMMIT: usize = 40;

/// A dataset on the Hub, and its revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Repository {
    /// `OWNER/NAME`.
    pub(crate) name: String,
    /// A branch, a tag, a commit, or `refs/…`.
    revision: Option<String>,
}

impl Repository {
    /// Parses what follows `hf://`. Returns the dataset, and the rest: the key of a file.
    ///
    /// # Errors
    /// What is wrong.
    pub(crate) fn parse(text: &str) -> Result<(Self, &str), String> {
        let expected = "expected hf://datasets/OWNER/NAME[@REVISION]/PATH";
        let Some(rest) = text.strip_prefix("datasets/") else {
            return Err(format!("only datasets are read from the Hub: {expected}"));
        };
        let (owner, rest) = rest.split_once('/').ok_or(expected)?;
        let (name, key) = rest.split_once('/').unwrap_or((rest, ""));
        let (name, revision) = name.split_once('@').map_or((name, None), |(name, revision)| (name, Some(revision)));
        for part in [owner, name] {
            if !is_name(part) {
                return Err(format!("{part:?} is not the name of an owner or a dataset: {expected}"));
            }
        }
        let (revision, key) = match revision {
            // `refs/convert/parquet`, `refs/pr/1`: written with slashes, or encoded.
            Some("refs") => {
                let mut parts = key.splitn(3, '/');
                let (Some(kind @ ("convert" | "pr")), Some(number)) = (parts.next(), parts.next()) else {
                    return Err("the revision refs/… is refs/convert/NAME or refs/pr/NUMBER".to_owned());
                };
                (Some(format!("refs/{kind}/{number}")), parts.next().unwrap_or_default())
            }
            Some(revision) => (Some(revision.replace("%2F", "/").replace("%2f", "/")), key),
            None => (None, key),
        };
        if let Some(revision) = revision.as_ref().filter(|revision| !revision.split('/').all(is_name)) {
            return Err(format!("{revision:?} is not a revision: a branch, a tag or a commit"));
        }
        Ok((Repository { name: format!("{owner}/{name}"), revision }, key))
    }

    /// Returns owner and name.
    #[cfg(feature = "remote")]
    pub(crate) fn parts(&self) -> (&str, &str) {
        self.name.split_once('/').expect("parsed so")
    }

    pub(crate) fn revision(&self) -> Option<&str> {
        self.revision.as_deref()
    }

    /// Returns the commit, if the revision is one.
    pub(crate) fn commit(&self) -> Option<&str> {
        self.revision().filter(|revision| is_commit(revision))
    }

    /// Returns the same dataset at a commit, as the beginning of a URL.
    pub(crate) fn at(&self, commit: &str) -> String {
        format!("hf://datasets/{}@{commit}", self.name)
    }
}

/// Returns whether a text is a commit.
pub(crate) fn is_commit(text: &str) -> bool {
    text.len() == COMMIT && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

fn is_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    !text.is_empty() && text != "." && text != ".." && text.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_dataset_revision_and_key() {
        let of = |text: &str| {
            Repository::parse(text).map(|(found, key)| (found.name, found.revision.unwrap_or_default(), key.to_owned()))
        };
        let found = |name: &str, revision: &str, key: &str| Ok((name.to_owned(), revision.to_owned(), key.to_owned()));
        assert_eq!(of("datasets/a/b"), found("a/b", "", ""));
        assert_eq!(of("datasets/a/b/data/x@y.parquet"), found("a/b", "", "data/x@y.parquet"));
        assert_eq!(of("datasets/a.b/b-c_d@v1.0/x"), found("a.b/b-c_d", "v1.0", "x"));
        assert_eq!(of("datasets/a/b@refs/convert/parquet/d/x"), found("a/b", "refs/convert/parquet", "d/x"));
        assert_eq!(of("datasets/a/b@refs%2Fpr%2F3/x"), found("a/b", "refs/pr/3", "x"));
        for wrong in [
            "a/b",
            "models/a/b",
            "datasets/a",
            "datasets/../b",
            "datasets/a/..",
            "datasets/a/b@",
            "datasets/a/b@../x",
            "datasets/a/b@x%2F..",
            "datasets/a/b@refs/x",
            "datasets/u:p@h/b",
            "datasets/a/b c",
        ] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
        let commit = "0123456789abcdef0123456789abcdef01234567";
        let (found, _) = Repository::parse(&format!("datasets/a/b@{commit}/x")).unwrap();
        assert_eq!((found.commit(), found.at(commit)), (Some(commit), format!("hf://datasets/a/b@{commit}")));
        assert_eq!(Repository::parse("datasets/a/b@main").unwrap().0.commit(), None);
    }
}
