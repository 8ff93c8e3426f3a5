//! What is wrong with archives.

use super::MdsProblem;
use super::list;
use shardtool_format::manifest::DType;
use std::path::PathBuf;

/// Why archives cannot be packed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// Values of a column have different types.
    #[error("`{column}` is {} in sample {} of {}, and {} in sample {} of {}; declare one type: --column {column}:bytes",
        .first.2.name(), .first.1, .first.0, .second.2.name(), .second.1, .second.0)]
    ColumnTypes {
        /// The column, or `label`.
        column: String,
        /// File, sample from 0, and the type there.
        first: (String, u64, DType),
        /// The same, for a sample with a different type.
        second: (String, u64, DType),
    },
    /// No type holds two numbers of a column.
    #[error("{}", conflict(.column, .numbers))]
    Numbers {
        /// The column.
        column: String,
        /// Two numbers, each with its file and sample from 0.
        numbers: Box<[(String, String, u64); 2]>,
    },
    /// A type is given for a column that no sample has.
    #[error("the type of column `{column}` is given, but no sample has that field")]
    UnknownColumn {
        /// The column.
        column: String,
    },
    /// `--map` names a field that no sample has.
    #[error("--map names the field `{field}`, but no sample has it; they have: {known}")]
    UnknownField {
        /// The field.
        field: String,
        /// The columns, at most 20 of them.
        known: String,
    },
    /// Samples have more different field names than columns are allowed.
    #[error("more than {most} different field names (up to sample {number} of {file})")]
    TooManyColumns {
        /// The limit.
        most: usize,
        /// A file.
        file: String,
        /// The sample that exceeds the limit.
        number: u64,
    },
    /// Labels have more different names than classes are allowed.
    #[error("more than {most} class names, such as `{name}`; name the label's field: --map label=FIELD")]
    TooManyClasses {
        /// The limit.
        most: usize,
        /// One of them.
        name: String,
    },
    /// Members of a tar that may be one sample or several, since their names have several dots.
    #[error(
        "{file}: the members {members} are one sample, {first}, if its name ends at the first dot, and {last} if names \
        end at the last one; say which: --member-key first-dot or --member-key last-dot"
    )]
    MemberKeys {
        /// The tar.
        file: String,
        /// Names of the members, the first ones.
        members: String,
        /// The sample that they are by the first dot.
        first: String,
        /// The samples that they are by the last dot.
        last: String,
    },
    /// A Parquet file whose rows hold lists of images.
    #[error(
        "{file}: the column {column} holds a list of images in each row, but a sample has one; write a row for each image, \
        or the files and a list of them (JSON Lines) for --column {column}:frames"
    )]
    ImageLists {
        /// The archive.
        file: String,
        /// The column.
        column: String,
    },
    /// A Parquet file without a label whose metadata name the classes of other columns.
    #[error(
        "{file}: no column is the label, but {columns} have names of classes: name the label, --map label={example}, or say that \
        samples have none, --map label=none"
    )]
    ClassColumns {
        /// The archive.
        file: String,
        /// The columns.
        columns: String,
        /// One of them.
        example: String,
    },
    /// A Parquet file with two columns of one name.
    #[error("{file}: two columns have the name `{column}`; rename one of them")]
    TwoColumns {
        /// The archive.
        file: String,
        /// The name.
        column: String,
    },
    /// Archives whose metadata name the classes differently, so that their ids differ.
    #[error(
        "{first} and {second} name the classes differently, so that the same id is not the same class; write the files with \
        one list of classes, or pack them into different datasets"
    )]
    ClassNames {
        /// An archive.
        first: String,
        /// Another one.
        second: String,
    },
    /// Labels that are whole numbers, but stored as floats: some may be missing (NaN).
    #[error(
        "{file}, sample {number}: the label {field} is a floating-point number ({value}), as pandas stores integers of which \
        some are missing; store integers and leave out rows without a label, or keep it as a feature: --map label=none"
    )]
    FloatLabels {
        /// An archive.
        file: String,
        /// A sample, from 0.
        number: u64,
        /// The field.
        field: String,
        /// Its value.
        value: f64,
    },
    /// Two fields may be the label, and differ.
    #[error(
        "{file}, sample {number}: the fields {first} and {second} may both be the label, and differ; name it: --map \
        label={first} or --map label={second}"
    )]
    TwoLabels {
        /// The archive.
        file: String,
        /// The sample, from 0.
        number: u64,
        /// A field.
        first: String,
        /// Another one.
        second: String,
    },
    /// Several fields may be the image, and none is named as images are.
    #[error("{file}, sample {number}: which field is the image? {fields} may be; name it: --map image={example}{}",
        if *.members { "; if each is another sample: --member-key last-dot" } else { "" })]
    SeveralImages {
        /// Whether the fields are members of a tar.
        members: bool,
        /// The archive.
        file: String,
        /// The sample, from 0.
        number: u64,
        /// The fields.
        fields: String,
        /// One of them.
        example: String,
    },
    /// A TFRecord file of SequenceExamples, whose feature lists a pack would lose.
    #[error("{} holds tf.train.SequenceExamples; run `shardtool index` on it, which keeps their feature lists", .path.display())]
    SequenceExamples {
        /// The file.
        path: PathBuf,
    },
    /// An invalid MDS index.
    #[error("{}: invalid MDS index", .path.display())]
    MdsIndex {
        /// The `index.json`.
        path: PathBuf,
        /// What is wrong.
        #[source]
        problem: MdsProblem,
    },
}

/// Says which two numbers no type holds.
fn conflict(column: &str, [first, second]: &[(String, String, u64); 2]) -> String {
    let place = |(_, file, sample): &(String, String, u64)| format!("sample {sample} of {file}");
    list::conflict(column, &first.0, &place(first), &second.0, &place(second))
}
