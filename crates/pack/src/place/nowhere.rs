//! A place that keeps nothing: shards are made as for a dataset, to compare them with those that it has.

use super::{Edit, NewFile, Place};
use crate::Error;
use shardtool_format::manifest::Manifest;
use std::collections::HashSet;
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// No folder; the path is that of the dataset with which shards are compared.
#[derive(Clone)]
pub(crate) struct Nowhere(PathBuf);

/// A file whose bytes are discarded. What is read of it is the file of this name in the dataset: either it has the same bytes, or
/// the comparison finds a difference.
pub(crate) struct Unkept(PathBuf);

impl Place for Nowhere {
    type File = Unkept;
    type Lock = ();
    const AT_ONCE: NonZeroUsize = NonZeroUsize::MIN;

    fn open(path: &Path) -> Result<Option<Self>, Error> {
        Ok(Some(Nowhere(path.to_owned())))
    }

    fn begin(path: &Path, _: &str, _: bool) -> Result<(Self, ()), Error> {
        Ok((Nowhere(path.to_owned()), ()))
    }

    fn join(path: &Path, _: &str, _: bool) -> Result<(Self, ()), Error> {
        Ok((Nowhere(path.to_owned()), ()))
    }

    fn remove_joined(&self, _: &str) -> Result<usize, Error> {
        Ok(0)
    }

    fn path(&self) -> &Path {
        &self.0
    }

    fn read(&self, _: &Path) -> Result<Option<Vec<u8>>, Error> {
        Ok(None)
    }

    fn read_parts(&self, _: &Path, _: &mut dyn FnMut(&[u8])) -> Result<bool, Error> {
        Ok(false)
    }

    fn length(&self, _: &Path) -> Result<Option<u64>, Error> {
        Ok(None)
    }

    fn names(&self, _: &Path) -> Result<Vec<OsString>, Error> {
        Ok(vec![])
    }

    fn names_at_once(&self, _: &Path) -> Result<Option<HashSet<OsString>>, Error> {
        Ok(Some(HashSet::new()))
    }

    fn create(&self, relative: &Path) -> Result<Unkept, Error> {
        Ok(Unkept(self.0.join(relative)))
    }

    fn publish(&self, _: &Path, _: &[u8]) -> Result<(), Error> {
        Ok(())
    }

    fn publish_new(&self, _: &Path, _: &[u8]) -> Result<bool, Error> {
        Ok(true)
    }

    fn remove(&self, _: &Path) -> Result<(), Error> {
        Ok(())
    }

    fn create_folder(&self, _: &Path) -> Result<(), Error> {
        Ok(())
    }

    fn remove_folder(&self, _: &Path) -> Result<(), Error> {
        Ok(())
    }

    fn sync(&self, _: &Path) -> Result<(), Error> {
        Ok(())
    }

    fn remove_abandoned(&self, _: &Path, _: &dyn Fn(&str) -> bool) -> Result<(), Error> {
        Ok(())
    }

    fn manifest(&self) -> Result<Option<Manifest>, Error> {
        Ok(None)
    }

    fn edit_manifest(&self, _: &str, _: Edit<'_>) -> Result<(), Error> {
        Ok(())
    }
}

impl NewFile for Unkept {
    fn write(&mut self, _: &[u8]) -> Result<(), Error> {
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn readable(&mut self) -> Result<PathBuf, Error> {
        Ok(self.0.clone())
    }

    fn publish(self) -> Result<(), Error> {
        Ok(())
    }
}
