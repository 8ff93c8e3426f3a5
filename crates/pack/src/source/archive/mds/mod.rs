//! Mosaic MDS: a folder of shards with an `index.json` that describes their columns. A shard, little-endian:
//!
//! ```text
//! u32 samples | u32 offset of each sample, and of the end | JSON | samples
//! sample: u32 size of each column without a fixed size | the columns, in the index's order
//! ```
//! Source: mosaicml-streaming, `streaming/base/format/mds`. Every length is checked against the remaining bytes.

mod encoding;
pub(super) mod index;

use super::files::ArchiveFile;
use super::roles::Roles;
use super::sample::{Sample, SampleVisitor, StoredValue, VisitedSample};
use super::stream::{self, append, fill, skip};
use crate::sample::Values;
use crate::{Error, Reason};
use encoding::Decoded;
use index::Layout;
use std::borrow::Cow;
use std::io::{self, Read};

/// Visits the samples of a shard. After a damaged offset or the end of a truncated shard, the rest is lost. A shard of
/// another length or with another number of samples than its index says has one more sample, which is lost.
///
/// # Errors
/// [`Error::Io`] if the file cannot be opened, and those of the visitor.
pub(super) fn read(file: &ArchiveFile, roles: &Roles, limit: u64, visit: &mut dyn SampleVisitor) -> Result<(), Error> {
    let mut stream = stream::open(&file.path).map_err(Error::io("read", &file.path))?;
    let layout = file.mds.as_deref().expect("listed by its index");
    let lost = |number, at, reason| VisitedSample { number, at, bytes: 0, sample: Err(reason) };
    let offsets = match offsets(&mut stream) {
        Ok(offsets) => offsets,
        Err(reason) => return visit.item(lost(0, 0, reason)),
    };
    let mut position = 4 + offsets.len() as u64;
    let offset = |i: usize| u64::from(u32::from_le_bytes(*offsets[4 * i..].first_chunk().expect("a whole offset")));
    let (mut data, mut image) = (vec![], vec![]);
    for number in 0..offsets.len() / 4 - 1 {
        let (at, end) = (offset(number), offset(number + 1));
        let bytes = match sample_bytes(&mut stream, position, at..end, limit, &mut data) {
            Ok(bytes) => bytes,
            Err(reason) => return visit.item(lost(number as u64, position, reason)),
        };
        position = end;
        let sample = bytes.and_then(|()| sample(&data, at, layout, roles, &mut image));
        visit.item(VisitedSample { number: number as u64, at, bytes: end - at, sample })?;
    }
    let samples = (offsets.len() / 4 - 1) as u64;
    let whole = match io::copy(&mut stream, &mut io::sink()) {
        Ok(rest) => position + rest,
        Err(error) => return visit.item(lost(samples, position, Reason::Unreadable(error))),
    };
    for (what, listed, found) in [("samples", layout.samples, samples), ("bytes", layout.bytes, whole)] {
        if let Some(listed) = listed.filter(|listed| *listed != found) {
            return visit.item(lost(samples, position, Reason::Listed { what, listed, found }));
        }
    }
    Ok(())
}

/// Reads the bytes of a shard's offsets, at least one.
fn offsets(stream: &mut impl Read) -> Result<Vec<u8>, Reason> {
    let mut bytes = vec![];
    let whole = fill(stream, 4, &mut bytes).map_err(Reason::Unreadable)?;
    let truncated = |needed, found| Reason::Truncated { needed, found };
    let count = bytes.first_chunk().map(|n| u64::from(u32::from_le_bytes(*n))).filter(|_| whole);
    let needed = 4 * (count.ok_or_else(|| truncated(8, bytes.len() as u64))? + 1);
    if !fill(stream, needed, &mut bytes).map_err(Reason::Unreadable)? {
        return Err(truncated(4 + needed, 4 + bytes.len() as u64));
    }
    Ok(bytes)
}

/// Reads the sample at `range`; the stream is at `position`. The inner result concerns only this sample.
fn sample_bytes(
    stream: &mut impl Read,
    position: u64,
    range: std::ops::Range<u64>,
    limit: u64,
    data: &mut Vec<u8>,
) -> Result<Result<(), Reason>, Reason> {
    let (Some(before), Some(bytes)) = (range.start.checked_sub(position), range.end.checked_sub(range.start)) else {
        return Err(Reason::Offset { at: position, offset: range.start.min(range.end) });
    };
    let truncated = |found| Reason::Truncated { needed: range.end, found };
    data.clear();
    if !skip(stream, before).map_err(Reason::Unreadable)? {
        return Err(truncated(position));
    }
    if bytes > limit {
        return match skip(stream, bytes).map_err(Reason::Unreadable)? {
            true => Ok(Err(Reason::SampleTooLong { bytes, limit })),
            false => Err(truncated(range.start)),
        };
    }
    match append(stream, bytes, data).map_err(Reason::Unreadable)? {
        true => Ok(Ok(())),
        false => Err(truncated(range.start + data.len() as u64)),
    }
}

/// Decodes the columns of a sample, which lies at `offset` in its file. `image` is a buffer for an image that has to be encoded.
fn sample<'a>(
    data: &'a [u8],
    offset: u64,
    layout: &'a Layout,
    roles: &Roles,
    image: &'a mut Vec<u8>,
) -> Result<Sample<'a>, Reason> {
    let (mut heads, mut parts) = (data, vec![]);
    let mut sizes = vec![];
    for column in &layout.columns {
        let size = match column.size {
            Some(size) => size,
            None => {
                let (size, rest) = heads.split_first_chunk().ok_or_else(|| column.damaged())?;
                heads = rest;
                u32::from_le_bytes(*size).into()
            }
        };
        sizes.push(size);
    }
    let (mut body, mut stored, mut fields) = (heads, None, vec![]);
    let at = roles.image(layout.columns.iter().map(|column| column.name.as_str()));
    for (i, (column, size)) in layout.columns.iter().zip(sizes).enumerate() {
        let size = usize::try_from(size).ok().filter(|size| *size <= body.len());
        let (value, rest) = body.split_at(size.ok_or_else(|| column.damaged())?);
        body = rest;
        parts.push(StoredValue::whole(offset + (data.len() - rest.len() - value.len()) as u64, value));
        if Some(i) == at {
            stored = Some(value);
            continue;
        }
        match column.encoding.decode(value).ok_or_else(|| column.damaged())? {
            Decoded::Values(values) => fields.push((Cow::Borrowed(column.name.as_str()), values)),
            Decoded::Members(members) => {
                let name = |member| Cow::Owned(format!("{}/{member}", column.name));
                fields.extend(members.into_iter().map(|(member, values)| (name(member), values)));
            }
            Decoded::Array(values, shape) => {
                fields.push((Cow::Borrowed(column.name.as_str()), values));
                if shape.len() > 1 {
                    fields.push((Cow::Owned(format!("{}/shape", column.name)), Values::Int64s(shape.into())));
                }
            }
        }
    }
    let stored = match (at, stored) {
        (Some(i), Some(stored)) => {
            let column = &layout.columns[i];
            Some(column.encoding.image(stored, image).ok_or_else(|| column.damaged())?)
        }
        _ => None,
    };
    Ok(Sample { key: None, image: stored, image_name: None, members: 0, fields, stored: parts })
}
