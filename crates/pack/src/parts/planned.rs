//! The planned shards of a pack in parts: `_plan/SPLIT/shards.json`. A commit reads it in place of the source.

use crate::error::DestinationError;
use crate::place::Place;
use crate::split::files::SplitFiles;
use crate::split::manifest_store;
use crate::{Error, Plan, rejects};
use serde::{Deserialize, Serialize};
use shardtool_format::manifest::Manifest;

/// What `format` says.
const FORMAT: &str = "shardtool-planned-shards";

/// The planned shards.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Planned {
    format: String,
    version: u32,
    /// The manifest without splits, as JSON.
    manifest: String,
    /// Images or other samples of each shard, rejected ones included.
    pub(super) images: Vec<u64>,
    /// The inputs that were rejected when the source was listed, as lines of JSON.
    pub(super) rejected: String,
}

impl Planned {
    pub(super) fn of(plan: &Plan) -> Self {
        let rejected = rejects::to_json_lines(plan.rejected());
        Planned {
            format: FORMAT.to_owned(),
            version: 1,
            manifest: manifest_store::of_schema(plan.schema()).to_json(),
            images: (0..plan.shard_count()).map(|shard| plan.sample_count(shard).images).collect(),
            rejected: String::from_utf8(rejected).expect("JSON"),
        }
    }

    pub(super) fn to_json(&self) -> Vec<u8> {
        let mut json = serde_json::to_vec(self).expect("strings and numbers");
        json.push(b'\n');
        json
    }

    /// Reads the planned shards of a split; `None` if there are none.
    ///
    /// # Errors
    /// [`DestinationError::PlannedShards`], [`Error::Io`].
    pub(super) fn read<P: Place>(files: &SplitFiles<P>) -> Result<Option<Self>, Error> {
        let Some(json) = files.place().read(&files.planned())? else { return Ok(None) };
        let planned: Option<Planned> = serde_json::from_slice(&json).ok();
        let known = planned.filter(|planned| planned.format == FORMAT && planned.version == 1);
        let path = || files.path(&files.planned());
        known.map(Some).ok_or_else(|| Error::Destination(DestinationError::PlannedShards { path: path() }))
    }

    /// Returns the manifest without splits.
    ///
    /// # Errors
    /// [`DestinationError::PlannedShards`].
    pub(super) fn schema<P: Place>(&self, files: &SplitFiles<P>) -> Result<Manifest, Error> {
        let path = || files.path(&files.planned());
        Manifest::parse(self.manifest.as_bytes())
            .map_err(|_| Error::Destination(DestinationError::PlannedShards { path: path() }))
    }
}
