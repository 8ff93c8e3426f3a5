//! The answers of the Hub that name a commit, or list files.
//!
//! Source: <https://huggingface.co/docs/hub/api>.

use super::{failed, refused};
use crate::repository::is_commit;
use object_store::Result;
use object_store::path::Path as Key;
use reqwest::header::{HeaderMap, LINK};
use serde::Deserialize;

/// A file or a folder of a dataset.
#[derive(Debug)]
pub(super) struct Entry {
    /// From the root of the dataset.
    pub(super) path: Key,
    /// Length of a file in bytes; `None` of a folder.
    pub(super) size: Option<u64>,
}

/// Returns the entries of a page of the list of a folder; without one, of the root.
///
/// # Errors
/// For other JSON, and for what does not lie in the folder.
pub(super) fn entries(page: &[u8], folder: Option<&Key>) -> Result<Vec<Entry>> {
    #[derive(Deserialize)]
    struct Listed {
        path: String,
        #[serde(rename = "type")]
        kind: String,
        #[serde(default)]
        size: u64,
    }
    let root = Key::default();
    let folder = folder.unwrap_or(&root);
    let listed: Vec<Listed> = serde_json::from_slice(page).map_err(failed)?;
    let entry = |Listed { path, kind, size }: Listed| {
        let key = Key::parse(&path)?;
        // `Some` of parts below the folder.
        match key.prefix_match(folder).map(Iterator::count) {
            Some(1) => Ok(Entry { path: key, size: (kind == "file").then_some(size) }),
            _ => Err(refused(format!("the list of \"{folder}\" names \"{path}\", which does not lie in this folder"))),
        }
    };
    listed.into_iter().map(entry).collect()
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
    fn a_list_names_what_lies_in_its_folder() {
        let page = |path: &str| format!(r#"[{{"type": "file", "path": {path:?}, "size": 7, "oid": "x"}}]"#);
        let sizes = |path: &str, folder: &str| {
            let entries = entries(page(path).as_bytes(), Some(&Key::parse(folder).unwrap()))?;
            Ok::<_, object_store::Error>(entries.iter().map(|entry| entry.size).collect::<Vec<_>>())
        };
        assert_eq!(sizes("data/a.tar", "data").unwrap(), [Some(7)]);
        assert_eq!(sizes("a.tar", "").unwrap(), [Some(7)]);
        for (path, folder) in [
            ("a.tar", "data"),
            ("data", "data"),
            ("data/more/a.tar", "data"),
            ("database/a.tar", "data"),
            ("data/../a.tar", "data"),
            ("../a.tar", ""),
            ("data//a.tar", "data"),
            ("data/a.tar", ""),
            ("", ""),
        ] {
            assert!(sizes(path, folder).is_err(), "{path:?} in {folder:?}");
        }
        let folder = entries(br#"[{"type": "directory", "path": "data"}]"#, None).unwrap();
        assert_eq!(folder[0].size, None);
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
