//! Errors of files that are no sources, and say what to do.

use super::annotated::wrong;
use super::archive::files::start_of;
use crate::Error;
use crate::error::SourceError;
use std::path::Path;

/// The signature of HDF5, and where it may lie: at the beginning, or after the header of MATLAB.
const HDF5: &[u8] = b"\x89HDF\r\n\x1a\n";
const HDF5_AT: [usize; 2] = [0, 512];

/// Returns the error of a file whose format is unknown.
pub(super) fn unknown_file(path: &Path) -> Error {
    let start = start_of(path, (HDF5_AT[1] + HDF5.len()) as u64).unwrap_or_default();
    if HDF5_AT.iter().any(|at| start.get(*at..).is_some_and(|rest| rest.starts_with(HDF5))) {
        return wrong(
            path,
            "an HDF5 file (MATLAB 7.3 writes these), which is not read: write its images and depths into files with h5py. \
             docs/pack.md (Depths of KITTI and NYU) has the lines for nyu_depth_v2_labeled.mat",
        );
    }
    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("txt")) {
        return wrong(
            path,
            "a text file is not a list: if it names the images of a split, copy it into their folder and pack that, with \
             --splits lists; or write a CSV file with a header, such as path,depth, and pack it with --column depth:file",
        );
    }
    Error::Source(SourceError::UnknownFormat { path: path.to_owned() })
}
