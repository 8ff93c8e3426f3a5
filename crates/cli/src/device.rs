//! CUDA devices: lists them for `info`, and delivers a loader's batches on one for `bench`.

use crate::choice::{choice, choice_of};
use crate::headings;
use crate::output;
use crate::text;
use anyhow::anyhow;
use serde_json::json;
use shardtool_cuda::{Config, Device, DeviceBatch, ImageLoader, Layout, Output, Probe};
use shardtool_format::Chain;
use shardtool_load::{PixelDtype, Pixels, Stats};
use std::io::Write;

/// Which device batches are delivered on, and the type and layout of images.
#[derive(clap::Args)]
pub(crate) struct DeviceArguments {
    /// Deliver batches on `cuda`, or `cuda:N`
    ///
    /// N is counted from 0.
    #[arg(long, value_name = "NAME", help_heading = headings::DEVICE)]
    device: Option<String>,
    /// Normalise the images to this type
    ///
    /// [default: float16 on a device; u8 on the host]
    #[arg(long, value_parser = choice_of(is_normalized), help_heading = headings::DEVICE)]
    dtype: Option<PixelDtype>,
    /// Order of the dimensions [default: NCHW]
    ///
    /// For normalised images.
    #[arg(long, value_parser = choice::<Layout>(), ignore_case = true, help_heading = headings::DEVICE, hide_short_help = true)]
    layout: Option<Layout>,
    /// Most device memory for batches
    ///
    /// [default: the memory of the device]
    #[arg(long, value_parser = shardtool_load::parse_size, value_name = "SIZE", requires = "device", help_heading = headings::DEVICE, hide_short_help = true)]
    device_memory_limit: Option<u64>,
}

/// Returns whether a type holds normalised values.
fn is_normalized(dtype: &PixelDtype) -> bool {
    *dtype != PixelDtype::Uint16
}

/// Mean and standard deviation of ImageNet's pixels, scaled to 0 to 1: red, green, blue.
const MEAN: [f64; 3] = [0.485, 0.456, 0.406];
const STD: [f64; 3] = [0.229, 0.224, 0.225];

impl DeviceArguments {
    /// Makes a loader that delivers on the device that `--device` names; `None` without that flag.
    pub(crate) fn loader(&self, config: &shardtool_load::Config) -> anyhow::Result<Option<OnDevice>> {
        let Some(name) = &self.device else { return Ok(None) };
        let device = Device::named(name).map_err(|error| {
            anyhow!(
                "{}; `shardtool info --device` lists devices; without --device, bench measures the host only",
                Chain(&error)
            )
        })?;
        let (mut config, mut on_device) = (config.clone(), Config::default());
        if let Some(pixels) = config.pixels_mut() {
            self.normalize(pixels);
            pixels.dtype.get_or_insert(PixelDtype::Float16);
            on_device.output = pixels.normalization()?;
        }
        on_device.device_memory_limit = self.device_memory_limit;
        OnDevice::new(&device, on_device, &config).map(Some)
    }

    /// Sets what the workers convert images to on the host, if they do.
    pub(crate) fn normalize_on_host(&self, pixels: &mut Pixels) {
        if self.device.is_none() && (self.dtype.is_some() || self.layout.is_some()) {
            self.normalize(pixels);
        }
    }

    fn normalize(&self, pixels: &mut Pixels) {
        let channels = pixels.format().channels.count();
        (pixels.dtype, pixels.layout) = (self.dtype, self.layout);
        (pixels.mean, pixels.std) = (Some(MEAN[..channels].to_vec()), Some(STD[..channels].to_vec()));
    }
}

/// A loader that delivers batches on a device.
pub(crate) struct OnDevice {
    loader: ImageLoader,
    output: Output,
    /// Kept until the next batch arrives, as a trainer does.
    last: Option<DeviceBatch>,
    /// Bytes of pixels uploaded so far.
    bytes: u64,
    /// Peak of pinned bytes, sampled at each batch.
    pinned: u64,
}

/// Results of a benchmark on a device.
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

    /// Returns the statistics of the host loader.
    pub(crate) fn stats(&self) -> Stats {
        self.loader.stats()
    }

    /// Takes the next batch and returns its number of valid rows. At the end of an epoch, waits until the last batch has
    /// arrived and returns `None`.
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

    /// Returns the bytes of pixels uploaded so far.
    pub(crate) fn uploaded(&self) -> u64 {
        self.bytes
    }

    /// Stops uploading. `bytes` were uploaded during the measured `seconds`.
    pub(crate) fn finish(self, bytes: u64, seconds: f64) -> Uploads {
        let (ordinal, output, most_pinned) = (self.loader.ordinal(), self.output, self.pinned);
        drop(self.last);
        Uploads { ordinal, output, bytes, seconds, most_device: self.loader.finish(), most_pinned }
    }
}

impl Uploads {
    /// Prints the results as text.
    pub(crate) fn print(&self, out: &mut output::Output) -> anyhow::Result<()> {
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

    /// Returns the results as JSON.
    pub(crate) fn document(&self) -> serde_json::Value {
        json!({
            "device": format!("cuda:{}", self.ordinal), "dtype": self.output.dtype().name(),
            "layout": format!("{:?}", self.output.layout()).to_uppercase(), "uploaded_bytes": self.bytes,
            "uploaded_bytes_per_s": self.bytes as f64 / self.seconds, "most_device_bytes": self.most_device,
            "most_pinned_bytes": self.most_pinned,
        })
    }
}

/// Prints driver, devices and memory, or why no device can be used.
pub(crate) fn show(as_json: bool, out: &mut output::Output) -> anyhow::Result<()> {
    let probe = Probe::new();
    if as_json {
        let usable = probe.devices.iter().any(|device| device.refused.is_none());
        let reason = probe.unavailable.as_ref().map(|reason| Chain(reason).to_string());
        let document = json!({ "usable": usable, "reason": reason, "probe": probe });
        out.json(&document)?;
    } else {
        writeln!(out, "{probe}")?;
    }
    Ok(())
}
