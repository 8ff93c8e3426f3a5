//! Folders of classes: an image file per record.

use super::file_names::part;
use super::run::{Refusal, Run, ShardExport};
use crate::progress::Progress;
use crate::{Error, Reason};
use std::fs::File;
use std::io::Write;

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
        let path = run.folder.join(format!("{place}.{}", sample.extension));
        let refused = |e| Refusal::Record(Reason::CreateFile(e));
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(refused)?;
        }
        let mut file = File::create_new(&path).map_err(refused)?;
        // A full disk concerns all records.
        file.write_all(&sample.image).map_err(|e| Refusal::All(Error::io("write", &path)(e)))?;
        files += 1;
        bytes += sample.image.len() as u64;
        Ok(())
    })?;
    Ok(ShardExport { files, bytes, ..done })
}
