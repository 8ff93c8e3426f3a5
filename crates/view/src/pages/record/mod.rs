//! One record: its image with boxes and masks, its features, where it lies, and what a trainer sees.

mod bytes;
mod coordinates;
mod covered;
mod keypoints;
mod overlay;

use super::{Place, frame};
use crate::app::{App, SplitView};
use crate::measured;
use crate::picture::{self, MAX_DRAWN, Stored};
use crate::query::{Query, segment};
use crate::text;
use crate::trial;
use maud::{Markup, html};
use overlay::Overlay;
use shardtool_decode::{Pipeline, sniff};
use shardtool_format::example::{Example, Feature};
use shardtool_format::index;
use shardtool_format::manifest::DType;
use shardtool_load::{Image, SampleDraws};
use shardtool_read::Record;
use std::sync::Arc;

/// Features of a record that are shown.
const SHOWN_FEATURES: usize = 1000;
/// Values of a feature that are shown, and characters of a text.
const SHOWN_VALUES: usize = 64;
const SHOWN_TEXT: usize = 2000;
/// Epochs that are drawn side by side.
const DRAWN: u64 = 4;

/// What a trainer does to an image.
#[derive(Debug, Clone)]
pub(crate) struct DrawOptions {
    pub(crate) seed: u64,
    pub(crate) epoch: u64,
    /// Side of the result in pixels.
    pub(crate) size: u32,
    /// Whether the evaluation transform is applied.
    pub(crate) eval: bool,
    /// Steps as JSON, in place of a recipe.
    pub(crate) steps: Option<String>,
}

impl Default for DrawOptions {
    fn default() -> Self {
        DrawOptions { seed: 0, epoch: 0, size: 224, eval: false, steps: None }
    }
}

impl DrawOptions {
    /// Parses the steps, or makes those of a recipe.
    ///
    /// # Errors
    /// A message for the user.
    pub(crate) fn pipeline(&self) -> Result<Pipeline, String> {
        let pipeline = match &self.steps {
            Some(steps) => serde_json::from_str::<Pipeline>(steps).map_err(|error| format!("steps: {error}"))?,
            None => trial::recipe(self.eval, self.size)?,
        };
        let (width, height) = pipeline.output_size();
        if width.max(height) > MAX_DRAWN {
            return Err(format!("steps: at most {MAX_DRAWN} × {MAX_DRAWN} pixels are drawn, found {width} × {height}"));
        }
        match pipeline.takes_boxes() {
            Some(step) => Err(format!("steps: `{step}` takes boxes, which are not given to it here")),
            None => Ok(pipeline),
        }
    }

    /// Returns the draws of a record in an epoch.
    pub(crate) fn of(&self, id: u64, epoch: u64) -> SampleDraws {
        SampleDraws { seed: self.seed, epoch, source_position: id }
    }

    /// Returns the pairs of the URL that differ from the default.
    fn pairs(&self, epoch: u64) -> Vec<(&'static str, String)> {
        let mut pairs = vec![("seed", self.seed.to_string()), ("epoch", epoch.to_string())];
        pairs.push(("size", self.size.to_string()));
        if self.eval {
            pairs.push(("work", "eval".to_owned()));
        }
        pairs.extend(self.steps.clone().map(|steps| ("steps", steps)));
        pairs
    }
}

/// Renders a record. `at` is its position in the selection of `query`.
pub(crate) fn page(
    app: &App,
    view: &Arc<SplitView>,
    id: u64,
    query: &Query,
    at: Option<u64>,
    draws: &DrawOptions,
) -> Markup {
    let name = view.split.name();
    let record = view.split.get(id);
    let key = key_of(view, id);
    let body = match &record {
        Ok(record) => whole(view, id, record, draws),
        Err(error) => html! {
            section.card.damage {
                h2 { "This record cannot be read" }
                p role="alert" { (text::printable_text(&error.to_string())) }
                p { "It costs this one sample: other records of the shard stay readable. The "
                    a href="/-/health" { "health page" } " finds all damage and names the command that repairs it." }
            }
            (bytes::dump(view, id, None))
        },
    };
    let unreadable = record.as_ref().ok().and_then(|record| record.check_readable().err());
    let content = html! {
        div.wide.record {
            (navigation(view, query, at, id))
            h1.key { (text::fit(&key, 160)) }
            @if let Some(error) = unreadable { p.note.bad role="alert" { (text::printable_text(&error.to_string())) } }
            (body)
        }
    };
    frame(app, &text::fit(&key, 80), Place::Split(name, "record"), &content)
}

fn key_of(view: &SplitView, id: u64) -> String {
    let key = || {
        let (number, row) = view.split.locate(id)?;
        let shard = view.split.shard(number)?;
        shard.key(row).map(|key| text::printable(&key))
    };
    key().ok().filter(|key| !key.is_empty()).unwrap_or_else(|| format!("record {id}"))
}

/// Links to the gallery and to the neighbours in the selection.
fn navigation(view: &Arc<SplitView>, query: &Query, at: Option<u64>, id: u64) -> Markup {
    let base = format!("/{}", segment(view.split.name()));
    let selection = view.selections.select(&view.split, view.columns(), query).ok();
    let at = at.or_else(|| query.is_all().then_some(id));
    let link = |position: Option<u64>| {
        let position = position?;
        let id = *selection.as_ref()?.part(position, 1).ids.first()?;
        Some(query.url(&format!("{base}/record/{id}"), &[("at", position.to_string())]))
    };
    let previous = link(at.and_then(|at| at.checked_sub(1)));
    let next = link(at.and_then(|at| at.checked_add(1)));
    let start = at.map(|at| ("start", (at - at % super::gallery::PAGE as u64).to_string()));
    html! {
        nav.neighbours aria-label="Neighbouring records" {
            a href=(query.url(&base, start.as_slice())) { "← Gallery" }
            span.spacer {}
            @if let Some(url) = previous { a rel="prev" data-key="ArrowLeft" href=(url) { "Previous" } }
            span.count { "record " (text::count(id)) }
            @if let Some(url) = next { a rel="next" data-key="ArrowRight" href=(url) { "Next" } }
        }
    }
}

fn whole(view: &Arc<SplitView>, id: u64, record: &Record, draws: &DrawOptions) -> Markup {
    let stored = Stored::of(record);
    let example = record.example();
    html! {
        div.two {
            div.stage-column {
                @match &stored {
                    Ok(stored) => (stage(view, id, record, stored, example.as_ref().ok())),
                    Err(error) => section.card { p.quiet { "No picture: " (text::printable_text(&error.to_string())) } },
                }
                @if let (Ok(stored), Ok(example)) = (&stored, &example) { (measured(view, id, stored, example)) }
                @if let Ok(stored) = &stored { (trainer(view, id, stored, example.as_ref().ok(), draws)) }
            }
            div.facts {
                @match &example {
                    Ok(example) => (features(view, id, example)),
                    Err(error) => section.card { h2 { "Features" }
                        p { @if view.split.manifest().is_opaque() { "Opaque bytes: " (text::bytes(record.data().len() as u64)) }
                            @else { (text::printable_text(&error.to_string())) } } },
                }
                (bytes::dump(view, id, Some(record)))
            }
        }
    }
}

/// Renders the image and what is drawn over it.
fn stage(view: &SplitView, id: u64, record: &Record, stored: &Stored<'_>, example: Option<&Example<'_>>) -> Markup {
    let base = format!("/{}", segment(view.split.name()));
    let shown = match stored.media_type() {
        Some(_) => format!("{base}/image/{id}"),
        None => format!("{base}/preview/{id}"),
    };
    let entries = record.shard().variable(index::JPEG_ENTRIES).ok().flatten().and_then(|c| c.get(record.row()));
    let overlay = Overlay::of(view, stored, example, entries);
    let masks = masks(stored, example);
    let (width, height) = overlay.size;
    html! {
        figure.stage {
            div.zoom id="zoom" data-width=(width) data-height=(height) {
                div.layers id="layers" {
                    img id="image" src=(shown) alt={ "Image of " (key_of(view, id)) } width=(width) height=(height);
                    @for mask in &masks {
                        @let url = Query::default().url(&format!("{base}/mask/{id}"), &[("name", mask.clone())]);
                        img.mask src=(url) alt={ "Label map " (text::printable_text(mask)) } data-layer="masks" width=(width) height=(height);
                    }
                    (overlay.svg())
                }
            }
            figcaption {
                span { (stored.format.name()) ", " (stored.size.0) " × " (stored.size.1) " pixels, " (text::bytes(stored.bytes.len() as u64))
                    @if stored.orientation != 1 { ", EXIF orientation " (stored.orientation) } }
                span.spacer {}
                span.layer-switches {
                    @for (layer, count) in overlay.layers().into_iter().chain((!masks.is_empty()).then_some(("masks", masks.len()))) {
                        label { input type="checkbox" data-toggle=(layer) checked[layer != "entries"]; (layer) " " span.count { (count) } }
                    }
                }
                span.zoom-buttons hidden {
                    button type="button" data-zoom="out" aria-label="Zoom out" { "−" }
                    button type="button" data-zoom="fit" { "Fit" }
                    button type="button" data-zoom="in" aria-label="Zoom in" { "+" }
                }
                a href=(shown) { "Original" }
            }
        }
    }
}

/// Renders what the record has for each pixel: depths, flow, normals.
fn measured(view: &SplitView, id: u64, image: &Stored<'_>, example: &Example<'_>) -> Markup {
    let names = measured::names(example, image);
    let base = format!("/{}", segment(view.split.name()));
    html! {
        @if !names.is_empty() {
            section.card {
                h2 { "Values of the pixels" }
                @for name in names.iter().take(SHOWN_VALUES) {
                    @let url = Query::default().url(&format!("{base}/values/{id}"), &[("name", name.clone())]);
                    figure.values {
                        img src=(url) alt={ "Values of " (text::printable_text(name)) } width=(image.size.0) height=(image.size.1);
                        figcaption { (text::printable_text(name)) }
                    }
                }
                p.quiet { "Numbers are grey, from the smallest to the largest without the two hundredths at each end; the colour of a \
                    vector is its direction. What is not finite is white." }
            }
        }
    }
}

/// Returns the features that hold a label map of the image's size.
fn masks(image: &Stored<'_>, example: Option<&Example<'_>>) -> Vec<String> {
    let Some(example) = example else { return vec![] };
    let is_mask = |name: &str, feature: &Feature<'_>| match feature {
        Feature::Bytes(list) if !list.single().is_some_and(|bytes| measured::is_deep(name, bytes, image)) => {
            list.single().filter(|bytes| !std::ptr::eq(bytes.as_ptr(), image.bytes.as_ptr())).is_some_and(|bytes| {
                Stored::parse(bytes).is_ok_and(|mask| {
                    let lossless =
                        matches!(mask.format, shardtool_decode::Format::Png | shardtool_decode::Format::Tiff);
                    lossless && mask.size == image.size
                })
            })
        }
        _ => false,
    };
    example
        .features()
        .iter()
        .filter(|(name, feature)| is_mask(name, feature))
        .map(|(name, _)| name.to_string())
        .collect()
}

fn features(view: &SplitView, id: u64, example: &Example<'_>) -> Markup {
    let label = view.split.manifest().label.as_deref();
    html! {
        section.card {
            h2 { "Features" }
            dl.features {
                @for (name, feature) in example.features().iter().take(SHOWN_FEATURES) {
                    dt title=(dtype(view, name, feature).map_or("no values", |dtype| dtype.name())) { (text::printable_text(name)) }
                    dd { (value(view, id, name, feature, label)) }
                }
            }
            @if example.features().len() > SHOWN_FEATURES {
                p.quiet { "and " (text::count((example.features().len() - SHOWN_FEATURES) as u64)) " more" }
            }
        }
    }
}

/// Returns the type of a feature: its logical type, if the manifest gives one.
fn dtype(view: &SplitView, name: &str, feature: &Feature<'_>) -> Option<DType> {
    let stored = feature.dtype()?;
    Some(view.split.manifest().dtype(name).filter(|listed| listed.stored() == stored).unwrap_or(stored))
}

fn value(view: &SplitView, id: u64, name: &str, feature: &Feature<'_>, label: Option<&str>) -> Markup {
    let count = feature.count();
    let joined = |values: Vec<String>| {
        html! {
            (values.join(", "))
            @if count > SHOWN_VALUES { span.quiet { " … (" (text::count(count as u64)) " values)" } }
        }
    };
    let logical = match (feature, dtype(view, name, feature)) {
        (Feature::Bytes(list), Some(DType::Float64)) => list.numbers::<f64>().map(|all| shown(&all)),
        (Feature::Bytes(list), Some(DType::Uint64)) => list.numbers::<u64>().map(|all| shown(&all)),
        _ => None,
    };
    match feature {
        _ if logical.is_some() => joined(logical.unwrap_or_default()),
        Feature::Empty => html! { span.quiet { "no values" } },
        Feature::Int64(list) if label == Some(name) && list.single().is_some() => {
            let stored = list.single().unwrap_or_default();
            let base = format!("/{}", segment(view.split.name()));
            let filter = Query { filters: vec![format!("{name}={stored}")], ..Query::default() };
            html! { a href=(filter.url(&base, &[])) { (view.class_name(stored)) } span.quiet { " (" (stored) ")" } }
        }
        Feature::Int64(list) => joined(list.iter().take(SHOWN_VALUES).map(|n| n.to_string()).collect()),
        Feature::Float(list) => joined(list.iter().take(SHOWN_VALUES).map(|x| x.to_string()).collect()),
        Feature::Bytes(list) => html! {
            @for (i, bytes) in list.iter().take(SHOWN_VALUES).enumerate() {
                @if i > 0 { br; }
                (bytes_value(view, id, name, bytes))
            }
            @if count > SHOWN_VALUES { span.quiet { " … (" (text::count(count as u64)) " values)" } }
        },
    }
}

/// Returns the first values as text.
fn shown(values: &[impl ToString]) -> Vec<String> {
    values.iter().take(SHOWN_VALUES).map(ToString::to_string).collect()
}

fn bytes_value(view: &SplitView, id: u64, name: &str, bytes: &[u8]) -> Markup {
    if let Some(format) = sniff(bytes) {
        let base = format!("/{}", segment(view.split.name()));
        let url = Query::default().url(&format!("{base}/preview/{id}"), &[("name", name.to_owned())]);
        return html! { a href=(url) { (format.name()) " image" } span.quiet { ", " (text::bytes(bytes.len() as u64)) } };
    }
    match std::str::from_utf8(bytes) {
        Ok(words) if !words.contains('\0') => html! { (text::fit(&text::printable_text(words), SHOWN_TEXT)) },
        _ => html! { span.quiet { (text::bytes(bytes.len() as u64)) " of binary data" } },
    }
}

/// Renders what a loader delivers for this record, in several epochs.
fn trainer(
    view: &SplitView,
    id: u64,
    stored: &Stored<'_>,
    example: Option<&Example<'_>>,
    draws: &DrawOptions,
) -> Markup {
    let base = format!("/{}", segment(view.split.name()));
    let pipeline = draws.pipeline();
    let epochs = draws.epoch..draws.epoch.saturating_add(if draws.eval && draws.steps.is_none() { 1 } else { DRAWN });
    html! {
        section.card.trainer id="trainer" {
            h2 { "What the trainer sees" }
            p.quiet { "Exactly what the loader delivers for this seed, epoch and record, on any machine." }
            form action="#trainer" method="get" {
                label { "Recipe" select name="work" {
                    option value="train" selected[!draws.eval] { "train: RandomResizedCrop, flip" }
                    option value="eval" selected[draws.eval] { "eval: Resize, CenterCrop" }
                } }
                label { "Seed" input type="number" name="seed" min="0" value=(draws.seed); }
                label { "Epoch" input type="number" name="epoch" min="0" value=(draws.epoch); }
                label { "Size" input type="number" name="size" min="1" max=(MAX_DRAWN) value=(draws.size); }
                button type="submit" { "Draw" }
                details open[draws.steps.is_some()] {
                    summary { "Steps of your own" }
                    label { "Steps as JSON, in place of the recipe"
                        textarea name="steps" rows="3" spellcheck="false"
                            placeholder=r#"[{"random_resized_crop":{"size":[224,224]}},{"horizontal_flip":{}}]"# {
                            (draws.steps.as_deref().unwrap_or_default())
                        }
                    }
                }
            }
            @match pipeline {
                Err(problem) => p.note.bad role="alert" { (problem) },
                Ok(pipeline) => ul.draws {
                    @for epoch in epochs {
                        li {
                            div.drawn {
                                img src=(Query::default().url(&format!("{base}/drawn/{id}"), &draws.pairs(epoch)))
                                    alt={ "What the trainer sees in epoch " (epoch) } loading="lazy";
                                @if let Ok(plan) = picture::plan(stored, &Image::new(pipeline.clone()), draws.of(id, epoch)) {
                                    (Overlay::drawn(view, stored, example, &plan).svg())
                                }
                            }
                            span { "epoch " (epoch) }
                        }
                    }
                },
            }
        }
    }
}
