//! Lengths of runs of pixels down the columns of an image: those that an object does not cover, and those that it covers, in turn.

/// Finds where coverage changes down each column, for columns of `height` pixels: calls `change` with column and row. Every column
/// begins as not covered.
pub(super) fn changes(lengths: &[u32], height: usize, mut change: impl FnMut(usize, usize)) {
    let mut start = 0;
    for pair in lengths.chunks(2) {
        start += pair[0] as usize;
        let end = start + pair.get(1).map_or(0, |covered| *covered as usize);
        while start < end {
            let (x, y) = (start / height, start % height);
            change(x, y);
            let stop = end.min((x + 1) * height);
            if stop % height != 0 {
                change(x, stop % height);
            }
            start = stop;
        }
    }
}

/// Decompresses the lengths of COCO's compressed texts: each in parts of five bits, the lowest first, one for each character from
/// `0`; the sixth bit says that another part follows, and the highest bit of the last part is the sign. From the fourth on, lengths
/// are differences to the one before the last.
///
/// # Errors
/// What is wrong with the text.
pub(super) fn decompress(text: &str) -> Result<Vec<u32>, String> {
    let mut lengths: Vec<u32> = Vec::with_capacity(text.len() / 2);
    let (mut value, mut shift) = (0i64, 0);
    for character in text.chars() {
        let part = match character {
            '0'..='o' => i64::from(character as u32 - u32::from('0')),
            _ => return Err(format!("the character {character:?} of compressed run lengths; expected '0' to 'o'")),
        };
        if shift > 30 {
            return Err("a compressed run length of more than 35 bits".to_owned());
        }
        value |= (part & 31) << shift;
        shift += 5;
        if part & 32 != 0 {
            continue;
        }
        if part & 16 != 0 {
            value -= 1 << shift;
        }
        if let Some(before) = lengths.len().checked_sub(2).filter(|before| *before > 0) {
            value += i64::from(lengths[before]);
        }
        lengths.push(u32::try_from(value).map_err(|_| format!("a run length of {value} pixels"))?);
        (value, shift) = (0, 0);
    }
    if shift > 0 {
        return Err("the text of compressed run lengths ends in a number".to_owned());
    }
    Ok(lengths)
}
