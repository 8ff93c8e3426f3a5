//! Archives: files of other formats with many samples each. The unit of work is a file: its samples go to separate
//! shards, by their position in the file, so that files are packed in parallel and an interrupted file is read again.
//! Each file is read twice: for types, class names and counts (without images if the format allows it), then for its
//! samples. Memory: one sample per thread, and 8 bytes per sample to make keys unique.
//!
//! | module | responsibility |
//! |---|---|
//! | `files` | the files of a source, and their kind |
//! | `sample` | the item that a format's reader delivers: a sample, or the reason why it is lost |
//! | `roles` | which field is the image, the label, the key |
//! | `survey` | the first pass: types of columns, class names, counts |
//! | `stored` | the result of the first pass, for other processes |
//! | `header_limit` | limit on the headers of a tar |
//! | `stream` | decompression of gzip, zlib and zstd, detected from content |
//! | `json` | values of JSON objects as columns |
//! | `tfrecord`, `webdataset`, `parquet`, `mds` | one format each |

pub(super) mod files;
mod header_limit;
mod json;
mod mds;
#[cfg(feature = "parquet")]
mod parquet;
mod roles;
pub(crate) mod sample;
mod stored;
mod stream;
mod survey;
mod tfrecord;
mod webdataset;

use crate::class_ids::ClassIds;
use crate::error::{ArchiveError, SourceError};
use crate::ordered::ordered;
use crate::progress::Progress;
use crate::sample::{ResolvedSample, SampleSchema, Values};
use crate::{Error, Options, Reason};
pub(crate) use files::{ArchiveFile, SampleCount};
use files::{ArchiveFiles, ArchiveKind};
use roles::{Labels, RoleFields, Roles, StoredLabel};
use sample::{Sample, SampleVisitor};
use serde::{Deserialize, Serialize};
use shardtool_format::manifest::DType;
use std::collections::BTreeSet;
use std::path::PathBuf;
pub(crate) use stored::StoredArchives;
use survey::{Survey, Surveyor};

/// Surveyed archives.
pub(crate) struct Archives {
    pub(crate) schema: SampleSchema,
    /// In byte order of their names.
    pub(crate) files: Vec<SurveyedFile>,
    kind: ArchiveKind,
    roles: Roles,
    labels: Labels,
    /// Hashes of keys that several samples have, sorted.
    repeated: Box<[u64]>,
    /// Largest sample in bytes; a larger one is rejected.
    limit: u64,
    /// Columns whose type is that of the dataset, which must hold their numbers exactly.
    taken: BTreeSet<String>,
}

/// A file, and what the survey found in it.
#[derive(Serialize, Deserialize)]
pub(crate) struct SurveyedFile {
    pub(crate) file: ArchiveFile,
    /// One count per shard.
    pub(crate) shards: Vec<SampleCount>,
    /// Hashes of the names of samples whose members are not adjacent, sorted.
    scattered: Vec<u64>,
    /// CRC32C of what the survey read: where the samples lie, and all of them but the images.
    pub(crate) crc: u32,
}

impl SurveyedFile {
    /// Checks that a sample has all of its members.
    ///
    /// # Errors
    /// [`Reason::NotAdjacent`].
    pub(crate) fn check_members(&self, sample: &Sample<'_>) -> Result<(), Reason> {
        let key = sample.key.as_deref().filter(|_| !self.scattered.is_empty());
        match key.map(|key| self.scattered.binary_search(&survey::hash(key))) {
            Some(Ok(_)) => Err(Reason::NotAdjacent),
            _ => Ok(()),
        }
    }
}

impl Archives {
    /// Reads the files of all splits once and decides their schema, which they have in common.
    ///
    /// # Errors
    /// [`ArchiveError`](crate::ArchiveError), [`SourceError::UnknownClass`], [`SourceError::Empty`], [`Error::Option`],
    /// [`Error::Stopped`], [`Error::Io`].
    pub(super) fn of_splits(
        splits: Vec<(String, ArchiveFiles)>,
        classes: Option<ClassIds>,
        options: &Options,
        progress: &dyn Progress,
    ) -> Result<Vec<(String, Self)>, Error> {
        let Some((_, first)) = splits.first() else { return Ok(vec![]) };
        let kind = first.kind;
        if splits.iter().any(|(_, files)| files.kind != kind) {
            return Err(super::differing(&options.source, "the splits are archives of different kinds"));
        }
        let crate::Shards::Size(shard_size) = options.shards else {
            let expected = "a size of shards, since each archive has its own shards";
            return Err(Error::Option { option: "shards", expected });
        };
        let roles = Roles::new(options);
        let limit = options.limits.max_bytes;
        let mut all = Survey::new();
        let mut surveyed_splits = vec![];
        for (split, ArchiveFiles { mut files, .. }) in splits {
            if options.ignore_times {
                files.iter_mut().for_each(|file| file.version = 0);
            }
            let total: u64 = files.iter().map(|file| file.shards(shard_size)).sum();
            if total > 1_000_000 {
                return Err(Error::Option {
                    option: "shard size",
                    expected: "one that makes at most 1,000,000 shards",
                });
            }
            let mut surveyed = vec![];
            let survey = |i: usize| {
                let mut visit = Surveyor::new(&files[i], shard_size, &roles, &options.columns, progress);
                read(kind, &files[i], &roles, limit, &mut visit).map(|()| visit.finish())
            };
            ordered(options.jobs, files.len(), 2 * options.jobs.get(), survey, |_, survey| {
                let (file, survey) = survey?;
                surveyed.push(file);
                all.join(survey)
            })?;
            if surveyed.iter().all(|file| file.shards.iter().all(|shard| shard.images == 0)) {
                let path = surveyed.first().map_or(&options.source, |surveyed| &surveyed.file.path);
                let path = if surveyed.len() == 1 { path } else { &options.source };
                return Err(Error::Source(SourceError::Empty { path: path.clone(), rejected: None }));
            }
            all.take_marks().check(&split, options)?;
            all.neighbours.check(options)?;
            // Keys are unique in a split.
            surveyed_splits.push((split, surveyed, all.take_repeated()));
        }
        let surveyed = || surveyed_splits.iter().flat_map(|(_, surveyed, _)| surveyed);
        let stored = match kind {
            ArchiveKind::Parquet => stored_names(surveyed(), &roles)?,
            _ => None,
        };
        if let (ArchiveKind::Parquet, false, Some(first)) =
            (kind, all.is_labelled() || roles.label_given(), surveyed().next())
        {
            let columns = class_columns(&first.file)?;
            if let Some(example) = columns.first() {
                let (file, example, columns) = (first.file.name.clone(), example.clone(), columns.join(", "));
                return Err(Error::Archive(ArchiveError::ClassColumns { file, columns, example }));
            }
        }
        let survey::SurveyResult { mut schema, labels } = all.describe(classes, stored, &roles, options)?;
        let roles = Roles::of_schema(options, kind, &schema);
        schema.columns.retain(|(name, _)| !roles.nesting.is_replaced(name));
        let split = |(split, files, repeated)| {
            let (schema, roles, labels) = (schema.clone(), roles.clone(), labels.clone());
            (split, Archives { schema, files, kind, roles, labels, repeated, limit, taken: BTreeSet::new() })
        };
        Ok(surveyed_splits.into_iter().map(split).collect())
    }

    /// Gives the columns for which `known` returns a type that type.
    pub(crate) fn take_types(&mut self, known: impl Fn(&(String, DType)) -> Option<DType>) {
        for column in &mut self.schema.columns {
            if let Some(dtype) = known(column) {
                column.1 = dtype;
                self.taken.insert(column.0.clone());
            }
        }
    }

    /// Calls `visit` for each sample of a file.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be opened, and those of the visitor. Damage is passed to the visitor.
    pub(crate) fn read(&self, file: &ArchiveFile, visit: &mut dyn SampleVisitor) -> Result<(), Error> {
        read(self.kind, file, &self.roles, self.limit, visit)
    }

    /// Resolves the `number`-th sample of a file: key, class id, and values in the columns' types.
    ///
    /// # Errors
    /// The reason why the sample cannot be packed.
    pub(crate) fn packed(
        &self,
        file: &ArchiveFile,
        number: u64,
        sample: &mut Sample<'_>,
    ) -> Result<ResolvedSample, Reason> {
        let RoleFields { key, label, mut columns } = self.roles.resolve(sample)?;
        let label = match (&self.labels, label) {
            (Labels::None, _) => None,
            (_, None) => return Err(Reason::NoLabel),
            (Labels::Names(classes), Some(StoredLabel::Name(name))) => Some(classes.known(&name)?),
            (Labels::Names(classes), Some(StoredLabel::Id(id))) => Some(classes.known(&id.to_string())?),
            (Labels::Ids(classes), Some(label)) => Some(self.roles.class_id(label, classes.as_ref())?),
        };
        let value = |(name, dtype): &(String, DType)| match columns.remove(name.as_str()) {
            Some(values) => match self.taken.contains(name) {
                true => values.fit_exactly(*dtype),
                false => values.fit(*dtype),
            }
            .ok_or_else(|| Reason::Value { column: name.clone(), expected: *dtype }),
            None => Ok(Values::Missing),
        };
        let values = self.schema.columns.iter().map(value).collect::<Result<_, _>>()?;
        let key = match key {
            Some(key) if self.repeated.binary_search(&survey::hash(&key)).is_err() => key,
            Some(key) => format!("{key}#{}#{number}", file.name),
            None => format!("{}#{number}", file.name),
        };
        Ok(ResolvedSample { key, label, values })
    }

    /// Returns the first file whose samples cannot be read where they lie, and why; `None` if all can.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn why_not_in_place(&self) -> Result<Option<(PathBuf, String)>, Error> {
        let packed = |what: &str| format!("{what}; `shardtool pack` makes a dataset of it");
        for SurveyedFile { file, .. } in &self.files {
            let problem = match self.kind {
                ArchiveKind::Parquet => match parquet_why_not_in_place(file, &self.roles)? {
                    Some(problem) => packed(&problem),
                    None => continue,
                },
                ArchiveKind::Tfrecord => packed("these records are not read with other options where they lie"),
                ArchiveKind::Webdataset | ArchiveKind::Mds => {
                    match stream::is_compressed(&file.path).map_err(Error::io("read", &file.path))? {
                        true => packed("it is compressed as a whole, so that no sample can be read alone"),
                        false => continue,
                    }
                }
            };
            return Ok(Some((file.path.clone(), problem)));
        }
        Ok(None)
    }

    /// Returns a CRC32C over everything that determines the packed bytes, so that a resumed pack can detect a changed
    /// source.
    pub(crate) fn crc(&self) -> u32 {
        self.schema.crc(|text| {
            text(self.kind.name().as_bytes());
            self.roles.each_bytes(text);
            for SurveyedFile { file, crc, .. } in &self.files {
                text(file.name.as_bytes());
                text(&file.size.to_le_bytes());
                text(&file.version.to_le_bytes());
                text(&crc.to_le_bytes());
            }
        })
    }

    /// Returns a CRC32C over what the samples of all files depend on besides the files: under the same, a file that has not changed
    /// makes the same records.
    pub(crate) fn conventions_crc(&self) -> u32 {
        self.schema.crc(|text| {
            text(self.kind.name().as_bytes());
            self.roles.each_bytes(text);
            text(self.labels.name().as_bytes());
            text(&[u8::from(self.schema.images)]);
            text(&self.limit.to_le_bytes());
            self.repeated.iter().for_each(|key| text(&key.to_le_bytes()));
            self.taken.iter().for_each(|name| text(name.as_bytes()));
        })
    }
}

/// Returns the class names in the metadata of archives, which all that have some have in common.
///
/// # Errors
/// [`ArchiveError::ClassNames`], [`Error::Io`].
#[cfg(feature = "parquet")]
fn stored_names<'f>(
    files: impl Iterator<Item = &'f SurveyedFile>,
    roles: &Roles,
) -> Result<Option<Vec<String>>, Error> {
    let mut known: Option<(&str, Vec<String>)> = None;
    for SurveyedFile { file, .. } in files {
        match (parquet::class_names(file, roles)?, &known) {
            (Some(names), None) => known = Some((&file.name, names)),
            (Some(names), Some((first, others))) if names != *others => {
                let (first, second) = ((*first).to_owned(), file.name.clone());
                return Err(Error::Archive(ArchiveError::ClassNames { first, second }));
            }
            _ => {}
        }
    }
    Ok(known.map(|(_, names)| names))
}

#[cfg(feature = "parquet")]
use parquet::class_columns;

#[cfg(not(feature = "parquet"))]
fn class_columns(_: &ArchiveFile) -> Result<Vec<String>, Error> {
    Ok(vec![])
}

#[cfg(not(feature = "parquet"))]
fn stored_names<'f>(_: impl Iterator<Item = &'f SurveyedFile>, _: &Roles) -> Result<Option<Vec<String>>, Error> {
    Ok(None)
}

#[cfg(feature = "parquet")]
use parquet::why_not_in_place as parquet_why_not_in_place;

#[cfg(not(feature = "parquet"))]
fn parquet_why_not_in_place(_: &ArchiveFile, _: &Roles) -> Result<Option<String>, Error> {
    Ok(None)
}

/// Returns the error of a sample of which several fields may be the image.
fn several_images(file: &ArchiveFile, number: u64, fields: &[&str], members: bool) -> Error {
    let (file, example) = (file.name.clone(), fields.first().copied().unwrap_or_default().to_owned());
    Error::Archive(ArchiveError::SeveralImages { members, file, number, fields: fields.join(", "), example })
}

fn read(
    kind: ArchiveKind,
    file: &ArchiveFile,
    roles: &Roles,
    limit: u64,
    visit: &mut dyn SampleVisitor,
) -> Result<(), Error> {
    match kind {
        ArchiveKind::Tfrecord => tfrecord::read(file, roles, limit, visit),
        ArchiveKind::Webdataset => webdataset::read(file, roles, limit, visit),
        #[cfg(feature = "parquet")]
        ArchiveKind::Parquet => parquet::read(file, roles, limit, visit),
        #[cfg(not(feature = "parquet"))]
        ArchiveKind::Parquet => Err(Error::WithoutParquet { path: file.path.clone() }),
        ArchiveKind::Mds => mds::read(file, roles, limit, visit),
    }
}
