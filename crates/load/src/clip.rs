//! Clips: which of the stored frames of a video a sample delivers.

use crate::error::{Error, Result};
use crate::image::SampleDraws;
use crate::options::{Clip, ClipSampling};

/// Frames per row, at most.
const MAX_FRAMES: u64 = 1 << 20;

impl Clip {
    /// Returns the numbers of the frames that are delivered of a video of `stored` frames, clip after clip: an increasing
    /// sequence for each clip. Empty if `stored` is 0.
    pub fn frame_numbers(&self, stored: usize, draws: SampleDraws) -> Vec<usize> {
        let Some(last) = stored.checked_sub(1) else { return vec![] };
        if self.sampling == ClipSampling::Uniform {
            return uniform(last, self.frames as usize);
        }
        let stride = self.stride as usize;
        let last_start = last.saturating_sub((self.frames as usize - 1) * stride);
        let start = |clip: u32| match self.sampling {
            ClipSampling::Random => draws.clip_start(clip, last_start + 1),
            ClipSampling::Center | ClipSampling::Uniform => last_start / 2,
            ClipSampling::Even => clip as usize * last_start / (self.clips as usize - 1).max(1),
        };
        let frames = |start: usize| (0..self.frames as usize).map(move |i| (start + i * stride).min(last));
        (0..self.clips).flat_map(|clip| frames(start(clip))).collect()
    }

    /// Frames of a row, of all its clips.
    pub(crate) fn row_frames(&self) -> usize {
        self.clips as usize * self.frames as usize
    }

    /// Checks the options.
    ///
    /// # Errors
    /// [`Error::Zero`], [`Error::Clip`].
    pub(crate) fn check(&self) -> Result<()> {
        for (option, value) in [("frames", self.frames), ("stride", self.stride), ("clips", self.clips)] {
            if value == 0 {
                return Err(Error::Zero { option });
            }
        }
        let one = matches!(self.sampling, ClipSampling::Center | ClipSampling::Uniform);
        let reason = if one && self.clips > 1 {
            "`center` and `uniform` take one clip of a video; take several with `random` or `even`"
        } else if self.sampling == ClipSampling::Uniform && self.stride > 1 {
            "`uniform` spreads the frames over the whole video, without a stride"
        } else if u64::from(self.clips) * u64::from(self.frames) > MAX_FRAMES {
            "a row has more than 1,048,576 frames"
        } else {
            return Ok(());
        };
        Err(Error::Clip { reason })
    }
}

/// Returns the frames to read, each once, by increasing number.
pub(crate) fn distinct(mut numbers: Vec<usize>) -> Vec<usize> {
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// Returns `count` numbers spread evenly from 0 to `last`, rounded down. Computes in f32 as `torch.linspace` does on x86-64:
/// from both ends, each with one rounding.
fn uniform(last: usize, count: usize) -> Vec<usize> {
    if count == 1 {
        return vec![0];
    }
    let (end, step) = (last as f32, last as f32 / (count - 1) as f32);
    let number = |i: usize| match i < count / 2 {
        true => step * i as f32,
        false => (-step).mul_add((count - 1 - i) as f32, end),
    };
    // Conversion to an integer truncates, and a negative number becomes 0.
    (0..count).map(|i| (number(i) as usize).min(last)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use shardtool_decode::Pipeline;

    fn pipeline() -> Pipeline {
        Pipeline::eval(8, 8).unwrap()
    }

    fn numbers(stored: usize, frames: u32, stride: u32, sampling: ClipSampling, clips: u32) -> Vec<usize> {
        let clip = Clip { stride, sampling, clips, ..Clip::new("frames", pipeline(), frames) };
        clip.frame_numbers(stored, SampleDraws { seed: 1, epoch: 2, source_position: 3 })
    }

    /// Values of `torch.linspace(0, n - 1, t).clamp(0, n - 1).long()`, torch 2.15 on x86-64. Those with 15 frames differ from
    /// ⌊i (n − 1) ÷ (t − 1)⌋, and from f32 arithmetic without fused multiplication.
    #[test]
    fn uniform_frames_are_those_of_torch() {
        for (stored, expected) in [
            (1, &[0, 0, 0, 0][..]),
            (2, &[0, 0, 0, 0, 1]),
            (30, &[0]),
            (7, &[0, 1, 2, 3, 4, 5, 6]),
            (100, &[0, 14, 28, 42, 56, 70, 84, 99]),
            (3, &[0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 2]),
            (17, &[0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 16]),
            (65, &[0, 4, 9, 13, 18, 22, 27, 31, 36, 41, 45, 50, 54, 59, 64]),
        ] {
            assert_eq!(
                numbers(stored, expected.len() as u32, 1, ClipSampling::Uniform, 1),
                expected,
                "{stored} frames"
            );
        }
        assert!(numbers(0, 4, 1, ClipSampling::Uniform, 1).is_empty());
    }

    #[test]
    fn clips_begin_where_the_rule_says() {
        use ClipSampling::{Center, Even};
        assert_eq!(numbers(20, 4, 3, Center, 1), [5, 8, 11, 14], "11 starts");
        assert_eq!(numbers(10, 4, 3, Center, 1), [0, 3, 6, 9], "one start");
        assert_eq!(numbers(20, 4, 3, Even, 3), [0, 3, 6, 9, 5, 8, 11, 14, 10, 13, 16, 19]);
        assert_eq!(numbers(20, 1, 1, Even, 4), [0, 6, 12, 19]);
        assert_eq!(numbers(20, 2, 1, Even, 1), [0, 1]);
        assert_eq!(numbers(1, 2, 5, Even, 2), [0, 0, 0, 0]);
    }

    #[test]
    fn last_frame_takes_the_place_of_frames_past_the_end() {
        for sampling in [ClipSampling::Random, ClipSampling::Center, ClipSampling::Even] {
            assert_eq!(numbers(5, 4, 2, sampling, 1), [0, 2, 4, 4], "{sampling:?}");
            assert!(numbers(0, 4, 2, sampling, 1).is_empty());
        }
    }

    #[test]
    fn random_starts_reach_every_frame_equally_often() {
        let clip = Clip { clips: 3, ..Clip::new("frames", pipeline(), 2) };
        let mut counts = [0; 9];
        for source_position in 0..6000 {
            let frames = clip.frame_numbers(10, SampleDraws { seed: 7, epoch: 0, source_position });
            assert_eq!(frames.len(), 6);
            for clip in frames.chunks(2) {
                assert_eq!(clip[1], clip[0] + 1);
                counts[clip[0]] += 1;
            }
        }
        // 2,000 expected; the standard deviation is 42.
        assert!(counts.iter().all(|count| (1800..2200).contains(count)), "{counts:?}");
    }
}
