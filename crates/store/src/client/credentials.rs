//! Where credentials come from, and how their failures are distinguished from those of the store.

use super::sources;
use crate::url::{Service, Url};
use async_trait::async_trait;
use object_store::{CredentialProvider, Result};
use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// Returns where credentials for a URL are looked for, as part of an error message.
pub(crate) fn hint(url: &Url) -> &'static str {
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
        Service::Hub => {
            "a token is taken from HF_TOKEN, else from HF_TOKEN_PATH or the file of `hf auth login`; datasets that are private or gated \
             need one whose owner may read them; HF_ENDPOINT chooses the server"
        }
        Service::Http => "the server refuses the request; no credentials are sent to http:// and https:// URLs",
    }
}

/// Credentials whose failures [`is_of_credentials`]. A client chooses its credentials when it is built, so it is built once to
/// find them, and once more with them.
#[derive(Debug)]
pub(super) struct Named<C>(pub(super) Arc<dyn CredentialProvider<Credential = C>>);

#[async_trait]
impl<C: fmt::Debug + Send + Sync> CredentialProvider for Named<C> {
    type Credential = C;

    async fn get_credential(&self) -> Result<Arc<C>> {
        self.0.get_credential().await.map_err(|error| match error {
            object_store::Error::Generic { store, source } => {
                object_store::Error::Generic { store, source: Box::new(NoCredentials(source)) }
            }
            error => error,
        })
    }
}

/// Why there are no credentials.
#[derive(Debug)]
struct NoCredentials(Box<dyn Error + Send + Sync>);

impl fmt::Display for NoCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for NoCredentials {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

/// Returns whether a request failed before it was sent, because there were no credentials.
pub(crate) fn is_of_credentials(error: &object_store::Error) -> bool {
    #[cfg(feature = "hdfs")]
    if super::hdfs::is_of_credentials(error) {
        return true;
    }
    sources(error).any(|source| source.is::<NoCredentials>())
}
