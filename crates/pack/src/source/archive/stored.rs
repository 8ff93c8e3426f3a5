//! Surveyed archives as one process stores them for others, so that these need not read all archives.

use super::files::ArchiveKind;
use super::mds::index;
use super::roles::{Labels, Roles};
use super::{Archives, SurveyedFile, survey};
use crate::class_ids::ClassIds;
use crate::input::{Found, Times};
use crate::sample::SampleSchema;
use crate::{Error, Options};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// What a survey found, without what follows from the options.
#[derive(Serialize, Deserialize)]
pub(crate) struct StoredArchives<F = Vec<SurveyedFile>, R = Vec<u64>> {
    kind: ArchiveKind,
    files: F,
    labels: StoredLabels,
    repeated: R,
    taken: BTreeSet<String>,
    /// What [`survey::hash`] makes of no text: another program may make another number.
    hash: u64,
}

#[derive(Serialize, Deserialize)]
enum StoredLabels {
    None,
    Names(Vec<String>),
    Ids(Option<Vec<String>>),
}

impl Archives {
    /// Returns what other processes need.
    pub(crate) fn stored(&self) -> StoredArchives<&[SurveyedFile], &[u64]> {
        let labels = match &self.labels {
            Labels::None => StoredLabels::None,
            Labels::Names(classes) => StoredLabels::Names(classes.names().to_vec()),
            Labels::Ids(classes) => StoredLabels::Ids(classes.as_ref().map(|classes| classes.names().to_vec())),
        };
        let (files, repeated, taken) = (&*self.files, &*self.repeated, self.taken.clone());
        StoredArchives { kind: self.kind, files, labels, repeated, taken, hash: survey::hash("") }
    }

    /// Returns surveyed archives; `None` if an archive has changed since, or another program surveyed them.
    ///
    /// # Errors
    /// [`ArchiveError::MdsIndex`](crate::ArchiveError), [`Error::Io`].
    pub(crate) fn restored(
        stored: StoredArchives,
        schema: SampleSchema,
        options: &Options,
    ) -> Result<Option<Self>, Error> {
        let StoredArchives { kind, mut files, labels, repeated, taken, hash } = stored;
        if hash != survey::hash("") {
            return Ok(None);
        }
        for SurveyedFile { file, .. } in &files {
            let found = Found::at(&file.path).map_err(Error::io("read", &file.path))?;
            if (found.len(), found.version(Times::of(options))) != (file.size, file.version) {
                return Ok(None);
            }
        }
        if kind == ArchiveKind::Mds {
            let folder = files.first().and_then(|surveyed| surveyed.file.path.parent()).unwrap_or(Path::new(""));
            let layouts = index::index(folder)?;
            if layouts.len() != files.len() {
                return Ok(None);
            }
            for (SurveyedFile { file, .. }, (_, layout)) in files.iter_mut().zip(layouts) {
                file.mds = Some(Arc::new(layout));
            }
        }
        let ids = |names| ClassIds::in_order(names, options.classes.clone());
        let labels = match labels {
            StoredLabels::None => Labels::None,
            StoredLabels::Names(names) => Labels::Names(ids(names)),
            StoredLabels::Ids(names) => Labels::Ids(names.map(ids)),
        };
        let roles = Roles::of_schema(options, kind, &schema);
        let limit = options.limits.max_bytes;
        Ok(Some(Archives { schema, files, kind, roles, labels, repeated: repeated.into(), limit, taken }))
    }
}
