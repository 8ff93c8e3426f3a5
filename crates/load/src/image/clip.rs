//! The frames of a sample's clips: plans what is done to them, then decodes each into its place in the row.

use super::planned::{PlannedView, options, views_bytes};
use super::write::write_view;
use super::{DecodeScratch, SampleDraws};
use crate::bad_samples::SampleError;
use crate::buffer::RowPixels;
use crate::clip::Clip;
use crate::config::Images;
use crate::meters::WorkerMeters;
use shardtool_decode::{EncodedImage, Error, Geometry, Normalizer, Orientation};
use shardtool_format::example::Feature;
use shardtool_read::Record;
use std::time::Instant;

/// A stored frame: its number, and its bytes.
pub(crate) type Frame<'r> = (usize, &'r [u8]);

/// The frames of a sample's clips, and what is done to them.
pub(crate) struct PlannedClips<'r> {
    /// All frames of the row, clip after clip.
    frames: Vec<Frame<'r>>,
    clips: Vec<ClipViews>,
    /// Width and height of the stored frames.
    pub(crate) size: (u32, u32),
    /// Upper bound in bytes on the memory that decoding and transforming need.
    pub(crate) scratch: u64,
}

/// What each view does to the frames of one clip.
struct ClipViews {
    views: Vec<PlannedView>,
    geometries: Vec<Geometry>,
}

impl<'r> PlannedClips<'r> {
    /// Plans the frames of a whole record.
    pub(crate) fn of_record(
        record: &'r Record,
        images: &Images,
        clip: &Clip,
        draws: SampleDraws,
    ) -> Result<Self, SampleError> {
        let example = record.example()?;
        let values: Vec<&[u8]> = match example.get(&clip.feature) {
            Some(Feature::Bytes(list)) => list.iter().collect(),
            _ => vec![],
        };
        let numbers = clip.frame_numbers(values.len(), draws);
        Self::new(numbers.into_iter().map(|number| (number, values[number])).collect(), images, clip, draws)
    }

    /// Plans frames, clip after clip.
    ///
    /// # Errors
    /// [`SampleError::NoFrames`], [`SampleError::Frame`], and those of planning a view.
    pub(crate) fn new(
        frames: Vec<Frame<'r>>,
        images: &Images,
        clip: &Clip,
        draws: SampleDraws,
    ) -> Result<Self, SampleError> {
        let Some((first, bytes)) = frames.first().copied() else {
            return Err(SampleError::NoFrames { feature: clip.feature.clone() });
        };
        let info = shardtool_decode::probe(bytes, &images.limits).map_err(frame_error(clip, first))?;
        let size = (info.width, info.height);
        let orientation = Orientation::from_exif(if images.apply_orientation { info.orientation } else { 1 });
        let (mut clips, mut most) = (vec![], 0);
        for (clip_number, clip_frames) in frames.chunks(clip.frames as usize).enumerate() {
            let mut views = Vec::with_capacity(images.views.len());
            for (number, view) in images.views.iter().enumerate() {
                let mut draws = match images.views.len() * clip.clips as usize {
                    1 => draws.single(),
                    _ => draws.view(clip_number * images.views.len() + number),
                };
                let plan = view.pipeline.plan(size, orientation, &mut draws, &[])?;
                views.push(PlannedView { plan, draws });
            }
            let geometries: Vec<_> = views.iter().map(|view| view.plan.geometry()).collect();
            let mut decoding = 0;
            for (number, bytes) in clip_frames {
                // One is decoded after the other, in the same memory.
                let needed =
                    EncodedImage::parse(bytes).and_then(|image| image.scratch_bytes(&geometries, &options(images)));
                decoding = decoding.max(needed.map_err(frame_error(clip, *number))?);
            }
            most = most.max(decoding + views_bytes(&views, images));
            clips.push(ClipViews { views, geometries });
        }
        Ok(PlannedClips { frames, clips, size, scratch: most })
    }
}

/// Decodes the frames, transforms them, and writes them into `out`. A frame that is repeated is decoded once.
pub(crate) fn write_clips(
    planned: &PlannedClips<'_>,
    images: &Images,
    clip: &Clip,
    normalizer: Option<&Normalizer>,
    out: &mut RowPixels<'_>,
    scratch: &mut DecodeScratch,
    meters: &WorkerMeters,
) -> Result<(), SampleError> {
    let count = planned.frames.len();
    let clips = planned.frames.chunks(clip.frames as usize).zip(&planned.clips);
    for (clip_number, (frames, ClipViews { views, geometries })) in clips.enumerate() {
        let mut before = None;
        for (&(number, bytes), at) in frames.iter().zip(clip_number * clip.frames as usize..) {
            if before.replace(number) == Some(number) {
                for row in &mut out.images {
                    let frame = row.len() / count;
                    row.copy_within((at - 1) * frame..at * frame, at * frame);
                }
                continue;
            }
            let DecodeScratch { decoder, transform, pixels, .. } = &mut *scratch;
            let mut write = || {
                let start = Instant::now();
                let image = EncodedImage::parse(bytes)?;
                let region = decoder.decode_parsed_region(&image, None, geometries, &options(images))?;
                let decoded = Instant::now();
                meters.decode.add(decoded - start, 1);
                for (view, row) in views.iter().zip(&mut out.images) {
                    let frame = row.len() / count;
                    let frame = &mut row[at * frame..(at + 1) * frame];
                    write_view(view, &region, images, normalizer, frame, (&mut *transform, &mut *pixels))?;
                }
                meters.resize.add(decoded.elapsed(), 1);
                Ok(())
            };
            write().map_err(frame_error(clip, number))?;
        }
    }
    Ok(())
}

/// Adds the number of the frame to an error.
fn frame_error(clip: &Clip, number: usize) -> impl FnOnce(Error) -> SampleError {
    let feature = clip.feature.clone();
    move |source| SampleError::Frame { feature, number, source }
}
