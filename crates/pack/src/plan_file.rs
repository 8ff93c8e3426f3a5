//! `.pack-<split>.json`: what an interrupted pack was doing, so that the same one goes on and another is refused by the
//! name of what differs.

use crate::{Error, JpegLayout, Options, PixelStore, Plan, Resize, Shards};
use serde_json::{Map, Value, json};
use shardtool_decode::Limits;
use std::path::Path;

/// Whether the plan is under way, or its split's old files are still to be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// `--force` is removing the files of what was there before.
    Clearing,
    Packing,
}

/// The contents of a plan file.
#[derive(Debug, PartialEq)]
pub(crate) struct PlanFile(Map<String, Value>);

impl PlanFile {
    /// What this plan's file says: everything that decides which bytes are written, and nothing else.
    pub(crate) fn new(options: &Options, plan: &Plan, stage: Stage) -> Self {
        let described = plan.described();
        let stage = if stage == Stage::Clearing { "clearing" } else { "packing" };
        let columns: Vec<_> =
            described.columns.iter().map(|(name, kind)| Value::from(format!("{name}:{}", kind.name()))).collect();
        let members = [
            ("format", json!("shardtool-pack")),
            ("version", json!(1)),
            ("stage", json!(stage)),
            ("created_by", json!(crate::catalogue::CREATED_BY)),
            ("split", json!(options.split)),
            ("shards", json!(shards(options.shards))),
            ("seed", json!(options.seed)),
            ("columns", Value::Array(columns)),
            ("pixels", json!(pixels(options.pixels))),
            ("jpeg", json!(jpeg(options.jpeg))),
            ("resize", json!(options.resize.map(resize))),
            ("quality", json!(options.quality)),
            ("limits", json!(limits(&options.limits))),
            ("entry_points", json!(options.entry_points.is_some())),
            ("classes", json!(described.classes.len())),
            ("images", json!(plan.images())),
            ("image_bytes", json!(plan.source_bytes())),
            ("listing_crc32c", json!(format!("{:08x}", plan.source_crc()))),
        ];
        PlanFile(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    /// Reads a plan file. One that is not as this program writes it is one whose every member differs.
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        PlanFile(serde_json::from_slice(bytes).unwrap_or_default())
    }

    pub(crate) fn stage(&self) -> Stage {
        if self.0.get("stage") == Some(&json!("clearing")) { Stage::Clearing } else { Stage::Packing }
    }

    pub(crate) fn to_json(&self) -> Vec<u8> {
        let mut json = serde_json::to_vec_pretty(&self.0).expect("a map of JSON values");
        json.push(b'\n');
        json
    }

    /// Checks that the plan file at `path`, read as `self`, says what `now` says.
    ///
    /// # Errors
    /// [`Error::OtherPlan`].
    pub(crate) fn check(&self, now: &PlanFile, path: &Path) -> Result<(), Error> {
        // The options first: where they differ, the listing may differ because of them.
        let options_first = |name: &&String| (name.as_str() == "listing_crc32c", name.starts_with("image"));
        let mut members: Vec<_> = now.0.keys().chain(self.0.keys()).filter(|name| *name != "stage").collect();
        members.sort_by_key(options_first);
        match members.into_iter().find(|name| self.0.get(*name) != now.0.get(*name)) {
            Some(name) => {
                let show = |plan: &PlanFile| plan.0.get(name).map_or("nothing".to_owned(), Value::to_string);
                let (plan, member) =
                    (path.to_owned(), name.replace("listing_crc32c", "listing (names, sizes or times)"));
                Err(Error::OtherPlan { plan, member, before: show(self), now: show(now) })
            }
            None => Ok(()),
        }
    }
}

fn shards(shards: Shards) -> String {
    match shards {
        Shards::Size(bytes) => format!("of {bytes} bytes"),
        Shards::Count(count) => count.to_string(),
    }
}

fn limits(limits: &Limits) -> String {
    format!("{} pixels, {} along a side, {} bytes", limits.max_pixels, limits.max_side, limits.max_bytes)
}

fn pixels(pixels: PixelStore) -> String {
    match pixels {
        PixelStore::Encoded => "encoded".to_owned(),
        PixelStore::Raw => "raw".to_owned(),
        PixelStore::RawZstd { level } => format!("raw-zstd:{level}"),
    }
}

fn jpeg(layout: JpegLayout) -> &'static str {
    match layout {
        JpegLayout::Keep => "keep",
        JpegLayout::Optimize => "optimize",
    }
}

fn resize(resize: Resize) -> String {
    match resize {
        Resize::Shorter(pixels) => format!("shorter side {pixels}"),
        Resize::MaxSide(pixels) => format!("longer side {pixels}"),
    }
}
