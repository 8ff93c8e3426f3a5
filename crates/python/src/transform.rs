//! Applies steps and operations to an image in memory.

use crate::error;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use shardtool_decode::{
    Channels, DecodedRegion, Depth, Operation, OperationScratch, Orientation, Pipeline, PixelFormat, PixelsMut,
    PixelsRef, TransformScratch,
};
use shardtool_load::SampleDraws;

/// Pixels, height and width, the plan as JSON, the boxes that are left, and their numbers.
type Previewed<'py> = (Bound<'py, PyBytes>, (u32, u32), String, Vec<[f64; 4]>, Vec<usize>);

/// Applies the steps of one view to an image `[H, W, 3]`, with the random numbers of a sample (seed, epoch, source position).
#[pyfunction]
pub(crate) fn preview<'py>(
    py: Python<'py>,
    pixels: &[u8],
    shape: (u32, u32),
    steps: &str,
    sample: (u64, u64, u64),
    view: Option<usize>,
    boxes: Vec<[f64; 4]>,
) -> PyResult<Previewed<'py>> {
    let pipeline: Pipeline = serde_json::from_str(steps).map_err(|e| error::transform(py, &e))?;
    let ((height, width), (seed, epoch, source_position)) = (shape, sample);
    let sample = SampleDraws { seed, epoch, source_position };
    let mut draws = view.map_or_else(|| sample.single(), |view| sample.view(view));
    let plan = pipeline.plan((width, height), Orientation::default(), &mut draws, &boxes);
    let plan = plan.map_err(|e| error::decode(py, &e))?;
    let (out_width, out_height) = plan.output_size();
    let mut out = vec![0; 3 * out_width as usize * out_height as usize];
    let region = PixelsRef::new(width, height, pixels).map(DecodedRegion::whole_image);
    let applied = region.and_then(|region| plan.apply(&region, &mut out, &mut TransformScratch::default()));
    applied.map_err(|e| error::decode(py, &e))?;
    let mapped = boxes.iter().enumerate().filter_map(|(n, b)| Some((plan.map_box(n, *b)?, n)));
    let (mapped, kept) = mapped.unzip();
    let json = serde_json::to_string(&plan).map_err(|e| error::option(py, &e.to_string()))?;
    Ok((PyBytes::new(py, &out), (out_height, out_width), json, mapped, kept))
}

/// Applies a list of operations, as JSON, to an image `[H, W, C]` of u8 or u16.
#[pyfunction]
pub(crate) fn apply_operations<'py>(
    py: Python<'py>,
    pixels: &[u8],
    shape: (u32, u32, u32),
    operations: &str,
) -> PyResult<Bound<'py, PyBytes>> {
    let (height, width, channels) = shape;
    let format = PixelFormat {
        channels: if channels == 1 { Channels::Gray } else { Channels::Rgb },
        depth: match pixels.len() as u64 > u64::from(height) * u64::from(width) * u64::from(channels) {
            true => Depth::Sixteen,
            false => Depth::Eight,
        },
    };
    let operations: Vec<Operation> =
        serde_json::from_str(operations).map_err(|e| error::option(py, &format!("`operations`: {e}")))?;
    let mut out = pixels.to_vec();
    let mut scratch = OperationScratch::default();
    for operation in &operations {
        let image = PixelsMut::with_format(width, height, format, &mut out);
        let applied = image.and_then(|image| operation.apply(image, &mut scratch));
        applied.map_err(|e| error::decode(py, &e))?;
    }
    Ok(PyBytes::new(py, &out))
}
