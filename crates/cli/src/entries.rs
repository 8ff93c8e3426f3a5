//! The flag `--no-jpeg-entries` of every command that writes indexes.

/// Whether a command writes JPEG entry points into indexes.
#[derive(clap::Args)]
pub(crate) struct EntriesArgument {
    /// Write no JPEG entry points into indexes: crops are then decoded from the start of the image
    #[arg(long)]
    no_jpeg_entries: bool,
}

impl EntriesArgument {
    /// Returns whether indexes get entry points.
    pub(crate) fn written(&self) -> bool {
        !self.no_jpeg_entries
    }
}
