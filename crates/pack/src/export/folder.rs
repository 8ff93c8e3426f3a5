//! Folders of classes: an image file per record.

use super::file_names::part;
use super::run::{Run, ShardExport};
use crate::Error;
use crate::progress::Progress;
use crate::refusal::Refusal;
use std::io::Write;
use std::path::Path;

/// Writes a shard's images at the paths that their keys give, below a folder of their class unless the key begins with
/// it.
///
/// # Errors
/// [`Error::Read`], [`Error::Io`].
pub(super) fn write(run: &Run<'_>, shard: usize, progress: &dyn Progress) -> Result<ShardExport, Error> {
    let (mut files, mut bytes) = (0, 0);
    let done = run.each(shard, progress, |sample| {
        let class = sample.class.as_deref().map(part).or(sample.label.map(|label| label.to_string()));
        let name = run.file_names.name(sample);
        let place = match class {
            Some(class) if name.split_once('/').is_none_or(|(first, _)| first != class) => format!("{class}/{name}"),
            _ => name,
        };
        let name = format!("{place}.{}", sample.extension);
        let path = run.folder.path().join(&name);
        let mut file = run.folder.create(Path::new(&name)).map_err(|e| Refusal::of_creation(&path, e))?;
        let written = file.write_all(&sample.image).and_then(|()| file.finish());
        bytes += written.map_err(|e| Refusal::All(Error::io("write", &path)(e)))?;
        files += 1;
        Ok(())
    })?;
    Ok(ShardExport { files, bytes, ..done })
}
