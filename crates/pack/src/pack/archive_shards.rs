//! Writes the samples of archives into shards: each file on one thread, into its own shards.

use super::target::Target;
use crate::ordered::{Window, ordered_by_weight};
use crate::place::Place;
use crate::plan::ArchivePlan;
use crate::progress::{Progress, check};
use crate::record::origins::Origin;
use crate::record::{Image, RecordWriter};
use crate::shard_writer::{ShardWriter, Written};
use crate::source::archive::SurveyedFile;
use crate::source::archive::sample::{SampleVisitor, VisitedSample};
use crate::{Error, Options, Reason, Rejection};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Writes the shards that are not `finished`. A file with an unfinished shard is read from its beginning.
///
/// # Errors
/// [`Error::Rejected`], [`Error::Stopped`], [`Error::Io`].
pub(crate) fn write<P: Place>(
    options: &Options,
    plan: &ArchivePlan,
    target: &Target<P>,
    progress: &dyn Progress,
    finished: &[bool],
) -> Result<Written, Error> {
    let left: Vec<_> =
        (0..plan.archives.files.len()).filter(|at| !finished[plan.shards_at(*at)].iter().all(|done| *done)).collect();
    let failed = AtomicBool::new(false);
    let mut written = Written::default();
    let window = Window { pieces: usize::MAX, weight: u64::MAX };
    let work = |records: &mut RecordWriter<'_>, i: usize| {
        let (file, shards) = (plan.file_at(left[i]), plan.shards_at(left[i]));
        let run = Run { options, plan, target, progress, finished, failed: &failed };
        let shards = FileWriter::write(run, file, shards, records);
        failed.fetch_or(shards.is_err(), Ordering::Relaxed);
        shards
    };
    let records = || RecordWriter::new(&plan.archives.schema, options);
    ordered_by_weight(
        options.jobs,
        left.len(),
        window,
        |_| 0,
        records,
        work,
        |_, shards: Result<Written, Error>| {
            written.append(shards?);
            Ok::<(), Error>(())
        },
    )?;
    Ok(written)
}

/// What all files have in common.
struct Run<'a, P: Place> {
    options: &'a Options,
    plan: &'a ArchivePlan,
    target: &'a Target<P>,
    progress: &'a dyn Progress,
    finished: &'a [bool],
    /// Another file failed: no further sample is started.
    failed: &'a AtomicBool,
}

impl<P: Place> Run<'_, P> {
    fn shard_writer(&self, shard: usize) -> Result<ShardWriter<P>, Error> {
        ShardWriter::new(self.options, &self.plan.archives.schema, self.target.files(), shard)
    }
}

/// Writes the shards of one file.
struct FileWriter<'a, 'r, 'w, P: Place> {
    run: Run<'a, P>,
    surveyed: &'a SurveyedFile,
    /// Numbers of the file's shards.
    shards: Range<usize>,
    records: &'r mut RecordWriter<'w>,
    /// The shard of the previous sample, unless it was finished before.
    open: Option<ShardWriter<P>>,
    /// The shard of the next sample, or a later one.
    next: usize,
    written: Written,
    buffer: Vec<u8>,
}

impl<'a, 'r, 'w, P: Place> FileWriter<'a, 'r, 'w, P> {
    fn write(
        run: Run<'a, P>,
        surveyed: &'a SurveyedFile,
        shards: Range<usize>,
        records: &'r mut RecordWriter<'w>,
    ) -> Result<Written, Error> {
        let (plan, next) = (run.plan, shards.start);
        let mut writer = FileWriter {
            run,
            surveyed,
            shards,
            records,
            open: None,
            next,
            written: Written::default(),
            buffer: vec![],
        };
        plan.archives.read(&surveyed.file, &mut writer)?;
        writer.go_to(writer.shards.end)?;
        Ok(writer.written)
    }

    fn shard_of(&self, at: u64) -> usize {
        self.shards.start + self.surveyed.file.shard(at, self.run.plan.shard_size)
    }

    /// Commits every shard before `shard`, empty ones included, and opens `shard` unless it was finished before.
    fn go_to(&mut self, shard: usize) -> Result<(), Error> {
        while self.next < shard {
            let open = match self.open.take() {
                Some(open) => Some(open),
                None if self.run.finished[self.next] => None,
                None => Some(self.run.shard_writer(self.next)?),
            };
            if let Some(open) = open {
                self.run.target.commit(open.finish()?, self.run.progress, &mut self.written)?;
            }
            self.next += 1;
        }
        if shard < self.shards.end && self.open.is_none() && !self.run.finished[shard] {
            self.open = Some(self.run.shard_writer(shard)?);
        }
        Ok(())
    }
}

impl<P: Place> SampleVisitor for FileWriter<'_, '_, '_, P> {
    fn needs_image(&self, at: u64) -> bool {
        !self.run.finished[self.shard_of(at)]
    }

    fn needs_places(&self) -> bool {
        self.run.options.virtual_source.is_some()
    }

    fn item(&mut self, item: VisitedSample<'_>) -> Result<(), Error> {
        if self.run.failed.load(Ordering::Relaxed) {
            return Err(Error::Stopped);
        }
        check(self.run.progress)?;
        // Offsets of a damaged archive may decrease; the shard number must not.
        self.go_to(self.shard_of(item.at).max(self.next))?;
        let Some(open) = &mut self.open else { return Ok(()) };
        let file = &self.surveyed.file;
        let mut name = None;
        let record = item.sample.and_then(|mut sample| {
            name = sample.key.as_deref().map(str::to_owned);
            self.surveyed.check_members(&sample)?;
            let fields = || sample.fields.iter().map(|(name, _)| name.to_string()).collect();
            let image_name = sample.image_name;
            let image = match sample.image {
                Some(image) => Image::File(image),
                None if self.run.options.images_optional => Image::None,
                None => return Err(Reason::NoImage { fields: fields() }),
            };
            let stored = std::mem::take(&mut sample.stored);
            let packed = self.run.plan.archives.packed(file, item.number, &mut sample)?;
            let origins = match &self.run.options.virtual_source {
                Some(source) => {
                    let name = source.name(&file.path, file.size)?;
                    stored.into_iter().map(|value| Origin { file: name.clone(), value }).collect()
                }
                None => vec![],
            };
            self.records.sample(&packed, image, image_name, &origins, std::mem::take(&mut self.buffer))
        });
        match record {
            Ok(record) => self.buffer = open.push(record)?,
            Err(reason) => {
                let input = match name {
                    Some(name) => format!("{}:{name}", file.name),
                    None => format!("{}#{}", file.name, item.number),
                };
                open.reject(Rejection::new(input, reason)?)?;
            }
        }
        self.run.progress.done(1, item.bytes);
        Ok(())
    }
}
