//! Makes the requests of the verbs, with the clients of `object_store`.

use super::{
    Abort, Begin, Begun, Commit, Describe, Description, Join, List, ListTimes, Mode, Part, Put, Range, Remove, Verb,
    Whole,
};
use crate::checksum::{Sent, StoredCrc32c};
use crate::client::{Client, Purpose, answer};
use crate::failure::{Failure, Problem};
use crate::new_file::new_file_of;
use crate::time_limit;
use crate::version::{Found, Version};
use futures_util::StreamExt;
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path as Key;
use object_store::{GetOptions, GetResult, ObjectMeta, ObjectStoreExt, PutMode, PutPayload, UpdateVersion};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

/// A store, or a policy in front of one.
pub(crate) trait Store: Sync {
    /// Carries a verb out on an object or a folder.
    fn call<V: Request>(&self, key: &Key, verb: &V) -> impl Future<Output = Result<V::Answer, Failure>> + Send;
}

/// A verb as its request.
pub(crate) trait Request: Verb {
    const PURPOSE: Purpose = Purpose::Read;

    /// Makes one request (a list: one per page).
    fn send(&self, client: &Client, key: &Key) -> impl Future<Output = Result<Self::Answer, Problem>> + Send;

    /// Returns how long the verb may take, with all repetitions.
    fn limit(&self) -> Duration {
        time_limit()
    }

    /// Returns the checksums that the request carries or requests.
    fn checksums(&self) -> Option<Sent> {
        None
    }

    /// Returns the bytes of objects in an answer.
    fn bytes(_: &Self::Answer) -> usize {
        0
    }
}

/// The store itself: one request, whose failure is classified by the status of its answer.
impl Store for Client {
    async fn call<V: Request>(&self, key: &Key, verb: &V) -> Result<V::Answer, Failure> {
        let (result, refusal) = answer::noting(verb.send(self, key)).await;
        result.map_err(|problem| Failure::new(problem, refusal))
    }
}

impl Request for Describe {
    async fn send(&self, client: &Client, key: &Key) -> Result<Description, Problem> {
        let result = client.objects.get_opts(key, GetOptions::new().with_head(true)).await?;
        Ok(Description {
            len: result.meta.size,
            version: version(&result.meta),
            modified: result.meta.last_modified.timestamp_nanos_opt().unwrap_or(0),
            crc32c: result.extensions.get::<StoredCrc32c>().map(|crc| crc.0),
        })
    }

    fn checksums(&self) -> Option<Sent> {
        self.checksum.then_some(Sent::Requested)
    }
}

impl Request for Range {
    async fn send(&self, client: &Client, key: &Key) -> Result<Vec<u8>, Problem> {
        let expected = self.0.end - self.0.start;
        let result = client.objects.get_opts(key, GetOptions::new().with_range(Some(self.0.clone()))).await?;
        if result.range.end - result.range.start < expected {
            return Err(Failure::Short.into());
        }
        let bytes = collect(result).await?;
        if bytes.len() as u64 == expected { Ok(bytes) } else { Err(Failure::Short.into()) }
    }

    fn bytes(answer: &Vec<u8>) -> usize {
        answer.len()
    }
}

impl Request for Whole {
    async fn send(&self, client: &Client, key: &Key) -> Result<Option<Found>, Problem> {
        let result = client.objects.get_opts(key, GetOptions::new()).await?;
        if result.meta.size > self.limit {
            return Ok(None);
        }
        let modified = modified(&result.meta);
        let version = version(&result.meta);
        Ok(Some(Found { bytes: collect(result).await?, version, modified }))
    }

    fn bytes(answer: &Option<Found>) -> usize {
        answer.as_ref().map_or(0, |found| found.bytes.len())
    }
}

impl Request for Commit {
    async fn send(&self, client: &Client, _: &Key) -> Result<String, Problem> {
        let hub = client
            .hub
            .as_ref()
            .ok_or_else(|| Failure::Unsupported("only the Hugging Face Hub has commits".to_owned()))?;
        hub.commit().await
    }
}

impl Request for List {
    async fn send(&self, client: &Client, key: &Key) -> Result<Vec<String>, Problem> {
        match *self {
            List::Folder => {
                let listed = client.objects.list_with_delimiter(Some(key)).await?;
                Ok(listed.objects.iter().filter_map(|meta| meta.location.filename().map(str::to_owned)).collect())
            }
            List::Beginning(start) => {
                let mut listed = client.objects.list_with_offset(Some(key), &key.clone().join(start));
                let mut names = vec![];
                while let Some(meta) = listed.next().await {
                    let location = meta?.location;
                    // In byte order: the others come after them.
                    match location.prefix_match(key).and_then(|mut parts| parts.next()) {
                        Some(name) if name.as_ref().starts_with(start) => names.push(name.as_ref().to_owned()),
                        _ => break,
                    }
                }
                Ok(names)
            }
            List::Below => {
                let mut listed = client.objects.list(Some(key));
                let mut paths = vec![];
                while let Some(meta) = listed.next().await {
                    let location = meta?.location;
                    if let Some(parts) = location.prefix_match(key) {
                        let parts: Vec<_> = parts.map(|part| part.as_ref().to_owned()).collect();
                        paths.push(parts.join("/"));
                    }
                }
                Ok(paths)
            }
            List::Any { ignored } => {
                let mut listed = client.objects.list(Some(key));
                while let Some(meta) = listed.next().await {
                    let location = meta?.location;
                    let name = location.filename().unwrap_or_default();
                    if !name.contains(ignored) && new_file_of(name).is_none() {
                        return Ok(vec![name.to_owned()]);
                    }
                }
                Ok(vec![])
            }
        }
    }
}

impl Request for ListTimes {
    async fn send(&self, client: &Client, key: &Key) -> Result<Vec<(String, SystemTime)>, Problem> {
        let listed = client.objects.list_with_delimiter(Some(key)).await?;
        let named = |meta: &ObjectMeta| Some((meta.location.filename()?.to_owned(), modified(meta)));
        Ok(listed.objects.iter().filter_map(named).collect())
    }
}

/// Returns when an object was written, by the store's clock, to the second.
fn modified(meta: &ObjectMeta) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(meta.last_modified.timestamp()).unwrap_or(0))
}

impl Request for Put {
    const PURPOSE: Purpose = Purpose::Write;

    async fn send(&self, client: &Client, key: &Key) -> Result<Version, Problem> {
        let mode = match &self.mode {
            Mode::Always => PutMode::Overwrite,
            Mode::Absent => PutMode::Create,
            Mode::Unchanged(Version { e_tag, generation }) => {
                PutMode::Update(UpdateVersion { e_tag: e_tag.clone(), version: generation.clone() })
            }
        };
        let put = client.objects.put_opts(key, PutPayload::from(self.bytes.clone()), mode.into()).await?;
        Ok(Version { e_tag: put.e_tag, generation: put.version })
    }

    fn checksums(&self) -> Option<Sent> {
        Some(Sent::Object(self.crc))
    }
}

impl Request for Remove {
    const PURPOSE: Purpose = Purpose::Write;

    async fn send(&self, client: &Client, key: &Key) -> Result<(), Problem> {
        match client.objects.delete(key).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn limit(&self) -> Duration {
        self.limit
    }
}

impl Request for Begin {
    const PURPOSE: Purpose = Purpose::Write;

    async fn send(&self, client: &Client, key: &Key) -> Result<Begun, Problem> {
        // An answer before this one may have been lost.
        self.takes_crc.store(false, Ordering::Relaxed);
        let id = uploads(client)?.create_multipart(key).await?;
        Ok(Begun { id, takes_crc: self.takes_crc.load(Ordering::Relaxed) })
    }

    fn checksums(&self) -> Option<Sent> {
        Some(Sent::Upload(self.takes_crc.clone()))
    }
}

impl Request for Part {
    const PURPOSE: Purpose = Purpose::Write;

    async fn send(&self, client: &Client, key: &Key) -> Result<String, Problem> {
        let payload = PutPayload::from(self.bytes.clone());
        Ok(uploads(client)?.put_part(key, &self.id, self.number, payload).await?.content_id)
    }

    fn checksums(&self) -> Option<Sent> {
        self.crc.map(Sent::Part)
    }
}

impl Request for Join {
    const PURPOSE: Purpose = Purpose::Write;

    async fn send(&self, client: &Client, key: &Key) -> Result<(), Problem> {
        let parts = self.parts.iter().map(|id| PartId { content_id: id.clone() }).collect();
        uploads(client)?.complete_multipart(key, &self.id, parts).await?;
        Ok(())
    }

    fn checksums(&self) -> Option<Sent> {
        self.crcs.as_ref().map(|(parts, object)| Sent::Join { parts: parts.clone(), object: *object })
    }
}

impl Request for Abort {
    const PURPOSE: Purpose = Purpose::Write;

    async fn send(&self, client: &Client, key: &Key) -> Result<(), Problem> {
        Ok(uploads(client)?.abort_multipart(key, &self.id).await?)
    }

    fn limit(&self) -> Duration {
        self.limit
    }
}

fn uploads(client: &Client) -> Result<&Arc<dyn MultipartStore>, Failure> {
    client.uploads.as_ref().ok_or(Failure::ReadOnly)
}

fn version(meta: &ObjectMeta) -> Version {
    Version { e_tag: meta.e_tag.clone(), generation: meta.version.clone() }
}

/// Reads a body into memory of exactly its length.
async fn collect(result: GetResult) -> Result<Vec<u8>, Problem> {
    let length = result.range.end - result.range.start;
    let mut bytes = Vec::new();
    // A server may claim any length.
    if usize::try_from(length).map_or(true, |length| bytes.try_reserve_exact(length).is_err()) {
        return Err(Failure::Memory { length }.into());
    }
    let mut body = result.into_stream();
    while let Some(part) = body.next().await {
        bytes.extend_from_slice(&part?);
    }
    // A body that ends early is an error of the transport, which is repeated.
    if bytes.len() as u64 == length {
        Ok(bytes)
    } else {
        Err(Failure::Cut { expected: length, found: bytes.len() }.into())
    }
}
