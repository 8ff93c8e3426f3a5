//! JPEG entry points, as `pack`, `index` and `repair` fill them in.

use shardtool_decode::entry_points;
use shardtool_pack::EntryPoints;

/// The flag that every command which writes indexes has.
#[derive(clap::Args)]
pub(crate) struct EntriesArgument {
    /// Write no JPEG entry points into the index: crops are then decoded from the image's start
    #[arg(long)]
    pub(crate) no_jpeg_entries: bool,
}

impl EntriesArgument {
    pub(crate) fn function(&self) -> Option<EntryPoints> {
        (!self.no_jpeg_entries).then_some(entry_points)
    }
}
