//! An S3 server on a folder: each folder below it is a bucket. For tests and benchmarks.
//!
//! The server is `s3s-fs`, a program of others, which checks signatures. This crate starts it on 127.0.0.1 and, on request,
//! changes its answers: as servers, proxies and networks do when they fail. Without credentials it also serves plain
//! `http://` requests with ranges.
//!
//! `s3s-fs` compares the conditions `If-None-Match` and `If-Match` with an object before it writes it. Here, such requests
//! are answered one after the other, so that of two writers only one succeeds, as in S3; and no object is read meanwhile, since it
//! would be given with the ETag of the other bytes.

mod answer;
mod checksums;
mod faults;

pub use checksums::Checksums;
pub use faults::{Fault, Faults};

use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use std::collections::HashMap;
use std::fmt;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};

/// The access key and the secret key that the server accepts.
pub const CREDENTIALS: (&str, &str) = ("shardtool", "secret-of-shardtool");

/// What a server is started with.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Whether requests need not be signed.
    pub anonymous: bool,
    /// The port; 0 chooses a free one.
    pub port: u16,
    /// Changes of the answers.
    pub faults: Faults,
    /// Whether the conditions `If-None-Match` and `If-Match` are ignored, as by some stores. They are
    /// signed, so that requests must not be (`anonymous`).
    pub ignore_conditions: bool,
    /// What becomes of the CRC32C of uploads.
    pub checksums: Checksums,
    /// Whether answers name a version of the object, as those of a bucket that keeps versions do. The server keeps none.
    pub names_versions: bool,
}

/// A running server. Dropping it ends it.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").finish_non_exhaustive()
    }
}

struct Shared {
    root: PathBuf,
    service: S3Service,
    faults: Faults,
    requests: AtomicU64,
    bytes: AtomicU64,
    /// The paths of all requests.
    paths: Mutex<Vec<String>>,
    keeps: Checksums,
    /// Checksums of objects, by their paths.
    checksums: Mutex<HashMap<String, String>>,
    injected: AtomicU64,
    /// How many answers to a request were changed since its last unchanged one.
    in_a_row: Mutex<HashMap<String, u64>>,
    ignore_conditions: bool,
    names_versions: bool,
    /// Held while a request with a condition is carried out.
    conditional: tokio::sync::RwLock<()>,
    /// Requests from this number on are not answered until it grows; then they are refused.
    held_from: watch::Sender<u64>,
    /// Writes of objects whose names end so wait until it is empty.
    held_name: watch::Sender<String>,
    waiting: AtomicU64,
    /// How often [`Server::release`] was called. Connections that were accepted before are not served any more.
    released: AtomicU64,
    /// The number of requests that are being carried out.
    busy: AtomicU64,
}

impl Server {
    /// Serves a folder.
    ///
    /// # Errors
    /// If the folder does not exist, or the port is in use.
    pub fn start(root: &Path, options: Options) -> io::Result<Self> {
        let files = s3s_fs::FileSystem::new(root).map_err(|error| io::Error::other(format!("{error:?}")))?;
        let mut builder = S3ServiceBuilder::new(files);
        if !options.anonymous {
            builder.set_auth(SimpleAuth::from_single(CREDENTIALS.0, CREDENTIALS.1));
        }
        let zero = AtomicU64::default;
        let (requests, bytes, injected) = (zero(), zero(), zero());
        let shared = Arc::new(Shared {
            root: root.to_owned(),
            service: builder.build(),
            faults: options.faults,
            requests,
            bytes,
            paths: Mutex::new(vec![]),
            keeps: options.checksums,
            checksums: Mutex::default(),
            injected,
            in_a_row: Mutex::default(),
            ignore_conditions: options.ignore_conditions,
            names_versions: options.names_versions,
            conditional: tokio::sync::RwLock::new(()),
            held_from: watch::Sender::new(u64::MAX),
            held_name: watch::Sender::new(String::new()),
            waiting: zero(),
            released: zero(),
            busy: zero(),
        });
        let (stop, stopped) = oneshot::channel();
        let (started, address) = mpsc::channel();
        let server = shared.clone();
        let thread = std::thread::Builder::new().name("store-server".to_owned()).spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
            let Ok(runtime) = runtime else { return };
            runtime.block_on(async {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port)).await;
                let listener = match listener {
                    Ok(listener) => listener,
                    Err(error) => return drop(started.send(Err(error))),
                };
                drop(started.send(listener.local_addr()));
                tokio::select! {
                    () = answer::accept(listener, server) => {}
                    _ = stopped => {}
                }
            });
            runtime.shutdown_background();
        })?;
        let address = address.recv().map_err(|_| io::Error::other("the server did not start"))??;
        Ok(Server { address, shared, stop: Some(stop), thread: Some(thread) })
    }

    /// Returns the endpoint: `http://127.0.0.1:PORT`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the environment variables with which clients reach the server.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        vec![
            ("AWS_ACCESS_KEY_ID", CREDENTIALS.0.to_owned()),
            ("AWS_SECRET_ACCESS_KEY", CREDENTIALS.1.to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ENDPOINT_URL", self.endpoint()),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
        ]
    }

    /// Returns the number of requests so far.
    pub fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::Relaxed)
    }

    /// Returns the bytes of the answers so far, before they were changed.
    pub fn bytes(&self) -> u64 {
        self.shared.bytes.load(Ordering::Relaxed)
    }

    /// Answers this number of further requests, and holds those after them until [`Server::release`].
    pub fn hold_after(&self, requests: u64) {
        self.shared.held_from.send_replace(self.requests() + requests);
    }

    /// Returns whether a request is being held.
    pub fn is_holding(&self) -> bool {
        self.requests() > *self.shared.held_from.borrow()
    }

    /// Ends the service of clients that have ended, and answers further requests. Requests that are being carried out are
    /// carried out first. Those that are held, and those that the clients sent but the server has not yet read, are refused
    /// with status 503.
    ///
    /// # Errors
    /// If the server does not accept connections.
    pub fn release(&self) -> io::Result<()> {
        // Connections are accepted in turn: after this one, there are none of the clients that are not yet accepted.
        let name = format!("/release-{}", self.shared.released.load(Ordering::SeqCst));
        let mut last = std::net::TcpStream::connect(self.address)?;
        write!(last, "GET {name} HTTP/1.1\r\nhost: localhost\r\n\r\n")?;
        let wait = || std::thread::sleep(Duration::from_millis(1));
        while self.requests_of(&name) == 0 {
            wait();
        }
        self.shared.released.fetch_add(1, Ordering::SeqCst);
        while self.shared.busy.load(Ordering::SeqCst) > 0 {
            wait();
        }
        self.shared.held_from.send_replace(u64::MAX);
        Ok(())
    }

    /// Holds `PUT` requests to objects whose names end so, until [`Server::let_pass`].
    pub fn hold_writes_of(&self, name: &str) {
        self.shared.held_name.send_replace(name.to_owned());
    }

    /// Returns the number of requests that [`Server::hold_writes_of`] holds.
    pub fn waiting(&self) -> u64 {
        self.shared.waiting.load(Ordering::SeqCst)
    }

    /// Carries out the requests that [`Server::hold_writes_of`] holds.
    pub fn let_pass(&self) {
        self.shared.held_name.send_replace(String::new());
    }

    /// Returns the number of requests so far for objects whose names end so.
    pub fn requests_of(&self, ending: &str) -> u64 {
        let paths = self.shared.paths.lock().unwrap_or_else(PoisonError::into_inner);
        paths.iter().filter(|path| path.ends_with(ending)).count() as u64
    }

    /// Keeps another CRC32C of an object `BUCKET/KEY`, in Base64, than that of its bytes. As S3 does, the server returns it if
    /// a signed header asks for it.
    pub fn set_crc32c(&self, object: &str, crc: &str) {
        let mut checksums = self.shared.checksums.lock().unwrap_or_else(PoisonError::into_inner);
        checksums.insert(format!("/{object}"), crc.to_owned());
    }

    /// Returns the number of answers that were changed so far.
    pub fn injected(&self) -> u64 {
        self.shared.injected.load(Ordering::Relaxed)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
