//! The server of the Hub, and the token that is sent to it.
//!
//! Source: the environment variables of huggingface_hub.

use super::origin::{is_of_this_machine, origin};
use reqwest::Url;
use reqwest::header::HeaderValue;
use std::env;
use std::io::{self, ErrorKind};
use std::path::PathBuf;

/// The server if `HF_ENDPOINT` names no other.
const ENDPOINT: &str = "https://huggingface.co";

/// The server of the Hub.
#[derive(Debug, Clone)]
pub(super) struct Endpoint {
    url: Url,
    /// The header that a request to this server carries.
    pub(super) token: Option<HeaderValue>,
}

impl Endpoint {
    /// Takes the server from `HF_ENDPOINT`, and the token from `HF_TOKEN` or the file of `hf auth login`.
    ///
    /// # Errors
    /// `InvalidInput` for another server than one with `https://`, or of this machine.
    pub(super) fn of_environment() -> io::Result<Self> {
        let text = variable("HF_ENDPOINT").unwrap_or_else(|| ENDPOINT.to_owned());
        let invalid = |problem: &str| {
            io::Error::new(ErrorKind::InvalidInput, format!("HF_ENDPOINT is {problem}: expected https://HOST"))
        };
        let url = Url::parse(text.trim_end_matches('/')).map_err(|_| invalid("no URL"))?;
        if !url.username().is_empty() || url.password().is_some() || url.query().is_some() {
            return Err(invalid("a URL with a user or a query"));
        }
        match url.scheme() {
            "https" => {}
            "http" if is_of_this_machine(&url) => {}
            _ => return Err(invalid("not encrypted")),
        }
        let header = |token: String| HeaderValue::from_str(&format!("Bearer {token}"));
        let token = token().map(header).transpose();
        let mut token =
            token.map_err(|_| io::Error::new(ErrorKind::InvalidInput, "the token has invalid characters"))?;
        if let Some(token) = &mut token {
            // It is not written where headers are.
            token.set_sensitive(true);
        }
        Ok(Endpoint { url, token })
    }

    /// Returns whether connections to the server are encrypted.
    pub(super) fn is_encrypted(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// Returns a URL below the server's. A part is one segment: a `/` in it is encoded.
    pub(super) fn join(&self, parts: &[&str]) -> Url {
        let mut url = self.url.clone();
        let mut segments = url.path_segments_mut().expect("http URLs have a path");
        segments.pop_if_empty().extend(parts);
        drop(segments);
        url
    }

    /// Returns whether a URL is of this server.
    pub(super) fn is_of(&self, url: &Url) -> bool {
        origin(url) == origin(&self.url)
    }
}

/// Returns the user's token; `None` without one, or if it is not to be sent without being asked for.
fn token() -> Option<String> {
    if let Some(token) = variable("HF_TOKEN").or_else(|| variable("HUGGING_FACE_HUB_TOKEN")) {
        return Some(token);
    }
    if variable("HF_HUB_DISABLE_IMPLICIT_TOKEN").is_some_and(|value| super::super::is_true(&value)) {
        return None;
    }
    let path = |name: &str| variable(name).map(PathBuf::from);
    let home = || {
        let cache = path("XDG_CACHE_HOME").or_else(|| Some(path("HOME")?.join(".cache")));
        path("HF_HOME").or_else(|| Some(cache?.join("huggingface")))
    };
    let file = path("HF_TOKEN_PATH").or_else(|| Some(home()?.join("token")))?;
    let token = std::fs::read_to_string(file).ok()?;
    Some(token.trim().to_owned()).filter(|token| !token.is_empty())
}

/// Returns a variable of the environment, if it is set to something.
fn variable(name: &str) -> Option<String> {
    env::var(name).ok().map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}
