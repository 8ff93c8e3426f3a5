//! The server that a URL names.

use reqwest::Url;
use std::net::IpAddr;

/// Returns scheme, host and port of a URL. A path or a query may hold a signature, which no message has.
pub(super) fn origin(url: &Url) -> String {
    let (host, port) = (url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or_default());
    format!("{}://{host}:{port}", url.scheme())
}

/// Returns whether a URL names this machine.
pub(super) fn is_of_this_machine(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
