//! The random numbers of a sample: those of `order`, for the transforms of `decode`.

use shardtool_decode::{Draws, Random};
use shardtool_order::Rng;
use std::fmt;

/// The number that the first group of arrays has in place of a view's number, so that neither changes the other. Part of
/// order-spec.md.
const ARRAY_VIEWS: u64 = 1 << 32;

/// As [`ARRAY_VIEWS`], of the first group of ragged arrays.
const RAGGED_VIEWS: u64 = 2 << 32;

/// Which sample of which epoch the numbers are drawn for.
#[derive(Clone, Copy, Debug)]
pub struct SampleDraws {
    /// The loader's seed.
    pub seed: u64,
    /// The epoch, from 0.
    pub epoch: u64,
    /// The sample's position in its source: its id, unless the loader has a source.
    pub source_position: u64,
}

impl SampleDraws {
    /// Returns the streams of an image that has one view.
    pub fn single(self) -> StepDraws {
        StepDraws { sample: self, view: None, shared: self.shared(), step: Stream(Rng::new(0)) }
    }

    /// Returns the streams of one of several views.
    pub fn view(self, view: usize) -> StepDraws {
        StepDraws { view: Some(view as u64), ..self.single() }
    }

    /// Returns the stream of one step of a group of arrays. Groups are numbered from 0, and so are steps.
    pub(crate) fn arrays(self, group: u64, step: u64) -> impl Random {
        Stream(Rng::step(self.seed, self.epoch, self.source_position, ARRAY_VIEWS + group, step))
    }

    /// Returns one of the streams of a group of ragged arrays. Groups are numbered from 0, and so are streams.
    pub(crate) fn ragged(self, group: u64, stream: u64) -> impl Random {
        Stream(Rng::step(self.seed, self.epoch, self.source_position, RAGGED_VIEWS + group, stream))
    }

    /// Returns the start, below `starts`, of a clip of this sample that begins at random. Its stream is that of step `clip` of
    /// the view 2⁶⁴ − 1, which no sample has.
    pub(crate) fn clip_start(self, clip: u32, starts: usize) -> usize {
        let SampleDraws { seed, epoch, source_position } = self;
        let mut stream = Rng::step(seed, epoch, source_position, u64::MAX, u64::from(clip));
        // A record holds fewer than 2³² values.
        stream.below(u32::try_from(starts).unwrap_or(u32::MAX)) as usize
    }

    /// Returns which of several values of a record is taken, below `values`. Its stream is that of step 0 of the view 2⁶⁴ − 2, which no
    /// sample has.
    pub(crate) fn value(self, values: usize) -> usize {
        let SampleDraws { seed, epoch, source_position } = self;
        let mut stream = Rng::step(seed, epoch, source_position, u64::MAX - 1, 0);
        stream.below(u32::try_from(values).unwrap_or(u32::MAX)) as usize
    }

    fn shared(self) -> Stream {
        Stream(Rng::augment(self.seed, self.epoch, self.source_position))
    }
}

/// The streams of one view.
#[derive(Clone)]
pub struct StepDraws {
    sample: SampleDraws,
    /// `None` if there is only one.
    view: Option<u64>,
    shared: Stream,
    step: Stream,
}

impl fmt::Debug for StepDraws {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepDraws").finish_non_exhaustive()
    }
}

impl Draws for StepDraws {
    /// The steps of several views share no stream.
    fn shared(&mut self, step: usize) -> &mut dyn Random {
        match self.view {
            None => &mut self.shared,
            Some(_) => self.step(step),
        }
    }

    fn step(&mut self, step: usize) -> &mut dyn Random {
        let SampleDraws { seed, epoch, source_position } = self.sample;
        self.step = Stream(Rng::step(seed, epoch, source_position, self.view.unwrap_or(0), step as u64));
        &mut self.step
    }
}

/// One stream.
#[derive(Clone)]
struct Stream(Rng);

impl Random for Stream {
    fn unit(&mut self) -> f64 {
        self.0.next_f64()
    }

    fn below(&mut self, n: u64) -> u64 {
        match u32::try_from(n) {
            Ok(n) => u64::from(self.0.below(n)),
            // 32 bits, or fewer.
            Err(_) => (self.0.next_u64() >> 32) % n,
        }
    }
}
