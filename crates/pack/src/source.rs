//! Sources: a folder of class folders, a flat folder, or a list become a listing. Nothing is opened but lists and
//! folders; sizes and times come from one `stat` an entry.

mod classes;
mod folder;
mod infer;
mod list;

use crate::{Error, Options, Rejection};
use shardtool_format::checksum::Crc32c;
use shardtool_format::manifest::Kind;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

pub(crate) use classes::Classes;

/// Everything that a source offers, in the source's own order: folders by key in byte order, lists as they are.
/// Memory is about 100 bytes an entry, besides its key and its columns.
pub(crate) struct Listing {
    pub(crate) entries: Vec<Entry>,
    /// Class names by id; empty where there are no classes, or classes have no names.
    pub(crate) classes: Vec<String>,
    /// Whether entries have labels.
    pub(crate) labelled: bool,
    /// The list's own columns, in the order of the entries' `values`.
    pub(crate) columns: Vec<(String, Kind)>,
    /// What cannot be packed, and is known already.
    pub(crate) rejected: Vec<Rejection>,
    /// What entries' paths are relative to.
    root: PathBuf,
}

/// One image that is to be packed.
pub(crate) struct Entry {
    pub(crate) key: Box<str>,
    /// Path from the listing's root, where it is not the key.
    path: Option<Box<str>>,
    pub(crate) label: Option<i64>,
    /// Values of the listing's columns.
    pub(crate) values: Box<[Values]>,
    /// Bytes of the file when it was listed.
    pub(crate) size: u64,
    /// Nanoseconds since 1970 of the file's last change when it was listed.
    modified: i64,
}

/// Values of one entry in one column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Values {
    /// None: an empty cell, `null`, or an absent member.
    Missing,
    Int64(i64),
    Float(f32),
    Bytes(Box<[u8]>),
    Int64s(Box<[i64]>),
    Floats(Box<[f32]>),
    BytesList(Box<[Box<[u8]>]>),
}

impl Listing {
    /// Lists the source that `options` name.
    ///
    /// # Errors
    /// [`Error::NoSource`], [`Error::EmptySource`], [`Error::SourceKind`], those of lists, and [`Error::Io`].
    pub(crate) fn new(options: &Options) -> Result<Self, Error> {
        let source = &options.source;
        let meta = std::fs::metadata(source).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => Error::NoSource { path: source.clone() },
            _ => Error::io("read", source)(e),
        })?;
        let classes = options.classes.as_deref().map(Classes::read).transpose()?;
        let listing = if meta.is_dir() {
            inside(&options.destination, source)?;
            folder::list(source, classes, &options.columns)?
        } else {
            list::list(source, classes, &options.columns)?
        };
        if listing.entries.is_empty() {
            let rejected = listing.rejected.into_iter().next().map(Box::new);
            return Err(Error::EmptySource { path: source.clone(), rejected });
        }
        Ok(listing)
    }

    /// Where an entry's image lies.
    pub(crate) fn path(&self, entry: &Entry) -> PathBuf {
        self.root.join(&**entry.path.as_ref().unwrap_or(&entry.key))
    }

    /// Bytes of all images.
    pub(crate) fn bytes(&self) -> u64 {
        self.entries.iter().map(|e| e.size).sum()
    }

    /// CRC32C over everything that decides what is packed, so that a resumed pack knows that its source is the same.
    pub(crate) fn crc(&self) -> u32 {
        let mut crc = Crc32c::new();
        let mut text = |text: &[u8]| {
            crc.update(&(text.len() as u64).to_le_bytes());
            crc.update(text);
        };
        self.classes.iter().for_each(|class| text(class.as_bytes()));
        for (name, kind) in &self.columns {
            text(name.as_bytes());
            text(kind.name().as_bytes());
        }
        for entry in &self.entries {
            text(entry.key.as_bytes());
            text(entry.path.as_deref().unwrap_or_default().as_bytes());
            text(&entry.size.to_le_bytes());
            text(&entry.modified.to_le_bytes());
            text(&entry.label.map(i64::to_le_bytes).unwrap_or_default());
            entry.values.iter().for_each(|values| values.each_bytes(&mut text));
        }
        crc.value()
    }
}

impl Entry {
    fn new(key: String, path: Option<String>, label: Option<i64>, values: Box<[Values]>, meta: &Metadata) -> Self {
        let modified = meta.modified().ok().and_then(|t| t.duration_since(UNIX_EPOCH).ok());
        Entry {
            path: path.filter(|path| *path != key).map(String::into_boxed_str),
            key: key.into_boxed_str(),
            label,
            values,
            size: meta.len(),
            modified: modified.map_or(0, |t| t.as_nanos() as i64),
        }
    }
}

impl Values {
    fn each_bytes(&self, visit: &mut impl FnMut(&[u8])) {
        match self {
            Values::Missing => visit(&[]),
            Values::Int64(v) => visit(&v.to_le_bytes()),
            Values::Float(v) => visit(&v.to_le_bytes()),
            Values::Bytes(v) => visit(v),
            Values::Int64s(list) => list.iter().for_each(|v| visit(&v.to_le_bytes())),
            Values::Floats(list) => list.iter().for_each(|v| visit(&v.to_le_bytes())),
            Values::BytesList(list) => list.iter().for_each(|v| visit(v)),
        }
    }
}

/// Refuses a dataset inside the folder that is packed: its shards would be inputs of the next run.
fn inside(destination: &Path, source: &Path) -> Result<(), Error> {
    let source_full = source.canonicalize().map_err(Error::io("read", source))?;
    let mut existing = destination;
    let full = loop {
        let here = if existing.as_os_str().is_empty() { Path::new(".") } else { existing };
        match (here.canonicalize(), existing.parent()) {
            (Ok(full), _) => break full,
            (Err(_), Some(parent)) => existing = parent,
            (Err(_), None) => return Ok(()),
        }
    };
    match full.starts_with(&source_full) {
        true => {
            Err(Error::DestinationInSource { destination: destination.to_owned(), source_folder: source.to_owned() })
        }
        false => Ok(()),
    }
}
