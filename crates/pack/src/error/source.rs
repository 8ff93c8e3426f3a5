//! What is wrong with a source.

use super::Rejection;
use std::path::PathBuf;

/// Why a source cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// A changed dataset as a source.
    #[error("{}: a changed dataset (version {version}), whose shards have the records as they were before; write a version of it first \
        (`shardtool export {} OUT --to tfrecord`), and give OUT", .path.display(), .path.display())]
    ChangedDataset {
        /// The dataset.
        path: PathBuf,
        /// Its version.
        version: u64,
    },
    /// A clone as a source.
    #[error("{}: a clone, whose shards lie in another dataset; write them first (`shardtool copy {} OUT`), and give OUT",
        .path.display(), .path.display())]
    ClonedDataset {
        /// The dataset.
        path: PathBuf,
    },
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
    /// Archives next to other archives, images, or folders of samples: either may be the data.
    #[error("{}: it holds {archives}, and {others}: which are the data? {archives_from}, {others_from}; or move them apart",
        .path.display())]
    Mixed {
        /// The source.
        path: PathBuf,
        /// How many archives of which kind it holds.
        archives: String,
        /// What else it holds.
        others: String,
        /// The option that takes the archives.
        archives_from: String,
        /// The option that takes the others.
        others_from: String,
    },
    /// A folder whose archives lie in a folder of it.
    #[error("{}: its {archives} lie in {}: name that folder, or a glob of the files; --from folder takes the folders as classes", .path.display(), .folder.display())]
    Nested {
        /// The source.
        path: PathBuf,
        /// The kind of archives.
        archives: &'static str,
        /// The folder.
        folder: PathBuf,
    },
    /// A source that cannot stay where it is.
    #[error("{}: {problem}", .path.display())]
    Virtual {
        /// The source, or one of its files.
        path: PathBuf,
        /// Why, and what to do.
        problem: String,
    },
    /// A file of an unknown format.
    #[error("{}: unknown format; expected a folder of images, a list (.csv, .jsonl), TFRecord, WebDataset tar, Parquet, \
        MDS, COCO, Pascal VOC or YOLO (data.yaml); --from KIND skips the detection", .path.display())]
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
    /// No input of a split was accepted. Nothing of it was published.
    #[error("{}: every input of split {split} was rejected ({rejected}); the first one is {input}: {reason}. Nothing was \
        published: repair the inputs and run the same command again; --allow-empty publishes a split without records",
        .path.display())]
    NothingAccepted {
        /// The source.
        path: PathBuf,
        /// The split.
        split: String,
        /// Number of rejected inputs.
        rejected: u64,
        /// The first one.
        input: String,
        /// Why it was rejected.
        reason: String,
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
    #[error("class `{class}` is not among the {classes} names in {}; add it there, or remove it from the source{}",
        .file.display(), if class.parse::<i64>().is_ok() { "; an integer in a list is the number of a line, from 0: for names that are \
        numbers, --column label:bytes" } else { "" })]
    UnknownClass {
        /// Its name, or its id.
        class: String,
        /// Number of names.
        classes: usize,
        /// The file of names.
        file: PathBuf,
    },
    /// Two classes of a source whose names look the same.
    #[error("classes `{}` and `{}` differ only in spaces, or in the form of their Unicode characters: give both the same name, or say that \
        they are two: --classes FILE, with a line for each class", .first.escape_default(), .second.escape_default())]
    AlikeClasses {
        /// The first name in byte order.
        first: String,
        /// The second one.
        second: String,
    },
    /// A column, or the folders in a tar, that name other splits than the one that is packed.
    #[error("{}: {column} names splits ({names}), but all samples would be packed as `{split}`; pack each split from a source of its \
        own, or say that these are no splits: --splits none", .path.display())]
    SplitMarks {
        /// The source.
        path: PathBuf,
        /// What has the names.
        column: String,
        /// The names.
        names: String,
        /// The split that is packed.
        split: String,
    },
    /// A class id that the source and the file of class names give to different classes.
    #[error("class id {id} is `{theirs}` in the source, and {} in {}; leave out --classes, or give the names in the order of the source",
        ours.as_ref().map_or("no class".to_owned(), |name| format!("`{name}`")), .file.display())]
    ClassNames {
        /// The first such id.
        id: i64,
        /// Its name in the source.
        theirs: String,
        /// Its name in the file.
        ours: Option<String>,
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
    /// A folder of Pascal VOC or YOLO, or one of its files, that cannot be used.
    #[error("{}: {problem}", .path.display())]
    Annotations {
        /// The folder or file.
        path: PathBuf,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// Names of files or folders may, or may not, be those of splits.
    #[error("{}: {problem}", .path.display())]
    SplitNames {
        /// The source.
        path: PathBuf,
        /// What may be meant, and how to say which.
        problem: String,
    },
    /// Folders that are the parts of a layout, and no classes.
    #[error("{}: the folders {folders} are the parts of a layout, not classes, and they are neither Pascal VOC (JPEGImages, \
        Annotations with XML) nor YOLO (images, labels with lines of numbers); pack the folder of images alone, a COCO file \
        with --images, or a list (CSV or JSON Lines) of the images with their labels, boxes or masks (--column \
        mask:file); images and masks with names in common are named by patterns (--map image='images/**.jpg' --map \
        mask='masks/**.png'); --from folder packs them as classes", .path.display())]
    Layout {
        /// The folder.
        path: PathBuf,
        /// Their names.
        folders: String,
    },
    /// Class folders that hold folders of the same names: splits, or images and masks.
    #[error("{}: the class folders hold folders {folders}, which would be mixed; move them to the top, or pack one list \
        (CSV or JSON Lines) for each{}", .path.display(), if *.splits { "; as one split: --splits none" } else { "; as \
        images of their classes: --from folder" })]
    MixedFolders {
        /// The source.
        path: PathBuf,
        /// Their names.
        folders: String,
        /// Whether these are the names of splits.
        splits: bool,
    },
    /// The splits of one source differ in a way that one dataset does not allow.
    #[error("{}: {problem}; pack each split into another dataset, with --split NAME", .path.display())]
    Splits {
        /// The source.
        path: PathBuf,
        /// What differs.
        problem: String,
    },
    /// A source of several splits, for a function that packs one.
    #[error("{}: names {}; choose one: --split NAME", .path.display(), text_of(.splits))]
    SeveralSplits {
        /// The source.
        path: PathBuf,
        /// Their names.
        splits: Vec<String>,
    },
}

fn text_of(splits: &[String]) -> String {
    format!("the splits {}", splits.join(", "))
}
