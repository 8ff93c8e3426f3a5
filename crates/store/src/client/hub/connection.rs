//! Connections to the Hub: they follow its redirects to the servers that have the files. The token goes to the server of the endpoint
//! only, and is dropped at a redirect to another server, port or scheme.

use super::super::{CONNECT, SILENCE, install_tls, lacks_certificates, sources};
use super::endpoint::Endpoint;
use super::origin::{is_of_this_machine, origin};
use crate::client::Purpose;
use object_store::client::{HttpClient, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService};
use reqwest::header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_LENGTH, COOKIE, ETAG, HeaderValue, LOCATION};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Method, StatusCode, Url};
use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::io;
use std::sync::{Mutex, PoisonError};

/// Redirects of a request that are followed, at most.
const HOPS: usize = 5;
/// Files whose signed URL is kept, at most.
const KEPT: usize = 4096;

/// Connections to the Hub.
#[derive(Debug)]
pub(super) struct Connection {
    inner: HttpClient,
    endpoint: Endpoint,
    /// Where the Hub sent readers of a file, by its URL: until that server refuses, as it does after some time.
    signed: Mutex<HashMap<String, Url>>,
}

impl Connection {
    /// # Errors
    /// Those of making a client.
    pub(super) fn new(endpoint: Endpoint, purpose: Purpose) -> io::Result<Self> {
        install_tls();
        let mut client = reqwest::Client::builder()
            .redirect(Policy::none())
            .connect_timeout(CONNECT)
            .timeout(crate::time_limit())
            .user_agent(concat!("shardtool/", env!("CARGO_PKG_VERSION")));
        if purpose != Purpose::Write {
            client = client.read_timeout(SILENCE.min(crate::time_limit()));
        }
        if lacks_certificates() {
            let certificates = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().map(|der| Certificate::from_der(der));
            client = client.tls_certs_only(certificates.collect::<Result<Vec<_>, _>>().map_err(io::Error::other)?);
        }
        if !endpoint.is_encrypted() {
            // A proxy of another machine would see the token.
            client = client.no_proxy();
        }
        let inner = HttpClient::new(client.build().map_err(io::Error::other)?);
        Ok(Connection { inner, endpoint, signed: Mutex::default() })
    }

    /// Sends a request to a URL, with the token if it is of the endpoint's server.
    async fn send(&self, request: &HttpRequest, url: &Url) -> Result<HttpResponse, HttpError> {
        let mut request = request.clone();
        let refused = |_| refuse(format!("a redirect to a URL that cannot be asked for, of {}", origin(url)));
        *request.uri_mut() = url.as_str().parse().map_err(refused)?;
        let headers = request.headers_mut();
        headers.remove(AUTHORIZATION);
        headers.remove(COOKIE);
        // Lengths are those of the files.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        if let Some(token) = self.endpoint.token.as_ref().filter(|_| self.endpoint.is_of(url)) {
            headers.insert(AUTHORIZATION, token.clone());
        }
        self.inner.execute(request).await
    }

    fn signed(&self) -> std::sync::MutexGuard<'_, HashMap<String, Url>> {
        self.signed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait::async_trait]
impl HttpService for Connection {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let first = request.uri().to_string();
        let kept = (request.method() == Method::GET).then(|| self.signed().get(&first).cloned()).flatten();
        if let Some(url) = kept {
            let response = self.send(&request, &url).await;
            if response.as_ref().is_ok_and(|response| response.status().is_success()) {
                return response;
            }
            // Its signature has expired, or the server is gone: the Hub names another.
            self.signed().remove(&first);
        }
        let mut url = Url::parse(&first).map_err(|error| HttpError::new(HttpErrorKind::Request, error))?;
        for _ in 0..=HOPS {
            let response = self.send(&request, &url).await?;
            if !response.status().is_redirection() {
                if request.method() == Method::GET && response.status().is_success() && !self.endpoint.is_of(&url) {
                    let mut signed = self.signed();
                    if signed.len() >= KEPT {
                        signed.clear();
                    }
                    signed.insert(first, url);
                } else if response.status().is_client_error() && !self.endpoint.is_of(&url) {
                    // What a server says of a signature may quote it.
                    let (parts, _) = response.into_parts();
                    return Ok(HttpResponse::from_parts(parts, bytes::Bytes::new().into()));
                }
                return Ok(response);
            }
            let location = response.headers().get(LOCATION).and_then(|text| text.to_str().ok());
            let next = location.and_then(|text| url.join(text).ok());
            let next = next.ok_or_else(|| refuse(format!("a redirect of {} to no URL", origin(&url))))?;
            check(&url, &next)?;
            // The Hub itself says what the file is.
            if request.method() == Method::HEAD
                && origin(&next) != origin(&url)
                && let Some(described) = described(&response)
            {
                return Ok(described);
            }
            url = next;
        }
        Err(refuse(format!("more than {HOPS} redirects")))
    }
}

/// Returns the answer to a request for a description that the Hub gives with its redirect: length and ETag of the file.
fn described(response: &HttpResponse) -> Option<HttpResponse> {
    let headers = response.headers();
    let length = headers.get("x-linked-size")?;
    let mut answer = HttpResponse::new(bytes::Bytes::new().into());
    *answer.status_mut() = StatusCode::OK;
    answer.headers_mut().insert(CONTENT_LENGTH, length.clone());
    if let Some(tag) = headers.get("x-linked-etag") {
        answer.headers_mut().insert(ETAG, tag.clone());
    }
    Some(answer)
}

/// Checks a redirect: never from an encrypted connection to another, and never to another machine without encryption.
fn check(from: &Url, to: &Url) -> Result<(), HttpError> {
    let is_safe = match to.scheme() {
        "https" => true,
        "http" => from.scheme() == "http" && is_of_this_machine(to),
        _ => false,
    };
    let text = || format!("a redirect of {} to {}, which is not encrypted", origin(from), origin(to));
    if is_safe { Ok(()) } else { Err(refuse(text())) }
}

/// A redirect that is not followed.
#[derive(Debug)]
struct RefusedRedirect(String);

impl fmt::Display for RefusedRedirect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for RefusedRedirect {}

fn refuse(text: String) -> HttpError {
    HttpError::new(HttpErrorKind::Unknown, RefusedRedirect(text))
}

/// Returns whether a redirect was refused.
pub(crate) fn is_refused_redirect(error: &(dyn Error + 'static)) -> bool {
    sources(error).any(|source| source.is::<RefusedRedirect>())
}
