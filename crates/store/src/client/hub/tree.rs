//! The answers of the Hub that name a commit, or list files.
//!
//! Source: <https://huggingface.co/docs/hub/api>.

use super::failed;
use crate::repository::is_commit;
use object_store::Result;
use reqwest::header::{HeaderMap, LINK};
use serde::Deserialize;

/// A file or a folder of a dataset.
#[derive(Debug, Deserialize)]
pub(super) struct Entry {
    /// From the root of the dataset.
    pub(super) path: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    size: u64,
}

impl Entry {
    /// Returns the length of a file; `None` of a folder.
    pub(super) fn size(&self) -> Option<u64> {
        (self.kind == "file").then_some(self.size)
    }
}

/// Returns the entries of a page.
///
/// # Errors
/// For other JSON.
pub(super) fn entries(page: &[u8]) -> Result<Vec<Entry>> {
    serde_json::from_slice(page).map_err(failed)
}

/// Returns the commit of a revision.
///
/// # Errors
/// For other JSON.
pub(super) fn commit(answer: &[u8]) -> Result<String> {
    #[derive(Deserialize)]
    struct Revision {
        sha: String,
    }
    let Revision { sha } = serde_json::from_slice(answer).map_err(failed)?;
    if is_commit(&sha) { Ok(sha) } else { Err(failed("the Hub names no commit of 40 digits for the revision")) }
}

/// Returns the link to the next page: `Link: <URL>; rel="next"`.
pub(super) fn next_page(headers: &HeaderMap) -> Option<&str> {
    let links = headers.get(LINK)?.to_str().ok()?;
    links.split(',').find_map(|link| {
        let (url, parameters) = link.split_once('>')?;
        parameters.contains("rel=\"next\"").then(|| url.trim().trim_start_matches('<'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_link_to_the_next_page() {
        let of = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(LINK, text.parse().unwrap());
            next_page(&headers).map(str::to_owned)
        };
        assert_eq!(of("<https://h/x?cursor=a>; rel=\"next\"").as_deref(), Some("https://h/x?cursor=a"));
        assert_eq!(of("<https://h/a>; rel=\"prev\", <https://h/b>; rel=\"next\"").as_deref(), Some("https://h/b"));
        assert_eq!(of("<https://h/a>; rel=\"prev\""), None);
        assert_eq!(next_page(&HeaderMap::new()), None);
    }

    #[test]
    fn a_commit_has_forty_digits() {
        let sha = "0123456789abcdef0123456789abcdef01234567";
        assert_eq!(commit(format!("{{\"sha\": \"{sha}\", \"id\": \"a/b\"}}").as_bytes()).unwrap(), sha);
        for other in ["{}", "{\"sha\": \"main\"}", "{\"sha\": \"../../x\"}", "[]", ""] {
            assert!(commit(other.as_bytes()).is_err(), "{other}");
        }
    }
}
