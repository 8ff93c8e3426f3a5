//! TFRecord files of `tf.train.Example`, plain or with the whole file compressed.

use super::files::ArchiveFile;
use super::roles::Roles;
use super::sample::{Sample, SampleVisitor, VisitedSample};
use super::stream::{self, fill, skip};
use crate::frames::{FrameAt, Frames};
use crate::sample::Values;
use crate::{ArchiveError, Error, Reason};
use shardtool_format as format;
use shardtool_format::checksum::crc32c;
use shardtool_format::example::{Example, Feature, has_feature_lists};
use shardtool_format::frame::{self, FOOTER_BYTES, HEADER_BYTES, OVERHEAD_BYTES};
use std::io::Read;

/// Visits the records of a file. After a damaged length, the rest of the file is lost; other damage costs one record.
///
/// # Errors
/// [`ArchiveError::SequenceExamples`]; [`Error::Io`] if the file cannot be opened, and those of the visitor.
pub(super) fn read(file: &ArchiveFile, roles: &Roles, limit: u64, visit: &mut dyn SampleVisitor) -> Result<(), Error> {
    let mut stream = stream::open(&file.path).map_err(Error::io("read", &file.path))?;
    let (mut number, mut at, mut data) = (0, 0, vec![]);
    loop {
        let next = record(&mut stream, at, limit, visit.needs_image(at), &mut data);
        if matches!(next, Ok(Some(Next::Data))) && number == 0 && has_feature_lists(&data) {
            return Err(Error::Archive(ArchiveError::SequenceExamples { path: file.path.clone() }));
        }
        let (bytes, sample, last) = match next {
            Ok(None) => return Ok(()),
            Ok(Some(Next::Data)) => ((data.len() + OVERHEAD_BYTES) as u64, sample(&data, roles), false),
            Ok(Some(Next::Lost { bytes, reason })) => (bytes, Err(reason), false),
            Err(Reason::Record(damage @ format::Error::LengthCrc { .. })) => {
                (0, Err(rest_from(file, at, damage)), true)
            }
            Err(reason) => (0, Err(reason), true),
        };
        visit.item(VisitedSample { number, at, bytes, sample })?;
        if last {
            return Ok(());
        }
        number += 1;
        at += bytes;
    }
}

/// Returns the reason for a bad length at a byte of a file: what is lost with it, as far as it is known.
fn rest_from(file: &ArchiveFile, at: u64, damage: format::Error) -> Reason {
    let count = || {
        let mut frames = Frames::open(&file.path).ok()?;
        if frames.compression().ok()?.is_some() {
            return None;
        }
        let (mut records, mut offset) = (0, at + 1);
        while offset < frames.bytes() {
            offset = frames.next_header(offset).ok()?;
            offset += match (offset < frames.bytes()).then(|| frames.at(offset)).transpose().ok()? {
                Some(FrameAt::Record(data, _)) => {
                    records += 1;
                    (data.len() + OVERHEAD_BYTES) as u64
                }
                _ => 1,
            };
        }
        Some((frames.bytes() - at, records))
    };
    let found = count();
    Reason::LostRest { damage, bytes: found.map(|(bytes, _)| bytes), records: found.map(|(_, records)| records) }
}

enum Next {
    /// The record's data were read.
    Data,
    /// The record is lost, but the next one begins `bytes` later.
    Lost { bytes: u64, reason: Reason },
}

/// Reads the next record; `None` at the end of the file.
fn record(
    stream: &mut impl Read,
    offset: u64,
    limit: u64,
    check: bool,
    data: &mut Vec<u8>,
) -> Result<Option<Next>, Reason> {
    let truncated = |needed: u64, found: usize| {
        Reason::Record(format::Error::TruncatedFrame { offset, needed, found: found as u64 })
    };
    if !fill(stream, HEADER_BYTES as u64, data).map_err(Reason::Unreadable)? {
        return if data.is_empty() { Ok(None) } else { Err(truncated(OVERHEAD_BYTES as u64, data.len())) };
    }
    let length = frame::data_length(data.first_chunk().expect("a header's bytes"), offset)?;
    let whole = length.saturating_add(OVERHEAD_BYTES as u64);
    if length > limit {
        return match skip(stream, length.saturating_add(FOOTER_BYTES as u64)).map_err(Reason::Unreadable)? {
            true => Ok(Some(Next::Lost { bytes: whole, reason: Reason::SampleTooLong { bytes: length, limit } })),
            false => Err(truncated(whole, HEADER_BYTES)),
        };
    }
    if !fill(stream, length + FOOTER_BYTES as u64, data).map_err(Reason::Unreadable)? {
        return Err(truncated(whole, HEADER_BYTES + data.len()));
    }
    let footer = data.split_off(length as usize);
    if check && let Err(damage) = frame::check_footer(&footer, crc32c(data), offset) {
        return Ok(Some(Next::Lost { bytes: whole, reason: damage.into() }));
    }
    Ok(Some(Next::Data))
}

/// Converts a record's data to a sample.
fn sample<'a>(data: &'a [u8], roles: &Roles) -> Result<Sample<'a>, Reason> {
    let example = Example::parse(data)?;
    let features = example.features();
    let image = roles.image(features.iter().map(|(name, _)| &**name));
    let bytes = |at: usize| match features[at].1 {
        Feature::Bytes(list) => list.single(),
        _ => None,
    };
    let others = features.iter().enumerate().filter(|(i, _)| Some(*i) != image);
    Ok(Sample {
        key: None,
        image_name: None,
        members: 0,
        image: image.and_then(bytes),
        fields: others.map(|(_, (name, f))| (name.clone(), Values::of_feature(*f))).collect(),
        stored: vec![],
    })
}
