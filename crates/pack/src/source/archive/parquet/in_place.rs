//! Whether the images of a Parquet file can be read where they lie.

use super::pages::CheckedGroup;
use super::places::Places;
use super::{ArchiveFile, MEMBERS, Roles, guarded, image, open};
use crate::Error;
use parquet::basic::{Compression, Encoding};
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use std::sync::Arc;

/// Share of the images' bytes that must lie in the file as they are, in percent: the rest would be in the index.
const IN_PLACE: u128 = 80;
/// Row groups of a file of which a page is looked at, at most.
const SAMPLED: usize = 4;
/// What is read in place.
const READABLE: &str = "images of Parquet are read in place if four fifths of their bytes lie in the file as they are";

/// Returns why the images of a file cannot be read where they lie; `None` if they can.
///
/// # Errors
/// [`Error::Io`].
pub(in crate::source::archive) fn why_not_in_place(file: &ArchiveFile, roles: &Roles) -> Result<Option<String>, Error> {
    let places = Places::new(true);
    let opened = open(file, &places)?;
    // What is damaged was surveyed, and is rejected.
    let Ok(reader) = guarded(|| SerializedFileReader::new(opened)) else { return Ok(None) };
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let Some(image) = image(&schema, roles) else { return Ok(None) };
    let of_image = |chunk: &ColumnChunkMetaData| {
        let path = chunk.column_descr().path().parts();
        path.first() == Some(&image) && path.get(1).is_none_or(|member| member == MEMBERS[0])
    };
    let groups = reader.metadata().row_groups();
    let mut chunks = groups.iter().flat_map(|group| group.columns()).filter(|chunk| of_image(chunk));
    let prefixes = |chunk: &ColumnChunkMetaData| chunk.encodings().any(|it| it == Encoding::DELTA_BYTE_ARRAY);
    if chunks.any(prefixes) {
        return Ok(Some(format!("the images of column {image:?} have the encoding DELTA_BYTE_ARRAY ({READABLE})")));
    }
    // A codec that leaves bytes as they are does not make them fewer.
    let chunks = groups.iter().flat_map(|group| group.columns()).filter(|chunk| of_image(chunk));
    let sizes =
        chunks.map(|chunk| [chunk.compressed_size(), chunk.uncompressed_size()].map(|size| size.max(0) as u128));
    let [stored, whole] = sizes.fold([0, 0], |[a, b], [c, d]| [a + c, b + d]);
    let (mut as_is, mut all, mut codec) = (0u128, 0u128, None);
    for (number, group) in groups.iter().enumerate().step_by(groups.len().div_ceil(SAMPLED).max(1)) {
        for (column, chunk) in group.columns().iter().enumerate().filter(|(_, chunk)| of_image(chunk)) {
            if chunk.compression() == Compression::UNCOMPRESSED {
                continue;
            }
            let page = || first_page(&reader, number, column, &places);
            if let Ok(Some((stored, length))) = guarded(page) {
                as_is += u128::from(stored);
                all += u128::from(length);
                codec = Some(chunk.compression());
            }
        }
    }
    let shares = [(stored, whole), (as_is, all)];
    let few = shares.into_iter().find(|(part, whole)| part * 100 < whole * IN_PLACE);
    let Some((codec, (part, whole))) = codec.zip(few) else { return Ok(None) };
    let codec = codec.to_string();
    let (name, share) = (codec.split('(').next().unwrap_or(&codec), part * 100 / whole.max(1));
    Ok(Some(format!(
        "the images of column {image:?} are compressed by {name}, which leaves at most {share} % of their bytes as they are ({READABLE})"
    )))
}

/// Returns how many bytes of the first page of a column lie in the file as they are, and how many it has; `None` without a page.
fn first_page(
    reader: &dyn FileReader,
    group: usize,
    column: usize,
    places: &Arc<Places>,
) -> ParquetResult<Option<(u64, u64)>> {
    let group = reader.get_row_group(group)?;
    let mut pages = CheckedGroup { group: &*group, places }.get_column_page_reader(column)?;
    Ok(pages.get_next_page()?.and_then(|_| places.share()))
}
