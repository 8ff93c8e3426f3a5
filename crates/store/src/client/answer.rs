//! Status and code of the answers that refuse a request: the errors of the client do not have them as values.

use object_store::client::{HttpClient, HttpError, HttpRequest, HttpResponse, HttpService};
use std::cell::RefCell;
use std::future::Future;

/// An answer with status 4xx or 5xx.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    /// What the store calls the error, as `NoSuchKey`; empty if it does not say.
    pub(crate) code: String,
}

tokio::task_local! {
    /// The last answer to a request of this future, if it was a refusal.
    static LAST: RefCell<Option<Refusal>>;
}

/// Runs requests one after the other. Returns also the last answer, if it was a refusal.
pub(crate) async fn noting<F: Future>(requests: F) -> (F::Output, Option<Refusal>) {
    let both = async {
        let output = requests.await;
        (output, LAST.with(RefCell::take))
    };
    LAST.scope(RefCell::default(), both).await
}

fn note(refusal: Option<Refusal>) {
    // There are no requests outside of `noting`, but they would do no harm.
    let _ = LAST.try_with(|last| last.replace(refusal));
}

/// Headers with the code of a refusal: of Azure, and of the Hugging Face Hub.
const CODES: [&str; 2] = ["x-ms-error-code", "x-error-code"];

/// Connections whose refusals [`noting`] returns.
#[derive(Debug)]
pub(super) struct Noted(pub(super) HttpClient);

#[async_trait::async_trait]
impl HttpService for Noted {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        note(None);
        let response = self.0.execute(request).await?;
        let status = response.status();
        if !status.is_client_error() && !status.is_server_error() {
            return Ok(response);
        }
        let (parts, body) = response.into_parts();
        let header = CODES.iter().find_map(|name| parts.headers.get(*name)?.to_str().ok()).map(str::to_owned);
        let body = body.bytes().await?;
        let code = header.or_else(|| code_of(&body)).unwrap_or_default();
        note(Some(Refusal { status: status.as_u16(), code }));
        Ok(HttpResponse::from_parts(parts, body.into()))
    }
}

/// Returns the code in the body of a refusal, which is XML with the same element for S3, GCS and Azure.
pub(crate) fn code_of(body: &[u8]) -> Option<String> {
    let body = String::from_utf8_lossy(body);
    let (code, _) = body.split_once("<Code>")?.1.split_once("</Code>")?;
    Some(code.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_code_of_a_body() {
        let body = b"<?xml version=\"1.0\"?><Error><Code>NoSuchKey</Code><Message>a<Code></Message></Error>";
        assert_eq!(code_of(body).as_deref(), Some("NoSuchKey"));
        for other in [&b""[..], b"<html>NoSuchKey</html>", b"<Error><Code>NoSuchKey"] {
            assert_eq!(code_of(other), None);
        }
    }
}
