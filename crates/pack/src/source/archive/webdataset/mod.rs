//! tar files of WebDataset samples: consecutive files with the same name up to the first dot of their last path
//! component (or the last dot, [`grouping`]) are one sample; the rest of the name, in lower case, is the field. The tar may be compressed as a whole. A link
//! is resolved to the member that it leads to ([`links`]). A tar with a header longer than [`MAX_HEADER`] is lost from there
//! on.

mod grouping;
mod links;

use super::files::ArchiveFile;
use super::header_limit::{Allowance, HeaderLimit, MAX_HEADER};
use super::json;
use super::roles::Roles;
use super::sample::{Sample, SampleVisitor, StoredValue, VisitedSample};
use super::stream::{self, Compression, append, compression};
use super::survey;
use crate::input::Input;
use crate::sample::Values;
use crate::source::json_text;
use crate::{Error, MemberKey, Reason};
use grouping::{Doubts, split};
use links::{Links, Target};
use shardtool_decode::ConvertedFormat;
use std::borrow::Cow;
use std::collections::HashSet;
use std::io::{self, Read};
use std::ops::Range;

/// Members are padded to blocks of this many bytes.
const BLOCK: u64 = 512;

/// Visits the samples of a file. After a damaged tar header, the rest of the file is lost.
///
/// # Errors
/// [`Error::Io`] if the file cannot be opened, and those of the visitor.
pub(super) fn read(file: &ArchiveFile, roles: &Roles, limit: u64, visit: &mut dyn SampleVisitor) -> Result<(), Error> {
    let io = |e| Error::io("read", &file.path)(e);
    match open(file).map_err(io)? {
        Opened::Plain(plain) => {
            // Skips images that are not needed by seeking, so that a survey reads little more than headers.
            let (plain, header) = HeaderLimit::new(plain);
            let mut tar = tar::Archive::new(plain);
            let entries = tar.entries_with_seek().map_err(io)?;
            Reader::new(file, roles, limit, Some(file.size), visit).entries(entries, &header)
        }
        Opened::Compressed => {
            let (stream, header) = HeaderLimit::new(stream::open(&file.path).map_err(io)?);
            let mut tar = tar::Archive::new(stream);
            let entries = tar.entries().map_err(io)?;
            Reader::new(file, roles, limit, None, visit).entries(entries, &header)
        }
    }
}

/// A tar: open if it is not compressed.
enum Opened {
    Plain(Input),
    Compressed,
}

fn open(file: &ArchiveFile) -> io::Result<Opened> {
    let opened = Input::open(&file.path)?;
    let mut start = [0; 12];
    let known = opened.read_at(&mut start, 0)?;
    Ok(if compression(&start[..known]) == Compression::None { Opened::Plain(opened) } else { Opened::Compressed })
}

/// Returns where a member ends. The size of a sparse member is that of the file with its holes.
fn end_of<R: Read>(entry: &tar::Entry<'_, R>) -> u64 {
    let size = match entry.header().entry_type().is_gnu_sparse() {
        true => entry.header().entry_size().unwrap_or(0),
        false => entry.size(),
    };
    entry.raw_file_position().saturating_add(size)
}

/// Groups consecutive members into samples.
struct Reader<'a> {
    file: &'a ArchiveFile,
    roles: &'a Roles,
    limit: u64,
    /// Length of the file, if members are skipped by seeking.
    length: Option<u64>,
    visit: &'a mut dyn SampleVisitor,
    number: u64,
    /// What links lead to, once there was one.
    links: Option<Links>,
    group: Option<Group>,
    doubts: Doubts,
    /// Contents of the group's members, concatenated.
    data: Vec<u8>,
}

/// The members of one sample.
struct Group {
    key: String,
    at: u64,
    /// Field names, and the ranges of their contents in the data.
    members: Vec<(String, Range<usize>)>,
    /// Where the contents lie in the file, if it is not compressed.
    offsets: Vec<u64>,
    /// The field names again: a sample may have very many.
    names: HashSet<String>,
    end: u64,
    problem: Option<Reason>,
}

impl<'a> Reader<'a> {
    fn new(
        file: &'a ArchiveFile,
        roles: &'a Roles,
        limit: u64,
        length: Option<u64>,
        visit: &'a mut dyn SampleVisitor,
    ) -> Self {
        Reader {
            file,
            roles,
            limit,
            length,
            visit,
            number: 0,
            links: None,
            group: None,
            doubts: Doubts::default(),
            data: vec![],
        }
    }

    fn entries<R: Read>(mut self, mut entries: tar::Entries<'_, R>, header: &Allowance) -> Result<(), Error> {
        let (mut end, mut stored_end) = (0, 0);
        while let Some(entry) = header.during(stored_end, || entries.next()) {
            let taken = match entry {
                Ok(mut entry) => {
                    end = entry.raw_file_position().saturating_add(entry.size());
                    // Of a tar that is not compressed, the next call skips the rest of the member by seeking.
                    stored_end = if self.length.is_some() { 0 } else { end_of(&entry) };
                    self.member(&mut entry)?
                }
                Err(_) if header.is_exceeded() => Err(Reason::LongHeader { limit: MAX_HEADER }),
                Err(damage) => Err(Reason::Unreadable(damage)),
            };
            if let Err(reason) = taken {
                return self.lost(end, reason);
            }
        }
        // Seeking past the end of the file does not fail, so the length is checked here.
        let whole = end.div_ceil(BLOCK).saturating_mul(BLOCK);
        match self.length {
            Some(length) if length < whole => {
                self.finish()?;
                self.lost(end, Reason::Truncated { needed: whole, found: length })
            }
            _ => self.finish(),
        }
    }

    /// Adds a member to its sample. The inner result is an error if the file cannot be read any further.
    fn member<R: Read>(&mut self, entry: &mut tar::Entry<'_, R>) -> Result<Result<(), Reason>, Error> {
        let kind = entry.header().entry_type();
        if kind.is_dir() || kind.is_pax_global_extensions() {
            return Ok(Ok(()));
        }
        let path = entry.path_bytes().into_owned();
        let Ok(path) = String::from_utf8(path) else {
            self.finish()?;
            let (at, bytes) = (entry.raw_header_position(), entry.size());
            self.item(at, bytes, Err(Reason::NotUtf8))?;
            return Ok(Ok(()));
        };
        let Some((key, field)) = split(&path, self.roles.member_key.unwrap_or(MemberKey::FirstDot)) else {
            return Ok(Ok(()));
        };
        if self.group.as_ref().is_none_or(|group| group.key != key) {
            self.finish()?;
            let at = entry.raw_header_position();
            let (key, names) = (key.to_owned(), HashSet::new());
            self.group = Some(Group { key, at, members: vec![], offsets: vec![], names, end: at, problem: None });
        }
        let group = self.group.as_mut().expect("begun above");
        let (begin, size) = (entry.raw_file_position(), entry.size());
        group.end = begin.saturating_add(size);
        let field = field.to_lowercase();
        if !group.names.insert(field.clone()) {
            group.problem = Some(Reason::RepeatedField { field });
            return Ok(Ok(()));
        }
        if self.length.is_some_and(|length| length < group.end) {
            return Ok(Err(Reason::Truncated { needed: group.end, found: self.length.unwrap_or_default() }));
        }
        let is_link = kind.is_hard_link() || kind.is_symlink();
        if !kind.is_file() && !kind.is_contiguous() && !is_link {
            group.problem = Some(Reason::NoFile { member: path });
            return Ok(Ok(()));
        }
        if is_link && self.links.is_none() {
            self.links = Some(match Links::new(self.file, self.limit) {
                Ok(links) => links,
                Err(e) => return Ok(Err(Reason::Unreadable(e))),
            });
        }
        let target = self.links.as_ref().filter(|_| is_link).map(|links| links.target(path.as_bytes()));
        let from = self.data.len();
        let size = match target {
            None => size,
            Some(Target::Bytes(bytes, _) | Target::TooLong(bytes)) => bytes,
            Some(Target::Missing) => {
                let target = String::from_utf8_lossy(&entry.link_name_bytes().unwrap_or_default()).into_owned();
                group.problem = Some(Reason::Link { member: path, target });
                return Ok(Ok(()));
            }
        };
        let total = size.saturating_add(from as u64);
        if total > self.limit || matches!(target, Some(Target::TooLong(_))) {
            group.problem = Some(Reason::SampleTooLong { bytes: total, limit: self.limit });
        } else if is_image(&field, self.roles).is_none() || self.visit.needs_image(group.at) {
            let appended = match &target {
                Some(Target::Bytes(_, source)) => source.append(size, &mut self.data),
                _ => append(entry, size, &mut self.data),
            };
            match appended {
                Ok(true) => {}
                Ok(false) => {
                    let found = begin + (self.data.len() - from) as u64;
                    return Ok(Err(Reason::Truncated { needed: group.end.max(begin + size), found }));
                }
                Err(e) => return Ok(Err(Reason::Unreadable(e))),
            }
        }
        group.members.push((field, from..self.data.len()));
        if self.length.is_some() {
            group.offsets.push(match target {
                Some(Target::Bytes(_, links::Source::File(_, at))) => at,
                _ => begin,
            });
        }
        Ok(Ok(()))
    }

    /// Passes the current sample to the visitor, if there is one.
    fn finish(&mut self) -> Result<(), Error> {
        let Some(Group { key, at, members, offsets, names, end, problem }) = self.group.take() else { return Ok(()) };
        if self.roles.member_key.is_none() {
            self.doubts.check(self.file, &key, members.iter().map(|(field, _)| field.as_str()))?;
        }
        check_images(self.file, self.number, &members, self.roles)?;
        let data = std::mem::take(&mut self.data);
        let sample = match problem {
            Some(reason) => Err(reason),
            None => sample(&key, &members, &names, &data, self.roles).map(|mut sample| {
                let contents = members.iter().map(|(_, range)| &data[range.clone()]);
                sample.stored = offsets
                    .into_iter()
                    .zip(contents)
                    .map(|(offset, bytes)| StoredValue::whole(offset, bytes))
                    .collect();
                sample
            }),
        };
        self.visit.item(VisitedSample { number: self.number, at, bytes: end - at, sample })?;
        self.number += 1;
        self.data = data;
        self.data.clear();
        Ok(())
    }

    /// Rejects the sample at which the file becomes unreadable, and ends.
    fn lost(mut self, end: u64, reason: Reason) -> Result<(), Error> {
        match &mut self.group {
            Some(group) => {
                group.problem = Some(reason);
                self.finish()
            }
            None => self.item(end, 0, Err(reason)),
        }
    }

    fn item(&mut self, at: u64, bytes: u64, sample: Result<Sample<'_>, Reason>) -> Result<(), Error> {
        self.visit.item(VisitedSample { number: self.number, at, bytes, sample })?;
        self.number += 1;
        Ok(())
    }
}

/// The first rank of files that are converted.
const CONVERTED: usize = usize::MAX / 2;
/// Fields that may be either the image or labels or depths of it.
const LOSSLESS: [&str; 6] = ["png", "webp", "gif", "bmp", "tif", "tiff"];

/// Returns the rank of a field as the image, by its whole name, otherwise by its last extension (`image.jpg`). After all others come
/// the extensions of files that are converted.
fn is_image(field: &str, roles: &Roles) -> Option<(bool, usize)> {
    let rank = |name: &str| {
        let known = || ConvertedFormat::EXTENSIONS.iter().position(|(extension, _)| *extension == name);
        let converted = || known().filter(|_| !roles.image_given);
        roles.image_rank(name).or_else(|| Some(CONVERTED + converted()?))
    };
    let whole = rank(field).map(|rank| (false, rank));
    whole.or_else(|| rank(field.rsplit('.').next()?).map(|rank| (true, rank)))
}

/// Returns whether a field of this rank may be the image if other fields may be as well: not one of a format of grey only that is
/// converted, such as PGM, which usually is a label map or depths.
fn competes(rank: usize) -> bool {
    let converted = rank.checked_sub(CONVERTED).and_then(|at| ConvertedFormat::EXTENSIONS.get(at));
    converted.is_none_or(|(_, pixels)| pixels.may_be_color())
}

/// Checks that it is clear which field is the image. It is not if several fields may be it by their last extension, and none by its
/// whole name; and if both a stored format that may hold labels and a converted one of colours are whole names.
///
/// # Errors
/// [`ArchiveError::SeveralImages`].
fn check_images(
    file: &ArchiveFile,
    number: u64,
    members: &[(String, Range<usize>)],
    roles: &Roles,
) -> Result<(), Error> {
    let mut all: Vec<_> =
        members.iter().filter_map(|(field, _)| Some((is_image(field, roles)?, field.as_str()))).collect();
    if all.iter().any(|((_, rank), _)| competes(*rank)) {
        all.retain(|((_, rank), _)| competes(*rank));
    }
    let is_named = |((by_extension, _), _): &((bool, usize), &str)| !by_extension;
    if all.iter().any(is_named) {
        all.retain(is_named);
        let best = all.iter().min().map_or("", |(_, field)| *field);
        let converted = all.iter().any(|((_, rank), _)| *rank >= CONVERTED);
        if !(converted && LOSSLESS.contains(&best)) {
            return Ok(());
        }
    }
    if roles.image_given || all.len() < 2 {
        return Ok(());
    }
    let fields: Vec<_> = all.into_iter().map(|(_, field)| field).collect();
    Err(super::several_images(file, number, &fields, true))
}

fn sample<'a>(
    key: &'a str,
    members: &[(String, Range<usize>)],
    names: &HashSet<String>,
    data: &'a [u8],
    roles: &Roles,
) -> Result<Sample<'a>, Reason> {
    let ranked = members.iter().enumerate().filter_map(|(i, (field, _))| Some((is_image(field, roles)?, i)));
    let image = ranked.min().map(|(_, i)| i);
    let (mut fields, mut flattened) = (vec![], vec![]);
    for (field, range) in members.iter().enumerate().filter(|(i, _)| Some(*i) != image).map(|(_, member)| member) {
        let content = &data[range.clone()];
        match field.rsplit('.').next() {
            Some("json") => flattened.extend(json_fields(field, content, roles)?),
            Some("cls") => fields.push((Cow::Owned(field.clone()), class(content))),
            _ => fields.push((Cow::Owned(field.clone()), Values::Bytes(content.into()))),
        }
    }
    for (name, values) in flattened {
        // A field takes precedence over a JSON member of the same name.
        let name = if names.contains(&name) { format!("json/{name}") } else { name };
        fields.push((Cow::Owned(name), values));
    }
    let image_name = image.map(|i| members[i].0.as_str()).filter(|name| name.ends_with("tga")).map(|_| ".tga");
    let image = image.map(|i| &data[members[i].1.clone()]);
    let mut sorted: Vec<_> = members.iter().map(|(field, _)| field.as_str()).collect();
    sorted.sort_unstable();
    Ok(Sample {
        key: Some(Cow::Borrowed(key)),
        image,
        image_name,
        members: survey::hash(&sorted.join("/")),
        fields,
        stored: vec![],
    })
}

/// Parses the class of a `.cls` file: an integer, otherwise a name.
fn class(content: &[u8]) -> Values {
    let text = std::str::from_utf8(content).ok().map(str::trim);
    match text.and_then(|text| text.parse().ok()) {
        Some(id) => Values::Int64(id),
        None => Values::Bytes(content.into()),
    }
}

/// Returns the members of `.json` under their names, those of `NAME.json` as `NAME/member`, and JSON that is not an
/// object unchanged.
fn json_fields(field: &str, content: &[u8], roles: &Roles) -> Result<Vec<(String, Values)>, Reason> {
    let value = json_text::parse(content).map_err(|e| Reason::Json { field: field.to_owned(), source: Box::new(e) })?;
    let serde_json::Value::Object(members) = value else {
        return Ok(vec![(field.to_owned(), Values::Bytes(content.into()))]);
    };
    let members = match field.strip_suffix(".json") {
        Some(field) => members.into_iter().map(|(member, value)| (format!("{field}/{member}"), value)).collect(),
        None => members,
    };
    json::columns(members, &roles.nesting)
}
