//! Datasets on the Hugging Face Hub: `hf://datasets/OWNER/NAME[@REVISION]/PATH`, only read. Files are those of one commit. The Hub
//! redirects readers to another server, by a signed URL, where they read ranges.
//!
//! | module | responsibility |
//! |---|---|
//! | `origin` | the server that a URL names |
//! | `endpoint` | the server, and the token that is sent to it |
//! | `connection` | follows redirects; the token goes to the server of the endpoint only |
//! | `tree` | the answers of the Hub that list files |
//!
//! The service `huggingface` of OpenDAL 0.59 does this too, with 62 more packages, among them a client of its own for ranges, which
//! decides for itself where the token goes.

mod connection;
mod endpoint;
mod origin;
mod tree;

pub(crate) use connection::is_refused_redirect;

use super::answer::Noted;
use super::{no_retries, options};
use crate::client::Purpose;
use crate::failure::Problem;
use crate::repository::Repository;
use async_trait::async_trait;
use connection::Connection;
use endpoint::Endpoint;
use futures_util::stream::{self, BoxStream, StreamExt};
use object_store::client::{HttpClient, HttpConnector, HttpRequest, HttpRequestBody};
use object_store::http::{HttpBuilder, HttpStore};
use object_store::path::Path as Key;
use object_store::{
    ClientOptions, CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use reqwest::Url;
use std::fmt;
use std::io;
use tokio::sync::OnceCell;
use tree::Entry;

/// Pages of a list, at most: 1,000 entries each on the Hub.
const MOST_PAGES: u32 = 10_000;

/// A dataset on the Hub at one revision.
pub(crate) struct Hub {
    repository: Repository,
    endpoint: Endpoint,
    connection: HttpClient,
    /// Files of the commit that the revision was when it was first used.
    files: OnceCell<Files>,
}

struct Files {
    commit: String,
    store: HttpStore,
}

/// Returns the paths that a page of the list of a folder names.
///
/// # Errors
/// Those of [`tree::entries`].
pub(crate) fn listed(page: &[u8], folder: &str) -> Result<Vec<String>> {
    let entries = tree::entries(page, Some(&Key::parse(folder)?))?;
    Ok(entries.iter().map(|entry| entry.path.to_string()).collect())
}

/// Gives a client connections that exist.
#[derive(Debug)]
struct Given(HttpClient);

impl HttpConnector for Given {
    fn connect(&self, _: &ClientOptions) -> Result<HttpClient> {
        Ok(self.0.clone())
    }
}

impl Hub {
    /// Makes the client of a dataset. Makes no request.
    ///
    /// # Errors
    /// `InvalidInput` for an endpoint that is not an `https://` URL, nor one of this machine.
    pub(crate) fn connect(repository: Repository, purpose: Purpose) -> io::Result<Self> {
        let endpoint = Endpoint::of_environment()?;
        let connection = Connection::new(endpoint.clone(), purpose)?;
        let connection = HttpClient::new(Noted(HttpClient::new(connection)));
        Ok(Hub { repository, endpoint, connection, files: OnceCell::new() })
    }

    /// Returns the commit of the revision: 40 hexadecimal digits.
    ///
    /// # Errors
    /// Those of the request.
    pub(crate) async fn commit(&self) -> Result<String, Problem> {
        Ok(self.files().await?.commit.clone())
    }

    async fn files(&self) -> Result<&Files> {
        let connect = async || {
            let commit = match self.repository.commit() {
                Some(commit) => commit.to_owned(),
                None => {
                    let revision = ["revision", self.repository.revision().unwrap_or("main")];
                    tree::commit(&self.get(&self.api(&revision)).await?.0)?
                }
            };
            let (owner, name) = self.repository.parts();
            let url = self.endpoint.join(&["datasets", owner, name, "resolve", &commit]);
            let store = HttpBuilder::new()
                .with_url(url)
                .with_client_options(options(true, Purpose::Read).map_err(|error| failed(error.to_string()))?)
                .with_retry(no_retries())
                .with_http_connector(Given(self.connection.clone()))
                .build()?;
            Ok(Files { commit, store })
        };
        self.files.get_or_try_init(connect).await
    }

    /// Returns a URL of the interface for programs.
    fn api(&self, parts: &[&str]) -> Url {
        let (owner, name) = self.repository.parts();
        self.endpoint.join(&[&["api", "datasets", owner, name], parts].concat())
    }

    /// Gets a page of the interface for programs, and the URL of the next one.
    async fn get(&self, url: &Url) -> Result<(Vec<u8>, Option<Url>)> {
        let mut request = HttpRequest::new(HttpRequestBody::empty());
        *request.uri_mut() = url.as_str().parse().map_err(failed)?;
        let response = self.connection.execute(request).await.map_err(|error| match is_refused_redirect(&error) {
            true => refused(crate::failure::chain(&error)),
            false => failed(error),
        })?;
        let status = response.status();
        if !status.is_success() {
            let said =
                |name: &str| response.headers().get(name).and_then(|text| text.to_str().ok()).unwrap_or_default();
            let text = format!("the Hub answers {status} {}: {}", said("x-error-code"), said("x-error-message"));
            return Err(failed(text.trim_end_matches([':', ' ']).to_owned()));
        }
        let next = tree::next_page(response.headers()).map(|link| url.join(link)).transpose().map_err(failed)?;
        if let Some(next) = next.as_ref().filter(|next| !self.endpoint.is_of(next)) {
            return Err(refused(format!("the next page of the list is on another server ({})", origin::origin(next))));
        }
        Ok((response.into_body().bytes().await.map_err(failed)?.to_vec(), next))
    }

    /// Lists what lies in a folder.
    async fn entries(&self, key: Option<&Key>) -> Result<Vec<Entry>> {
        let commit = &self.files().await?.commit;
        let folder: Vec<_> = key.into_iter().flat_map(Key::parts).map(|part| part.as_ref().to_owned()).collect();
        let folder: Vec<_> = folder.iter().map(String::as_str).collect();
        let url = self.api(&[&["tree", commit.as_str()], &folder[..]].concat());
        let (mut entries, mut next, mut pages) = (vec![], Some(url), 0);
        while let Some(url) = next {
            pages += 1;
            if pages > MOST_PAGES {
                return Err(refused(format!("a list of more than {MOST_PAGES} pages")));
            }
            let (page, link) = self.get(&url).await?;
            let before = entries.len();
            entries.extend(tree::entries(&page, key)?);
            if link.is_some() && entries.len() == before {
                return Err(refused("a page of a list has no entry, and names a next page".to_owned()));
            }
            next = link;
        }
        Ok(entries)
    }
}

#[async_trait]
impl ObjectStore for Hub {
    async fn get_opts(&self, path: &Key, options: GetOptions) -> Result<GetResult> {
        let found = self.files().await?.store.get_opts(path, options).await;
        found.map_err(|error| if is_refused_redirect(&error) { refused(crate::failure::chain(&error)) } else { error })
    }

    fn list(&self, _: Option<&Key>) -> BoxStream<'static, Result<ObjectMeta>> {
        // Only what is written is listed so.
        stream::once(async { Err(read_only()) }).boxed()
    }

    async fn list_with_delimiter(&self, folder: Option<&Key>) -> Result<ListResult> {
        let (mut objects, mut common_prefixes) = (vec![], vec![]);
        for entry in self.entries(folder).await? {
            match entry.size {
                Some(size) => objects.push(ObjectMeta {
                    location: entry.path,
                    last_modified: Default::default(),
                    size,
                    e_tag: None,
                    version: None,
                }),
                None => common_prefixes.push(entry.path),
            }
        }
        Ok(ListResult { objects, common_prefixes, extensions: Default::default() })
    }

    async fn put_opts(&self, _: &Key, _: PutPayload, _: PutOptions) -> Result<PutResult> {
        Err(read_only())
    }

    async fn put_multipart_opts(&self, _: &Key, _: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        Err(read_only())
    }

    fn delete_stream(&self, _: BoxStream<'static, Result<Key>>) -> BoxStream<'static, Result<Key>> {
        stream::once(async { Err(read_only()) }).boxed()
    }

    async fn copy_opts(&self, _: &Key, _: &Key, _: CopyOptions) -> Result<()> {
        Err(read_only())
    }
}

fn read_only() -> Error {
    refused("datasets on the Hub are only read".to_owned())
}

/// Returns an error after which the request is not repeated.
fn refused(text: String) -> Error {
    Error::NotSupported { source: text.into() }
}

/// Returns an error after which the request may be repeated; the status of the answer decides.
fn failed(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Generic { store: "Hugging Face", source: error.into() }
}

impl fmt::Display for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hugging Face")
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub").field("repository", &self.repository).finish_non_exhaustive()
    }
}
