//! What is wrong with a source.

use super::Rejection;
use std::path::PathBuf;

/// Why a source cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The source does not exist.
    #[error("no such file or folder: {}; name a folder of images, a list or archives", .path.display())]
    NotFound {
        /// The source.
        path: PathBuf,
    },
    /// A URL that names no object.
    #[error("no such object: {}; a source in a store is a list, a COCO file, an archive, or archives by a folder or a glob of \
        names", .path.display())]
    NoObject {
        /// The URL.
        path: PathBuf,
    },
    /// A folder in a store that has objects, but no archives.
    #[error("no archives in {}; images in a store are named by a list (CSV or JSON Lines), or copied to a disk", .path.display())]
    FolderInStore {
        /// The URL.
        path: PathBuf,
    },
    /// A file of an unknown format.
    #[error("{}: unknown format; expected a folder of images, a list (.csv, .jsonl), TFRecord, WebDataset tar, Parquet, \
        MDS or COCO; --from KIND skips the detection", .path.display())]
    UnknownFormat {
        /// The source.
        path: PathBuf,
    },
    /// No input can be packed. The error's source is the first rejected input, if any.
    #[error("{}: nothing to pack{}", .path.display(), if .rejected.is_some() { "" } else { "; it has no images (hidden \
        files are ignored)" })]
    Empty {
        /// The source.
        path: PathBuf,
        /// The first rejected input.
        #[source]
        rejected: Option<Box<Rejection>>,
    },
    /// The destination lies inside the source.
    #[error("{} lies inside the source {}, so that shards would become inputs; choose another folder",
        .destination.display(), .source_folder.display())]
    ContainsDestination {
        /// Folder of the dataset.
        destination: PathBuf,
        /// The source.
        source_folder: PathBuf,
    },
    /// Types of columns are given, but the source is a folder of images.
    #[error("the type of column `{column}` is given, but the source is a folder and has no columns")]
    ColumnsOfFolder {
        /// The column.
        column: String,
    },
    /// A class that the file of class names does not contain.
    #[error("class `{class}` is not among the {classes} names in {}; add it there, or remove it from the source",
        .file.display())]
    UnknownClass {
        /// Its name, or its id.
        class: String,
        /// Number of names.
        classes: usize,
        /// The file of names.
        file: PathBuf,
    },
    /// An invalid file of class names.
    #[error("{}, line {line}: {problem}", .path.display())]
    ClassesFile {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// What is wrong.
        problem: &'static str,
    },
    /// An invalid COCO annotation file.
    #[error("{}: not a COCO annotation file: {problem}", .path.display())]
    Coco {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
}
