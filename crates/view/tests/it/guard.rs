//! Which requests are refused.

use crate::support::{Site, write};

#[test]
fn foreign_hosts_and_origins_are_refused_on_loopback() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 10);
    let site = Site::of(folder.path());
    assert!(!site.url.contains("token"), "loopback needs none");
    let status = |headers: &[(&str, &str)]| site.request("GET", "/train", headers, "").status;
    assert_eq!(status(&[]), 200);
    assert_eq!(status(&[("Host", "evil.example")]), 403);
    assert_eq!(status(&[("Host", "127.0.0.1.evil.example:80")]), 403);
    assert_eq!(status(&[("Origin", "http://evil.example")]), 403);
    assert_eq!(status(&[("Origin", "null")]), 403);
    assert_eq!(status(&[("Origin", &format!("http://{}", site.address))]), 200);
    assert_eq!(status(&[("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "no-cors")]), 403);
    let picture = site.request("GET", "/train/thumb/0", &[("Host", "evil.example")], "");
    assert_eq!((picture.status, picture.header("content-type")), (403, Some("text/plain; charset=utf-8")));
}

#[test]
fn every_answer_forbids_foreign_content() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 4);
    let site = Site::of(folder.path());
    for path in
        ["/", "/train", "/train/record/0", "/train/thumb/0", "/train/image/0", "/-/view.js", "/-/health", "/nothing"]
    {
        let answer = site.get(path);
        let policy = answer.header("content-security-policy").unwrap_or_else(|| panic!("{path}"));
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"), "{path}");
    }
    // What the policy forbids must not be needed.
    for path in ["/train", "/train/record/0", "/train/columns", "/-/health"] {
        let page = site.page(path);
        for forbidden in ["<style", "style=\"", "onclick", "javascript:", "http://", "https://"] {
            let found = page.replace("http://www.w3.org/2000/svg", "");
            assert!(!found.contains(forbidden), "{path}: {forbidden}");
        }
    }
}

#[test]
fn another_host_needs_the_token() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 4);
    let site = Site::with(folder.path(), "0.0.0.0");
    let token = site.url.split("?token=").nth(1).expect("a token in the URL").to_owned();
    for path in ["/", "/train", "/train/thumb/0", "/-/view.js", "/?token=", "/?token=0123"] {
        assert_eq!(site.get(path).status, 403, "{path}");
    }
    let first = site.get(&format!("/?token={token}"));
    assert_eq!((first.status, first.header("location")), (303, Some("/")), "the token leaves the address bar");
    let cookie = first.header("set-cookie").unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap();
    assert_eq!(site.request("GET", "/train", &[("Cookie", cookie)], "").status, 200);
    let wrong = cookie.replace(&token, &"0".repeat(token.len()));
    assert_eq!(site.request("GET", "/train", &[("Cookie", &wrong)], "").status, 403);
    assert_eq!(site.request("GET", "/train", &[("Cookie", cookie), ("Host", "evil.example")], "").status, 403);
}

#[test]
fn a_check_needs_a_post_with_the_token_of_the_page() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 4);
    let site = Site::of(folder.path());
    assert_eq!(site.get("/-/check").status, 405);
    for body in ["kind=verify", "kind=verify&token=", "kind=verify&token=00"] {
        assert_eq!(site.request("POST", "/-/check", &[], body).status, 403, "{body}");
        assert_eq!(site.request("POST", "/-/cancel", &[], body).status, 403, "{body}");
    }
    assert!(site.page("/-/health").contains("Nothing has been checked yet"));
}
