//! The times of a source's files, when they were indexed: a hint for the next `index`, which readers ignore.

use crate::Options;
use crate::source::archive::Archives;
use crate::split::plan_file::PlanFile;
use shardtool_format::checksum::crc32c;
use shardtool_format::manifest::{Shard, Split};
use shardtool_host::system_memory::SystemLimits;
use shardtool_store::is_url;
use std::collections::HashMap;
use std::fmt::Write;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The longest file of times that is read.
const LONGEST: u64 = 1 << 30;
/// A file that was written so short before it was listed may be written again in the same tick of the clock.
const TICK: Duration = Duration::from_secs(2);

/// What [`Found::version`](crate::input::Found::version) was, by the name of the file.
#[derive(Debug)]
pub(crate) struct SourceTimes(HashMap<Box<str>, i64>);

/// Returns the name of the file of times of a split.
pub(crate) fn file_name(split: &str) -> String {
    format!(".packed-{split}.times")
}

/// Returns a CRC32C over what determines the record of an image, besides the image and its row.
pub(crate) fn of_images(options: &Options) -> u32 {
    let (limits, truncated, entries) = (options.limits, options.truncated, options.entry_points);
    crc32c(format!("{} {limits:?} {truncated:?} {entries}", env!("CARGO_PKG_VERSION")).as_bytes())
}

/// Returns a CRC32C over what determines the shards of an archive, besides the archive.
pub(crate) fn of_archives(archives: &Archives, options: &Options, plan: &PlanFile) -> u32 {
    let (samples, plan) = (archives.conventions_crc().to_le_bytes(), plan.without_inputs().to_json());
    crc32c(&[&samples[..], &[u8::from(options.images_optional)], &plan].concat())
}

/// Returns the name under which an archive's time is kept: with the CRC32C of what every survey reads of it, so that only its images are
/// taken over unread.
pub(crate) fn archive_name(name: &str, survey: u32) -> String {
    format!("{survey:08x} {name}")
}

/// Returns the file of times, given the name and the version of each file. `shards` are the lines of the indexes that describe them,
/// `conventions` is what else determined the indexes, and `began` is before the listing.
pub(crate) fn text<'a>(
    files: impl Iterator<Item = (&'a str, i64)>,
    shards: &[Shard],
    conventions: u32,
    began: SystemTime,
) -> String {
    let now = began.duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(TICK).as_nanos();
    let mut text = head(shards, conventions);
    for (name, version) in files.filter(|(name, _)| !name.contains(['\n', '\r'])) {
        if i128::from(version) < now as i128 {
            let _ = writeln!(text, "{version} {name}");
        }
    }
    text
}

/// Returns the first line: of which indexes, and by which conventions, the times are.
fn head(shards: &[Shard], conventions: u32) -> String {
    let indexes: Vec<_> = shards.iter().flat_map(|shard| shard.index_crc32c.to_le_bytes()).collect();
    format!("shardtool times 1 {:08x} {conventions:08x}\n", crc32c(&indexes))
}

impl SourceTimes {
    /// Reads the times of a split; `None` if there are none, or they are of other indexes or conventions.
    pub(crate) fn read(dataset: &Path, split: &Split, conventions: u32) -> Option<Self> {
        let path = dataset.join(file_name(&split.name));
        let bytes = match is_url(&path) {
            true => shardtool_store::read_whole(&path, LONGEST).ok()??,
            false => {
                let mut bytes = vec![];
                let file = shardtool_read::open_regular(&path).ok()?;
                let length = file.metadata().ok()?.len();
                // As text, and as a table.
                if SystemLimits::find(Path::new("/")).exceeded_by(length.saturating_mul(3)).is_some() {
                    return None;
                }
                file.take(LONGEST + 1).read_to_end(&mut bytes).ok()?;
                bytes
            }
        };
        if bytes.len() as u64 > LONGEST {
            return None;
        }
        let text = String::from_utf8(bytes).ok()?;
        let lines = text.strip_prefix(&*head(&split.shards, conventions))?.lines();
        let line = |line: &str| line.split_once(' ').and_then(|(time, name)| Some((name.into(), time.parse().ok()?)));
        lines.map(line).collect::<Option<_>>().map(SourceTimes)
    }

    /// Returns whether a file had this version. A version of 0 says nothing.
    pub(crate) fn has(&self, name: &str, version: i64) -> bool {
        version != 0 && self.0.get(name) == Some(&version)
    }
}
