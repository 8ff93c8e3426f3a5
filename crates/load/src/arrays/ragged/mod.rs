//! Groups of [`RaggedArrays`]: a row has some elements of its record's arrays, rotated and with noise, or padding.

mod motion;
mod selection;

use super::group::{ArrayOutput, ArrayScratch, Group, PlannedGroup, check_whole, pads, problem};
use super::stored::StoredArray;
use crate::buffer::RowMut;
use crate::error::{ArrayProblem, Error, SampleError};
use crate::image::SampleDraws;
use crate::options::{RaggedArrays, Select};
use motion::Motion;
use selection::Selection;
use shardtool_decode::{ArrayBox, Limits};
use shardtool_format::array::ArrayDtype;
use shardtool_read::Record;

/// Arrays that share their first dimension.
pub(super) struct RaggedGroup {
    /// The number of the group among those of its kind, from 0.
    number: u64,
    spec: RaggedArrays,
    /// Those of the features, then the lengths.
    outputs: Vec<ArrayOutput>,
    /// `None` if nothing is moved.
    moved: Option<Moved>,
}

/// The features that are rotated or get noise, by their places in the group.
struct Moved {
    coordinates: usize,
    /// Rotated only.
    directions: Vec<usize>,
}

/// The arrays of a record, and what was drawn for them.
struct Planned<'g> {
    group: &'g RaggedGroup,
    arrays: Vec<StoredArray<'g>>,
    selection: Selection,
    motion: Option<Motion>,
    draws: SampleDraws,
}

/// The streams of a group. Part of resuming: a change of a number changes batches.
#[derive(Clone, Copy)]
enum Stream {
    Select = 0,
    Rotate = 1,
    Jitter = 2,
}

impl Moved {
    /// Checks the options of what is moved.
    fn new(spec: &RaggedArrays) -> Result<Option<Self>, Error> {
        let name = spec.features.first().map_or("", String::as_str);
        let place = |option: &'static str, feature: &String| {
            let at = spec.features.iter().position(|other| other == feature);
            at.ok_or_else(|| problem(feature, ArrayProblem::NotInGroup { option }))
        };
        let coordinates = spec.coordinates.as_ref().map_or(Ok(0), |feature| place("coordinates", feature))?;
        let directions = spec.directions.iter().map(|feature| place("directions", feature));
        let directions = directions.collect::<Result<Vec<_>, _>>()?;
        let option = |option: &'static str, needs| problem(name, ArrayProblem::Unused { option, needs });
        if spec.rotate.is_none() && !directions.is_empty() {
            return Err(option("directions", "`rotate`"));
        }
        if spec.rotate.is_none() && spec.degrees != 180.0 {
            return Err(option("degrees", "`rotate`"));
        }
        if spec.jitter == 0.0 && spec.jitter_limit.is_some() {
            return Err(option("jitter_limit", "`jitter`"));
        }
        let moves = spec.rotate.is_some() || spec.jitter > 0.0;
        if !moves && spec.coordinates.is_some() {
            return Err(option("coordinates", "`rotate` or `jitter`"));
        }
        let number = |option, found, expected| problem(name, ArrayProblem::Number { name: option, found, expected });
        if !(spec.degrees > 0.0 && spec.degrees <= 180.0) {
            return Err(number("degrees", spec.degrees, "above 0 and at most 180"));
        }
        if !(spec.jitter >= 0.0 && spec.jitter.is_finite()) {
            return Err(number("jitter", spec.jitter, "at least 0"));
        }
        if let Some(limit) = spec.jitter_limit.filter(|limit| !(*limit > 0.0 && limit.is_finite())) {
            return Err(number("jitter_limit", limit, "above 0"));
        }
        Ok(moves.then_some(Moved { coordinates, directions }))
    }
}

impl RaggedGroup {
    /// Checks a group. `first` are type and shape of each array in the first record.
    pub(super) fn new(
        number: u64,
        spec: &RaggedArrays,
        first: &[(ArrayDtype, Vec<u64>)],
        batch: u32,
    ) -> Result<Self, Error> {
        let Some(name) = spec.features.first() else { return Err(problem("", ArrayProblem::NoFeature)) };
        let moved = Moved::new(spec)?;
        for (at, (feature, (dtype, shape))) in spec.features.iter().zip(first).enumerate() {
            if shape.is_empty() {
                return Err(problem(feature, ArrayProblem::NoLength));
            }
            if moved.as_ref().is_some_and(|moved| at == moved.coordinates || moved.directions.contains(&at)) {
                let columns = shape.last().copied().unwrap_or_default();
                if shape.len() != 2 || columns < 3 || !matches!(dtype, ArrayDtype::F32 | ArrayDtype::F64) {
                    let (shape, dtype) = (shape.clone(), dtype.name());
                    return Err(problem(feature, ArrayProblem::Coordinates { shape, dtype }));
                }
            }
        }
        let dtypes: Vec<_> = first.iter().map(|(dtype, _)| *dtype).collect();
        let pads = pads(&spec.features, spec.pad_value.as_deref(), &dtypes)?;
        let arrays = spec.features.iter().zip(first).zip(pads).map(|((feature, (dtype, shape)), pad)| {
            let shape: Vec<_> = [spec.length.get()].into_iter().chain(shape[1..].iter().copied()).collect();
            match shape.iter().position(|length| *length == 0) {
                Some(dimension) => Err(problem(feature, ArrayProblem::Empty { dimension })),
                None => ArrayOutput::new(feature, *dtype, &shape, pad, batch),
            }
        });
        let lengths = ArrayOutput::new(&format!("{name}/length"), ArrayDtype::I64, &[], vec![0; 8], batch);
        let outputs = arrays.chain([lengths]).collect::<Result<_, _>>()?;
        Ok(RaggedGroup { number, spec: spec.clone(), outputs, moved })
    }

    /// Returns the outputs of the features.
    fn arrays(&self) -> &[ArrayOutput] {
        &self.outputs[..self.spec.features.len()]
    }

    /// Returns whether elements are selected from the whole array.
    fn selects_from_whole(&self, array: &StoredArray<'_>) -> bool {
        self.spec.select == Select::Subset && array.shape().first().is_some_and(|n| *n > self.spec.length.get())
    }
}

impl Group for RaggedGroup {
    fn features(&self) -> &[String] {
        &self.spec.features
    }

    fn outputs(&self) -> &[ArrayOutput] {
        &self.outputs
    }

    fn is_partial(&self) -> bool {
        self.spec.select != Select::Subset
    }

    fn share(&self, array: &StoredArray<'_>) -> f64 {
        match self.selects_from_whole(array) {
            true => 1.0,
            false => array.share(&[&[self.spec.length.get()], &array.shape()[1..]].concat()),
        }
    }

    fn whole(&self, array: &StoredArray<'_>) -> u64 {
        let selected = self.spec.length.get().saturating_mul(size_of::<u64>() as u64);
        if self.selects_from_whole(array) { array.bytes().saturating_add(selected) } else { 0 }
    }

    fn plan<'g>(
        &'g self,
        arrays: Vec<StoredArray<'g>>,
        limits: &Limits,
        draws: SampleDraws,
    ) -> Result<Box<dyn PlannedGroup + 'g>, SampleError> {
        let mut length = None;
        for (array, output) in arrays.iter().zip(self.arrays()) {
            output.check_dtype(array)?;
            let (feature, found) = (|| output.name.clone(), array.shape());
            if found.len() != output.shape.len() || found[1..] != output.shape[1..] {
                let expected = [None].into_iter().chain(output.shape[1..].iter().copied().map(Some)).collect();
                return Err(SampleError::ArrayShape { feature: feature(), expected, found });
            }
            let expected = *length.get_or_insert(found[0]);
            if found[0] != expected {
                let other = self.spec.features[0].clone();
                return Err(SampleError::ArrayLengths { feature: feature(), found: found[0], other, expected });
            }
            if self.selects_from_whole(array) {
                check_whole(array, &output.name, limits)?;
            }
        }
        let stream = |stream: Stream| draws.ragged(self.number, stream as u64);
        let (length, most) = (length.unwrap_or_default(), self.spec.length.get());
        let selection = Selection::draw(self.spec.select, length, most, &mut stream(Stream::Select));
        let motion = self.spec.rotate.map(|axis| Motion::draw(axis, self.spec.degrees, &mut stream(Stream::Rotate)));
        Ok(Box::new(Planned { group: self, arrays, selection, motion, draws }))
    }
}

impl Planned<'_> {
    /// Returns the part of an array that is decoded.
    fn part(&self, array: &StoredArray<'_>) -> ArrayBox {
        let (mut start, mut size) = (vec![0; array.shape().len()], array.shape());
        if let Selection::Window { first, count } = self.selection {
            (start[0], size[0]) = (first, count);
        }
        ArrayBox::contiguous(start, size)
    }
}

impl PlannedGroup for Planned<'_> {
    fn arrays(&self) -> &[StoredArray<'_>] {
        &self.arrays
    }

    fn chunks(&self, at: usize) -> Vec<u64> {
        self.arrays[at].chunks(&self.part(&self.arrays[at]))
    }

    fn write(
        &self,
        record: &Record,
        limits: &Limits,
        scratch: &mut ArrayScratch,
        rows: &mut [RowMut<'_>],
    ) -> Result<u64, SampleError> {
        let (group, spec) = (self.group, &self.group.spec);
        let (mut read, mut drawn) = (0, false);
        let Some((lengths, rows)) = rows.split_last_mut() else { return Ok(0) };
        lengths.copy_from_slice(&(self.selection.count() as i64).to_le_bytes());
        for (at, ((array, output), row)) in self.arrays.iter().zip(group.arrays()).zip(rows).enumerate() {
            let source = (record, output.name.as_str());
            let element = output.row_bytes / spec.length.get() as usize;
            let (filled, padding) = row.split_at_mut(self.selection.count() as usize * element);
            output.fill(padding);
            match &self.selection {
                Selection::Window { .. } => {
                    read += array.decode(source, &self.part(array), limits, &mut scratch.chunk, filled)?;
                }
                Selection::Subset { length, count } => {
                    read += scratch.decode_whole(array, source, limits)?;
                    if !drawn {
                        // After the first array was decoded: its shape is true.
                        let mut stream = self.draws.ragged(group.number, Stream::Select as u64);
                        selection::subset(*length, *count, &mut stream, &mut scratch.selected);
                        drawn = true;
                    }
                    for (out, chosen) in filled.chunks_exact_mut(element).zip(&scratch.selected) {
                        out.copy_from_slice(&scratch.whole[*chosen as usize * element..][..element]);
                    }
                }
            }
            let Some(Moved { coordinates, directions }) = &group.moved else { continue };
            let coordinates = at == *coordinates;
            if let Some(motion) = &self.motion
                && (coordinates || directions.contains(&at))
            {
                motion::rotate(filled, element, output.dtype, motion);
            }
            if coordinates && spec.jitter > 0.0 {
                let mut stream = self.draws.ragged(group.number, Stream::Jitter as u64);
                motion::jitter(filled, element, output.dtype, (spec.jitter, spec.jitter_limit), &mut stream);
            }
        }
        Ok(read)
    }
}
