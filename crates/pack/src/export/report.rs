//! The result of an export, as its record keeps it.

use super::Exported;
use crate::{Reason, Rejection};
use serde::{Deserialize, Serialize};
use shardtool_format::Chain;

/// An [`Exported`] with texts in place of errors.
#[derive(Serialize, Deserialize)]
pub(super) struct Report {
    records: u64,
    files: u64,
    bytes: u64,
    #[serde(default)]
    left_out: u64,
    /// Records and reasons.
    refused: Vec<(String, String)>,
    damaged: Vec<(String, String)>,
}

impl From<&Exported> for Report {
    fn from(exported: &Exported) -> Self {
        let texts = |list: &[Rejection]| {
            list.iter().map(|r| (r.input.clone(), Chain(&r.reason).to_string())).collect::<Vec<_>>()
        };
        Report {
            records: exported.records,
            files: exported.files,
            bytes: exported.bytes,
            left_out: exported.left_out,
            refused: texts(&exported.refused),
            damaged: texts(&exported.damaged),
        }
    }
}

impl From<Report> for Exported {
    fn from(report: Report) -> Self {
        let Report { records, files, bytes, left_out, refused, damaged } = report;
        let rejections = |list: Vec<(String, String)>| {
            list.into_iter().map(|(input, text)| Rejection { input, reason: Reason::Earlier { text } }).collect()
        };
        let (refused, damaged) = (rejections(refused), rejections(damaged));
        Exported { records, files, bytes, left_out, refused, damaged, already_complete: true }
    }
}
