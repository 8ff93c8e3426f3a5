//! What resume states name of the transforms of a run, and the states that a run with other transforms refuses.
//!
//! Another batch transform, or another exchange of mirrored points, leaves the samples as they are and changes the batches. Within an
//! epoch it is refused. At the start of one it is reported, because programs end mosaics there.

use crate::error::{Error, Result};
use crate::mixing::Mixing;
use crate::notices::Notice;
use crate::objects::ObjectColumns;
use crate::options::{BatchTransform, CopyPaste, Mosaic, Pairs};
use shardtool_format::checksum::crc32c;
use shardtool_order::{ResumeState, TransformMarks};

/// Longer texts are left out of messages, which have their checksums.
const MAX_TEXT: usize = 200;

/// The transforms of a run that states name, as text. States have the CRC32C of its UTF-8, so these texts never change.
#[derive(Debug, Default)]
pub(crate) struct NamedTransforms {
    batch_transform: Option<String>,
    flip_index: Option<String>,
}

/// A member of a state that names another transform than the run has.
struct Difference {
    member: &'static str,
    /// The checksum in the state; `None` if it does not have the member.
    state: Option<u32>,
    /// What the run has, as text.
    current: String,
}

impl NamedTransforms {
    pub(crate) fn new(mixing: Option<&Mixing>, objects: Option<&ObjectColumns>) -> Self {
        NamedTransforms {
            batch_transform: mixing.and_then(|mixing| batch_transform(&mixing.transforms)),
            flip_index: objects.and_then(ObjectColumns::flip_index).map(|order| format!("{order:?}")),
        }
    }

    /// Returns the members of a state.
    pub(crate) fn marks(&self) -> TransformMarks {
        let crc = |text: &Option<String>| text.as_ref().map(|text| crc32c(text.as_bytes()));
        TransformMarks { batch_transform: crc(&self.batch_transform), flip_index: crc(&self.flip_index) }
    }

    /// Checks that a run with these transforms may continue inside the epoch of a state. States without a member were saved by earlier
    /// versions, too.
    ///
    /// # Errors
    /// [`Error::StateTransform`].
    pub(crate) fn check(&self, state: &ResumeState) -> Result<()> {
        let differences = self.differences(state).into_iter();
        let refused = differences.filter(|_| state.p > 0).find_map(|Difference { member, state, current }| {
            Some(Error::StateTransform { member, state: state?, current })
        });
        refused.map_or(Ok(()), Err)
    }

    /// Returns what to report of a state that [`check`](Self::check) accepts.
    pub(crate) fn notices(&self, state: &ResumeState) -> Vec<Notice> {
        let begun = (state.epoch, state.p) != (0, 0);
        let differences = self.differences(state).into_iter().filter(|_| begun);
        differences
            .map(|Difference { member, state, current }| Notice::OtherTransform { member, state, current })
            .collect()
    }

    fn differences(&self, state: &ResumeState) -> Vec<Difference> {
        let (named, ours) = (state.transforms, self.marks());
        let mut differences = Vec::new();
        if named.batch_transform != ours.batch_transform {
            differences.push(Difference {
                member: "batch_transform",
                state: named.batch_transform,
                current: describe(self.batch_transform.as_deref()),
            });
        }
        // A run without keypoints has other steps or fields, which states do not name.
        if let (Some(named), Some(_)) =
            (named.flip_index, ours.flip_index.filter(|ours| named.flip_index != Some(*ours)))
        {
            differences.push(Difference {
                member: "flip_index",
                state: Some(named),
                current: describe(self.flip_index.as_deref()),
            });
        }
        differences
    }
}

/// Describes transforms of batches in order; `None` if none of them changes a batch.
fn batch_transform(transforms: &[BatchTransform]) -> Option<String> {
    let texts: Vec<_> = transforms.iter().map(text).collect();
    texts.iter().any(|text| text != UNCHANGED).then(|| texts.join(", "))
}

/// A transform with probability 0, which counts among those that one is drawn of.
const UNCHANGED: &str = "none";

/// Describes what a transform does to images. The number of classes belongs to the labels, whose shape shows it.
fn text(transform: &BatchTransform) -> String {
    match *transform {
        BatchTransform::MixUp(Pairs { alpha, .. }) => format!("MixUp(alpha={alpha})"),
        BatchTransform::CutMix(Pairs { alpha, .. }) => format!("CutMix(alpha={alpha})"),
        BatchTransform::Mosaic(Mosaic { p: 0.0, .. }) | BatchTransform::CopyPaste(CopyPaste { p: 0.0 }) => {
            UNCHANGED.to_owned()
        }
        BatchTransform::Mosaic(Mosaic { p, center: [low, high], .. }) => {
            format!("Mosaic(p={p}, center=[{low}, {high}])")
        }
        BatchTransform::CopyPaste(CopyPaste { p }) => format!("CopyPaste(p={p})"),
    }
}

/// Describes what a run has, for messages.
fn describe(text: Option<&str>) -> String {
    match text {
        None => "none".to_owned(),
        Some(text) if text.len() > MAX_TEXT => format!("{:08x}", crc32c(text.as_bytes())),
        Some(text) => format!("{:08x}, {text}", crc32c(text.as_bytes())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(transforms: &[BatchTransform]) -> Option<String> {
        batch_transform(transforms)
    }

    #[test]
    fn names_what_changes_the_images_of_a_batch() {
        let (mix, cut) = (BatchTransform::mix_up(0.8), BatchTransform::cut_mix(1.0));
        assert_eq!(named(&[mix, cut]).unwrap(), "MixUp(alpha=0.8), CutMix(alpha=1)");
        assert_ne!(named(&[mix, cut]), named(&[cut, mix]), "one is drawn by its number");
        let classes = BatchTransform::MixUp(Pairs { alpha: 0.8, num_classes: Some(7) });
        assert_eq!(named(&[classes]), named(&[mix]));
        let mosaic = |p, low| BatchTransform::Mosaic(Mosaic { p, center: [low, 0.75], num_classes: None });
        assert_eq!(named(&[mosaic(0.5, 0.25)]).unwrap(), "Mosaic(p=0.5, center=[0.25, 0.75])");
        assert_ne!(named(&[mosaic(0.5, 0.25)]), named(&[mosaic(0.5, 0.5)]));
        assert_ne!(named(&[BatchTransform::copy_paste(0.5)]), named(&[BatchTransform::copy_paste(0.25)]));
    }

    #[test]
    fn transforms_that_change_nothing_are_as_none() {
        let off = [BatchTransform::mosaic(0.0), BatchTransform::copy_paste(0.0)];
        assert_eq!(named(&off), None);
        let (mix, [mosaic, paste]) = (BatchTransform::mix_up(0.8), off);
        assert_eq!(named(&[mix, mosaic]), named(&[mix, paste]));
        assert_ne!(named(&[mix, mosaic]), named(&[mix]), "half of the batches are not mixed");
    }

    #[test]
    fn long_texts_are_left_out_of_messages() {
        let long = format!("{:?}", (0..1000).collect::<Vec<_>>());
        assert_eq!(describe(Some(&long)), format!("{:08x}", crc32c(long.as_bytes())));
        assert!(describe(Some("[0, 2, 1]")).ends_with(", [0, 2, 1]"));
    }
}
