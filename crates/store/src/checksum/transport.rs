//! Connections that add what the client does not pass on: headers of checksums to requests, with a new signature, and the
//! checksum of an answer to its extensions.

use crate::checksum::sent::{SENT, Sent};
use crate::checksum::{StoredCrc32c, of_headers};
use async_trait::async_trait;
use object_store::aws::{AwsAuthorizer, AwsCredentialProvider};
use object_store::client::{HttpClient, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// What requests to S3 are signed with. Set once the client exists; never for other stores.
#[derive(Debug, Clone, Default)]
pub(crate) struct Signer(Arc<OnceLock<(AwsCredentialProvider, String)>>);

impl Signer {
    pub(crate) fn set(&self, credentials: AwsCredentialProvider, region: String) {
        let _ = self.0.set((credentials, region));
    }
}

/// Returns whether the environment asks for uploads without checksums, by the variable of the SDKs of AWS.
fn is_turned_off() -> bool {
    std::env::var("AWS_REQUEST_CHECKSUM_CALCULATION").is_ok_and(|value| value.eq_ignore_ascii_case("when_required"))
}

/// Connections on which requests carry and request the checksums that [`super::with_checksums`] names.
#[derive(Debug)]
pub(crate) struct Carrier {
    inner: HttpClient,
    signer: Signer,
    /// Whether uploads carry no checksums: the store has refused one, or they are turned off.
    refused: AtomicBool,
}

const AUTHORIZATION: &str = "authorization";
const BODY_HASH: &str = "x-amz-content-sha256";
/// The client cannot sign requests with the tokens of a session of S3 Express.
const SESSION: &str = "x-amz-s3session-token";

#[async_trait]
impl HttpService for Carrier {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let is_s3 = self.signer.0.get().is_some() && !request.headers().contains_key(SESSION);
        let sent = SENT.try_with(Sent::clone).ok().filter(|sent| is_s3 && sent.is_of(&request));
        let mut response = match sent {
            Some(Sent::Requested) => self.request_checksum(request).await?,
            Some(sent) if !self.refused.load(Ordering::Relaxed) => self.write(request, sent).await?,
            _ => self.inner.execute(request).await?,
        };
        if let Some(crc) = of_headers(response.headers()) {
            response.extensions_mut().insert(StoredCrc32c(crc));
        }
        Ok(response)
    }
}

impl Carrier {
    pub(crate) fn new(inner: HttpClient, signer: Signer) -> Self {
        Carrier { inner, signer, refused: AtomicBool::new(is_turned_off()) }
    }

    /// Sends a request whose answer is to have the checksum of the object.
    async fn request_checksum(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        Sent::Requested.add_to(&mut request);
        self.sign(&mut request).await?;
        self.inner.execute(request).await
    }

    /// Sends a request that writes with its checksum, and without it if the store does not know checksums.
    async fn write(&self, request: HttpRequest, sent: Sent) -> Result<HttpResponse, HttpError> {
        let plain = request.clone();
        let mut request = request;
        sent.add_to(&mut request);
        self.sign(&mut request).await?;
        let response = self.inner.execute(request).await?;
        let (parts, body) = response.into_parts();
        if !sent.may_be_refused(parts.status.as_u16()) {
            sent.answered(&parts.headers);
            return Ok(HttpResponse::from_parts(parts, body));
        }
        let body = body.bytes().await?;
        if !sent.is_refused(parts.status.as_u16(), &body) {
            return Ok(HttpResponse::from_parts(parts, body.into()));
        }
        let response = self.inner.execute(plain).await?;
        if response.status().is_success() && !self.refused.swap(true, Ordering::Relaxed) {
            log::warn!(
                "the store takes no CRC32C with an upload ({}): `verify --quick` will compare lengths only",
                parts.status
            );
        }
        Ok(response)
    }

    /// Signs a request again, if it was signed.
    async fn sign(&self, request: &mut HttpRequest) -> Result<(), HttpError> {
        let Some((credentials, region)) = self.signer.0.get() else { return Ok(()) };
        if request.headers_mut().remove(AUTHORIZATION).is_none() {
            return Ok(());
        }
        let failed = |error| HttpError::new(HttpErrorKind::Request, error);
        let credential = credentials.get_credential().await.map_err(failed)?;
        let hash = request.headers().get(BODY_HASH).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let (digest, is_signed) = (from_hex(hash), hash != "UNSIGNED-PAYLOAD");
        AwsAuthorizer::new(&credential, "s3", region)
            .with_sign_payload(is_signed)
            .try_authorize(request, digest.as_ref().map(|digest| &digest[..]))
            .map_err(failed)
    }
}

/// Decodes the hash of a body; `None` for other text.
fn from_hex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    (text.len() == 64).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_hashes_of_bodies_only() {
        let bytes = std::array::from_fn(|k| 8 * k as u8);
        let text: String = bytes.iter().map(|byte: &u8| format!("{byte:02x}")).collect();
        assert_eq!(from_hex(&text), Some(bytes));
        for other in ["", "UNSIGNED-PAYLOAD", &text[2..], &(text.clone() + "00")] {
            assert_eq!(from_hex(other), None, "{other}");
        }
    }
}
