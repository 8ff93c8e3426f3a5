//! Reads the array of a file, of whichever kind its content is.

use super::{Array, flow, npy, pfm};
use crate::error::ArrayRefusal;
use shardtool_decode::{Format, Limits, decode_values, sniff};
use std::borrow::Cow;

/// Files that are often taken for arrays, by their first bytes, and what to do.
const REFUSED: [(&[u8], &str); 4] = [
    (b"PK\x03\x04", "a .npz file or another archive: write each array of it with numpy.save"),
    (b"\x76\x2f\x31\x01", "an OpenEXR file: write its channels with numpy.save"),
    (b"\x89HDF", "an HDF5 file: write each of its arrays with numpy.save"),
    (b"MATLAB", "a MATLAB file: write each of its arrays with numpy.save"),
];

/// Extensions of files that are arrays and no images.
pub(crate) const EXTENSIONS: [&str; 4] = ["npy", "pfm", "flo", "dpt"];

/// Parses a file: `.npy`, PFM, `.flo`, `.dpt`, or a PNG or TIFF whose pixels are the elements.
///
/// # Errors
/// [`ArrayRefusal`].
pub(crate) fn parse<'f>(file: &'f [u8], name: &str, limits: &Limits) -> Result<Array<'f>, ArrayRefusal> {
    if pfm::is(file) {
        return pfm::parse(file);
    }
    if flow::is(file) {
        return flow::parse(file, name);
    }
    if let Some((_, found)) = REFUSED.iter().find(|(begin, _)| file.starts_with(begin)) {
        return Err(ArrayRefusal::Kind { found });
    }
    match sniff(file) {
        Some(Format::Png | Format::Tiff) => {
            let values = decode_values(file, limits)?;
            Ok(Array { shape: values.shape(), dtype: values.dtype, data: Cow::Owned(values.data) })
        }
        Some(_) => Err(ArrayRefusal::Kind { found: "an image whose format does not keep values: use PNG or TIFF" }),
        None => npy::parse(file),
    }
}
