//! Where the random numbers of a sample come from.

/// A stream of random numbers. The loader's are a pure function of seed, epoch and source position.
pub trait Random {
    /// Returns a uniform number in [0, 1).
    fn unit(&mut self) -> f64;
    /// Returns a uniform integer in `0..n`, or 0 if `n` is 0.
    fn below(&mut self, n: u64) -> u64;
}

/// The streams of one sample, of which every step of a pipeline has its own: a step that is added changes no other.
pub trait Draws {
    /// Returns the stream of random crops and horizontal flips, which they share, and of the user's function. `step` is the
    /// index of the step in the pipeline.
    fn shared(&mut self, step: usize) -> &mut dyn Random;
    /// Returns the stream of another step, given its index in the pipeline.
    fn step(&mut self, step: usize) -> &mut dyn Random;
}

/// One stream for all steps: for tests and previews.
impl<R: Random> Draws for R {
    fn shared(&mut self, _: usize) -> &mut dyn Random {
        self
    }

    fn step(&mut self, _: usize) -> &mut dyn Random {
        self
    }
}
