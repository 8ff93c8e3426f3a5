//! Clients from environment variables and credential files.
//!
//! | module | contents |
//! |---|---|
//! | `profile` | settings of S3 from the files of `~/.aws` |
//! | `credentials` | where credentials come from, and how their failures are distinguished from those of the store |
//! | `answer` | status and code of the answers that refuse a request |
//! | `hdfs` | HDFS, with what its client lacks of an object store |
//! | `hub` | datasets on the Hugging Face Hub |

pub(crate) mod answer;
pub(crate) mod credentials;
#[cfg(feature = "hdfs")]
pub(crate) mod hdfs;
pub(crate) mod hub;
mod profile;

use crate::checksum::{Carrier, Signer};
use crate::repository::Repository;
use crate::url::{Service, Url};
use answer::Noted;
use credentials::Named;
use hub::Hub;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::client::{HttpClient, HttpConnector, ReqwestConnector};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::http::HttpBuilder;
use object_store::multipart::MultipartStore;
use object_store::{Certificate, ClientOptions, ObjectStore, RetryConfig};
use std::error::Error;
use std::io;
use std::sync::{Arc, Once};
use std::time::Duration;

/// The time for a connection. A request that has none by then is repeated.
const CONNECT: Duration = Duration::from_secs(5);
/// The time without a byte of an answer after which a request is repeated.
const SILENCE: Duration = Duration::from_secs(10);

/// The client of one root.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) objects: Arc<dyn ObjectStore>,
    /// The same client, for uploads in parts. Web servers have none.
    pub(crate) uploads: Option<Arc<dyn MultipartStore>>,
    /// The same client, if it is of the Hub.
    pub(crate) hub: Option<Arc<Hub>>,
}

impl Client {
    fn new<S: ObjectStore + MultipartStore>(store: S) -> Self {
        let store = Arc::new(store);
        Client { objects: store.clone(), uploads: Some(store), hub: None }
    }
}

/// What a client is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Purpose {
    Read,
    /// The answer to an upload begins after its last byte, so that silence does not indicate a failure.
    Write,
}

/// Makes the connections of all clients.
#[derive(Debug, Default)]
struct Connector(Signer);

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let connection = ReqwestConnector::default().connect(options)?;
        Ok(HttpClient::new(Noted(HttpClient::new(Carrier::new(connection, self.0.clone())))))
    }
}

/// Creates the client for the root of a URL. Makes no request.
///
/// # Errors
/// `InvalidInput` if settings are missing or contradict each other.
pub(crate) fn connect(url: &Url, purpose: Purpose) -> io::Result<Client> {
    install_tls();
    let invalid = |error: object_store::Error| {
        let problem = match url.service {
            Service::Http => error.to_string(),
            _ => format!("{error}; {}", credentials::hint(url)),
        };
        io::Error::new(io::ErrorKind::InvalidInput, problem)
    };
    let client = match url.service {
        Service::S3 => {
            let mut builder = AmazonS3Builder::from_env();
            for (key, value) in profile::settings() {
                builder = builder.with_config(key, value);
            }
            let endpoint = builder.get_config_value(&AmazonS3ConfigKey::Endpoint);
            let options = options(allows_http("AWS_ALLOW_HTTP", endpoint)?, purpose)?;
            let (signer, region) = (Signer::default(), builder.get_config_value(&AmazonS3ConfigKey::Region));
            let builder = builder
                .with_url(&url.root)
                .with_retry(no_retries())
                .with_client_options(options)
                .with_http_connector(Connector(signer.clone()));
            let found = builder.clone().build().map_err(invalid)?;
            let credentials = Arc::new(Named(found.credentials().clone()));
            signer.set(credentials.clone(), region.unwrap_or_else(|| "us-east-1".to_owned()));
            Client::new(builder.with_credentials(credentials).build().map_err(invalid)?)
        }
        Service::Gcs => {
            let builder = GoogleCloudStorageBuilder::from_env().with_url(&url.root);
            let endpoint = builder.get_config_value(&GoogleConfigKey::BaseUrl);
            let options = options(allows_http("GOOGLE_ALLOW_HTTP", endpoint)?, purpose)?;
            let builder =
                builder.with_retry(no_retries()).with_client_options(options).with_http_connector(Connector::default());
            let found = builder.clone().build().map_err(invalid)?;
            let credentials = Arc::new(Named(found.credentials().clone()));
            Client::new(builder.with_credentials(credentials).build().map_err(invalid)?)
        }
        Service::Azure => {
            let builder = MicrosoftAzureBuilder::from_env().with_url(&url.root);
            // The emulator is at AZURITE_BLOB_STORAGE_URL, and needs no TLS.
            let emulator = builder.get_config_value(&AzureConfigKey::UseEmulator).is_some_and(|value| is_true(&value));
            let endpoint = builder.get_config_value(&AzureConfigKey::Endpoint).filter(|_| !emulator);
            let options = options(allows_http("AZURE_ALLOW_HTTP", endpoint)?, purpose)?;
            let builder =
                builder.with_retry(no_retries()).with_client_options(options).with_http_connector(Connector::default());
            let found = builder.clone().build().map_err(invalid)?;
            let credentials = Arc::new(Named(found.credentials().clone()));
            Client::new(builder.with_credentials(credentials).build().map_err(invalid)?)
        }
        Service::Http => {
            let builder = HttpBuilder::new().with_url(&url.root).with_client_options(options(true, purpose)?);
            let builder = builder.with_retry(no_retries()).with_http_connector(Connector::default());
            Client { objects: Arc::new(builder.build().map_err(invalid)?), uploads: None, hub: None }
        }
        Service::Hub => {
            let (_, name) = url.root.split_once("://").unwrap_or_default();
            let (repository, _) =
                Repository::parse(name).map_err(|text| io::Error::new(io::ErrorKind::InvalidInput, text))?;
            let hub = Arc::new(Hub::connect(repository, purpose)?);
            Client { objects: hub.clone(), uploads: None, hub: Some(hub) }
        }
        #[cfg(feature = "hdfs")]
        Service::Hdfs => Client::new(hdfs::Hdfs::connect(url).map_err(invalid)?),
        #[cfg(not(feature = "hdfs"))]
        Service::Hdfs => {
            let problem = "this build cannot read HDFS (Cargo feature `hdfs`)";
            return Err(io::Error::new(io::ErrorKind::Unsupported, problem));
        }
    };
    Ok(client)
}

/// Returns whether a variable allows requests without TLS.
///
/// # Errors
/// `InvalidInput` if the endpoint needs that, and the variable does not allow it.
fn allows_http(variable: &str, endpoint: Option<String>) -> io::Result<bool> {
    let allowed = std::env::var(variable).is_ok_and(|value| is_true(&value));
    match endpoint.filter(|endpoint| endpoint.starts_with("http://") && !allowed) {
        Some(endpoint) => {
            let problem = format!("the endpoint {endpoint} is not encrypted; set {variable}=true if that is intended");
            Err(io::Error::new(io::ErrorKind::InvalidInput, problem))
        }
        None => Ok(allowed),
    }
}

/// Returns whether the client takes a value as "yes".
fn is_true(value: &str) -> bool {
    matches!(value.to_ascii_lowercase().as_str(), "1" | "true" | "yes" | "on" | "y")
}

/// Turns off the repetitions of the client: [`crate::request`] repeats, and counts what it repeats.
fn no_retries() -> RetryConfig {
    RetryConfig { max_retries: 0, ..RetryConfig::default() }
}

fn options(allow_http: bool, purpose: Purpose) -> io::Result<ClientOptions> {
    let mut options = ClientOptions::new()
        .with_allow_http(allow_http)
        .with_connect_timeout(CONNECT)
        .with_timeout(crate::time_limit());
    if purpose != Purpose::Write {
        options = options.with_read_timeout(SILENCE.min(crate::time_limit()));
    }
    if lacks_certificates() {
        options = options.with_no_system_certificates(true);
        for der in webpki_root_certs::TLS_SERVER_ROOT_CERTS {
            options = options.with_root_certificate(Certificate::from_der(der).map_err(io::Error::other)?);
        }
    }
    Ok(options)
}

/// Returns whether the system has no certificates of its own, as many containers.
fn lacks_certificates() -> bool {
    rustls_native_certs::load_native_certs().certs.is_empty()
}

/// Chooses the implementation of TLS, unless the program has chosen one.
fn install_tls() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
}

/// Returns the sources of an error.
fn sources<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(error.source(), |inner| (*inner).source())
}
