//! Clients from environment variables and credential files.

use crate::checksum::{Connector, Signer};
use crate::profile;
use crate::url::{Service, Url};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::http::HttpBuilder;
use object_store::multipart::MultipartStore;
use object_store::{BackoffConfig, Certificate, ClientOptions, ObjectStore, RetryConfig};
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
}

impl Client {
    fn new<S: ObjectStore + MultipartStore>(store: S) -> Self {
        let store = Arc::new(store);
        Client { objects: store.clone(), uploads: Some(store) }
    }
}

/// What a client is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Purpose {
    Read,
    /// The answer to an upload begins after its last byte, so that silence does not indicate a failure.
    Write,
    /// Lengths and checksums of objects.
    Head,
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
            _ => format!("{error}; {}", credentials_hint(url)),
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
            let allow_http = allows_http("AWS_ALLOW_HTTP", endpoint)?;
            let mut builder =
                builder.with_url(&url.root).with_retry(retries()).with_client_options(options(allow_http, purpose)?);
            let (signer, region) = (Signer::default(), builder.get_config_value(&AmazonS3ConfigKey::Region));
            if purpose != Purpose::Read {
                builder = builder.with_http_connector(Connector(signer.clone()));
            }
            let store = builder.build().map_err(invalid)?;
            signer.set(store.credentials().clone(), region.unwrap_or_else(|| "us-east-1".to_owned()));
            Client::new(store)
        }
        Service::Gcs => {
            let builder = GoogleCloudStorageBuilder::from_env().with_url(&url.root).with_retry(retries());
            let endpoint = builder.get_config_value(&GoogleConfigKey::BaseUrl);
            let options = options(allows_http("GOOGLE_ALLOW_HTTP", endpoint)?, purpose)?;
            let builder = match purpose {
                Purpose::Head => builder.with_http_connector(Connector(Signer::default())),
                Purpose::Read | Purpose::Write => builder,
            };
            Client::new(builder.with_client_options(options).build().map_err(invalid)?)
        }
        Service::Azure => {
            let builder = MicrosoftAzureBuilder::from_env().with_url(&url.root).with_retry(retries());
            // The emulator is at AZURITE_BLOB_STORAGE_URL, and needs no TLS.
            let emulator = builder.get_config_value(&AzureConfigKey::UseEmulator).is_some_and(|value| is_true(&value));
            let endpoint = builder.get_config_value(&AzureConfigKey::Endpoint).filter(|_| !emulator);
            let options = options(allows_http("AZURE_ALLOW_HTTP", endpoint)?, purpose)?;
            Client::new(builder.with_client_options(options).build().map_err(invalid)?)
        }
        Service::Http => {
            let builder = HttpBuilder::new().with_url(&url.root).with_retry(retries());
            let store = builder.with_client_options(options(true, purpose)?).build().map_err(invalid)?;
            Client { objects: Arc::new(store), uploads: None }
        }
        #[cfg(feature = "hdfs")]
        Service::Hdfs => Client::new(crate::hdfs::Hdfs::connect(url).map_err(invalid)?),
        #[cfg(not(feature = "hdfs"))]
        Service::Hdfs => {
            let problem = "this build cannot read HDFS (Cargo feature `hdfs`)";
            return Err(io::Error::new(io::ErrorKind::Unsupported, problem));
        }
    };
    Ok(client)
}

/// Returns where credentials for a URL are looked for, as part of an error message.
pub(crate) fn credentials_hint(url: &Url) -> &'static str {
    match url.service {
        Service::S3 => {
            "credentials are taken from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (AWS_SESSION_TOKEN), else from profile \
             AWS_PROFILE of ~/.aws/credentials, else from AWS_WEB_IDENTITY_TOKEN_FILE, the container or the instance; \
             AWS_SKIP_SIGNATURE=true reads public buckets; AWS_ENDPOINT_URL and AWS_REGION choose the server"
        }
        Service::Gcs => {
            "credentials are taken from GOOGLE_APPLICATION_CREDENTIALS, GOOGLE_SERVICE_ACCOUNT or \
             GOOGLE_SERVICE_ACCOUNT_KEY, gcloud's application default credentials, or the instance; \
             GOOGLE_SKIP_SIGNATURE=true reads public buckets; GOOGLE_BASE_URL chooses the server"
        }
        Service::Azure => {
            "credentials are taken from AZURE_STORAGE_ACCOUNT_NAME with AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_KEY, \
             from AZURE_CLIENT_ID, AZURE_CLIENT_SECRET and AZURE_TENANT_ID, or from the instance; AZURE_ENDPOINT chooses \
             the server, AZURE_STORAGE_USE_EMULATOR=true an emulator"
        }
        Service::Hdfs => {
            "the name node is that of the URL, or of fs.defaultFS in core-site.xml in HADOOP_CONF_DIR or HADOOP_HOME/etc/hadoop; \
             the user is HADOOP_USER_NAME, or the one of the process; Kerberos tickets are those of kinit"
        }
        Service::Http => "the server refuses the request; no credentials are sent to http:// and https:// URLs",
    }
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

fn retries() -> RetryConfig {
    let backoff =
        BackoffConfig { init_backoff: Duration::from_millis(100), max_backoff: Duration::from_secs(5), base: 2.0 };
    RetryConfig { backoff, max_retries: 6, retry_timeout: crate::time_limit() * 3 / 4 }
}

fn options(allow_http: bool, purpose: Purpose) -> io::Result<ClientOptions> {
    let mut options = ClientOptions::new()
        .with_allow_http(allow_http)
        .with_connect_timeout(CONNECT)
        .with_timeout(crate::time_limit());
    if purpose != Purpose::Write {
        options = options.with_read_timeout(SILENCE.min(crate::time_limit()));
    }
    // Containers often have no certificates of their own.
    if rustls_native_certs::load_native_certs().certs.is_empty() {
        options = options.with_no_system_certificates(true);
        for der in webpki_root_certs::TLS_SERVER_ROOT_CERTS {
            options = options.with_root_certificate(Certificate::from_der(der).map_err(io::Error::other)?);
        }
    }
    Ok(options)
}

/// Chooses the implementation of TLS, unless the program has chosen one.
fn install_tls() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
}
