//! Sources: a folder of class folders, a flat folder, or a list become a listing. Nothing is opened but lists and
//! folders; sizes and times come from one `stat` an entry. Files that hold many samples each are in [`archive`].

pub(crate) mod archive;
mod classes;
mod coco;
mod folder;
mod infer;
mod kind;
mod list;
pub(crate) mod nested;
pub(crate) mod objects;
mod values;

use crate::{Error, Options, Rejection};
use archive::Archives;
use shardtool_format::checksum::Crc32c;
use shardtool_format::manifest::Kind;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

pub(crate) use classes::Classes;
pub use kind::SourceKind;
pub use objects::BoxFormat;
pub(crate) use values::Values;

/// What all samples of a source have in common.
pub(crate) struct Described {
    /// Class names by id; empty where there are no classes, or classes have no names.
    pub(crate) classes: Vec<String>,
    /// Whether samples have images.
    pub(crate) images: bool,
    /// Whether samples have labels.
    pub(crate) labelled: bool,
    /// The source's own columns, in the order of the samples' `values`.
    pub(crate) columns: Vec<(String, Kind)>,
}

/// What is to be packed, and where it lies.
pub(crate) enum Source {
    /// An image a file.
    Files(Listing),
    /// Many samples a file.
    Archives(Box<Archives>),
}

impl Source {
    /// Lists the source that `options` name; archives are read once, without their images.
    ///
    /// # Errors
    /// [`Error::NoSource`], [`Error::EmptySource`], [`Error::SourceKind`], those of lists and archives, and
    /// [`Error::Io`].
    pub(crate) fn new(options: &Options) -> Result<Self, Error> {
        let source = &options.source;
        let classes = options.classes.as_deref().map(Classes::read).transpose()?;
        let found = kind::find(source, options.from)?;
        if source.is_dir() {
            inside(&options.destination, source)?;
        }
        let listing = match found {
            kind::Found::Archives(files) => {
                return Archives::new(files, classes, options).map(|all| Source::Archives(Box::new(all)));
            }
            _ if !options.map.is_empty() => {
                return Err(Error::Option { option: "map", expected: "a source whose samples have named fields" });
            }
            _ if options.images.is_some() && !matches!(found, kind::Found::Coco) => {
                return Err(Error::Option { option: "images", expected: "a COCO annotation file as the source" });
            }
            kind::Found::Coco => coco::list(source, options)?,
            kind::Found::Folder => folder::list(source, classes, &options.columns)?,
            kind::Found::List => list::list(source, classes, options)?,
        };
        if listing.entries.is_empty() {
            let rejected = listing.rejected.into_iter().next().map(Box::new);
            return Err(Error::EmptySource { path: source.clone(), rejected });
        }
        Ok(Source::Files(listing))
    }
}

impl Described {
    /// CRC32C over what a source's samples have in common, and over whatever else `visit` hands on.
    fn crc(&self, visit: impl FnOnce(&mut dyn FnMut(&[u8]))) -> u32 {
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
        visit(&mut text);
        crc.value()
    }
}

/// Everything that a source offers, in the source's own order: folders by key in byte order, lists as they are.
/// Memory is about 100 bytes an entry, besides its key and its columns.
pub(crate) struct Listing {
    pub(crate) entries: Vec<Entry>,
    pub(crate) described: Described,
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

impl Listing {
    /// What the listing's paths are relative to.
    pub(crate) fn root(&self) -> &Path {
        &self.root
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
        self.described.crc(|text| {
            for entry in &self.entries {
                text(entry.key.as_bytes());
                text(entry.path.as_deref().unwrap_or_default().as_bytes());
                text(&entry.size.to_le_bytes());
                text(&entry.modified.to_le_bytes());
                text(&entry.label.map(i64::to_le_bytes).unwrap_or_default());
                entry.values.iter().for_each(|values| values.each_bytes(text));
            }
        })
    }
}

/// Nanoseconds since 1970 of a file's last change.
fn modified(meta: &Metadata) -> i64 {
    let modified = meta.modified().ok().and_then(|t| t.duration_since(UNIX_EPOCH).ok());
    modified.map_or(0, |t| t.as_nanos() as i64)
}

impl Entry {
    fn new(key: String, path: Option<String>, label: Option<i64>, values: Box<[Values]>, meta: &Metadata) -> Self {
        Entry {
            path: path.filter(|path| *path != key).map(String::into_boxed_str),
            key: key.into_boxed_str(),
            label,
            values,
            size: meta.len(),
            modified: modified(meta),
        }
    }
}

impl Entry {
    /// An entry without an image: its size is that of its values.
    fn of_row(key: String, label: Option<i64>, values: Box<[Values]>) -> Self {
        let mut size = key.len() as u64;
        values.iter().for_each(|values| values.each_bytes(&mut |bytes| size += bytes.len() as u64));
        Entry { key: key.into_boxed_str(), path: None, label, values, size, modified: 0 }
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
