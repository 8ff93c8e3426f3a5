//! What becomes of each kind of answer: its status and code decide, never its text.
//!
//! Clients read their settings from the environment, so cases with other stores than web servers run in a process of their own:
//! this program again, with the settings of the server.

use shardtool_store::{
    Condition, Existing, Object, PART_BYTES, Upload, find, is_empty, list, put, put_if, read_whole, remove, stats,
};
use shardtool_store_server::{Fault, Faults, Options, Server};
use std::fs;
use std::io::ErrorKind::{self, AlreadyExists, NotFound, PermissionDenied, TimedOut, UnexpectedEof};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The variable that is set in the process of a case.
const CASE: &str = "SHARDTOOL_STORE_TEST_CASE";

/// What the process of a case prints before the number of its second requests.
const HEDGED: &str = "second requests: ";

/// The content of `bucket/set/object`.
const CONTENT: &[u8] = b"0123456789";

/// A server with one object.
struct Place {
    server: Server,
    folder: TempDir,
    /// The second requests for answers that a slow machine gave late.
    hedged: u64,
}

impl Place {
    fn new(options: Options) -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        fs::create_dir_all(folder.path().join("bucket/set")).unwrap();
        fs::write(folder.path().join("bucket/set/object"), CONTENT).unwrap();
        Place { server: Server::start(folder.path(), options).unwrap(), folder, hedged: 0 }
    }

    /// Returns the number of requests, without second ones.
    fn requests(&self) -> u64 {
        self.server.requests() - self.hedged
    }

    /// Returns the URL of the object as that of a web server.
    fn url(&self) -> PathBuf {
        PathBuf::from(format!("{}/bucket/set/object", self.server.endpoint()))
    }
}

/// Returns faults of all answers to requests that read.
fn all(fault: Fault) -> Options {
    Options { faults: Faults { one_in: 1, only: Some(fault), ..Faults::default() }, ..Options::default() }
}

/// Returns faults of one answer of two, also to requests that write.
fn half(fault: Fault) -> Options {
    // Requests 0, 1, 6, 7 and 10 are the first ones.
    let faults = Faults { seed: 4, one_in: 2, only: Some(fault), writes: true, ..Faults::default() };
    Options { faults, ..Options::default() }
}

/// Runs the case of a test in a process that reaches the server, with further variables. Returns the place; `None` in that
/// process.
fn in_process(test: &str, options: Options, variables: &[(&str, &str)], case: impl FnOnce()) -> Option<Place> {
    if std::env::var_os(CASE).is_some() {
        case();
        println!("{HEDGED}{}.", stats().hedged);
        return None;
    }
    let mut place = Place::new(options);
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(CASE, "1").env("HOME", place.folder.path());
    for name in ["AWS_PROFILE", "AWS_SESSION_TOKEN"] {
        command.env_remove(name);
    }
    command.env("SHARDTOOL_STORE_TIMEOUT", "2").envs(place.server.environment());
    for (name, value) in variables {
        match value.replace("SERVER", &place.server.endpoint()) {
            value if value.is_empty() => command.env_remove(name),
            value => command.env(name, value),
        };
    }
    let output = command.output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    let (_, hedged) = text.split_once(HEDGED).unwrap();
    place.hedged = hedged.split_once('.').unwrap().0.parse().unwrap();
    Some(place)
}

const OBJECT: &str = "s3://bucket/set/object";

fn object() -> &'static Path {
    Path::new(OBJECT)
}

#[track_caller]
fn fails<T>(result: std::io::Result<T>, kind: ErrorKind, texts: &[&str]) {
    let error = result.err().expect("an error");
    assert_eq!(error.kind(), kind, "{error}");
    for text in texts {
        assert!(error.to_string().contains(text), "{text}: {error}");
    }
}

#[test]
fn statuses_of_reads_become_kinds_of_errors() {
    let cases = [
        (404, "NoSuchKey", NotFound, 1),
        (405, "MethodNotAllowed", NotFound, 1),
        (409, "InvalidObjectState", AlreadyExists, 1),
        (412, "PreconditionFailed", AlreadyExists, 1),
        (416, "InvalidRange", UnexpectedEof, 1),
        // Two repetitions, with renewed credentials.
        (401, "Unauthorized", PermissionDenied, 3),
        (403, "AccessDenied", PermissionDenied, 3),
    ];
    for (status, code, kind, requests) in cases {
        let mut place = Place::new(Options { anonymous: true, ..all(Fault::Status(status, code)) });
        let before = stats();
        fails(Object::with_len(&place.url(), 10).unwrap().read(0..10), kind, &[]);
        place.hedged = stats().since(&before).hedged;
        assert_eq!(place.requests(), requests, "{status}");
    }
}

#[test]
fn passing_failures_are_repeated_and_counted() {
    let name = "passing_failures_are_repeated_and_counted";
    let faults = [
        Fault::Status(408, "RequestTimeout"),
        Fault::TooMany,
        Fault::Status(500, "InternalError"),
        Fault::Unavailable,
        Fault::Status(504, "GatewayTimeout"),
        Fault::Status(400, "RequestTimeout"),
        Fault::Reset,
        Fault::Cut,
    ];
    for fault in faults {
        let options = half(fault);
        let place = in_process(name, options, &[("SHARDTOOL_STORE_TIMEOUT", "60")], || {
            for _ in 0..8 {
                assert_eq!(read_whole(object(), 10).unwrap().as_deref(), Some(CONTENT));
            }
            assert!(stats().retries > 0);
            assert_eq!(stats().requests - stats().hedged, 8 + stats().retries);
            assert_eq!(stats().bytes, 80);
        });
        let Some(place) = place else { return };
        // Each answer that was changed was repeated once, by one loop.
        assert_eq!(place.requests(), 8 + place.server.injected(), "{fault:?}");
    }
}

#[test]
fn what_does_not_pass_ends_with_the_time_limit() {
    let name = "what_does_not_pass_ends_with_the_time_limit";
    let place = in_process(name, all(Fault::Unavailable), &[], || {
        fails(read_whole(object(), 10), TimedOut, &["no answer within 2 s", "503", "Injected"]);
        assert_eq!(stats().requests - stats().hedged, 1 + stats().retries);
    });
    let Some(place) = place else { return };
    // After 50, 100, 200, 400 and 800 ms at least; fewer from a slow machine.
    assert!((2..=6).contains(&place.requests()), "{}", place.requests());
}

#[test]
fn buckets_and_objects_that_do_not_exist_are_told_apart() {
    let name = "buckets_and_objects_that_do_not_exist_are_told_apart";
    let place = in_process(name, Options::default(), &[], || {
        fails(read_whole(Path::new("s3://bucket/set/absent"), 10), NotFound, &["not found"]);
        fails(Object::open(Path::new("s3://bucket/set/absent")), NotFound, &[]);
        fails(list(Path::new("s3://absent/set")), NotFound, &["s3://absent does not exist"]);
        // This server does not say which one is missing.
        fails(find(Path::new("s3://absent/a"), 10), NotFound, &[]);
        fails(is_empty(Path::new("s3://absent/set"), ".lock"), NotFound, &["s3://absent does not exist"]);
        assert_eq!(stats().retries, 0);
    });
    assert!(place.is_none_or(|place| place.requests() == 5));
}

#[test]
fn codes_of_gcs_and_azure_name_their_buckets() {
    let name = "codes_of_gcs_and_azure_name_their_buckets";
    let gcs = [
        ("GOOGLE_BASE_URL", "SERVER"),
        ("GOOGLE_SKIP_SIGNATURE", "true"),
        ("GOOGLE_ALLOW_HTTP", "true"),
        ("SHARDTOOL_STORE_TEST_URL", "gs://absent"),
    ];
    let azure = [
        ("AZURE_STORAGE_ACCOUNT_NAME", "account"),
        ("AZURE_STORAGE_ACCOUNT_KEY", "a2V5"),
        ("AZURE_ENDPOINT", "SERVER/account"),
        ("AZURE_ALLOW_HTTP", "true"),
        ("SHARDTOOL_STORE_TEST_URL", "az://absent"),
    ];
    for (variables, code) in [(&gcs[..], "NoSuchBucket"), (&azure, "ContainerNotFound")] {
        let place = in_process(name, all(Fault::Status(404, code)), variables, || {
            let url = std::env::var("SHARDTOOL_STORE_TEST_URL").unwrap();
            let text = format!("{url} does not exist");
            fails(list(&Path::new(&url).join("set")), NotFound, &[&text]);
            fails(read_whole(&Path::new(&url).join("set/object"), 10), NotFound, &[&text]);
            assert_eq!(stats().requests - stats().hedged, 2);
        });
        if place.is_none() {
            return;
        }
    }
}

#[test]
fn ranges_after_the_end_are_short() {
    let name = "ranges_after_the_end_are_short";
    let place = in_process(name, Options::default(), &[], || {
        let longer = Object::with_len(object(), 100).unwrap();
        for range in [5..20, 50..60] {
            fails(longer.read(range), UnexpectedEof, &[]);
        }
        assert_eq!(stats().retries, 0);
    });
    assert!(place.is_none_or(|place| place.requests() == 2));
}

#[test]
fn refused_requests_are_repeated_twice_and_name_the_credentials() {
    let name = "refused_requests_are_repeated_twice_and_name_the_credentials";
    let place = in_process(name, all(Fault::Forbidden), &[], || {
        let hint = "credentials are taken from AWS_ACCESS_KEY_ID";
        fails(read_whole(object(), 10), PermissionDenied, &["403", hint]);
        fails(list(Path::new("s3://bucket/set")), PermissionDenied, &["403", hint]);
        assert_eq!((stats().requests - stats().hedged, stats().retries), (6, 4));
    });
    assert!(place.is_none_or(|place| place.requests() == 6));
}

#[test]
fn credentials_that_are_not_accepted_or_not_found_are_named() {
    let name = "credentials_that_are_not_accepted_or_not_found_are_named";
    let hint = "credentials are taken from AWS_ACCESS_KEY_ID";
    let none = [("AWS_ACCESS_KEY_ID", ""), ("AWS_SECRET_ACCESS_KEY", "")];
    // The service of an instance answers with a refusal, which does not come from the store.
    let instance = [none[0], none[1], ("AWS_METADATA_ENDPOINT", "SERVER")];
    let expired = all(Fault::Status(400, "ExpiredToken"));
    for (options, variables) in [(expired, &[][..]), (Options::default(), &instance)] {
        let place = in_process(name, options, variables, || {
            fails(read_whole(object(), 10), TimedOut, &["no answer within 2 s", hint]);
            fails(find(Path::new("s3://bucket/set/absent"), 10), TimedOut, &[hint]);
        });
        if place.is_none() {
            return;
        }
    }
}

#[test]
fn other_refusals_do_not_name_the_credentials() {
    let name = "other_refusals_do_not_name_the_credentials";
    // A text that mentions credentials decides nothing.
    in_process(name, all(Fault::Status(400, "No credentials, NoSuchBucket, 416")), &[], || {
        let error = read_whole(object(), 10).unwrap_err();
        assert_eq!(error.kind(), TimedOut);
        assert!(!error.to_string().contains("AWS_ACCESS_KEY_ID"), "{error}");
    });
}

#[test]
fn conditions_that_are_not_met_are_not_repeated() {
    let name = "conditions_that_are_not_met_are_not_repeated";
    let place = in_process(name, Options::default(), &[], || {
        fails(put(object(), b"other".to_vec(), Existing::Keep), AlreadyExists, &[]);
        assert_eq!(stats().requests - stats().hedged, 1);
        let first = find(object(), 10).unwrap().unwrap().version;
        let second = put_if(object(), b"second".to_vec(), Condition::Unchanged(&first)).unwrap();
        // The object is read as well: the answer to a request that succeeded may have been lost.
        fails(put_if(object(), b"third".to_vec(), Condition::Unchanged(&first)), AlreadyExists, &[]);
        remove(object()).unwrap();
        fails(put_if(object(), b"third".to_vec(), Condition::Unchanged(&second)), AlreadyExists, &[]);
        remove(object()).unwrap();
        put_if(object(), b"fourth".to_vec(), Condition::Absent).unwrap();
        assert_eq!((stats().requests - stats().hedged, stats().retries), (10, 0));
    });
    assert!(place.is_none_or(|place| place.requests() == 10));
}

#[test]
fn a_conflict_of_requests_is_repeated_and_another_one_is_not() {
    let name = "a_conflict_of_requests_is_repeated_and_another_one_is_not";
    let variables = |expected: &'static str| [("SHARDTOOL_STORE_TEST_EXPECTED", expected)];
    let busy = half(Fault::Status(409, "ConditionalRequestConflict"));
    let place = in_process(name, busy, &variables("repeated"), || {
        let is_repeated = std::env::var("SHARDTOOL_STORE_TEST_EXPECTED").unwrap() == "repeated";
        if !is_repeated {
            fails(put(object(), b"other".to_vec(), Existing::Replace), AlreadyExists, &[]);
            assert_eq!(stats().requests - stats().hedged, 1);
            return;
        }
        let mut version = find(object(), 10).unwrap().unwrap().version;
        for number in 0..8 {
            version = put_if(object(), format!("{number}").into(), Condition::Unchanged(&version)).unwrap();
        }
        assert!(stats().retries > 0);
    });
    if place.is_none() {
        return;
    }
    let faults =
        Faults { one_in: 1, only: Some(Fault::Status(409, "BucketNotEmpty")), writes: true, ..Faults::default() };
    in_process(name, Options { faults, ..Options::default() }, &variables("not"), || unreachable!("another case"));
}

#[test]
fn uploads_in_parts_survive_failures_of_each_request() {
    let name = "uploads_in_parts_survive_failures_of_each_request";
    for fault in [Fault::Unavailable, Fault::Reset] {
        let place = in_process(name, half(fault), &[("SHARDTOOL_STORE_TIMEOUT", "60")], || {
            let mut upload = Upload::new(Path::new("s3://bucket/set/large")).unwrap();
            upload.write(&vec![7; 2 * PART_BYTES + 1]).unwrap();
            upload.finish().unwrap();
            let len = Object::open(Path::new("s3://bucket/set/large")).unwrap().len();
            assert_eq!(len, 2 * PART_BYTES as u64 + 1);
            assert!(stats().retries > 0);
            assert_eq!(stats().requests - stats().hedged, 7 + stats().retries);
        });
        let Some(place) = place else { return };
        assert_eq!(place.requests(), 7 + place.server.injected());
    }
}
