//! Options that say which records a change takes.

use crate::headings;
use anyhow::Context;
use shardtool_pack::ChosenRecords;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Conditions, keys or ids.
#[derive(clap::Args)]
#[group(skip)]
pub(crate) struct RecordArguments {
    /// Records for which this holds
    ///
    /// CONDITION is FEATURE, one of = != < <= > >= ~, and a value, such as source=flickr. May be repeated: all must hold.
    #[arg(long = "where", value_name = "CONDITION", help_heading = headings::RECORDS)]
    conditions: Vec<String>,
    /// Records with the keys in a file, one a line (- is standard input)
    #[arg(long, value_name = "FILE", help_heading = headings::RECORDS)]
    keys: Option<PathBuf>,
    /// Records with the ids in a file, one a line (- is standard input)
    ///
    /// Ids are numbers in a split, as `ls` prints them: name the split.
    #[arg(long, value_name = "FILE", help_heading = headings::RECORDS)]
    ids: Option<PathBuf>,
}

impl RecordArguments {
    pub(crate) fn chosen(&self) -> anyhow::Result<ChosenRecords> {
        Ok(match (&self.keys, &self.ids) {
            (Some(file), _) => ChosenRecords::Keys(lines(file)?),
            (None, Some(file)) => {
                let id = |(line, text): (usize, Vec<u8>)| {
                    let text = String::from_utf8_lossy(&text).into_owned();
                    text.trim()
                        .parse()
                        .with_context(|| format!("{}, line {line}: expected an id, found `{text}`", file.display()))
                };
                ChosenRecords::Ids((1..).zip(lines(file)?).map(id).collect::<anyhow::Result<_>>()?)
            }
            (None, None) => ChosenRecords::Where(self.conditions.clone()),
        })
    }
}

/// Returns the lines of a file, without their ends, without empty ones, and without the mark that some editors put before them.
fn lines(file: &Path) -> anyhow::Result<Vec<Vec<u8>>> {
    let mut bytes = vec![];
    if file == Path::new("-") {
        std::io::stdin().read_to_end(&mut bytes).context("cannot read standard input")?;
    } else {
        bytes = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    }
    let text = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&bytes);
    let lines = text.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line).to_vec());
    Ok(lines.filter(|line| !line.is_empty()).collect())
}
