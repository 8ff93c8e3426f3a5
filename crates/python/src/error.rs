//! Converts errors of all crates to the exceptions of `shardtool.errors`. The message is that of the Rust error; in errors of
//! `pack`, command-line flags become keyword arguments.

use crate::spelling::in_python;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use shardtool_format::{Chain, Damage};
use shardtool_load::{BadSample, SampleError};
use shardtool_read::verify::Finding;
use std::path::{Path, PathBuf};

/// Returns an exception of `shardtool.errors` with attributes.
fn exception(py: Python<'_>, class: &str, message: &str, attributes: &Bound<'_, PyDict>) -> PyErr {
    let make = || py.import("shardtool.errors")?.getattr(class)?.call((message,), Some(attributes));
    make().map_or_else(|error| error, PyErr::from_value)
}

fn plain(py: Python<'_>, class: &str, error: &dyn std::error::Error) -> PyErr {
    exception(py, class, &Chain(error).to_string(), &PyDict::new(py))
}

fn io(py: Python<'_>, message: &str, source: &std::io::Error, path: &Path) -> PyErr {
    let attributes = PyDict::new(py);
    let set = attributes
        .set_item("errno", source.raw_os_error())
        .and_then(|()| attributes.set_item("filename", path.to_string_lossy()));
    match set {
        Ok(()) => exception(py, "FileError", message, &attributes),
        Err(error) => error,
    }
}

/// Returns the error for an invalid argument that no other crate has an error for.
pub(crate) fn option(py: Python<'_>, message: &str) -> PyErr {
    exception(py, "OptionError", message, &PyDict::new(py))
}

/// Returns the error for an argument of the wrong type.
pub(crate) fn option_type(py: Python<'_>, message: &str) -> PyErr {
    exception(py, "OptionTypeError", message, &PyDict::new(py))
}

/// Returns the error for a column that the index does not have.
pub(crate) fn column(py: Python<'_>, message: &str) -> PyErr {
    exception(py, "ColumnError", message, &PyDict::new(py))
}

/// Returns the error for a record number outside the split.
pub(crate) fn no_key(py: Python<'_>, message: &str) -> PyErr {
    exception(py, "RecordKeyError", message, &PyDict::new(py))
}

pub(crate) fn out_of_range(py: Python<'_>, message: &str) -> PyErr {
    exception(py, "OutOfRangeError", message, &PyDict::new(py))
}

/// Returns the error for a call that the object's state does not allow.
pub(crate) fn usage(py: Python<'_>, message: &str) -> PyErr {
    exception(py, "UsageError", message, &PyDict::new(py))
}

/// Returns the error for a forked child that uses its parent's loader.
pub(crate) fn forked(py: Python<'_>) -> PyErr {
    usage(
        py,
        "this loader belongs to the process that made it, and this is a forked child without its threads: make the \
         loader in the child (or start it with the method `spawn`)",
    )
}

/// Adds a note to the exception (`BaseException.add_note`, Python 3.11).
pub(crate) fn with_note(py: Python<'_>, error: PyErr, note: &str) -> PyErr {
    // Exceptions have no notes before Python 3.11. A failure here must not replace the exception itself.
    let _ = error.value(py).call_method1("add_note", (note,));
    error
}

pub(crate) fn read(py: Python<'_>, error: shardtool_read::Error) -> PyErr {
    use shardtool_read::Error as E;
    let message = Chain(&error).to_string();
    match error {
        E::Io { path, source, .. } | E::Unreadable { path, source, .. } => io(py, &message, &source, &path),
        E::NotADataset { .. } | E::ForeignSource { .. } => plain(py, "DatasetError", &error),
        E::NoSplit { .. } => plain(py, "SplitError", &error),
        E::OutOfRange { .. } => plain(py, "OutOfRangeError", &error),
        error => {
            let shard = match &error {
                E::Record { path, .. } | E::IndexMismatch { path, .. } => Some(path.clone()),
                E::MissingShard { path }
                | E::ShardLength { path, .. }
                | E::ShardCrc { path, .. }
                | E::ShardSha256 { path, .. } => Some(path.clone()),
                _ => None,
            };
            let mut finding = Finding::new(&error);
            finding.file = shard.unwrap_or_default();
            damage(py, "DamageError", &finding, |_| Ok(()))
        }
    }
}

/// Returns an exception with the details of a finding as attributes; `more` adds others.
fn damage(
    py: Python<'_>,
    class: &str,
    damage: &Finding,
    more: impl FnOnce(&Bound<'_, PyDict>) -> PyResult<()>,
) -> PyErr {
    let attributes = || {
        let attributes = PyDict::new(py);
        let shard = Some(damage.file.to_string_lossy()).filter(|file| !file.is_empty());
        attributes.set_item("name", damage.damage.map(Damage::name))?;
        attributes.set_item("shard", shard)?;
        attributes.set_item("record", damage.record)?;
        attributes.set_item("key", &damage.key)?;
        attributes.set_item("offset", damage.offset)?;
        attributes.set_item("expected", &damage.expected)?;
        attributes.set_item("found", &damage.found)?;
        more(&attributes)?;
        Ok(attributes)
    };
    match attributes() {
        Ok(attributes) => exception(py, class, &damage.message, &attributes),
        Err(error) => error,
    }
}

pub(crate) fn load(py: Python<'_>, error: shardtool_load::Error) -> PyErr {
    use shardtool_load::Error as E;
    match error {
        E::Read(error) => read(py, error),
        E::Order(error) => order(py, error),
        E::Budget(_) | E::Scratch { .. } | E::MaskScratch { .. } | E::ArrayScratch { .. } | E::Alloc { .. } => {
            plain(py, "BudgetError", &error)
        }
        E::Starved { .. } => plain(py, "StarvedError", &error),
        E::BadSample(ref sample) | E::NoSubstitute { ref sample, .. } | E::TooManyBad { last: ref sample, .. } => {
            bad_sample(py, sample, &Chain(&error).to_string())
        }
        E::StateTransform { .. } => plain(py, "StateError", &error),
        E::NoSplits
        | E::Options(_)
        | E::Stages(_)
        | E::SourceLength { .. }
        | E::Ranks { .. }
        | E::Zero { .. }
        | E::NoFeature { .. }
        | E::Types { .. }
        | E::Labels { .. }
        | E::NoLabel { .. }
        | E::Classes { .. }
        | E::UnknownClass { .. }
        | E::ClassTwice { .. }
        | E::Layout { .. }
        | E::Values { .. }
        | E::ViewName { .. }
        | E::NoBoxes { .. }
        | E::FlipIndex { .. }
        | E::Keypoints { .. }
        | E::NoClassNames { .. }
        | E::TwoColumns { .. }
        | E::ObjectClasses { .. }
        | E::ObjectNames
        | E::OtherClasses { .. }
        | E::FirstArrays { .. }
        | E::FurtherImage { .. }
        | E::NoFurtherImage { .. }
        | E::Mixing { .. }
        | E::Packing { .. }
        | E::PixelFormat { .. }
        | E::Array { .. }
        | E::Clip { .. }
        | E::Class { .. } => plain(py, "OptionError", &error),
        E::Stopped => plain(py, "UsageError", &error),
        error => plain(py, "WorkerError", &error),
    }
}

pub(crate) fn device(py: Python<'_>, error: shardtool_cuda::Error) -> PyErr {
    use shardtool_cuda::Error as E;
    match error {
        E::Load(error) => load(py, error),
        E::DeviceMemory(_) => plain(py, "BudgetError", &error),
        E::Exhausted { .. } => plain(py, "StarvedError", &error),
        E::DeviceName(_) | E::Option { .. } | E::Stream(_) | E::Records => plain(py, "OptionError", &error),
        error => plain(py, "DeviceError", &error),
    }
}

fn bad_sample(py: Python<'_>, sample: &BadSample, message: &str) -> PyErr {
    let mut finding = finding(sample);
    finding.message = message.to_owned();
    damage(py, "BadSampleError", &finding, |attributes| attributes.set_item("id", sample.id))
}

/// Returns a bad sample as a finding about its shard.
pub(crate) fn finding(sample: &BadSample) -> Finding {
    let mut finding = match &sample.error {
        SampleError::Read(error) => Finding::new(error),
        SampleError::FrameBytes { source: error, .. } => Finding::new(error),
        error => Finding::without_details(PathBuf::new(), error.damage(), String::new()),
    };
    finding.file = sample.shard.clone();
    finding.record = Some(sample.record);
    finding.key = sample.key.as_ref().map(|key| String::from_utf8_lossy(key).into_owned());
    finding.message = Chain(sample).to_string();
    finding
}

/// Converts the error of a record's image that does not decode.
pub(crate) fn undecodable(
    py: Python<'_>,
    split: &shardtool_read::Split,
    id: u64,
    key: String,
    error: &shardtool_decode::Error,
) -> PyErr {
    let (shard, record) = split.locate(id).unwrap_or_default();
    let file = split.shard_path(shard);
    let message =
        format!("{}: record {record} (key `{key}`): its image does not decode: {}", file.display(), Chain(error));
    let mut finding = Finding::without_details(file, Some(error.damage()), message);
    (finding.record, finding.key) = (Some(record), Some(key));
    damage(py, "DamageError", &finding, |_| Ok(()))
}

pub(crate) fn order(py: Python<'_>, error: shardtool_order::Error) -> PyErr {
    use shardtool_order::Error as E;
    let class = match error {
        E::StateJson { .. }
        | E::StateVersion { .. }
        | E::StateMember { .. }
        | E::StateFingerprint { .. }
        | E::StateSource { .. }
        | E::StateStages { .. }
        | E::StateOrder { .. }
        | E::StateSeed { .. }
        | E::StateWorld { .. }
        | E::StateBatching { .. }
        | E::StatePosition { .. } => "StateError",
        _ => "OptionError",
    };
    plain(py, class, &error)
}

/// Returns the error of a transform that is not a list of steps.
pub(crate) fn transform(py: Python<'_>, error: &serde_json::Error) -> PyErr {
    option(py, &format!("`steps`: {error}"))
}

/// Converts an error of steps that do not fit an image in memory.
pub(crate) fn decode(py: Python<'_>, error: &shardtool_decode::Error) -> PyErr {
    option(py, &Chain(error).to_string())
}

pub(crate) fn pack(py: Python<'_>, error: shardtool_pack::Error) -> PyErr {
    use shardtool_pack::Error as E;
    let message = in_python(&Chain(&error).to_string());
    match error {
        E::Io { path, source, .. } => io(py, &message, &source, &path),
        E::Option { .. } => exception(py, "OptionError", &message, &PyDict::new(py)),
        _ => exception(py, "PackError", &message, &PyDict::new(py)),
    }
}
