//! A source that stays where it is: the folder to which the names of its files are relative, and which of them may be read.

use crate::error::SourceError;
use crate::known_images::KnownImages;
use crate::{Error, Reason};
use shardtool_format::index::SourceFile;
use shardtool_format::manifest::Foreign;
use shardtool_read::SourceFiles;
use shardtool_store::{Object, is_url, local_path};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// A source file, by its path from the folder of the source.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SourceName {
    pub(crate) name: String,
    /// Length in bytes.
    pub(crate) length: u64,
}

/// Bytes of a frame that are bytes of a source file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FrameRange {
    /// Offset in the frame.
    pub(crate) at: usize,
    pub(crate) length: u32,
    pub(crate) crc: u32,
    pub(crate) file: Arc<SourceName>,
    /// Offset in the file.
    pub(crate) offset: u64,
}

/// Where the files of a source lie that virtual shards describe.
#[derive(Debug, Clone)]
pub(crate) struct VirtualSource {
    /// The folder of the source as it was given, and without links.
    given: PathBuf,
    resolved: PathBuf,
    /// The folder to which names are relative: that of the source, or of the dataset.
    folder: PathBuf,
    /// What the line of a shard says.
    pub(crate) foreign: Foreign,
    files: Arc<SourceFiles>,
    /// Further folders and URLs in which files may lie.
    allowed: Vec<String>,
    /// Images that need not be read again.
    pub(crate) known: Arc<KnownImages>,
    /// When the source was not listed yet.
    pub(crate) began: SystemTime,
}

impl VirtualSource {
    /// Makes the source of virtual shards that are written to `destination`. `allowed` are further folders and URLs in which files may
    /// lie.
    ///
    /// # Errors
    /// [`Error::Io`], [`SourceError::Virtual`].
    pub(crate) fn new(source: &Path, destination: &Path, allowed: &[String]) -> Result<Self, Error> {
        let (source, destination) = (&*local_path(source), &*local_path(destination));
        let given = folder_of(source)?;
        let resolved = match is_url(&given) {
            true => given.clone(),
            false => given.canonicalize().map_err(Error::io("read", &given))?,
        };
        let text = |path: &Path| {
            path.to_str().map(|text| text.trim_end_matches('/').to_owned()).ok_or_else(|| {
                Error::Source(SourceError::Virtual {
                    path: path.to_owned(),
                    problem: "its path is not UTF-8".to_owned(),
                })
            })
        };
        let inside = match is_url(&resolved) {
            true => same_url(&resolved, destination).then(|| resolved.clone()),
            // A destination that does not exist yet has nothing inside.
            false => destination.canonicalize().ok().filter(|destination| resolved.starts_with(destination)),
        };
        let (folder, member) = match inside {
            Some(folder) => (folder, None),
            None => (
                resolved.clone(),
                Some(text(&resolved)?).map(|text| if text.is_empty() { "/".to_owned() } else { text }),
            ),
        };
        // The user named the source.
        let all = [allowed, &[text(&resolved)?]].concat();
        let files = Arc::new(SourceFiles::new(destination, &all));
        let allowed = allowed.to_vec();
        Ok(VirtualSource {
            given,
            resolved,
            folder,
            foreign: Foreign { is_virtual: true, source: member },
            files,
            allowed,
            known: Arc::default(),
            began: SystemTime::now(),
        })
    }

    /// Returns the further folders and URLs in which files may lie.
    pub(crate) fn allowed(&self) -> &[String] {
        &self.allowed
    }

    /// Returns the name of a file of this length.
    ///
    /// # Errors
    /// [`Reason::OutsideSource`], [`Reason::SourceName`], [`Reason::ForeignSource`].
    pub(crate) fn name(&self, path: &Path, length: u64) -> Result<Arc<SourceName>, Reason> {
        let outside = || Reason::OutsideSource { file: path.display().to_string(), folder: self.folder.clone() };
        let full = match path.strip_prefix(&self.given) {
            // Links inside the folder belong to the name.
            Ok(inside) if !inside.components().any(|part| part == Component::ParentDir) => {
                self.resolved.join(inside.components().collect::<PathBuf>())
            }
            _ if is_url(path) => path.to_owned(),
            _ => {
                let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
                parent.canonicalize().map_err(Reason::of_open)?.join(path.file_name().ok_or_else(outside)?)
            }
        };
        let name = full.strip_prefix(&self.folder).ok().and_then(Path::to_str).filter(|name| !name.is_empty());
        let name = name.ok_or_else(outside)?.to_owned();
        if !(SourceFile { length, name: &name }).has_plain_name() {
            return Err(Reason::SourceName { file: path.display().to_string() });
        }
        self.files.check(&full).map_err(|error| Reason::ForeignSource(Box::new(error)))?;
        Ok(Arc::new(SourceName { name, length }))
    }
}

/// Returns the folder of a source: itself, or that of the file, or the last one before a wildcard.
///
/// # Errors
/// [`Error::Io`].
pub(crate) fn folder_of(source: &Path) -> Result<PathBuf, Error> {
    let parent = |path: &Path| match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    let wild = |path: &Path| path.to_string_lossy().contains(['*', '?', '[']);
    if is_url(source) {
        let is_folder = source.as_os_str().as_encoded_bytes().ends_with(b"/");
        return Ok(match is_folder || (!wild(source) && Object::open(source).is_err()) {
            true => source.to_owned(),
            false => parent(source),
        });
    }
    match std::fs::metadata(source) {
        Ok(found) if found.is_dir() => Ok(source.to_owned()),
        Ok(_) => Ok(parent(source)),
        Err(_) => {
            let mut folder = parent(source);
            while wild(&folder) && !folder.is_dir() {
                folder = parent(&folder);
            }
            Ok(folder)
        }
    }
}

fn same_url(a: &Path, b: &Path) -> bool {
    let plain = |path: &Path| path.to_string_lossy().trim_end_matches('/').to_owned();
    plain(a) == plain(b)
}
