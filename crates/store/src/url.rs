//! Which paths are URLs, and what they name.

use crate::repository::Repository;
use std::io;
use std::path::{Path, PathBuf};

/// The schemes that name objects in stores.
const SCHEMES: [(&str, Service); 10] = [
    ("s3", Service::S3),
    ("s3a", Service::S3),
    ("gs", Service::Gcs),
    ("az", Service::Azure),
    ("abfs", Service::Azure),
    ("abfss", Service::Azure),
    ("http", Service::Http),
    ("https", Service::Http),
    ("hdfs", Service::Hdfs),
    ("hf", Service::Hub),
];

/// What ends a scheme.
const SEPARATOR: &[u8] = b"://";

/// A kind of store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Service {
    S3,
    Gcs,
    Azure,
    Http,
    Hdfs,
    Hub,
}

/// The URL of an object, or of the common prefix of several ("folder").
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Url {
    pub(crate) service: Service,
    /// Scheme and authority: `s3://bucket`, `http://host:port`, `hdfs://`, `hf://datasets/OWNER/NAME@REVISION`. One client serves one
    /// root.
    pub(crate) root: String,
    /// The key, without a leading slash.
    pub(crate) key: String,
}

impl Url {
    /// Parses a path that [`is_url`].
    ///
    /// # Errors
    /// `InvalidInput` for an unknown scheme, a URL without bucket or host, one that is not UTF-8, and one with a query or a
    /// fragment, to which the names of shards cannot be appended.
    pub(crate) fn parse(path: &Path) -> io::Result<Self> {
        let invalid = |problem: String| io::Error::new(io::ErrorKind::InvalidInput, problem);
        let text = path.to_str().ok_or_else(|| invalid("the URL is not UTF-8".to_owned()))?;
        let (scheme, rest) = split(text).ok_or_else(|| invalid("it is not a URL".to_owned()))?;
        let Some((_, service)) = SCHEMES.iter().find(|(name, _)| *name == scheme) else {
            let known: Vec<_> = SCHEMES.iter().map(|(name, _)| format!("{name}://")).collect();
            return Err(invalid(format!("unknown scheme {scheme}:// (known: {}, file://)", known.join(", "))));
        };
        if *service == Service::Hub {
            let (_, key) = Repository::parse(rest).map_err(invalid)?;
            let root = text[..text.len() - key.len()].trim_end_matches('/').to_owned();
            return Ok(Url { service: *service, root, key: key.trim_matches('/').to_owned() });
        }
        let (authority, key) = rest.split_once('/').unwrap_or((rest, ""));
        // `hdfs:///PATH` lies in the default file system of Hadoop's configuration.
        if authority.is_empty() && *service != Service::Hdfs {
            return Err(invalid(format!("the URL names no bucket or host: expected {scheme}://NAME/…")));
        }
        if *service == Service::Http && key.contains(['?', '#']) {
            return Err(invalid("URLs with a query or a fragment are not supported".to_owned()));
        }
        Ok(Url { service: *service, root: format!("{scheme}://{authority}"), key: key.trim_matches('/').to_owned() })
    }
}

/// Returns whether a path names an object in a store: it begins with a scheme other than `file://`. (A local folder of such
/// a name is reached as `./s3:`.)
pub fn is_url(path: &Path) -> bool {
    let has_scheme = scheme_end(path.as_os_str().as_encoded_bytes()).is_some();
    has_scheme && path.to_str().and_then(split).is_some_and(|(scheme, _)| scheme != "file")
}

/// Returns whether a path looks like a URL that lost a slash (`s3:/bucket`), as in Python's `pathlib`.
pub fn lacks_slash(path: &Path) -> bool {
    let text = path.to_str().and_then(|text| text.split_once(":/"));
    text.is_some_and(|(scheme, rest)| !rest.starts_with('/') && SCHEMES.iter().any(|(name, _)| *name == scheme))
}

/// Returns the local path that `file:///PATH` names; other paths unchanged.
pub fn local_path(path: &Path) -> PathBuf {
    match path.to_str().and_then(split) {
        Some(("file", rest)) => {
            // `file://localhost/PATH` is the other form of RFC 8089.
            PathBuf::from(rest.strip_prefix("localhost").filter(|rest| rest.starts_with('/')).unwrap_or(rest))
        }
        _ => path.to_owned(),
    }
}

/// Splits `scheme://rest`.
fn split(text: &str) -> Option<(&str, &str)> {
    let end = scheme_end(text.as_bytes())?;
    Some((&text[..end], &text[end + SEPARATOR.len()..]))
}

/// Returns the length of the scheme that `://` follows. It has at least two letters, so that a drive letter is not one.
///
/// Every path of a listing is examined here, so its bytes are scanned only up to the first one that no scheme has, which in
/// a path is near its beginning.
fn scheme_end(path: &[u8]) -> Option<usize> {
    let in_scheme = |c: &u8| c.is_ascii_lowercase() || c.is_ascii_digit() || b"+.-".contains(c);
    let end = path.iter().position(|c| !in_scheme(c))?;
    (end >= 2 && path[0].is_ascii_lowercase() && path[end..].starts_with(SEPARATOR)).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<(Service, String, String), String> {
        let url = Url::parse(Path::new(text)).map_err(|error| error.to_string())?;
        Ok((url.service, url.root, url.key))
    }

    #[test]
    fn splits_root_and_key() {
        let of = |service, root: &str, key: &str| Ok((service, root.to_owned(), key.to_owned()));
        assert_eq!(parse("s3://b/a/train-00000.tfrecord"), of(Service::S3, "s3://b", "a/train-00000.tfrecord"));
        assert_eq!(parse("gs://b"), of(Service::Gcs, "gs://b", ""));
        assert_eq!(parse("http://127.0.0.1:80/x/"), of(Service::Http, "http://127.0.0.1:80", "x"));
        assert_eq!(parse("hdfs://host:8020/a/b"), of(Service::Hdfs, "hdfs://host:8020", "a/b"));
        assert_eq!(parse("hdfs:///a/b"), of(Service::Hdfs, "hdfs://", "a/b"));
        assert_eq!(parse("hf://datasets/a/b@v1/c/d"), of(Service::Hub, "hf://datasets/a/b@v1", "c/d"));
        assert_eq!(parse("hf://datasets/a/b"), of(Service::Hub, "hf://datasets/a/b", ""));
        assert!(parse("hf://a/b").unwrap_err().contains("only datasets"));
        assert!(parse("s3:///a").unwrap_err().contains("no bucket"));
        assert!(parse("ftp://h/a").unwrap_err().contains("unknown scheme ftp://"));
        assert!(parse("https://h/a?token=1").is_err());
        assert!(parse("/a/b").is_err());
    }

    #[test]
    fn names_joined_to_a_url_stay_below_it() {
        let joined = Path::new("s3://b/a").join("_index").join("x");
        assert_eq!(joined.to_str(), Some("s3://b/a/_index/x"));
        assert_eq!(joined.parent().and_then(Path::parent), Some(Path::new("s3://b/a")));
    }

    #[test]
    fn distinguishes_urls_from_paths() {
        for url in ["s3://b", "http://h/x", "whatever://x"] {
            assert!(is_url(Path::new(url)), "{url}");
        }
        for path in [
            "/a/b",
            "a",
            "",
            "./s3://b",
            "file:///a",
            "c://x",
            "S3://b",
            "a b://c",
            "s3:/b",
            "3s://b",
            "a/b://c",
            "é://b",
        ] {
            assert!(!is_url(Path::new(path)), "{path}");
        }
        assert!(
            lacks_slash(Path::new("s3:/b")) && !lacks_slash(Path::new("s3://b")) && !lacks_slash(Path::new("a:/b"))
        );
        assert_eq!(local_path(Path::new("file:///a/b")), Path::new("/a/b"));
        assert_eq!(local_path(Path::new("file://localhost/a/b")), Path::new("/a/b"));
        assert_eq!(local_path(Path::new("a/b")), Path::new("a/b"));
    }
}
