//! Decodes the arrays of a record.

use super::image::Fault;
use shardtool_decode::{self as decode, DecodeBudget, decode_chunk};
use shardtool_format::array::{ArrayError, ArrayFeatures, ArrayLayout, array_name};
use shardtool_format::example::{Example, Feature};
use shardtool_format::{Chain, Damage};

/// Decodes all arrays of a record. Returns a fault for each one that does not decode.
pub(super) fn check(example: &Example<'_>) -> Vec<Fault> {
    let names = example
        .features()
        .iter()
        .filter_map(|(name, _)| array_name(name, |n| !matches!(example.get(n), None | Some(Feature::Empty))));
    let faults = names.filter_map(|name| {
        let described = ArrayFeatures::of(example, name);
        let undescribed =
            || (Damage::ImageDecode, "shape, chunk, dtype or codec has another type or length".to_owned());
        let (kind, text) = described.ok_or_else(undescribed).and_then(|array| decode(&array)).err()?;
        Some((kind, format!("the array `{name}` does not decode: {text}")))
    });
    faults.collect()
}

fn decode(array: &ArrayFeatures<'_>) -> Result<(), Fault> {
    let invalid = |error: ArrayError| (error.damage(), error.to_string());
    let (shape, chunk): (Vec<_>, Vec<_>) = (array.shape.iter().collect(), array.chunk.iter().collect());
    let layout = ArrayLayout::new(&shape, &chunk, array.dtype, array.codec).map_err(invalid)?;
    layout.check_chunks(array.chunk_count()).map_err(invalid)?;
    let limits = DecodeBudget::of_process().limits();
    let failed = |error: decode::Error| (error.damage(), Chain(&error).to_string());
    let _admitted = DecodeBudget::of_process().admit_chunk(&layout, &limits).map_err(failed)?;
    let mut scratch = vec![];
    for (number, chunk) in (0..).zip(array.chunks.iter().flat_map(|list| list.iter())) {
        decode_chunk(&layout, number, chunk, &limits, &mut scratch).map_err(failed)?;
    }
    Ok(())
}
