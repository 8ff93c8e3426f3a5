//! Converts the options of `shardtool.Loader`: a JSON text of its configuration, and what JSON cannot hold.

use crate::array::numbers;
use crate::device;
use crate::error;
use crate::function::{self, Raised};
use crate::json::parse;
use crate::names;
use pyo3::prelude::*;
use shardtool_cuda::Device;
use shardtool_decode::{FloatRange, Truncated};
use shardtool_load::{Config, Custom, Loader, parse_size};
use shardtool_order::{Balanced, Launch, List, Mixture, Replica, Source, Weighted};
use shardtool_read::Split;

/// What `shardtool.Loader` is made of.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Options {
    /// JSON of [`Config`].
    config: String,
    /// Called on each finished image.
    function: Option<Py<PyAny>>,
    source: Option<SourceOption>,
    rank: Option<u32>,
    world_size: Option<u32>,
    local_replicas: u32,
    /// JSON of [`Devices`](shardtool_load::Devices).
    device: Option<String>,
}

/// Bytes, or text such as `4GiB`.
#[derive(FromPyObject)]
pub(crate) enum Size {
    Bytes(u64),
    Text(String),
}

impl Size {
    pub(crate) fn bytes(&self, py: Python<'_>, option: &str) -> PyResult<u64> {
        match self {
            Size::Bytes(bytes) => Ok(*bytes),
            Size::Text(text) => parse_size(text).map_err(|e| error::option(py, &format!("`{option}`: {e}"))),
        }
    }
}

/// Kind, little-endian numbers of 64 bits, draws.
#[derive(FromPyObject)]
struct SourceOption(String, Vec<u8>, Option<u64>);

impl SourceOption {
    fn source(self, py: Python<'_>, splits: &[Split]) -> PyResult<Source> {
        let SourceOption(kind, bytes, draws) = self;
        let records: u64 = splits.iter().map(Split::len).sum();
        let unsigned = || numbers(&bytes, u64::from_le_bytes);
        let source = match kind.as_str() {
            "list" => List::new(unsigned()?, records).map(Source::List),
            "balanced" => {
                let labels = numbers(&bytes, i64::from_le_bytes)?;
                if labels.len() as u64 != records {
                    let message = format!("`source`: {} labels for {records} records", labels.len());
                    return Err(error::option(py, &message));
                }
                Ok(Source::Balanced(Balanced::new((0..).zip(labels.iter().copied()))))
            }
            "weighted" => {
                let weights = unsigned()?;
                if weights.len() as u64 != records {
                    let message = format!("`source`: {} weights for {records} records", weights.len());
                    return Err(error::option(py, &message));
                }
                Weighted::new(weights, draws).map(Source::Weighted)
            }
            "mixture" => {
                let shares = unsigned()?;
                if shares.len() != splits.len() {
                    let message = format!("`source`: {} shares for {} splits", shares.len(), splits.len());
                    return Err(error::option(py, &message));
                }
                let sizes = splits.iter().map(Split::len);
                Mixture::new(&sizes.zip(shares).collect::<Vec<_>>(), draws).map(Source::Mixture)
            }
            _ => return Err(error::option(py, &format!("source: `{kind}` is not known"))),
        };
        source.map_err(|e| error::order(py, e))
    }
}

/// A loader's configuration before it is bound to a replica.
pub(crate) struct Resolved {
    /// With this process as the only replica.
    config: Config,
    local_replicas: u32,
    /// One device for each replica of this process, and the configuration of uploads.
    pub(crate) devices: Option<(Vec<Device>, shardtool_cuda::Config)>,
    /// Exceptions of the user's function.
    pub(crate) raised: Raised,
    /// Ragged columns that become arrays of the length of the bucket or the packed row, and what is after the values of a row.
    pub(crate) padded: Vec<(String, f64)>,
    /// Names of the classes that batches deliver.
    pub(crate) classes: Vec<String>,
}

impl Resolved {
    /// Checks the configuration before the replica is known: with the given one, else as the only one. Returns the names of the
    /// classes that batches deliver.
    fn check(&self, py: Python<'_>, given: Option<(u32, u32)>) -> PyResult<Vec<String>> {
        let (rank, world) = given.unwrap_or((0, 1));
        let (config, ranks) = self.bind(py, (rank, world, None))?;
        let check = || match config.memory {
            Some(_) => Loader::plan_group(&config, &ranks).map(|plan| plan.classes),
            None => Loader::check(&config, &ranks).map(|checked| checked.class_names().to_vec()),
        };
        py.detach(check).map_err(|e| error::load(py, e))
    }
}

/// Rank, world size and local world size of this process.
pub(crate) type Place = (u32, u32, Option<u32>);

impl Resolved {
    /// Returns the configuration of the process's first replica, and the ranks of all its replicas.
    pub(crate) fn bind(&self, py: Python<'_>, (rank, world, local_world): Place) -> PyResult<(Config, Vec<u32>)> {
        let local = self.local_replicas;
        let first = rank.checked_mul(local).zip(world.checked_mul(local));
        let (first, all) = first.ok_or_else(|| error::option(py, "`local_replicas`: too many replicas"))?;
        let replica = Replica::new(first, all).map_err(|e| error::order(py, e))?;
        let mut config = self.config.clone();
        (config.replica, config.local_world) = (replica, local_world.unwrap_or(1));
        Ok((config, (first..first + local).collect()))
    }
}

impl Options {
    pub(crate) fn resolve(self, py: Python<'_>, splits: Vec<Split>) -> PyResult<Resolved> {
        let raised = Raised::default();
        let mut config: Config = parse(py, &self.config)?;
        config.source = self.source.map(|source| source.source(py, &splits)).transpose()?;
        config.splits = splits;
        if let Some((pixels, function)) = config.pixels_mut().zip(self.function) {
            pixels.custom = Some(Custom(function::custom(function, raised.clone())));
        }
        let padded = config.padded();
        let devices = self.device.map(|json| device::open(py, &json, &config, &padded)).transpose()?;
        let (local_replicas, classes) = (self.local_replicas, vec![]);
        let mut resolved = Resolved { config, local_replicas, devices, raised, padded, classes };
        resolved.classes = resolved.check(py, self.rank.zip(self.world_size))?;
        names::check(py, &resolved.config, resolved.devices.is_some())?;
        Ok(resolved)
    }
}

/// Returns the value of that name.
pub(crate) fn one_of<T: Clone>(py: Python<'_>, option: &str, name: &str, known: &[(&str, T)]) -> PyResult<T> {
    let found = known.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| value.clone()).ok_or_else(|| {
        let known: Vec<_> = known.iter().map(|(name, _)| format!("{name:?}")).collect();
        error::option(py, &format!("`{option}` is {name:?}: expected {}", known.join(", ")))
    })
}

/// Returns what happens to a cut or damaged JPEG.
pub(crate) fn truncated(py: Python<'_>, name: &str) -> PyResult<Truncated> {
    one_of(py, "truncated", name, &[Truncated::Error, Truncated::Fill].map(|choice| (choice.name(), choice)))
}

/// Returns a range of floating-point samples.
pub(crate) fn float_range(py: Python<'_>, range: Option<(f64, f64)>) -> PyResult<Option<FloatRange>> {
    let convert = |(low, high)| {
        let message =
            || format!("`float_range` is ({low}, {high}): expected two finite numbers, the smaller one first");
        FloatRange::new(low, high).ok_or_else(|| error::option(py, &message()))
    };
    range.map(convert).transpose()
}

/// Rank, world size, local world size, where they came from, and what was ignored.
type Found = (u32, u32, Option<u32>, String, Vec<String>);

/// Finds the replica of this process: as given, or from the environment.
#[pyfunction]
pub(crate) fn launch(py: Python<'_>, rank: Option<u32>, world_size: Option<u32>) -> PyResult<Found> {
    let given = rank.zip(world_size).map(|(rank, world)| Replica::new(rank, world)).transpose();
    let given = given.map_err(|e| error::order(py, e))?;
    let launch = Launch::from_env(given, |name| std::env::var(name).ok()).map_err(|e| error::order(py, e))?;
    let ignored = launch.ignored.iter().map(ToString::to_string).collect();
    let (rank, world) = (launch.replica.rank(), launch.replica.world());
    Ok((rank, world, launch.local_world, launch.launcher.to_string(), ignored))
}
