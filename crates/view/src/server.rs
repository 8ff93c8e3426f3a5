//! Binds the server, prints where it is, and ends it.

use crate::app::App;
use crate::{guard, routes};
use shardtool_host::system::hostname;
use shardtool_read::Dataset;
use std::fmt;
use std::future::IntoFuture;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, ToSocketAddrs};
use std::sync::Arc;

/// The first port that is tried if none is given, and how many are.
const FIRST_PORT: u16 = 7117;
const PORTS: u16 = 20;

/// Options of [`Server::bind`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// Name or address of the interface. Default: `127.0.0.1`. On any other than loopback, requests need a token.
    pub host: String,
    /// The port; 0 is any free one. Default: the first free one from 7117 on.
    pub port: Option<u16>,
    /// The split that the first page shows. Default: the only one, else `train`, else the first.
    pub split: Option<String>,
    /// Memory for decoding pictures in bytes, in this process. Default: [`crate::MEMORY`].
    pub memory: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options { host: Ipv4Addr::LOCALHOST.to_string(), port: None, split: None, memory: crate::MEMORY }
    }
}

/// A server whose port is bound.
pub struct Server {
    app: Arc<App>,
    listener: TcpListener,
    address: SocketAddr,
    host: String,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").finish_non_exhaustive()
    }
}

impl Server {
    /// Binds a port for a dataset, and prepares nothing else.
    ///
    /// # Errors
    /// If the address is not one of this machine, or the port is in use.
    ///
    /// # Panics
    /// If the dataset has no splits, or not the one in the options.
    pub fn bind(dataset: Dataset, options: &Options) -> io::Result<Self> {
        let addresses: Vec<_> =
            (options.host.as_str(), options.port.unwrap_or(FIRST_PORT)).to_socket_addrs()?.collect();
        let address = *addresses.first().ok_or(io::ErrorKind::AddrNotAvailable)?;
        let listener = bind(address, options.port.is_some())?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        crate::picture::set_memory(options.memory);
        let guarded = guard::Guarded::new(&options.host, is_loopback(address.ip()));
        let app = Arc::new(App::new(dataset, options.split.as_deref(), guarded, true));
        Ok(Server { app, listener, address, host: options.host.clone() })
    }

    /// Returns the URL of the first page; with the token, if the server is not on loopback.
    pub fn url(&self) -> String {
        let host = match self.address.ip() {
            ip if ip.is_unspecified() => hostname().unwrap_or_else(|| ip.to_string()),
            IpAddr::V6(ip) => format!("[{ip}]"),
            ip if self.host.parse::<IpAddr>().is_ok() => ip.to_string(),
            _ => self.host.clone(),
        };
        let base = format!("http://{host}:{}/", self.address.port());
        match self.app.guarded.needs_token() {
            true => format!("{base}?token={}", self.app.guarded.token()),
            false => base,
        }
    }

    /// Answers requests until SIGINT (Ctrl-C) or SIGTERM.
    ///
    /// # Errors
    /// If the runtime or the signal handlers cannot be made.
    pub fn run(self) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let app = self.app.clone();
        let result = runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(self.listener)?;
            let mut terminated = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
            let server = axum::serve(listener, routes::router(self.app));
            tokio::select! {
                served = server.into_future() => served,
                interrupted = tokio::signal::ctrl_c() => interrupted,
                _ = terminated.recv() => Ok(()),
            }
        });
        app.check.cancel();
        app.trial.cancel();
        // A decoder in flight is not waited for.
        runtime.shutdown_background();
        result
    }
}

/// Binds an address, or one of the ports after it if the user named none.
fn bind(address: SocketAddr, fixed: bool) -> io::Result<TcpListener> {
    let mut result = TcpListener::bind(address);
    for port in 1..PORTS {
        match &result {
            Err(error) if !fixed && error.kind() == io::ErrorKind::AddrInUse => {
                result = TcpListener::bind(SocketAddr::new(address.ip(), address.port() + port));
            }
            _ => return result,
        }
    }
    match result {
        Err(error) if !fixed && error.kind() == io::ErrorKind::AddrInUse => {
            TcpListener::bind(SocketAddr::new(address.ip(), 0))
        }
        result => result,
    }
}

fn is_loopback(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}
