//! The option about cut and damaged JPEGs.

use clap::ValueEnum;
use shardtool_decode::Truncated;

/// A [`Truncated`] on the command line.
#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum TruncatedName {
    /// It is an error.
    #[default]
    Error,
    /// What is missing becomes grey, as libjpeg-turbo makes it.
    Fill,
}

impl From<TruncatedName> for Truncated {
    fn from(name: TruncatedName) -> Self {
        match name {
            TruncatedName::Error => Truncated::Error,
            TruncatedName::Fill => Truncated::Fill,
        }
    }
}
