//! One shard on its way: records into a temporary file, then into place, followed by its index, which says that it is.

use crate::commit::{self, Temporary};
use crate::index_writer::{IndexWriter, Indexed, Payload};
use crate::pack::{Progress, Step, after};
use crate::record::Record;
use crate::target::Target;
use crate::{Error, OnError, Options, Rejection, reject};
use shardtool_format::manifest::Shard;
use shardtool_format::names;

/// The shard that is being written.
pub(crate) struct ShardWriter {
    number: usize,
    file: Temporary,
    index: IndexWriter,
    rejected: Vec<Rejection>,
    on_error: OnError,
}

/// A shard that is written, but not yet durable.
pub(crate) struct Finished {
    number: usize,
    file: Temporary,
    indexed: Indexed,
    rejected: Vec<Rejection>,
}

impl ShardWriter {
    /// Begins the shard of that number.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn new(options: &Options, target: &Target, number: usize) -> Result<Self, Error> {
        let payload = Payload::Examples { image: Some(names::IMAGE_ENCODED.to_owned()) };
        let name = names::shard_file(&options.split, number);
        Ok(ShardWriter {
            number,
            file: Temporary::new(target.shard(number))?,
            index: IndexWriter::new(&name, payload, options.entry_points),
            rejected: vec![],
            on_error: options.on_error,
        })
    }

    /// # Errors
    /// [`Error::Io`], and those of the index.
    pub(crate) fn push(&mut self, record: &Record) -> Result<(), Error> {
        self.index.push(record.data(), record.data_crc)?;
        self.file.write(&record.frame)
    }

    /// Takes what cannot be packed.
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

    pub(crate) fn finish(self) -> Finished {
        let ShardWriter { number, file, index, rejected, .. } = self;
        Finished { number, file, indexed: index.finish(), rejected }
    }
}

impl Finished {
    /// Makes the shard durable. Returns its number and its line in the manifest.
    ///
    /// # Errors
    /// [`Error::Stopped`], [`Error::Io`].
    pub(crate) fn commit(self, target: &Target, progress: &dyn Progress) -> Result<(usize, Shard), Error> {
        let Finished { number, file, indexed, rejected } = self;
        file.publish()?;
        after(progress, Step::Shard)?;
        match rejected.is_empty() {
            true => commit::remove(&target.shard_rejects(number))?,
            false => commit::publish(target.shard_rejects(number), &reject::to_json_lines(&rejected))?,
        }
        commit::publish(target.index(number), &indexed.index)?;
        after(progress, Step::Index)?;
        Ok((number, indexed.shard))
    }
}
