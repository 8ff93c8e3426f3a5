//! The flag `--no-jpeg-entries` of every command that writes indexes.

use crate::headings;

/// Whether a command writes JPEG entry points into indexes.
#[derive(clap::Args)]
pub(crate) struct EntriesArgument {
    /// Write no JPEG entry points into indexes
    ///
    /// Crops are then decoded from the start of the image.
    #[arg(long, help_heading = headings::STORED, hide_short_help = true)]
    no_jpeg_entries: bool,
}

impl EntriesArgument {
    /// Returns whether indexes get entry points.
    pub(crate) fn written(&self) -> bool {
        !self.no_jpeg_entries
    }
}
