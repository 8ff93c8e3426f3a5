//! Plan files: `.pack-<split>.json` while a pack is unfinished, `.packed-<split>.json` after the manifest names the
//! split. A pack with the same plan continues or is complete; any other is refused with the first difference.

use crate::array::ArrayColumn;
use crate::error::PlanDifference;
use crate::sample::SampleSchema;
use crate::split::manifest_store;
use crate::{JpegLayout, Options, PixelStore, Plan, Resize};
use serde_json::{Map, Value, json};
use shardtool_decode::{Limits, Truncated};
use shardtool_format::checksum::{Sha256, crc32c};
use shardtool_format::manifest::{Shard, Split};

/// A checksum of names, sizes and times of the inputs, and of the values that are listed with them.
const LISTING: &str = "listing_crc32c";
const ALLOW_EMPTY: &str = "allow_empty";
/// What the keypoints of objects are.
pub(crate) const KEYPOINTS: &str = "keypoints";

/// The stage of an unfinished pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// `--force` is removing the old files.
    Clearing,
    Packing,
}

/// The contents of a plan file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PlanFile(Map<String, Value>);

impl PlanFile {
    /// Returns the plan file of a pack: exactly the inputs that determine the written bytes.
    pub(crate) fn new(options: &Options, plan: &Plan, stage: Stage) -> Self {
        let schema = plan.schema();
        let stage = if stage == Stage::Clearing { "clearing" } else { "packing" };
        let map: Map<_, _> = options.map.iter().map(|(ours, theirs)| (ours.clone(), json!(theirs))).collect();
        let columns: Vec<_> =
            schema.columns.iter().map(|(name, dtype)| Value::from(format!("{name}:{}", dtype.name()))).collect();
        Self::common("shardtool-pack", stage, options, schema).with([
            ("seed", json!(options.seed)),
            ("map", Value::Object(map)),
            ("label_offset", json!(options.label_offset)),
            ("columns", Value::Array(columns)),
            ("files", json!(options.files)),
            ("boxes", json!(options.boxes.name())),
            ("images", json!(plan.images())),
            ("image_bytes", json!(plan.source_bytes())),
            (LISTING, json!(format!("{:08x}", plan.source_crc()))),
        ])
    }

    /// Returns the plan file of a writer's `part` of a split: its number and how many there are.
    pub(crate) fn of_writer(options: &Options, schema: &SampleSchema, part: (u32, u32)) -> Self {
        let features: Map<_, _> =
            schema.columns.iter().map(|(name, dtype)| (name.clone(), json!(dtype.name()))).collect();
        Self::common("shardtool-writer", "writing", options, schema).with([
            ("part", json!(part.0)),
            ("parts", json!(part.1)),
            ("features", Value::Object(features)),
            ("with_images", json!(schema.images)),
            ("labels", json!(schema.labelled)),
            ("class_names", json!(schema.classes)),
        ])
    }

    /// Returns the members that plan files of packs and of writers share.
    fn common(format: &str, stage: &str, options: &Options, schema: &SampleSchema) -> Self {
        let classes_crc = crc32c(schema.classes.join("\n").as_bytes());
        // Omitted if they are not set, so that plan files of earlier versions still match.
        let float_range =
            options.float_range.map(|range| ("float_range".to_owned(), json!([range.low(), range.high()])));
        let sha256 = options.sha256.then(|| ("sha256".to_owned(), json!(true)));
        let unit = options.box_unit.map(|unit| ("box_unit".to_owned(), json!(unit.name())));
        let annotated = options.annotated.map(|which| ("annotated".to_owned(), json!(which.name())));
        let truncated =
            (options.truncated != Truncated::Error).then(|| ("truncated".to_owned(), json!(options.truncated.name())));
        let strip = options.strip_metadata.then(|| ("strip_metadata".to_owned(), json!(true)));
        let in_place =
            options.virtual_source.as_ref().map(|source| ("virtual_shards".to_owned(), json!(source.allowed())));
        let allow_empty = options.allow_empty.then(|| (ALLOW_EMPTY.to_owned(), json!(true)));
        let keypoints = schema.keypoints.known.as_ref().map(|keypoints| (KEYPOINTS.to_owned(), json!(keypoints)));
        let arrays: Vec<_> = options.arrays.iter().map(ArrayColumn::describe).collect();
        let arrays = (!arrays.is_empty()).then(|| ("arrays".to_owned(), json!(arrays)));
        PlanFile(
            float_range
                .into_iter()
                .chain(sha256)
                .chain(strip)
                .chain(in_place)
                .chain(allow_empty)
                .chain(truncated)
                .chain(arrays)
                .chain(unit)
                .chain(annotated)
                .chain(keypoints)
                .collect(),
        )
        .with([
            ("format", json!(format)),
            ("version", json!(1)),
            ("stage", json!(stage)),
            ("created_by", json!(manifest_store::CREATED_BY)),
            ("split", json!(options.split())),
            ("shards", json!(options.shards.describe())),
            ("pixels", json!(pixels(options.pixels))),
            ("jpeg", json!(jpeg(options.jpeg))),
            ("resize", json!(options.resize.map(resize))),
            ("quality", json!(options.quality)),
            ("limits", json!(limits(&options.limits))),
            ("entry_points", json!(options.entry_points)),
            ("classes", json!(schema.classes.len())),
            ("classes_crc32c", json!(format!("{classes_crc:08x}"))),
        ])
    }

    fn with<const N: usize>(mut self, members: [(&str, Value); N]) -> Self {
        self.0.extend(members.map(|(name, value)| (name.to_owned(), value)));
        self
    }

    /// Returns a member; `None` if it is absent or of another type.
    pub(crate) fn member<T: serde::de::DeserializeOwned>(&self, name: &str) -> Option<T> {
        serde_json::from_value(self.0.get(name)?.clone()).ok()
    }

    /// Returns the plan file of a writer's finished part, with its shards.
    pub(crate) fn finished(mut self, shards: &[Shard]) -> Self {
        let line = |s: &Shard| {
            let sha256 = s.sha256.map(|digest| digest.to_string());
            json!([s.records, s.bytes, s.crc32c, s.index_bytes, s.index_crc32c, sha256])
        };
        self.0.insert("stage".to_owned(), json!("finished"));
        self.0.insert("shard_lines".to_owned(), shards.iter().map(line).collect());
        self
    }

    /// Returns whether a split without records is published.
    pub(crate) fn allows_empty(&self) -> bool {
        self.member(ALLOW_EMPTY).unwrap_or(false)
    }

    /// Returns whether the manifest gets the SHA-256 of each shard.
    pub(crate) fn sha256(&self) -> bool {
        self.member("sha256").unwrap_or(false)
    }

    /// Returns the shards of a writer's part, without names; `None` if the part is not finished.
    pub(crate) fn shard_lines(&self) -> Option<Vec<Shard>> {
        type Line = (u64, u64, u32, u64, u32, Option<String>);
        let lines: Vec<Line> = self.member("shard_lines")?;
        let line = |(records, bytes, crc32c, index_bytes, index_crc32c, sha256): Line| Shard {
            file: String::new(),
            records,
            bytes,
            crc32c,
            index_bytes,
            index_crc32c,
            sha256: sha256.as_deref().and_then(Sha256::parse),
            companions: Default::default(),
            foreign: Default::default(),
        };
        Some(lines.into_iter().map(line).collect())
    }

    /// Parses a plan file. An invalid one matches no plan.
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        PlanFile(serde_json::from_slice(bytes).unwrap_or_default())
    }

    pub(crate) fn stage(&self) -> Stage {
        if self.0.get("stage") == Some(&json!("clearing")) { Stage::Clearing } else { Stage::Packing }
    }

    /// Returns the plan file of the complete split, with the split's fingerprint.
    pub(crate) fn completed(&self, split: &Split) -> Self {
        let mut members = self.0.clone();
        members.remove("shard_lines");
        members.insert("stage".to_owned(), json!("complete"));
        members.insert("fingerprint".to_owned(), json!(fingerprint(split)));
        PlanFile(members)
    }

    /// Returns whether `split` is still the result of this plan.
    pub(crate) fn produced(&self, split: &Split) -> bool {
        self.0.get("fingerprint") == Some(&json!(fingerprint(split)))
    }

    pub(crate) fn to_json(&self) -> Vec<u8> {
        let mut json = serde_json::to_vec_pretty(&self.0).expect("a map of JSON values");
        json.push(b'\n');
        json
    }

    /// Returns whether the plan file `now` differs from this one only in its listing: in names, times or values of inputs whose
    /// number and sizes are the same.
    pub(crate) fn differs_in_listing(&self, now: &PlanFile) -> bool {
        let listing = self.0.get(LISTING).filter(|listing| now.0.get(LISTING) != Some(listing));
        listing.is_some() && self.with_listing_of(now).difference(now).is_none()
    }

    /// Returns this plan file with the listing of another one, which has the same contents.
    pub(crate) fn with_listing_of(&self, now: &PlanFile) -> Self {
        let mut members = self.0.clone();
        if let Some(listing) = now.0.get(LISTING) {
            members.insert(LISTING.to_owned(), listing.clone());
        }
        PlanFile(members)
    }

    /// Returns the plan file without the number, the bytes and the listing of the inputs: what determines how each of them is packed.
    pub(crate) fn without_inputs(&self) -> Self {
        let mut members = self.0.clone();
        ["images", "image_bytes", LISTING].iter().for_each(|name| drop(members.remove(*name)));
        PlanFile(members)
    }

    /// Returns the first member in which the plan file `now` differs from this one. Options precede listings, since
    /// other options may cause another listing.
    pub(crate) fn difference(&self, now: &PlanFile) -> Option<Box<PlanDifference>> {
        let options_first =
            |name: &&String| (name.as_str() != "format", name.as_str() == LISTING, name.starts_with("image"));
        // The program's version matters only while shards are being written.
        let complete = self.0.contains_key("fingerprint");
        let ignored = |name: &str| {
            matches!(name, ALLOW_EMPTY | "stage" | "part" | "class_names" | "shard_lines" | "fingerprint")
                || (complete && matches!(name, "created_by" | "parts"))
        };
        let mut members: Vec<_> = now.0.keys().chain(self.0.keys()).filter(|name| !ignored(name)).collect();
        members.sort_by_key(options_first);
        let name = members.into_iter().find(|name| self.0.get(*name) != now.0.get(*name))?;
        let show = |plan: &PlanFile| plan.0.get(name).map_or("nothing".to_owned(), Value::to_string);
        let member = match name.as_str() {
            LISTING => "listing (names, sizes or contents)",
            "classes_crc32c" => "list of class names (CRC32C)",
            name => name,
        };
        Some(Box::new(PlanDifference { member: member.to_owned(), before: show(self), now: show(now) }))
    }
}

impl PlanFile {
    /// Returns the difference if the plan file says that old files are being removed, and `now` does not.
    pub(crate) fn other_stage(&self, now: &PlanFile) -> Option<Box<PlanDifference>> {
        let show = |plan: &PlanFile| plan.0.get("stage").map_or("nothing".to_owned(), Value::to_string);
        let (before, now) = (show(self), show(now));
        (before != now).then(|| Box::new(PlanDifference { member: "stage".to_owned(), before, now }))
    }
}

fn fingerprint(split: &Split) -> String {
    format!("{:08x}", split.fingerprint())
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
