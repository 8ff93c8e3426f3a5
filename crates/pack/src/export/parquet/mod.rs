//! Parquet in Hugging Face's image layout: `image: struct { bytes, path }`, `label` with its class names in the
//! metadata `huggingface`, and the other fields as columns.

mod rows;
mod schema;

use super::run::{Run, ShardExport};
use crate::Error;
use crate::error::DestinationError;
use crate::progress::Progress;
use crate::refusal::Refusal;
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedFileWriter;
use rows::Rows;
pub(super) use schema::Schema;
use std::path::Path;

/// Rows per row group, as Hugging Face writes image datasets.
const ROWS: usize = 100;

/// Writes a shard's file, `SPLIT-NNNNN-of-NNNNN.parquet`.
///
/// # Errors
/// [`Error::Read`], [`DestinationError::Parquet`], [`Error::Io`].
pub(super) fn write(
    run: &Run<'_>,
    schema: &Schema,
    shard: usize,
    progress: &dyn Progress,
) -> Result<ShardExport, Error> {
    let shards = run.split.entry().shards.len();
    let name = format!("{}-{shard:05}-of-{shards:05}.parquet", run.split.name());
    let (file, path) = run.create(Path::new(&name))?;
    let wrong =
        |e: ParquetError| Error::Destination(DestinationError::Parquet { path: path.clone(), source: e.into() });
    let mut writer =
        SerializedFileWriter::new(file, schema.message.clone(), schema.properties.clone()).map_err(wrong)?;
    let mut rows = Rows::new(schema);
    let done = run.each(shard, progress, |sample| {
        rows.push(schema, sample);
        if rows.count == ROWS { rows.flush(&mut writer).map_err(|e| Refusal::All(wrong(e))) } else { Ok(()) }
    })?;
    rows.flush(&mut writer).map_err(wrong)?;
    let file = writer.into_inner().map_err(wrong)?;
    let bytes = file.finish().map_err(Error::io("write", &path))?;
    Ok(ShardExport { files: 1, bytes, ..done })
}
