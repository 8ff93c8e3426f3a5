//! Layout of a slot: the large arrays first, then the row data (ids, `valid`, the columns of numbers, packed rows, and how to mix
//! the rows), each array aligned. Batches of a loader may differ in their shapes, so that each has its layout.

use crate::error::{Error, Result};
use crate::feed::HostArray;
use crate::part::{Element, Part, PartOf, Value};
use crate::row_data::RowArray;
use shardtool_decode::Output;
use shardtool_load::{BatchMix, RowMix};
use std::ops::Range;

/// Where an array lies in a slot, and what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PartLayout {
    /// Byte range in the slot.
    pub(crate) bytes: Range<usize>,
    pub(crate) element: Element,
    pub(crate) shape: Vec<usize>,
}

impl PartLayout {
    /// Checks that the values are of type `T`.
    pub(crate) fn expect<T: Value>(&self) -> Result<()> {
        let expected = self.element.value();
        if T::NAME == expected { Ok(()) } else { Err(Error::Type { expected, found: T::NAME }) }
    }
}

/// How a large array gets into its slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// Copied there.
    Copied,
    /// Copied into a staging buffer, from where the kernel writes it into the slot.
    Normalized(StagedImages),
}

/// Images in a staging buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StagedImages {
    /// Byte range in the staging buffer.
    pub(crate) bytes: Range<usize>,
    /// Number of images.
    pub(crate) n: u32,
    /// Pixels of each.
    pub(crate) hw: u32,
    /// Columns of each.
    pub(crate) width: u32,
}

/// Bytes in use, and bytes to allocate for them and larger batches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) used: usize,
    pub(crate) reserved: usize,
}

impl Room {
    /// Adds an array of `used` bytes, of which later batches may have up to `reserved`. Returns where it lies.
    fn add(&mut self, used: usize, reserved: usize) -> Range<usize> {
        let start = self.used.next_multiple_of(ALIGNMENT);
        self.used = start + used;
        self.reserved = self.reserved.next_multiple_of(ALIGNMENT) + reserved.max(used);
        start..self.used
    }
}

/// Where all arrays of a batch lie in a slot.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SlotLayout {
    /// N.
    rows: usize,
    /// The large arrays, in the order of [`HostBatch::arrays`](crate::HostBatch::arrays), then the row data.
    parts: Vec<(PartOf<String>, PartLayout)>,
    /// One for each large array.
    arrivals: Vec<Arrival>,
    /// Byte range of the row data, which is copied at once: everything after the large arrays.
    row_data: Range<usize>,
    /// Byte range of the [`RowMix`](shardtool_load::RowMix) of each row, for the kernel; empty if batches are not mixed.
    mixes: Range<usize>,
    slot: Room,
    staging: Room,
    pinned: Room,
}

/// Alignment of each array in bytes: DLPack recommends 256.
const ALIGNMENT: usize = 256;

/// Of row data whose length varies, this part is reserved in addition, so that memory is not allocated again for each longer batch.
const HEADROOM: usize = 4;

impl SlotLayout {
    /// Lays out the arrays of a batch of `rows` rows, which the device mixes as `mix` says. `output` says how images are
    /// normalised; `None` leaves them as they are.
    ///
    /// # Errors
    /// [`Error::ArrayBytes`], [`Error::Images`], [`Error::PixelFormat`], [`Error::Mix`].
    pub(crate) fn new(
        rows: usize,
        arrays: &[HostArray<'_>],
        row_data: &[RowArray<'_>],
        output: Option<&Output>,
        mix: Option<&BatchMix>,
    ) -> Result<Self> {
        let (mut slot, mut staging) = (Room::default(), Room::default());
        let (mut parts, mut arrivals) = (Vec::with_capacity(arrays.len() + row_data.len()), vec![]);
        for array in arrays {
            let (expected, found) = (size(&array.shape, array.element), array.bytes.len());
            if expected != found {
                return Err(Error::ArrayBytes { expected, found });
            }
            let mut shape = array.shape.clone();
            let (element, arrival) = match output.filter(|_| array.normalize) {
                None => (array.element, Arrival::Copied),
                Some(output) => {
                    let images = staged(array, output, &mut staging)?;
                    if let [.., h, w, c] = &mut shape[..] {
                        [_, *h, *w, *c] = output.layout().shape([1, *h, *w, *c]);
                    }
                    (output.dtype().into(), Arrival::Normalized(images))
                }
            };
            let bytes = slot.add(size(&shape, element), array.largest / array.element.bytes() * element.bytes());
            parts.push((array.part.to_owned(), PartLayout { bytes, element, shape }));
            arrivals.push(arrival);
        }
        let start = slot.used.next_multiple_of(ALIGNMENT);
        let (mut end, mut varying) = (start, 0);
        for array in row_data {
            let element = array.element();
            let used = size(&array.shape, element);
            let bytes = slot.add(used, used);
            (end, varying) = (bytes.end, varying + if array.varies { used } else { 0 });
            parts.push((array.part.to_owned(), PartLayout { bytes, element, shape: array.shape.clone() }));
        }
        let mixes = match mix {
            Some(mix) => {
                check_mix(mix, rows, arrivals.first())?;
                let bytes = rows * RowMix::WORDS * size_of::<u32>();
                slot.add(bytes, bytes)
            }
            None => end..end,
        };
        let row_data = start..mixes.end;
        slot.reserved += varying / HEADROOM;
        let pinned = Room { used: row_data.len(), reserved: row_data.len() + varying / HEADROOM };
        Ok(SlotLayout { rows, parts, arrivals, row_data, mixes, slot, staging, pinned })
    }

    /// Returns N, the number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the bytes of a slot.
    pub(crate) fn slot(&self) -> Room {
        self.slot
    }

    /// Returns the bytes of a staging buffer on the device.
    pub(crate) fn staging(&self) -> Room {
        self.staging
    }

    /// Returns the bytes of row data in pinned memory.
    pub(crate) fn pinned(&self) -> Room {
        self.pinned
    }

    /// Returns the number of bytes of images that are copied to the device.
    pub(crate) fn pixel_bytes(&self) -> usize {
        let bytes = |((part, layout), arrival): (&(PartOf<String>, PartLayout), &Arrival)| match arrival {
            Arrival::Normalized(images) => images.bytes.len(),
            Arrival::Copied if matches!(part, PartOf::Picture { .. }) => layout.bytes.len(),
            Arrival::Copied => 0,
        };
        self.parts.iter().zip(&self.arrivals).map(bytes).sum()
    }

    /// Returns the large arrays: where each lies in the slot, and how it gets there.
    pub(crate) fn arrays(&self) -> impl Iterator<Item = (&PartLayout, &Arrival)> {
        self.parts.iter().map(|(_, part)| part).zip(&self.arrivals)
    }

    /// Returns the byte range of the row data.
    pub(crate) fn row_data(&self) -> Range<usize> {
        self.row_data.clone()
    }

    /// Returns where in the slot the kernel finds how to mix the rows; `None` if batches are not mixed.
    pub(crate) fn mixes(&self) -> Option<usize> {
        (!self.mixes.is_empty()).then_some(self.mixes.start)
    }

    /// Returns the names of all arrays.
    pub(crate) fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        self.parts.iter().map(|(name, _)| name.borrowed())
    }

    /// Returns the layout of one array.
    ///
    /// # Errors
    /// [`Error::NoPart`], [`Error::NoColumn`].
    pub(crate) fn part(&self, part: Part<'_>) -> Result<&PartLayout> {
        let is_it = |name: Part<'_>| match part {
            Part::Images => matches!(name, Part::Picture { .. }),
            _ => name == part,
        };
        let found = self.parts.iter().find(|(name, _)| is_it(name.borrowed()));
        found.map(|(_, layout)| layout).ok_or_else(|| match part {
            Part::Column(name) => {
                let columns = self.parts().filter_map(|part| match part {
                    Part::Column(name) => Some(name.to_owned()),
                    _ => None,
                });
                Error::NoColumn { name: name.to_owned(), known: columns.collect() }
            }
            _ => Error::NoPart { part: format!("{part:?}"), known: self.parts().map(|p| format!("{p:?}")).collect() },
        })
    }

    /// Writes the row data into `target`, which is as long as [`SlotLayout::row_data`].
    pub(crate) fn write_row_data(&self, arrays: &[RowArray<'_>], mix: Option<&BatchMix>, target: &mut [u8]) {
        let start = self.row_data.start;
        if let Some(mix) = mix {
            let to = &mut target[self.mixes.start - start..self.mixes.end - start];
            let words = mix.rows().flat_map(|row| row.words()).flat_map(u32::to_le_bytes);
            to.iter_mut().zip(words).for_each(|(to, byte)| *to = byte);
        }
        for (array, (_, part)) in arrays.iter().zip(&self.parts[self.arrivals.len()..]) {
            array.write(&mut target[part.bytes.start - start..part.bytes.end - start]);
        }
    }
}

/// Returns the bytes of an array; more than memory has if they overflow.
fn size(shape: &[usize], element: Element) -> usize {
    shape.iter().fold(element.bytes(), |bytes, length| bytes.saturating_mul(*length))
}

/// Checks images that the device normalises, and gives them a place in the staging buffer.
fn staged(array: &HostArray<'_>, output: &Output, staging: &mut Room) -> Result<StagedImages> {
    let format = output.pixel_format();
    if format != shardtool_decode::PixelFormat::RGB8 {
        return Err(Error::PixelFormat { format: format.name() });
    }
    let small = |n: usize| u32::try_from(n).ok().filter(|n| *n > 0);
    let found = match &array.shape[..] {
        [images @ .., h, w, 3] if array.element == Element::U8 => {
            // Their product is the length of `bytes`, as checked, and does not overflow.
            small(images.iter().product()).zip(small(h * w)).zip(small(*w))
        }
        _ => None,
    };
    let Some(((n, hw), width)) = found else { return Err(Error::Images { found: array.shape.clone() }) };
    let bytes = staging.add(array.bytes.len(), array.largest);
    Ok(StagedImages { bytes, n, hw, width })
}

/// Checks that a way of mixing is for the images of a batch, which the device normalises.
fn check_mix(mix: &BatchMix, rows: usize, first: Option<&Arrival>) -> Result<()> {
    let expected = match first {
        Some(Arrival::Normalized(StagedImages { n, hw, width, .. })) if *n as usize == rows => {
            Some([rows, (hw / width) as usize, *width as usize])
        }
        _ => None,
    };
    let found = mix.shape();
    if expected == Some(found) { Ok(()) } else { Err(Error::Mix { expected, found }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feed::{Column, PackedRows, Rows};
    use crate::row_data;
    use shardtool_decode::{Dtype, Layout};
    use shardtool_load::{ObjectRole, Values};

    /// Lays out a batch and returns the arrays and bytes of its row data.
    fn row_data(layout: &SlotLayout, rows: &Rows) -> Vec<u8> {
        let mut bytes = vec![0xee; layout.row_data().len()];
        layout.write_row_data(&row_data::arrays(rows), None, &mut bytes);
        bytes
    }

    #[test]
    fn arrays_are_aligned_disjoint_and_hold_the_rows() {
        let output = Output::new(Dtype::F16, Layout::Nchw, [0.0; 3], [1.0; 3]).unwrap();
        let rows = Rows {
            ids: vec![5, -1, 1 << 40],
            valid: vec![true, false, true],
            columns: vec![
                Column::new("label", Values::Int64(vec![7, -100, 9]), Some(1)),
                Column::new("text", Values::Bytes { offsets: vec![0, 1, 1, 1], values: vec![1] }, None),
                Column::new("box", Values::Float(vec![0.5, 1.0, 1.5, 2.0, 2.5, 3.0]), Some(2)),
            ],
            ..Rows::default()
        };
        let pixels = [0; 3 * 5 * 7 * 3];
        let images = [HostArray::images([3, 5, 7, 3], &pixels)];
        let layout = SlotLayout::new(3, &images, &row_data::arrays(&rows), Some(&output), None).unwrap();
        assert_eq!(layout.part(Part::Images).unwrap().shape, [3, 3, 5, 7]);
        let all = [Part::Images, Part::Ids, Part::Valid, Part::Column("label"), Part::Column("box")];
        let parts = all.map(|part| layout.part(part).unwrap());
        for pair in parts.windows(2) {
            assert!(pair[0].bytes.end <= pair[1].bytes.start && pair[1].bytes.start % ALIGNMENT == 0);
        }
        let end = parts[4].bytes.end;
        assert_eq!(layout.slot(), Room { used: end, reserved: end });
        assert!(matches!(layout.part(Part::Column("text")), Err(Error::NoColumn { .. })));
        assert!(matches!(layout.part(Part::Mask("text")), Err(Error::NoPart { .. })));

        let row_data = row_data(&layout, &rows);
        let start = layout.row_data().start;
        let bytes = |part: &PartLayout| &row_data[part.bytes.start - start..part.bytes.end - start];
        let i64s = |part| bytes(part).chunks(8).map(|b| i64::from_le_bytes(b.try_into().unwrap())).collect::<Vec<_>>();
        assert_eq!(i64s(parts[1]), rows.ids);
        assert_eq!(bytes(parts[2]), [1, 0, 1]);
        assert_eq!(i64s(parts[3]), [7, -100, 9]);
        let floats: Vec<f32> = bytes(parts[4]).chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
        assert_eq!(floats, [0.5, 1.0, 1.5, 2.0, 2.5, 3.0]);
    }

    #[test]
    fn ragged_values_have_offsets_and_larger_arrays_have_room() {
        let boxes = Values::RaggedFloat { offsets: vec![0, 8, 8], values: vec![0.5; 8] };
        let rows = Rows {
            ids: vec![4, 9, 2],
            valid: vec![true, true],
            columns: vec![
                Column { role: Some(ObjectRole::Boxes), item: vec![4], ..Column::new("box", boxes, None) },
                Column::new("none", Values::RaggedUint64 { offsets: vec![0, 0, 0], values: vec![] }, None),
            ],
            packed: Some(PackedRows { offsets: vec![0, 2, 3], tokens: vec![2, 1, 4], capacity: 5 }),
            ..Rows::default()
        };
        let mask = [7; 2 * 6];
        let mut masks = [HostArray::new(Part::Mask("map"), Element::U8, vec![2, 2, 3], &mask)];
        masks[0].largest = 5000;
        let layout = SlotLayout::new(2, &masks, &row_data::arrays(&rows), None, None).unwrap();
        let shape = |part| layout.part(part).unwrap().shape.clone();
        assert_eq!((shape(Part::Column("box")), shape(Part::Offsets("box"))), (vec![2, 4], vec![3]));
        assert_eq!((shape(Part::Column("none")), shape(Part::Ids)), (vec![0], vec![3]));
        // 4,864 bytes for the rest of the largest mask, and a quarter of 32 bytes of boxes, 24 of ids and 24 of tokens.
        assert_eq!(layout.slot().reserved, layout.slot().used + 4864 + 20);
        let row_data = row_data(&layout, &rows);
        let start = layout.row_data().start;
        let i32s = |part| {
            let part = layout.part(part).unwrap();
            let bytes = &row_data[part.bytes.start - start..part.bytes.end - start];
            bytes.chunks(4).map(|b| i32::from_le_bytes(b.try_into().unwrap())).collect::<Vec<_>>()
        };
        assert_eq!(i32s(Part::Offsets("box")), [0, 0, 2, 0, 2, 0]);
        assert_eq!(i32s(Part::SegmentIds), [1, 1, 2, 0, 0, 1, 1, 1, 1, 0]);
        assert_eq!(i32s(Part::PositionIds), [0, 1, 0, 0, 0, 0, 1, 2, 3, 0]);
    }
}
