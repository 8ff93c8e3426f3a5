//! Writes one shard: records go to a file that exists under its name when it is whole; then the index is written, which marks the shard
//! as finished.

use crate::commit::Directory;
use crate::index_writer::{IndexWriter, Indexed, Payload, logical};
use crate::place::{NewFile, Place};
use crate::progress::{Progress, Step, after};
use crate::record::optimize::Optimized;
use crate::record::{self, Record};
use crate::sample::{SampleSchema, features};
use crate::split::files::{self, SplitFiles};
use crate::{Error, OnError, Options, Rejection, rejects};
use shardtool_format::example::Message;
use shardtool_format::manifest::Shard;
use shardtool_format::names;
use std::path::Path;

/// A shard that is being written.
pub(crate) struct ShardWriter<P: Place = Directory> {
    number: usize,
    name: String,
    /// `None` if the shard is virtual.
    file: Option<P::File>,
    index: IndexWriter,
    rejected: Vec<Rejection>,
    counts: Counts,
    on_error: OnError,
}

/// A shard that is written, but not yet durable.
pub(crate) struct Finished<P: Place = Directory> {
    number: usize,
    name: String,
    file: Option<P::File>,
    indexed: Indexed,
    rejected: Vec<Rejection>,
    counts: Counts,
}

/// Shards that are in place.
#[derive(Default)]
pub(crate) struct Written {
    /// Each shard's number and its line in the manifest.
    pub(crate) shards: Vec<(usize, Shard)>,
    pub(crate) counts: Counts,
}

/// What was counted of images.
#[derive(Default)]
pub(crate) struct Counts {
    /// Statistics of transcoding JPEGs.
    pub(crate) optimized: Optimized,
    /// Images that are cut or damaged.
    pub(crate) truncated: u64,
    /// Records with images that were converted to PNG.
    pub(crate) converted: u64,
    /// Records with images whose metadata was removed.
    pub(crate) stripped: u64,
    /// Records whose image lost bits or alpha.
    pub(crate) reduced: u64,
}

impl Counts {
    fn append(&mut self, other: Counts) {
        self.optimized.append(other.optimized);
        self.truncated += other.truncated;
        self.converted += other.converted;
        self.stripped += other.stripped;
        self.reduced += other.reduced;
    }
}

impl Written {
    pub(crate) fn append(&mut self, mut other: Written) {
        self.shards.append(&mut other.shards);
        self.counts.append(other.counts);
    }
}

impl<P: Place> ShardWriter<P> {
    /// Begins the shard with this number.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn new(
        options: &Options,
        schema: &SampleSchema,
        files: &SplitFiles<P>,
        number: usize,
    ) -> Result<Self, Error> {
        Self::with_name(options, schema, files.place(), number, names::shard_file(options.split(), number))
    }

    /// Begins a shard with this file name.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn with_name(
        options: &Options,
        schema: &SampleSchema,
        place: &P,
        number: usize,
        name: String,
    ) -> Result<Self, Error> {
        let payload = Payload::Examples {
            message: Message::Example,
            image: schema.images.then(|| names::IMAGE_ENCODED.to_owned()),
            logical: logical(&features(schema)),
        };
        let (file, index) = match options.virtual_source {
            None => (Some(place.create(Path::new(&name))?), IndexWriter::new(&name, payload, options.index())),
            Some(_) => (None, IndexWriter::new_virtual(&name, payload, options.index())),
        };
        Ok(ShardWriter {
            number,
            file,
            index,
            name,
            rejected: vec![],
            counts: Counts::default(),
            on_error: options.on_error,
        })
    }

    /// Adds a record; returns its buffer.
    ///
    /// # Errors
    /// [`Error::Io`], and those of the index.
    pub(crate) fn push(&mut self, record: Record) -> Result<Vec<u8>, Error> {
        let Record { frame, data_crc, entries, ranges, outcome, counted } = record;
        match &mut self.file {
            Some(file) => {
                self.index.push_with_entries(record::data(&frame), data_crc, entries)?;
                file.write(&frame)?;
            }
            None => self.index.push_virtual(&frame, data_crc, entries, &ranges)?,
        }
        self.counts.optimized.add(&outcome);
        self.counts.truncated += u64::from(counted.truncated);
        self.counts.converted += u64::from(counted.converted);
        self.counts.stripped += u64::from(counted.stripped);
        self.counts.reduced += u64::from(counted.reduced);
        Ok(frame)
    }

    /// Adds a rejected input.
    ///
    /// # Errors
    /// [`Error::Rejected`] under [`OnError::Fail`].
    pub(crate) fn reject(&mut self, rejection: Rejection) -> Result<(), Error> {
        if self.on_error == OnError::Fail {
            return Err(Error::Rejected(Box::new(rejection)));
        }
        self.rejected.push(rejection);
        Ok(())
    }

    /// Makes the index.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn finish(self) -> Result<Finished<P>, Error> {
        let ShardWriter { number, name, mut file, index, rejected, counts, on_error: _ } = self;
        if let Some(file) = &mut file {
            file.flush()?;
        }
        let indexed = index.finish_with(&mut || match &mut file {
            Some(file) => file.readable(),
            None => unreachable!("the index of a virtual shard reads no record again"),
        })?;
        Ok(Finished { number, name, file, indexed, rejected, counts })
    }
}

impl<P: Place> Finished<P> {
    /// Returns the number of the shard.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// Returns the length of the shard in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.indexed.shard.bytes
    }

    /// Makes the shard durable.
    ///
    /// # Errors
    /// [`Error::Stopped`], [`Error::Io`].
    pub(crate) fn commit(
        self,
        files: &SplitFiles<P>,
        progress: &dyn Progress,
        written: &mut Written,
    ) -> Result<(), Error> {
        let Finished { number, name, file, indexed, rejected, counts } = self;
        if let Some(file) = file {
            file.publish()?;
        }
        after(progress, Step::Shard)?;
        let (place, list) = (files.place(), files::rejects_of(&name));
        match rejected.is_empty() {
            true => place.remove(&list)?,
            false => place.publish(&list, &rejects::to_json_lines(&rejected))?,
        }
        place.publish(&names::index_path(Path::new(&name)), &indexed.index)?;
        after(progress, Step::Index)?;
        written.append(Written { shards: vec![(number, indexed.shard)], counts });
        Ok(())
    }
}
