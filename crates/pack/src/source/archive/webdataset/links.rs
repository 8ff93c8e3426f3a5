//! Links in a tar: a hard link names another member (GNU tar stores the second name of a file so), a symbolic link a path
//! relative to its folder. Both are resolved to the content of the member that they lead to.
//!
//! Links are rare, so a file is read without a table of its members. Its first link costs two more readings of it: one collects
//! the links, the other finds the members that they lead to. Memory grows with the number of links; of a compressed tar,
//! which has no random access, the contents are kept too, up to a limit.

use super::super::files::ArchiveFile;
use super::super::header_limit::{Allowance, HeaderLimit};
use super::super::stream::{self, append};
use super::{Opened, end_of, open};
use crate::error::fault;
use crate::input::Input;
use std::collections::HashMap;
use std::io::{self, Read};
use std::ops::Range;

/// Links are followed through at most this many others, as by Linux.
const MOST_STEPS: usize = 40;

/// What the links of a tar lead to.
pub(super) struct Links {
    /// For each link, by its path: the path that it names.
    names: HashMap<Vec<u8>, Vec<u8>>,
    /// The members that links lead to, by path.
    members: HashMap<Vec<u8>, Content>,
    file: Option<Input>,
}

enum Content {
    /// Its range in a tar that is not compressed.
    At(Range<u64>),
    Kept(Vec<u8>),
    /// It exceeds the limit; its length in bytes.
    TooLong(u64),
}

/// The content of a link.
pub(super) enum Target<'a> {
    /// Its bytes, for [`Links::append`].
    Bytes(u64, Source<'a>),
    /// It exceeds the limit; its length in bytes.
    TooLong(u64),
    /// The archive has no file of that name.
    Missing,
}

/// Where the bytes of a target are.
pub(super) enum Source<'a> {
    File(&'a Input, u64),
    Memory(&'a [u8]),
}

impl Links {
    /// Finds the links of a file and the members that they lead to. `limit` bounds the bytes that are kept.
    ///
    /// # Errors
    /// Those of the system. Damage ends a pass: the reader reports it.
    pub(super) fn new(file: &ArchiveFile, limit: u64) -> io::Result<Self> {
        let mut links = Links { names: HashMap::new(), members: HashMap::new(), file: None };
        each(file, &mut |member| {
            if let Some(target) = member.link {
                links.names.insert(member.path, target);
            }
            Ok(())
        })?;
        let wanted: Vec<_> = links.names.keys().filter_map(|name| links.last(name)).collect();
        let mut kept = 0;
        let mut members: HashMap<_, _> = wanted.into_iter().map(|name| (name, None)).collect();
        each(file, &mut |member| {
            let Some(content) = members.get_mut(&member.path) else { return Ok(()) };
            if member.link.is_some() || content.is_some() {
                return Ok(());
            }
            let bytes = member.range.end - member.range.start;
            *content = Some(match member.compressed {
                None => Content::At(member.range),
                Some(_) if bytes > limit - kept => Content::TooLong(bytes),
                Some(stream) => {
                    let mut data = vec![];
                    if !append(&mut &mut *stream, bytes, &mut data)? {
                        return Ok(());
                    }
                    kept += bytes;
                    Content::Kept(data)
                }
            });
            Ok(())
        })?;
        links.members = members.into_iter().filter_map(|(name, content)| Some((name, content?))).collect();
        if let Opened::Plain(file) = open(file)? {
            links.file = Some(file);
        }
        Ok(links)
    }

    /// Returns what the link at a path leads to.
    pub(super) fn target(&self, path: &[u8]) -> Target<'_> {
        let member = normal(path).and_then(|path| self.members.get(&self.last(&path)?));
        match (member, &self.file) {
            (Some(Content::At(range)), Some(file)) => {
                Target::Bytes(range.end - range.start, Source::File(file, range.start))
            }
            (Some(Content::Kept(data)), _) => Target::Bytes(data.len() as u64, Source::Memory(data)),
            (Some(Content::TooLong(bytes)), _) => Target::TooLong(*bytes),
            _ => Target::Missing,
        }
    }

    /// Follows a link, through other links, to the path of a file; `None` for a loop.
    fn last(&self, link: &[u8]) -> Option<Vec<u8>> {
        let mut name = link;
        for _ in 0..MOST_STEPS {
            match self.names.get(name) {
                Some(next) => name = next,
                None => return Some(name.to_owned()),
            }
        }
        None
    }
}

impl Source<'_> {
    /// Appends the bytes to a buffer. Returns whether all were there.
    ///
    /// # Errors
    /// Those of reading.
    pub(super) fn append(&self, bytes: u64, buffer: &mut Vec<u8>) -> io::Result<bool> {
        match self {
            Source::Memory(data) => buffer.extend_from_slice(data),
            Source::File(file, at) => {
                let from = buffer.len();
                if file.length()? < at.saturating_add(bytes) {
                    return Ok(false);
                }
                buffer.resize(from + bytes as usize, 0);
                file.read_exact_at(&mut buffer[from..], *at)?;
            }
        }
        Ok(true)
    }
}

/// One member, with a path in its shortest form.
struct Member<'a> {
    path: Vec<u8>,
    /// The path that a link names; empty if it leads out of the archive.
    link: Option<Vec<u8>>,
    range: Range<u64>,
    /// Its content, if the tar is compressed.
    compressed: Option<&'a mut dyn Read>,
}

fn each(file: &ArchiveFile, visit: &mut dyn FnMut(Member<'_>) -> io::Result<()>) -> io::Result<()> {
    match open(file)? {
        Opened::Plain(plain) => {
            let (plain, header) = HeaderLimit::new(plain);
            entries(tar::Archive::new(plain).entries_with_seek()?, &header, false, visit)
        }
        Opened::Compressed => {
            let (stream, header) = HeaderLimit::new(stream::open(&file.path)?);
            entries(tar::Archive::new(stream).entries()?, &header, true, visit)
        }
    }
}

fn entries<R: Read>(
    mut entries: tar::Entries<'_, R>,
    header: &Allowance,
    compressed: bool,
    visit: &mut dyn FnMut(Member<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let mut end = 0;
    while let Some(entry) = header.during(end, || entries.next()) {
        let mut entry = match entry {
            Ok(entry) => entry,
            Err(error) if fault::of_file(&error).is_some() => return Err(error),
            Err(_) => return Ok(()),
        };
        end = if compressed { end_of(&entry) } else { 0 };
        let kind = entry.header().entry_type();
        let Some(path) = normal(&entry.path_bytes()) else { continue };
        let link = if kind.is_hard_link() {
            entry.link_name_bytes().map(|name| normal(&name).unwrap_or_default())
        } else if kind.is_symlink() {
            entry.link_name_bytes().map(|name| relative_to(&path, &name).unwrap_or_default())
        } else if kind.is_file() || kind.is_contiguous() {
            None
        } else {
            continue;
        };
        let start = entry.raw_file_position();
        let range = start..start.saturating_add(entry.size());
        visit(Member { path, link, range, compressed: if compressed { Some(&mut entry) } else { None } })?;
    }
    Ok(())
}

/// Returns the path that a symbolic link at `path` names.
fn relative_to(path: &[u8], name: &[u8]) -> Option<Vec<u8>> {
    if name.starts_with(b"/") {
        return None;
    }
    let folder = path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    normal(&[&path[..folder], name].concat())
}

/// Returns a path without `.`, `..` and empty components; `None` if it leads out of the archive.
fn normal(path: &[u8]) -> Option<Vec<u8>> {
    let mut parts: Vec<&[u8]> = vec![];
    for part in path.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join(&b'/'))
}
