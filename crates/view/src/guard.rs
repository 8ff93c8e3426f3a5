//! Decides which requests are answered, and sets the headers of every answer.
//!
//! A page of another site can make a browser send requests to this server. `Host` must be a name of this server, so that a
//! foreign name that is made to resolve to this address (DNS rebinding) is refused; `Origin` and `Sec-Fetch-Site` must not
//! name another site. What changes the state of the server needs the token of this process in the request's body. On any
//! other interface than loopback, every request needs the token, in a cookie.

use crate::query;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use shardtool_host::system::hostname;
use std::net::IpAddr;
use std::sync::Arc;

/// Name of the cookie, and of the parameter of the first URL.
const COOKIE: &str = "shardtool_token";
const PARAMETER: &str = "token";

const HEADERS: [(HeaderName, &str); 6] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; img-src 'self'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; \
         frame-ancestors 'none'; base-uri 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// Whom the server answers.
#[derive(Debug)]
pub(crate) struct Guarded {
    /// Names of this server in `Host`, without port.
    hosts: Vec<String>,
    /// Whether any address is a name of this server, since it listens on all interfaces.
    any_address: bool,
    loopback: bool,
    token: String,
}

impl Guarded {
    /// Creates the guard of a server that listens on `host`, with a new token.
    ///
    /// # Panics
    /// If the system has no random numbers.
    pub(crate) fn new(host: &str, loopback: bool) -> Self {
        let mut random = [0; 24];
        getrandom::fill(&mut random).expect("random numbers");
        let token = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut hosts: Vec<String> = ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned).to_vec();
        let any_address = host.parse::<IpAddr>().is_ok_and(|ip| ip.is_unspecified());
        if !any_address {
            let host = host.to_ascii_lowercase();
            hosts.push(if host.contains(':') { format!("[{host}]") } else { host });
        }
        hosts.extend(hostname().filter(|_| !loopback).map(|name| name.to_ascii_lowercase()));
        Guarded { hosts, any_address, loopback, token }
    }

    /// Returns whether every request needs the token.
    pub(crate) fn needs_token(&self) -> bool {
        !self.loopback
    }

    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// Returns whether a token is that of this process, in a time that does not depend on where they differ.
    pub(crate) fn is_token(&self, found: &str) -> bool {
        let (a, b) = (self.token.as_bytes(), found.as_bytes());
        a.len() == b.len() && std::hint::black_box(a.iter().zip(b).fold(0, |all, (a, b)| all | (a ^ b))) == 0
    }

    /// Returns why a request is refused, if it is.
    fn refusal(&self, method: &Method, headers: &HeaderMap) -> Option<&'static str> {
        let text = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("\u{fffd}"));
        let Some(host) = text(header::HOST) else { return Some("no Host") };
        if !self.is_own(host) {
            return Some("foreign Host");
        }
        // Sent by every browser since 2023; no page can set it.
        let site = text(HeaderName::from_static("sec-fetch-site")).unwrap_or("none");
        // Without a referrer, the origin of this program's forms is `null` too.
        let own = |origin: &str| origin == format!("http://{host}") || (origin == "null" && site == "same-origin");
        if text(header::ORIGIN).is_some_and(|origin| !own(origin)) {
            return Some("foreign Origin");
        }
        // A link on another site may lead here; its pictures and scripts may not.
        let navigates = text(HeaderName::from_static("sec-fetch-mode")) == Some("navigate") && method == Method::GET;
        if !matches!(site, "same-origin" | "none") && !navigates {
            return Some("request of another site");
        }
        None
    }

    fn is_own(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        // The port may be another one: that of an SSH tunnel.
        let name = match host.rfind(':') {
            Some(at) if !host.ends_with(']') => &host[..at],
            _ => &host,
        };
        let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().is_ok();
        self.hosts.iter().any(|own| own == name) || (self.any_address && address)
    }

    fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs =
            cookies.flat_map(|cookies| cookies.split(';')).filter_map(|cookie| cookie.trim().split_once('='));
        pairs.any(|(name, value)| name == COOKIE && self.is_token(value))
    }
}

/// Answers a request, or refuses it.
pub(crate) async fn guard(State(guarded): State<Arc<Guarded>>, request: Request, next: Next) -> Response {
    let mut response = match admit(&guarded, &request) {
        None => next.run(request).await,
        Some(response) => response,
    };
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    if !response.headers().contains_key(header::CACHE_CONTROL) {
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

/// Returns the answer to a request that is not passed on.
fn admit(guarded: &Guarded, request: &Request) -> Option<Response> {
    if let Some(problem) = guarded.refusal(request.method(), request.headers()) {
        return Some((StatusCode::FORBIDDEN, format!("403: {problem}\n")).into_response());
    }
    if !guarded.needs_token() || guarded.has_cookie(request.headers()) {
        return None;
    }
    let pairs = query::pairs(request.uri().query().unwrap_or_default());
    if request.method() == Method::GET && query::last(&pairs, PARAMETER).is_some_and(|token| guarded.is_token(token)) {
        // The token leaves the address bar, the history and the referrer.
        let cookie = format!("{COOKIE}={}; HttpOnly; SameSite=Strict; Path=/", guarded.token);
        return Some(
            (
                StatusCode::SEE_OTHER,
                [(header::SET_COOKIE, cookie), (header::LOCATION, request.uri().path().to_owned())],
            )
                .into_response(),
        );
    }
    Some((StatusCode::FORBIDDEN, "403: open the URL that `shardtool view` printed, with its token\n").into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(guarded: &Guarded, headers: &[(&'static str, &'static str)]) -> Option<&'static str> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, HeaderValue::from_static(value));
        }
        guarded.refusal(&Method::GET, &map)
    }

    #[test]
    fn only_own_names_are_a_host() {
        let local = Guarded::new("127.0.0.1", true);
        for own in ["127.0.0.1:7117", "localhost:9000", "LOCALHOST", "[::1]:7117", "[::1]"] {
            assert_eq!(refused(&local, &[("host", own)]), None, "{own}");
        }
        for foreign in
            ["evil.example:7117", "127.0.0.1.evil.example", "10.0.0.1:7117", "localhost.evil", "", "[::2]:7117"]
        {
            assert_eq!(refused(&local, &[("host", foreign)]), Some("foreign Host"), "{foreign}");
        }
        assert_eq!(refused(&local, &[]), Some("no Host"));
        let all = Guarded::new("0.0.0.0", false);
        assert_eq!(refused(&all, &[("host", "10.0.0.1:7117")]), None);
        assert_eq!(refused(&all, &[("host", "evil.example")]), Some("foreign Host"));
    }

    #[test]
    fn requests_of_other_sites_are_refused() {
        let local = Guarded::new("127.0.0.1", true);
        let host = ("host", "localhost:7117");
        assert_eq!(refused(&local, &[host, ("origin", "http://localhost:7117")]), None);
        for origin in ["http://localhost:3000", "https://localhost:7117", "null", "http://evil.example"] {
            assert_eq!(refused(&local, &[host, ("origin", origin)]), Some("foreign Origin"), "{origin}");
        }
        assert_eq!(refused(&local, &[host, ("origin", "null"), ("sec-fetch-site", "same-origin")]), None);
        assert!(refused(&local, &[host, ("origin", "null"), ("sec-fetch-site", "cross-site")]).is_some());
        assert!(refused(&local, &[host, ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")]).is_some());
        assert!(refused(&local, &[host, ("sec-fetch-site", "same-site")]).is_some());
        assert_eq!(refused(&local, &[host, ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")]), None);
    }

    #[test]
    fn a_token_is_compared_whole() {
        let guarded = Guarded::new("0.0.0.0", false);
        let token = guarded.token().to_owned();
        assert_eq!(token.len(), 48);
        assert!(guarded.is_token(&token));
        assert!(!guarded.is_token(&token[..47]) && !guarded.is_token("") && !guarded.is_token(&"0".repeat(48)));
        assert_ne!(token, Guarded::new("0.0.0.0", false).token(), "each process has its own");
    }
}
