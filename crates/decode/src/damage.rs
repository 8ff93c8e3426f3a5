//! The kind of damage that an error means for a stored image.

use crate::Error;
use shardtool_format::Damage;

impl Error {
    /// Returns the kind of damage, as named in `format-spec.md`, that this error means for a stored image:
    /// [`Damage::PixelsLength`] for raw pixels whose length is not height × width × 3, else [`Damage::ImageDecode`].
    pub fn damage(&self) -> Damage {
        match self {
            Error::PixelBytes { .. } | Error::ZstdSize => Damage::PixelsLength,
            _ => Damage::ImageDecode,
        }
    }
}
