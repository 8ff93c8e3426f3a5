//! HDFS, with what its client lacks of an object store: uploads in parts, and writing on condition of a version.
//!
//! HDFS renames on condition that a name is free, atomically, but compares no versions. So a file is written under a name of its
//! own and renamed to its name; to replace one version, a writer first creates the file `.NAME.lock`, compares, renames, and
//! removes the lock.
//!
//! ```text
//! .NAME.DIGITS.new   a file that is being written
//! .NAME.lock         the name of the new file whose writer compares and replaces NAME
//! ```
//!
//! A lock that a killed process left counts for [`STALE`] by the clock of the name node. A process that takes a lock away renames
//! it, removes the new file that it names, and only then continues: a writer that lost its lock has no file left to rename,
//! however slow it is, and starts again.

use super::sources;
use crate::new_file::{NEW, new_file_of};
use crate::url::Url;
use async_trait::async_trait;
use futures_util::stream::{BoxStream, StreamExt, TryStreamExt};
use hdfs_native::HdfsError;
use hdfs_native::file::FileWriter;
use hdfs_native::{Client, ClientBuilder, WriteOptions};
use hdfs_native_object_store::HdfsObjectStore;
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path as Key;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartId, MultipartUpload, ObjectMeta,
    ObjectStore, ObjectStoreExt, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// After this time, the process that created a lock has ended.
const STALE: Duration = Duration::from_secs(30);
/// The wait for the lock of another process.
const WAIT: Duration = Duration::from_millis(50);

/// A file system of HDFS.
pub(crate) struct Hdfs {
    client: Client,
    files: HdfsObjectStore,
    uploads: Mutex<HashMap<MultipartId, Arc<Upload>>>,
}

/// A file that is written part by part.
#[derive(Default)]
struct Upload {
    parts: tokio::sync::Mutex<Parts>,
}

#[derive(Default)]
struct Parts {
    /// `None` after a failure.
    writer: Option<FileWriter>,
    next: usize,
    /// The file is complete under its first name.
    closed: bool,
    /// Parts that came before their turn.
    early: BTreeMap<usize, PutPayload>,
}

impl Hdfs {
    /// Returns the file system of a URL, or the default one of Hadoop's configuration if the URL has no host. Makes no
    /// request.
    ///
    /// # Errors
    /// If the configuration cannot be read, or names no file system.
    pub(crate) fn connect(url: &Url) -> Result<Self> {
        let mut builder = ClientBuilder::new();
        if url.root != "hdfs://" {
            builder = builder.with_url(&url.root);
        }
        let client = builder.build().map_err(failed)?;
        Ok(Hdfs { files: HdfsObjectStore::new(client.clone()), client, uploads: Mutex::default() })
    }

    fn uploads(&self) -> std::sync::MutexGuard<'_, HashMap<MultipartId, Arc<Upload>>> {
        self.uploads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn upload(&self, path: &Key, id: &MultipartId) -> Result<Arc<Upload>> {
        self.uploads().get(id).cloned().ok_or_else(|| not_found(path))
    }

    /// Creates a file under a new name.
    async fn create(&self, path: &Key) -> Result<(FileWriter, Key)> {
        let new = beside(path, &format!("{:016x}{NEW}", unique()))?;
        let writer = self.client.create(&absolute(&new), WriteOptions::default()).await.map_err(failed)?;
        Ok((writer, new))
    }

    /// Writes a file under a new name. Returns this name and the version.
    async fn write(&self, path: &Key, payload: PutPayload) -> Result<(Key, ObjectMeta)> {
        let (mut writer, new) = self.create(path).await?;
        let written = async {
            for bytes in payload {
                writer.write_bytes(bytes).await.map_err(failed)?;
            }
            writer.close().await.map_err(failed)?;
            self.files.head(&new).await
        };
        match written.await {
            Ok(meta) => Ok((new, meta)),
            Err(error) => {
                self.delete_new(&new).await;
                Err(error)
            }
        }
    }

    /// Removes a file that is not needed any more, if the name node lets it.
    async fn delete_new(&self, new: &Key) {
        let _ = self.client.delete(&absolute(new), false).await;
    }

    /// Renames a new file to its name.
    async fn rename(&self, new: &Key, path: &Key, overwrite: bool) -> Result<()> {
        match self.client.rename(&absolute(new), &absolute(path), overwrite).await {
            Ok(()) => Ok(()),
            Err(HdfsError::AlreadyExists(path)) => Err(Error::AlreadyExists { source: "the file exists".into(), path }),
            Err(error) => Err(failed(error)),
        }
    }

    /// Renames a new file to its name if the file there has this version.
    async fn replace(&self, new: (&Key, &ObjectMeta), path: &Key, e_tag: Option<&str>) -> Result<()> {
        let lock = beside(path, "lock")?;
        self.lock(&lock, new).await?;
        let replaced = self.replace_locked(new.0, path, e_tag).await;
        // If this fails, the lock counts until it is old.
        let _ = self.take_away(&lock, path, Some(new.0)).await;
        replaced
    }

    async fn replace_locked(&self, new: &Key, path: &Key, e_tag: Option<&str>) -> Result<()> {
        let changed = |what: &str| Error::Precondition { path: path.to_string(), source: what.to_owned().into() };
        let found = match self.files.head(path).await {
            Err(Error::NotFound { .. }) => return Err(changed("the file does not exist any more")),
            found => found?,
        };
        if found.e_tag.as_deref() != e_tag {
            return Err(changed("the file has changed"));
        }
        self.rename(new, path, true).await
    }

    /// Creates a lock file for a new file that was just written, and waits while another process has it.
    async fn lock(&self, lock: &Key, (new, meta): (&Key, &ObjectMeta)) -> Result<()> {
        let begun = Instant::now();
        let name = new.filename().unwrap_or_default().to_owned();
        let (content, _) = self.write(lock, name.into()).await?;
        let path = beside_name(lock, new_file_of(new.filename().unwrap_or_default()).unwrap_or_default());
        loop {
            match self.rename(&content, lock, false).await {
                Err(Error::AlreadyExists { .. }) => {}
                Err(error) => {
                    self.delete_new(&content).await;
                    return Err(error);
                }
                Ok(()) => return Ok(()),
            }
            if let Ok(found) = self.files.head(lock).await {
                let now = meta.last_modified + begun.elapsed();
                if (now - found.last_modified).to_std().is_ok_and(|age| age > STALE) {
                    self.take_away(lock, &path, None).await?;
                    continue;
                }
            }
            tokio::time::sleep(WAIT).await;
        }
    }

    /// Removes a lock, after the new file that it names, unless that is `mine`.
    async fn take_away(&self, lock: &Key, path: &Key, mine: Option<&Key>) -> Result<()> {
        let taken = beside(lock, &format!("{:016x}{NEW}", unique()))?;
        match self.client.rename(&absolute(lock), &absolute(&taken), false).await {
            Err(HdfsError::FileNotFound(_)) => return Ok(()),
            renamed => renamed.map_err(failed)?,
        }
        let content = self.files.get(&taken).await?.bytes().await?;
        let owner = std::str::from_utf8(&content).ok().filter(|name| new_file_of(name) == path.filename());
        if let Some(owner) = owner
            && mine.and_then(|mine| mine.filename()) != Some(owner)
        {
            let owner = absolute(&beside_name(path, owner));
            self.client.delete(&owner, false).await.map_err(failed)?;
        }
        self.delete_new(&taken).await;
        Ok(())
    }

    /// Reads a range, or a whole file, of which the answer names the version.
    async fn read(&self, path: &Key, options: GetOptions) -> Result<GetResult> {
        let meta = self.files.head(path).await?;
        options.check_preconditions(&meta)?;
        let reader = self.client.read(&absolute(path)).await.map_err(failed)?;
        let replaced = || failed("the file was replaced while it was opened");
        if reader.file_length() as u64 != meta.size {
            return Err(replaced());
        }
        let range = match options.range {
            None => {
                // The blocks are those of this version.
                if self.files.head(path).await?.e_tag != meta.e_tag {
                    return Err(replaced());
                }
                0..meta.size
            }
            // What begins after the end has no bytes.
            Some(range) => range.as_range(meta.size).unwrap_or(meta.size..meta.size),
        };
        let (start, length) = (range.start as usize, (range.end - range.start) as usize);
        let stream = reader.read_range_stream(start, length).map_err(failed).boxed();
        let (attributes, extensions) = Default::default();
        Ok(GetResult { payload: GetResultPayload::Stream(stream), meta, range, attributes, extensions })
    }
}

#[async_trait]
impl ObjectStore for Hdfs {
    async fn put_opts(&self, path: &Key, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let (new, meta) = self.write(path, payload).await?;
        let placed = match &options.mode {
            PutMode::Overwrite => self.rename(&new, path, true).await,
            PutMode::Create => self.rename(&new, path, false).await,
            PutMode::Update(version) => self.replace((&new, &meta), path, version.e_tag.as_deref()).await,
        };
        if placed.is_err() {
            self.delete_new(&new).await;
        }
        // Renaming a file changes neither its length nor its time.
        placed.map(|()| result(meta.e_tag))
    }

    async fn put_multipart_opts(&self, _: &Key, _: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        Err(Error::NotSupported { source: "files of HDFS are written by `MultipartStore`".into() })
    }

    async fn get_opts(&self, path: &Key, options: GetOptions) -> Result<GetResult> {
        if options.head { self.files.get_opts(path, options).await } else { self.read(path, options).await }
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Key>>) -> BoxStream<'static, Result<Key>> {
        self.files.delete_stream(paths)
    }

    fn list(&self, folder: Option<&Key>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.files.list(folder)
    }

    async fn list_with_delimiter(&self, folder: Option<&Key>) -> Result<ListResult> {
        self.files.list_with_delimiter(folder).await
    }

    async fn copy_opts(&self, from: &Key, to: &Key, options: CopyOptions) -> Result<()> {
        self.files.copy_opts(from, to, options).await
    }
}

#[async_trait]
impl MultipartStore for Hdfs {
    /// Begins a file. The id is its name until it is complete.
    async fn create_multipart(&self, path: &Key) -> Result<MultipartId> {
        let (writer, new) = self.create(path).await?;
        let id = new.filename().unwrap_or_default().to_owned();
        let upload = Upload::default();
        upload.parts.lock().await.writer = Some(writer);
        self.uploads().insert(id.clone(), Arc::new(upload));
        Ok(id)
    }

    /// Appends a part, after those before it. A part that came before its turn is kept until then.
    async fn put_part(&self, path: &Key, id: &MultipartId, number: usize, part: PutPayload) -> Result<PartId> {
        let upload = self.upload(path, id)?;
        let mut parts = upload.parts.lock().await;
        // A part is sent again if its answer was lost.
        if number >= parts.next {
            parts.early.insert(number, part);
        }
        // If this future is dropped within a write, the writer stays taken.
        let Some(mut writer) = parts.writer.take() else { return Err(broken("an earlier part failed")) };
        loop {
            let next = parts.next;
            let Some(part) = parts.early.remove(&next) else { break };
            for bytes in part {
                writer.write_bytes(bytes).await.map_err(broken)?;
            }
            parts.next += 1;
        }
        parts.writer = Some(writer);
        Ok(PartId { content_id: number.to_string() })
    }

    async fn complete_multipart(&self, path: &Key, id: &MultipartId, parts: Vec<PartId>) -> Result<PutResult> {
        let upload = self.upload(path, id)?;
        let mut written = upload.parts.lock().await;
        if written.next != parts.len() {
            return Err(broken(format!("{} of {} parts are written", written.next, parts.len())));
        }
        if !written.closed {
            let Some(mut writer) = written.writer.take() else { return Err(broken("an earlier part failed")) };
            writer.close().await.map_err(broken)?;
            written.closed = true;
        }
        self.rename(&beside_name(path, id), path, true).await?;
        self.uploads().remove(id);
        Ok(result(None))
    }

    async fn abort_multipart(&self, path: &Key, id: &MultipartId) -> Result<()> {
        drop(self.uploads().remove(id));
        // The id may come from a lock that another program wrote.
        if new_file_of(id).is_none_or(|name| Some(name) != path.filename()) {
            return Err(not_found(path));
        }
        self.client.delete(&absolute(&beside_name(path, id)), false).await.map(drop).map_err(failed)
    }
}

/// Returns the path of a hidden file beside another: `.NAME.ending`.
fn beside(path: &Key, ending: &str) -> Result<Key> {
    let name = path.filename().ok_or_else(|| not_found(path))?;
    Ok(beside_name(path, &format!(".{name}.{ending}")))
}

/// Returns the path of another file in the same folder.
fn beside_name(path: &Key, name: &str) -> Key {
    let mut parts: Vec<_> = path.parts().collect();
    parts.pop();
    parts.into_iter().collect::<Key>().join(name)
}

/// Returns the path as HDFS writes it.
fn absolute(path: &Key) -> String {
    format!("/{path}")
}

/// Returns a number that no other process has.
fn unique() -> u64 {
    // The keys of a `RandomState` are random, and different for each.
    RandomState::new().hash_one(std::process::id())
}

fn result(e_tag: Option<String>) -> PutResult {
    PutResult { e_tag, version: None, extensions: Default::default() }
}

fn not_found(path: &Key) -> Error {
    Error::NotFound { path: path.to_string(), source: "HDFS does not have it".into() }
}

/// Wraps an error after which a request may be repeated.
fn failed(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Generic { store: "HDFS", source: error.into() }
}

/// What a name node answers if the user may not do something.
const NO_ACCESS: &str = "org.apache.hadoop.security.AccessControlException";

/// Returns whether a name node refuses a request.
pub(crate) fn is_refusal(error: &Error) -> bool {
    let refuses = |error: &HdfsError| match error {
        HdfsError::RPCError(class, _) | HdfsError::FatalRPCError(class, _) => class == NO_ACCESS,
        _ => false,
    };
    sources(error).filter_map(|source| source.downcast_ref()).any(refuses)
}

/// Returns whether a request was not made because credentials of Kerberos are missing or do not fit.
pub(crate) fn is_of_credentials(error: &Error) -> bool {
    let is = |error: &HdfsError| {
        matches!(error, HdfsError::SASLError(_) | HdfsError::GSSAPIError(..) | HdfsError::NoSASLMechanism)
    };
    sources(error).filter_map(|source| source.downcast_ref()).any(is)
}

/// Wraps an error of an upload, whose parts cannot be sent again.
fn broken(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::NotSupported { source: error.into() }
}

impl fmt::Display for Hdfs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HDFS")
    }
}

impl fmt::Debug for Hdfs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hdfs").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_of_an_error_says_whether_it_is_a_refusal() {
        let of = |class: &str, text: &str| HdfsError::RPCError(class.to_owned(), text.to_owned());
        let refusal = of(NO_ACCESS, "Permission denied: user=a");
        assert!(is_refusal(&failed(refusal)) && is_refusal(&broken(of(NO_ACCESS, ""))));
        // A text that mentions the class decides nothing.
        let other = failed(of("java.io.IOException", NO_ACCESS));
        assert!(!is_refusal(&other) && !is_of_credentials(&other));
        let ticket = failed(HdfsError::NoSASLMechanism);
        assert!(is_of_credentials(&ticket) && !is_refusal(&ticket));
    }
}
