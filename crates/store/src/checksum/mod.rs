//! CRC32C of whole objects, which stores keep: S3 if the upload asked for it, GCS always.
//!
//! S3 returns it if the request has the signed header `x-amz-checksum-mode: ENABLED`, GCS in `x-goog-hash`. (ETags and MD5 are
//! not checksums of a manifest; CRCs of parts are not those of the whole object.)

mod sent;
mod transport;

pub(crate) use sent::{Sent, with_checksums};
pub(crate) use transport::{Carrier, Signer};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use object_store::HeaderMap;

/// The CRC32C of an object, in the extensions of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StoredCrc32c(pub(crate) u32);

const CRC32C: &str = "x-amz-checksum-crc32c";
const TYPE: &str = "x-amz-checksum-type";
const WHOLE: &str = "FULL_OBJECT";

/// Returns the CRC32C of a whole object; `None` if the headers have none.
fn of_headers(headers: &HeaderMap) -> Option<u32> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if text(TYPE).is_some_and(|kind| !kind.eq_ignore_ascii_case(WHOLE)) {
        return None;
    }
    let of_gcs = || {
        let hashes = headers.get_all("x-goog-hash").into_iter().filter_map(|value| value.to_str().ok());
        hashes.flat_map(|hashes| hashes.split(',')).find_map(|hash| hash.trim().strip_prefix("crc32c="))
    };
    from_base64(text(CRC32C).or_else(of_gcs)?)
}

/// Encodes a CRC, most significant byte first, in Base64 with padding.
fn to_base64(crc: u32) -> String {
    BASE64_STANDARD.encode(crc.to_be_bytes())
}

/// Decodes a CRC. That of a composite checksum has a suffix.
fn from_base64(text: &str) -> Option<u32> {
    let bytes = BASE64_STANDARD.decode(text).ok()?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use object_store::HeaderValue;

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
    fn encodes_what_it_decodes() {
        assert_eq!(to_base64(0xe306_9283), "4waSgw==");
        for crc in [0, 1, 0xffff_ffff, 0x8000_0000, 0x0123_4567] {
            assert_eq!(from_base64(&to_base64(crc)), Some(crc));
        }
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
