//! The CRC32C that a store keeps of a whole object, from the answer to a `HEAD` request.
//!
//! S3 returns it if the request has the signed header `x-amz-checksum-mode: ENABLED`, GCS always (`x-goog-hash`). The client
//! passes on neither headers, so that a connector adds the one, with a new signature, and keeps the other. (ETags and MD5 are
//! not checksums of a manifest; CRCs of parts are not those of the whole object.)

use object_store::ClientOptions;
use object_store::aws::{AwsAuthorizer, AwsCredentialProvider};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService, ReqwestConnector,
};
use object_store::{HeaderMap, HeaderValue};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

/// The CRC32C of an object, in the extensions of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StoredCrc32c(pub(crate) u32);

/// What a `HEAD` request to S3 is signed with. Set once the client exists.
#[derive(Debug, Clone, Default)]
pub(crate) struct Signer(Arc<OnceLock<(AwsCredentialProvider, String)>>);

impl Signer {
    pub(crate) fn set(&self, credentials: AwsCredentialProvider, region: String) {
        let _ = self.0.set((credentials, region));
    }
}

/// Makes connections whose `HEAD` requests ask S3 for checksums, and whose answers hold them.
#[derive(Debug)]
pub(crate) struct Connector(pub(crate) Signer);

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let inner = ReqwestConnector::default().connect(options)?;
        Ok(HttpClient::new(Service { inner, signer: self.0.clone() }))
    }
}

#[derive(Debug)]
struct Service {
    inner: HttpClient,
    signer: Signer,
}

const AUTHORIZATION: &str = "authorization";

impl HttpService for Service {
    // As `async_trait` writes it.
    fn call<'s, 'f>(
        &'s self,
        mut request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'f>>
    where
        's: 'f,
        Self: 'f,
    {
        Box::pin(async move {
            // Credentials are requested by other methods.
            if request.method() == "HEAD"
                && let Some((credentials, region)) = self.signer.0.get()
            {
                request.headers_mut().insert("x-amz-checksum-mode", HeaderValue::from_static("ENABLED"));
                if request.headers_mut().remove(AUTHORIZATION).is_some() {
                    let failed = |error| HttpError::new(HttpErrorKind::Request, error);
                    let credential = credentials.get_credential().await.map_err(failed)?;
                    AwsAuthorizer::new(&credential, "s3", region).try_authorize(&mut request, None).map_err(failed)?;
                }
            }
            let mut response = self.inner.execute(request).await?;
            if let Some(crc) = of_headers(response.headers()) {
                response.extensions_mut().insert(StoredCrc32c(crc));
            }
            Ok(response)
        })
    }
}

/// Returns the CRC32C of a whole object; `None` if the headers have none.
fn of_headers(headers: &HeaderMap) -> Option<u32> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if text("x-amz-checksum-type").is_some_and(|kind| !kind.eq_ignore_ascii_case("FULL_OBJECT")) {
        return None;
    }
    let of_gcs = || {
        let hashes = headers.get_all("x-goog-hash").into_iter().filter_map(|value| value.to_str().ok());
        hashes.flat_map(|hashes| hashes.split(',')).find_map(|hash| hash.trim().strip_prefix("crc32c="))
    };
    from_base64(text("x-amz-checksum-crc32c").or_else(of_gcs)?)
}

/// Decodes four bytes, most significant first, in Base64 with padding. That of a composite checksum has a suffix.
fn from_base64(text: &str) -> Option<u32> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = text.strip_suffix("==").filter(|digits| digits.len() == 6)?;
    let digit = |byte: u8| ALPHABET.iter().position(|other| *other == byte);
    let bits = digits.bytes().try_fold(0u64, |bits, byte| Some(bits << 6 | digit(byte)? as u64))?;
    // 36 bits, of which the last four are zero.
    (bits % 16 == 0).then_some((bits >> 4) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(list: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in list {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn reads_checksums_of_s3_and_gcs() {
        // CRC32C of "123456789" is e3069283.
        assert_eq!(of_headers(&headers(&[("x-amz-checksum-crc32c", "4waSgw==")])), Some(0xe306_9283));
        let full = [("x-amz-checksum-type", "FULL_OBJECT"), ("x-amz-checksum-crc32c", "AAAAAQ==")];
        assert_eq!(of_headers(&headers(&full)), Some(1));
        let goog = [("x-goog-hash", "crc32c=4waSgw=="), ("x-goog-hash", "md5=JfnnlDI7RTiF9RgfG2JNCw==")];
        assert_eq!(of_headers(&headers(&goog)), Some(0xe306_9283));
        assert_eq!(
            of_headers(&headers(&[("x-goog-hash", "md5=JfnnlDI7RTiF9RgfG2JNCw==,crc32c=4waSgw==")])),
            Some(0xe306_9283)
        );
    }

    #[test]
    fn ignores_checksums_of_parts_and_other_hashes() {
        let parts = [("x-amz-checksum-type", "COMPOSITE"), ("x-amz-checksum-crc32c", "4waSgw==")];
        assert_eq!(of_headers(&headers(&parts)), None);
        for value in ["4waSgw==-3", "4waSgw", "4waSg===", "4waSgx==", "", "4w?Sgw==", "e3069283"] {
            let mut headers = HeaderMap::new();
            headers.insert("x-amz-checksum-crc32c", HeaderValue::from_str(value).unwrap());
            assert_eq!(of_headers(&headers), None, "{value}");
        }
        assert_eq!(of_headers(&headers(&[("etag", "\"4waSgw==\""), ("x-goog-hash", "md5=4waSgw==")])), None);
    }
}
