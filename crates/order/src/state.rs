//! The resume state: what a training run saves to continue where it stopped.

use std::fmt;
use std::num::NonZeroU32;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Error;
use crate::order::Order;
use crate::source::StageMarks;
use shardtool_format::checksum::{crc32c, parse_hex};

const VERSION: u64 = 1;

/// Everything that decides the sequence of samples: runs with equal identities visit the same samples in the same order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Fingerprint of the split.
    pub fingerprint: u32,
    /// CRC32C of the source's canonical JSON; of a scheduled source without the stages that the run has not begun.
    pub source_crc: u32,
    /// Marks of the stages that the run has begun; `None` if the source is not scheduled.
    pub stages: Option<StageMarks>,
    /// The order and its parameters.
    pub order: Order,
    /// The seed.
    pub seed: u64,
    /// R under policy `shard`, whose sequence depends on it; `None` under the other policies.
    pub shard_world: Option<u32>,
    /// Checksum of the buckets or of the packing, which decide what p counts; `None` without either.
    pub batching: Option<u32>,
}

/// Checksums of what a run makes of its samples, as far as states name it. They do not decide which samples follow, so
/// [`Plan::resume`](crate::Plan::resume) takes every value: the loader compares them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransformMarks {
    /// Of what changes whole batches, such as MixUp; `None` if nothing does.
    pub batch_transform: Option<u32>,
    /// Of the numbers that keypoints have in a mirrored object; `None` without keypoints, or if these are not known.
    pub flip_index: Option<u32>,
}

/// A position in a run: everything before position `p` of `epoch` has been delivered. Equal on all replicas after the
/// same number of steps. Its [`Display`](fmt::Display) is its JSON, below 350 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResumeState {
    /// What the position belongs to.
    pub identity: Identity,
    /// What the run makes of its samples.
    pub transforms: TransformMarks,
    /// The epoch, from 0.
    pub epoch: u64,
    /// Positions delivered in it; with buckets, bucket batches; with packing, packed rows.
    pub p: u64,
}

/// As [`ResumeState::parse`].
impl std::str::FromStr for ResumeState {
    type Err = Error;

    fn from_str(json: &str) -> Result<Self, Error> {
        ResumeState::parse(json)
    }
}

/// Writes the state as text, its JSON, so that it can be a member of a checkpoint.
impl Serialize for ResumeState {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// Reads the state from its JSON as text.
impl<'de> Deserialize<'de> for ResumeState {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl ResumeState {
    /// Makes the state of a run that has delivered everything before position p = `at.1` of epoch `at.0`. It names no transforms.
    pub fn new(identity: Identity, at: (u64, u64)) -> Self {
        ResumeState { identity, transforms: TransformMarks::default(), epoch: at.0, p: at.1 }
    }

    /// Parses a state from its JSON. Members may be in any order. Unknown members are refused, since a new member means a
    /// new version.
    ///
    /// # Errors
    /// [`Error::StateJson`], [`Error::StateVersion`], [`Error::StateMember`].
    pub fn parse(json: &str) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct Version {
            version: u64,
        }
        // Serde would also read the members from an array.
        if !json.trim_start_matches([' ', '\t', '\n', '\r']).starts_with('{') {
            return Err(Error::StateJson { problem: "expected a JSON object".to_owned() });
        }
        let Version { version: found } = serde_json::from_str(json).map_err(invalid)?;
        if found != VERSION {
            return Err(Error::StateVersion { found, expected: VERSION });
        }
        serde_json::from_str::<Members>(json).map_err(invalid)?.try_into()
    }

    /// Checks that a run with this identity may continue from this state. World size under policy `shard`, and whether the
    /// policy is `shard`, may differ at the start of an epoch only; so may buckets and packing.
    ///
    /// # Errors
    /// Names the first member that differs, with both values.
    pub fn check(&self, current: &Identity) -> Result<(), Error> {
        let Identity { fingerprint, source_crc, stages, order, seed, shard_world, batching } = self.identity;
        if let (Some(state), Some(current_stages)) = (stages, current.stages) {
            if let Some(stage) = current_stages.first_difference(&state) {
                return Err(Error::StateStages { stage });
            }
            // A stage before those may have other members, and so other splits.
            if source_crc != current.source_crc {
                return Err(Error::StateSource { state: source_crc, source_crc: current.source_crc });
            }
        }
        if fingerprint != current.fingerprint {
            return Err(Error::StateFingerprint { state: fingerprint, dataset: current.fingerprint });
        }
        if source_crc != current.source_crc {
            return Err(Error::StateSource { state: source_crc, source_crc: current.source_crc });
        }
        if order != current.order {
            return Err(Error::StateOrder { state: order, current: current.order });
        }
        if seed != current.seed {
            return Err(Error::StateSeed { state: seed, current: current.seed });
        }
        if self.p > 0 && shard_world != current.shard_world {
            return Err(Error::StateWorld { state: shard_world, current: current.shard_world });
        }
        if self.p > 0 && batching != current.batching {
            return Err(Error::StateBatching { state: batching, current: current.batching });
        }
        Ok(())
    }
}

impl fmt::Display for ResumeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Identity { fingerprint, source_crc, stages, order, seed, shard_world, batching } = self.identity;
        write!(f, r#"{{"version":{VERSION},"fingerprint":"{fingerprint:08x}","source":"{source_crc:08x}""#)?;
        if let Some(stages) = stages {
            write!(f, r#","stages":"{stages}""#)?;
        }
        f.write_str(r#","order":"#)?;
        match order {
            Order::Sequential => write!(f, r#""sequential""#)?,
            Order::Shuffled => write!(f, r#""shuffled""#)?,
            Order::Interleaved { run, window } => write!(f, r#""interleaved","run":{run},"window":{window}"#)?,
        }
        if let Some(world) = shard_world {
            write!(f, r#","world":{world}"#)?;
        }
        if let Some(crc) = batching {
            write!(f, r#","batching":"{crc:08x}""#)?;
        }
        let TransformMarks { batch_transform, flip_index } = self.transforms;
        for (member, crc) in [("batch_transform", batch_transform), ("flip_index", flip_index)] {
            if let Some(crc) = crc {
                write!(f, r#","{member}":"{crc:08x}""#)?;
            }
        }
        write!(f, r#","seed":{seed},"epoch":{},"p":{}}}"#, self.epoch, self.p)
    }
}

/// Computes the fingerprint of a mixture of datasets: CRC32C of the datasets' fingerprints, each as little-endian u32.
pub fn mixture_fingerprint(fingerprints: &[u32]) -> u32 {
    let bytes: Vec<u8> = fingerprints.iter().flat_map(|f| f.to_le_bytes()).collect();
    crc32c(&bytes)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Members {
    #[serde(rename = "version")]
    _version: u64,
    fingerprint: String,
    source: String,
    #[serde(default, deserialize_with = "present")]
    stages: Option<String>,
    order: String,
    #[serde(default, deserialize_with = "present")]
    run: Option<NonZeroU32>,
    #[serde(default, deserialize_with = "present")]
    window: Option<NonZeroU32>,
    #[serde(default, deserialize_with = "present")]
    world: Option<NonZeroU32>,
    #[serde(default, deserialize_with = "present")]
    batching: Option<String>,
    #[serde(default, deserialize_with = "present")]
    batch_transform: Option<String>,
    #[serde(default, deserialize_with = "present")]
    flip_index: Option<String>,
    seed: u64,
    epoch: u64,
    p: u64,
}

/// Reads an optional member. `null` is an error, not an absent member.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(value: D) -> Result<Option<T>, D::Error> {
    T::deserialize(value).map(Some)
}

impl TryFrom<Members> for ResumeState {
    type Error = Error;

    fn try_from(m: Members) -> Result<Self, Error> {
        let order = match (m.order.as_str(), m.run, m.window) {
            ("sequential", None, None) => Order::Sequential,
            ("shuffled", None, None) => Order::Shuffled,
            ("interleaved", Some(run), Some(window)) => Order::Interleaved { run, window },
            _ => {
                return Err(Error::StateMember {
                    member: "order",
                    expected: "sequential or shuffled without run and window, or interleaved with both",
                });
            }
        };
        let optional = |member, digits: Option<String>| digits.map(|digits| hex(member, &digits)).transpose();
        let identity = Identity {
            fingerprint: hex("fingerprint", &m.fingerprint)?,
            source_crc: hex("source", &m.source)?,
            stages: m.stages.map(|digits| stage_marks(&digits)).transpose()?,
            order,
            seed: m.seed,
            shard_world: m.world.map(NonZeroU32::get),
            batching: optional("batching", m.batching)?,
        };
        let transforms = TransformMarks {
            batch_transform: optional("batch_transform", m.batch_transform)?,
            flip_index: optional("flip_index", m.flip_index)?,
        };
        Ok(ResumeState { identity, transforms, epoch: m.epoch, p: m.p })
    }
}

fn hex(member: &'static str, digits: &str) -> Result<u32, Error> {
    parse_hex(digits.as_bytes()).ok_or(Error::StateMember { member, expected: "eight lower-case hex digits" })
}

fn stage_marks(digits: &str) -> Result<StageMarks, Error> {
    let expected = "4 lower-case hex digits for the number of stages, and 4 for each of the last 19";
    StageMarks::parse(digits).ok_or(Error::StateMember { member: "stages", expected })
}

fn invalid(error: serde_json::Error) -> Error {
    Error::StateJson { problem: error.to_string() }
}
