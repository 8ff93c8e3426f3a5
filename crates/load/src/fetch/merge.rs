//! Groups the records of rows into requests.

use std::ops::Range;

/// The frame of a row's record, or a part of it, in an object of type `O`.
pub(super) struct Wanted<O> {
    /// The number of the row among those that are planned together.
    pub(super) number: usize,
    /// The split and the shard, as numbers.
    pub(super) shard: (usize, usize),
    pub(super) object: O,
    pub(super) range: Range<u64>,
}

/// One request, for the records of one or more rows.
#[derive(Debug)]
pub(super) struct Request<O> {
    pub(super) object: O,
    pub(super) bytes: Range<u64>,
    /// Each row's number, and the range that it wants.
    pub(super) parts: Vec<(usize, Range<u64>)>,
}

/// Limits of merged requests, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Bytes between two records that are requested for nothing, at most.
    pub(super) gap: u64,
    /// Bytes of a request of several records, at most.
    pub(super) size: u64,
}

/// Groups records that are neighbours in a shard. At most a quarter of a request's bytes lies between records.
pub(super) fn merge<O>(mut wanted: Vec<Wanted<O>>, limits: Limits) -> Vec<Request<O>> {
    wanted.sort_by_key(|wanted| (wanted.shard, wanted.range.start));
    let mut requests: Vec<Request<O>> = vec![];
    let (mut shard, mut unused) = (None, 0);
    for Wanted { number, shard: own, object, range } in wanted {
        if let Some(last) = requests.last_mut()
            && shard == Some(own)
        {
            let gap = range.start.saturating_sub(last.bytes.end);
            let size = range.end.max(last.bytes.end) - last.bytes.start;
            if gap <= limits.gap && size <= limits.size && 4 * (unused + gap) <= size {
                unused += gap;
                last.bytes.end = last.bytes.end.max(range.end);
                last.parts.push((number, range));
                continue;
            }
        }
        (shard, unused) = (Some(own), 0);
        requests.push(Request { object, bytes: range.clone(), parts: vec![(number, range)] });
    }
    requests
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { gap: 10, size: 100 };

    fn merged(frames: &[(usize, Range<u64>)]) -> Vec<(Range<u64>, Vec<usize>)> {
        let wanted = frames.iter().enumerate().map(|(number, (shard, frame))| Wanted {
            number,
            shard: (0, *shard),
            object: (),
            range: frame.clone(),
        });
        let requests = merge(wanted.collect(), LIMITS).into_iter();
        requests.map(|r| (r.bytes, r.parts.into_iter().map(|(number, _)| number).collect())).collect()
    }

    #[test]
    fn merges_neighbours_in_any_order() {
        assert_eq!(merged(&[(0, 20..40), (0, 0..20), (0, 40..60)]), [(0..60, vec![1, 0, 2])]);
    }

    #[test]
    fn keeps_shards_and_distant_records_apart() {
        assert_eq!(merged(&[(0, 0..20), (1, 20..40)]).len(), 2);
        assert_eq!(merged(&[(0, 0..40), (0, 50..90)]), [(0..90, vec![0, 1])]);
        assert_eq!(merged(&[(0, 0..40), (0, 51..90)]).len(), 2);
    }

    #[test]
    fn limits_size_and_unused_bytes() {
        assert_eq!(merged(&[(0, 0..60), (0, 60..120)]).len(), 2);
        assert_eq!(merged(&[(0, 0..200)]), [(0..200, vec![0])]);
        // 8 of 16 bytes would be unused.
        assert_eq!(merged(&[(0, 0..4), (0, 12..16)]).len(), 2);
    }

    #[test]
    fn the_same_record_is_requested_once() {
        assert_eq!(merged(&[(0, 0..20), (0, 0..20)]), [(0..20, vec![0, 1])]);
    }
}
