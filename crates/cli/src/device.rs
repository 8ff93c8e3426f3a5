//! Devices: what is there, and a loader's batches on one.

use crate::text;
use anyhow::anyhow;
use serde_json::json;
use shardtool_cuda::{Config, Device, DeviceBatch, Dtype, ImageLoader, Layout, Output, Probe};
use shardtool_load::Stats;
use std::io::Write;

/// A device, and what images become on it.
#[derive(clap::Args)]
pub(crate) struct DeviceArguments {
    /// Deliver batches on a device: `cuda`, or `cuda:N` with N counted from 0
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// Normalise the images to this type [default: float16 on a device; u8 on the host]
    #[arg(long, value_enum)]
    dtype: Option<DtypeName>,
    /// Order of the dimensions of normalised images [default: NCHW]
    #[arg(long, value_enum, ignore_case = true)]
    layout: Option<LayoutName>,
    /// Device memory for batches, a hard limit [default: what the device has]
    #[arg(long, value_parser = crate::size::parse, value_name = "SIZE", requires = "device")]
    device_memory_limit: Option<u64>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum DtypeName {
    Float32,
    Float16,
    Bfloat16,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum LayoutName {
    #[value(name = "NCHW")]
    Nchw,
    #[value(name = "NHWC")]
    Nhwc,
}

/// What trainers of photographs subtract and divide by, red, green, blue: ImageNet's.
const MEAN: [f64; 3] = [0.485, 0.456, 0.406];
const STD: [f64; 3] = [0.229, 0.224, 0.225];

impl DeviceArguments {
    /// A loader whose batches end on the device, where one was asked for.
    pub(crate) fn loader(&self, config: &shardtool_load::Config) -> anyhow::Result<Option<OnDevice>> {
        let Some(name) = &self.device else { return Ok(None) };
        let device = Device::named(name).map_err(|error| {
            anyhow!(
                "{error}; `shardtool info --device` shows what there is, without --device only the host is measured"
            )
        })?;
        let output = self.output(DtypeName::Float16)?;
        let mut on_device = Config::default();
        (on_device.output, on_device.device_memory_limit) = (output, self.device_memory_limit);
        OnDevice::new(&device, on_device, config).map(Some)
    }

    /// What images become on the host; `None` for u8.
    pub(crate) fn host_output(&self) -> anyhow::Result<Option<Output>> {
        let asked = self.device.is_none() && (self.dtype.is_some() || self.layout.is_some());
        asked.then(|| self.output(DtypeName::Float32)).transpose()
    }

    fn output(&self, default: DtypeName) -> anyhow::Result<Output> {
        let dtype = match self.dtype.unwrap_or(default) {
            DtypeName::Float32 => Dtype::F32,
            DtypeName::Float16 => Dtype::F16,
            DtypeName::Bfloat16 => Dtype::Bf16,
        };
        let layout = match self.layout.unwrap_or(LayoutName::Nchw) {
            LayoutName::Nchw => Layout::Nchw,
            LayoutName::Nhwc => Layout::Nhwc,
        };
        Ok(Output::new(dtype, layout, MEAN, STD)?)
    }
}

/// A loader whose batches end on a device.
pub(crate) struct OnDevice {
    loader: ImageLoader,
    output: Output,
    /// Held until the next one is there, as a trainer would.
    last: Option<DeviceBatch>,
    /// Bytes of pixels that have arrived.
    bytes: u64,
    /// The most bytes that were pinned whenever a batch arrived.
    pinned: u64,
}

/// What a benchmark tells of a device at its end.
pub(crate) struct Uploads {
    ordinal: usize,
    output: Output,
    bytes: u64,
    seconds: f64,
    most_device: u64,
    most_pinned: u64,
}

impl OnDevice {
    fn new(device: &Device, config: Config, load: &shardtool_load::Config) -> anyhow::Result<Self> {
        let output = config.output;
        let loader = ImageLoader::new(device, config, load)?;
        let pinned = loader.memory().pinned;
        Ok(OnDevice { loader, output, last: None, bytes: 0, pinned })
    }

    /// What its host's side did.
    pub(crate) fn stats(&self) -> Stats {
        self.loader.stats()
    }

    /// Rows with a sample of the next batch; `None` at an epoch's end, when all batches have arrived.
    pub(crate) fn next(&mut self) -> anyhow::Result<Option<u64>> {
        let batch = self.loader.next_batch()?;
        self.pinned = self.pinned.max(self.loader.memory().pinned);
        let Some(batch) = batch else {
            if let Some(last) = self.last.take() {
                last.synchronize()?;
            }
            return Ok(None);
        };
        self.bytes += batch.pixel_bytes() as u64;
        let valid = batch.rows().valid.iter().filter(|v| **v).count() as u64;
        self.last = Some(batch);
        Ok(Some(valid))
    }

    /// What was done so far.
    pub(crate) fn uploaded(&self) -> u64 {
        self.bytes
    }

    /// Ends uploading, which ran ahead, of which `bytes` were measured in so many seconds.
    pub(crate) fn finish(self, bytes: u64, seconds: f64) -> Uploads {
        let (ordinal, output, most_pinned) = (self.loader.ordinal(), self.output, self.pinned);
        drop(self.last);
        Uploads { ordinal, output, bytes, seconds, most_device: self.loader.finish(), most_pinned }
    }
}

impl Uploads {
    /// For a person.
    pub(crate) fn print(&self, out: &mut impl Write) -> anyhow::Result<()> {
        let (dtype, layout) = (self.output.dtype().name(), format!("{:?}", self.output.layout()).to_uppercase());
        writeln!(
            out,
            "cuda:{} as {dtype} {layout}: {} of pixels uploaded, {:.0} MB/s; at most {} on the device, {} pinned",
            self.ordinal,
            text::bytes(self.bytes),
            self.bytes as f64 / self.seconds / 1e6,
            text::bytes(self.most_device),
            text::bytes(self.most_pinned)
        )?;
        Ok(())
    }

    /// The same as JSON.
    pub(crate) fn document(&self) -> serde_json::Value {
        json!({
            "device": format!("cuda:{}", self.ordinal), "dtype": self.output.dtype().name(),
            "layout": format!("{:?}", self.output.layout()).to_uppercase(), "uploaded_bytes": self.bytes,
            "uploaded_bytes_per_s": self.bytes as f64 / self.seconds, "most_device_bytes": self.most_device,
            "most_pinned_bytes": self.most_pinned,
        })
    }
}

/// Prints what there is: driver, devices, memory, or why there is nothing to use.
pub(crate) fn show(as_json: bool, out: &mut impl Write) -> anyhow::Result<()> {
    let probe = Probe::new();
    if as_json {
        let usable = probe.devices.iter().any(|device| device.refused.is_none());
        let reason = probe.unavailable.as_ref().map(ToString::to_string);
        let document = json!({ "usable": usable, "reason": reason, "probe": probe });
        writeln!(out, "{document:#}")?;
    } else {
        writeln!(out, "{probe}")?;
    }
    Ok(())
}
