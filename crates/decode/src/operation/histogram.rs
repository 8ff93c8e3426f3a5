//! Operations that map each channel through a table made from its values: autocontrast and equalize.

/// The new value of each sample value, by channel.
type Tables = [[u8; 256]; 3];

/// Stretches the values of each channel to 0 to 255 (`autocontrast`). A constant channel is left as it is.
pub(super) fn autocontrast(data: &mut [u8]) {
    let counts = count(data);
    map(data, &counts.map(|counts| stretched(&counts)));
}

/// Distributes the values of each channel evenly, as PIL's `ImageOps.equalize` and torchvision's `equalize` do.
pub(super) fn equalize(data: &mut [u8]) {
    let counts = count(data);
    map(data, &counts.map(|counts| equalized(&counts)));
}

fn count(data: &[u8]) -> [[u64; 256]; 3] {
    let mut counts = [[0; 256]; 3];
    for pixel in data.as_chunks::<3>().0 {
        counts.iter_mut().zip(pixel).for_each(|(counts, &sample)| counts[usize::from(sample)] += 1);
    }
    counts
}

fn map(data: &mut [u8], [red, green, blue]: &Tables) {
    for [r, g, b] in data.as_chunks_mut::<3>().0 {
        [*r, *g, *b] = [red[usize::from(*r)], green[usize::from(*g)], blue[usize::from(*b)]];
    }
}

fn unchanged() -> [u8; 256] {
    std::array::from_fn(|value| value as u8)
}

/// Computes (value − smallest) ÷ ((largest − smallest) · 1/255) in f32, rounded down.
fn stretched(counts: &[u64; 256]) -> [u8; 256] {
    let smallest = counts.iter().position(|&count| count > 0).unwrap_or(0);
    let largest = counts.iter().rposition(|&count| count > 0).unwrap_or(0);
    if smallest == largest {
        return unchanged();
    }
    let scale = (largest - smallest) as f32 * (1.0 / 255.0);
    std::array::from_fn(|value| (value.saturating_sub(smallest) as f32 / scale).min(255.0) as u8)
}

/// Computes (number of smaller samples + step ÷ 2) ÷ step in integers, where a step is 1/255 of the samples without those
/// of the largest value. If a step is less than one sample, the channel is left as it is.
fn equalized(counts: &[u64; 256]) -> [u8; 256] {
    let total: u64 = counts.iter().sum();
    let of_largest = counts.iter().rfind(|&&count| count > 0).copied().unwrap_or(0);
    let step = (total - of_largest) / 255;
    if step == 0 {
        return unchanged();
    }
    let mut smaller = 0;
    counts.map(|count| {
        let value = (smaller + step / 2) / step;
        smaller += count;
        value.min(255) as u8
    })
}
