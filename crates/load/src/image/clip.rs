//! The frames of a sample's clips: plans what is done to them, then decodes each into its place in the row.

use super::SampleDraws;
use super::bounded::Bounded;
use super::planned::{PlannedView, geometry_bytes, options, views_bytes};
use super::write::{DecodeScratch, Decoding};
use crate::buffer::RowPixels;
use crate::error::SampleError;
use crate::groups::Images;
use crate::options::Clip;
use shardtool_decode::{EncodedImage, Error, Geometry, Orientation};
use shardtool_format::example::Feature;
use shardtool_read::Record;

/// A stored frame: its number, and its bytes.
pub(crate) type Frame<'r> = (usize, &'r [u8]);

/// The frames of a sample's clips, and what is done to them.
pub(crate) struct PlannedClips<'r> {
    /// All frames of the row, clip after clip.
    frames: Vec<Frame<'r>>,
    clips: Vec<ClipViews>,
    /// The resize before the views, if decoded frames are cached.
    bounded: Option<Bounded>,
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
        let info = shardtool_decode::probe(bytes, &images.pixels.limits).map_err(frame_error(clip, first))?;
        let size = (info.width, info.height);
        let orientation = Orientation::from_exif(if images.pixels.apply_orientation { info.orientation } else { 1 });
        let cache = images.pixels.decoded_cache.as_ref();
        let bounded = cache.map(|cache| Bounded::of(cache, size, orientation)).transpose();
        let bounded = bounded.map_err(frame_error(clip, first))?;
        let (source, orientation) =
            bounded.as_ref().map_or((size, orientation), |bounded| (bounded.size, Orientation::default()));
        let format = images.pixel_format();
        let decoded = options(images, format);
        let (mut clips, mut most) = (vec![], 0);
        for (clip_number, clip_frames) in frames.chunks(clip.frames as usize).enumerate() {
            let mut views = Vec::with_capacity(images.views.len());
            for (number, view) in images.views.iter().enumerate() {
                let mut draws = match images.views.len() * clip.clips as usize {
                    1 => draws.single(),
                    _ => draws.view(clip_number * images.views.len() + number),
                };
                let plan = view.pipeline.plan(source, orientation, &mut draws, &[])?;
                views.push(PlannedView { plan, draws });
            }
            let geometries: Vec<_> = views.iter().map(|view| view.plan.geometry()).collect();
            let read = bounded.as_ref().map_or(&geometries[..], |bounded| &bounded.geometry);
            let mut decoding = 0;
            for (number, bytes) in clip_frames {
                // One is decoded after the other, in the same memory.
                let needed = EncodedImage::parse(bytes).and_then(|image| image.scratch_bytes(read, &decoded));
                decoding = decoding.max(needed.map_err(frame_error(clip, *number))?);
            }
            let of_views = bounded.as_ref().map_or(0, |_| geometry_bytes(&geometries, format));
            most = most.max(decoding + of_views + views_bytes(&views, format, images.output.is_some()));
            clips.push(ClipViews { views, geometries });
        }
        most += bounded.as_ref().map_or(0, |bounded| bounded.scratch_bytes(format));
        Ok(PlannedClips { frames, clips, bounded, size, scratch: most })
    }
}

/// Decodes the frames, transforms them, and writes them into `out`. A frame that is repeated is decoded once. In the cache, frames
/// have their numbers in the clip's feature.
pub(crate) fn write_clips(
    planned: &PlannedClips<'_>,
    clip: &Clip,
    decoding: Decoding<'_>,
    out: &mut RowPixels<'_>,
    DecodeScratch { decoder, views: scratch, .. }: &mut DecodeScratch,
) -> Result<(), SampleError> {
    let Decoding { images, cache, format, .. } = decoding;
    let options = options(images, format);
    let count = planned.frames.len();
    let clips = planned.frames.chunks(clip.frames as usize).zip(&planned.clips);
    for (clip_number, (frames, ClipViews { views, geometries })) in clips.enumerate() {
        let geometries = planned.bounded.as_ref().map_or(&geometries[..], |bounded| &bounded.geometry);
        let mut before = None;
        for (&(number, bytes), at) in frames.iter().zip(clip_number * clip.frames as usize..) {
            if before.replace(number) == Some(number) {
                for row in &mut out.images {
                    let frame = row.len() / count;
                    row.copy_within((at - 1) * frame..at * frame, at * frame);
                }
                continue;
            }
            let cached = cache.zip(planned.bounded.as_ref());
            let cached = cached.map(|(cache, bounded)| cache.image(number as u32, bounded));
            let rows = out.images.iter_mut().map(|row| {
                let frame = row.len() / count;
                &mut row[at * frame..(at + 1) * frame]
            });
            let written = decoding.write_views(
                views,
                || decoder.decode_parsed_region(&EncodedImage::parse(bytes)?, None, geometries, &options),
                (cached, rows, scratch),
            );
            written.map_err(frame_error(clip, number))?;
        }
    }
    Ok(())
}

/// Adds the number of the frame to an error.
fn frame_error(clip: &Clip, number: usize) -> impl FnOnce(Error) -> SampleError {
    let feature = clip.feature.clone();
    move |source| SampleError::Frame { feature, number, source }
}
