//! The kind of damage that an error means for a stored image.

use crate::{Error, Format};
use shardtool_format::Damage;

impl Error {
    /// Returns the kind of damage, as named in `format-spec.md`, that this error means for a stored image:
    /// [`Damage::PixelsLength`] for raw pixels whose length is not height × width × 3, or arrays whose chunks have another
    /// number or length than their shape needs; else [`Damage::ImageDecode`].
    pub fn damage(&self) -> Damage {
        match self {
            Error::PixelBytes { .. } | Error::ZstdSize => Damage::PixelsLength,
            Error::Empty { format: Format::Raw | Format::RawZstd, .. } => Damage::PixelsLength,
            Error::Array { source } => source.damage(),
            _ => Damage::ImageDecode,
        }
    }
}
