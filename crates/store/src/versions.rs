//! Requests that read, write and remove objects with their versions, and list them.

use crate::checksum::{Sent, send};
use crate::client::Purpose;
use crate::request::{blocking, blocking_within, collect};
use crate::url::{Service, Url};
use crate::write::{Condition, Found, Version, new_file_of};
use bytes::Bytes;
use futures_util::StreamExt;
use object_store::{GetOptions, ObjectMeta, ObjectStoreExt, PutMode, PutPayload, UpdateVersion};
use shardtool_format::checksum::crc32c;
use std::io::{self, ErrorKind};
use std::time::{Duration, SystemTime};

/// Returns a whole object and its version; `None` if it is longer than `limit`.
pub(crate) fn found(url: &Url, limit: u64) -> io::Result<Option<Found>> {
    blocking(url.clone(), Purpose::Read, move |client, key| async move {
        let result = client.objects.get_opts(&key, GetOptions::new()).await?;
        if result.meta.size > limit {
            return Ok(None);
        }
        let (version, modified) = (version(&result.meta), modified(&result.meta));
        Ok(Some(Found { bytes: collect(result).await?, version, modified }))
    })
}

/// Returns the names of the objects directly below a folder.
pub(crate) fn list(url: &Url) -> io::Result<Vec<String>> {
    blocking(url.clone(), Purpose::Read, move |client, key| async move {
        let listed = client.objects.list_with_delimiter(Some(&key)).await?;
        Ok(listed.objects.iter().filter_map(|meta| meta.location.filename().map(str::to_owned)).collect())
    })
}

/// Returns whether no object lies in a folder or below it, other than those with `ignored` in their names and unfinished files.
pub(crate) fn is_empty(url: &Url, ignored: &'static str) -> io::Result<bool> {
    blocking(url.clone(), Purpose::Read, move |client, key| async move {
        let mut listed = client.objects.list(Some(&key));
        while let Some(meta) = listed.next().await {
            let location = meta?.location;
            let name = location.filename().unwrap_or_default();
            if !name.contains(ignored) && new_file_of(name).is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    })
}

/// Returns the names of the objects directly below a folder that begin with `start`, without listing the others.
pub(crate) fn list_beginning(url: &Url, start: &'static str) -> io::Result<Vec<String>> {
    if url.service == Service::Hdfs {
        // It lists folders, not names from one on.
        return Ok(list(url)?.into_iter().filter(|name| name.starts_with(start)).collect());
    }
    blocking(url.clone(), Purpose::Read, move |client, key| async move {
        let mut listed = client.objects.list_with_offset(Some(&key), &key.clone().join(start));
        let mut names = vec![];
        while let Some(meta) = listed.next().await {
            let location = meta?.location;
            // In byte order: the others come after them.
            match location.prefix_match(&key).and_then(|mut parts| parts.next()) {
                Some(name) if name.as_ref().starts_with(start) => names.push(name.as_ref().to_owned()),
                _ => break,
            }
        }
        Ok(names)
    })
}

fn version(meta: &ObjectMeta) -> Version {
    Version { e_tag: meta.e_tag.clone(), generation: meta.version.clone() }
}

fn modified(meta: &ObjectMeta) -> SystemTime {
    let seconds = u64::try_from(meta.last_modified.timestamp()).unwrap_or(0);
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

/// The state of an object, to find out whether a lost answer was a good one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) len: u64,
    version: Version,
    modified: SystemTime,
}

/// Returns the state of an object; `None` if it does not exist.
pub(crate) fn state(url: &Url) -> io::Result<Option<State>> {
    let options = GetOptions::new().with_head(true);
    let state = blocking(url.clone(), Purpose::Read, move |client, key| {
        let options = options.clone();
        async move {
            let meta = client.objects.get_opts(&key, options).await?.meta;
            Ok(State { len: meta.size, version: version(&meta), modified: modified(&meta) })
        }
    });
    match state {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        state => state.map(Some),
    }
}

/// Writes a whole object. Returns its version.
pub(crate) fn put(url: &Url, bytes: Vec<u8>, condition: Condition<'_>) -> io::Result<Version> {
    let bytes = Bytes::from(bytes);
    let crc = crc32c(&bytes);
    let mode = match condition {
        Condition::Always => PutMode::Overwrite,
        Condition::Absent => PutMode::Create,
        Condition::Unchanged(Version { e_tag, generation }) => {
            PutMode::Update(UpdateVersion { e_tag: e_tag.clone(), version: generation.clone() })
        }
    };
    blocking(url.clone(), Purpose::Write, move |client, key| {
        let (payload, mode) = (PutPayload::from(bytes.clone()), mode.clone());
        async move {
            let put = send(Some(Sent::Object(crc)), client.objects.put_opts(&key, payload, mode.into())).await?;
            Ok(Version { e_tag: put.e_tag, generation: put.version })
        }
    })
}

/// Removes an object, if it exists, within a time.
pub(crate) fn remove(url: &Url, limit: Duration) -> io::Result<()> {
    blocking_within(url.clone(), Purpose::Write, limit, move |client, key| async move {
        match client.objects.delete(&key).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    })
}
