//! `shardtool bench`.

use crate::device::{DeviceArguments, OnDevice};
use crate::load::LoadArguments;
use crate::status::Status;
use crate::text;
use serde_json::json;
use shardtool_load::{Loader, Stats};
use std::io::Write;
use std::time::Instant;

/// Measure the loader: images/s, processor time, memory, and which stage bounds the rate
///
/// Runs an epoch to warm up, then the epochs that count. The work is that of training (RandomResizedCrop, flip), of
/// evaluation (Resize, CenterCrop), or reading records alone. With --device batches end there, normalised with ImageNet's
/// mean and standard deviation.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    load: LoadArguments,
    #[command(flatten)]
    device: DeviceArguments,
    /// Epochs that count
    #[arg(long, default_value_t = 3, value_name = "N")]
    epochs: u64,
    /// Also print statistics as Prometheus text
    #[arg(long, conflicts_with = "json")]
    prometheus: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// What was measured.
struct Measured {
    first_batch: f64,
    samples: u64,
    seconds: f64,
    processor: f64,
    /// Bytes; `None` where the system does not tell.
    peak_anonymous: Option<u64>,
}

/// Where batches end.
enum End {
    Host(Loader),
    Device(Box<OnDevice>),
}

impl End {
    /// Rows with a sample of the next batch; `None` at an epoch's end.
    fn next(&mut self) -> anyhow::Result<Option<u64>> {
        match self {
            End::Host(loader) => {
                Ok(loader.next_batch()?.map(|batch| batch.valid().iter().filter(|v| **v).count() as u64))
            }
            End::Device(device) => device.next(),
        }
    }

    fn stats(&self) -> Stats {
        match self {
            End::Host(loader) => loader.stats(),
            End::Device(device) => device.stats(),
        }
    }

    fn device(&self) -> Option<&OnDevice> {
        match self {
            End::Host(_) => None,
            End::Device(device) => Some(device),
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<Status> {
    let config = arguments.load.config()?;
    let start = Instant::now();
    let mut end = match arguments.device.loader(&config)? {
        Some(device) => End::Device(Box::new(device)),
        None => End::Host(Loader::new(&config)?),
    };
    let mut first_batch = None;
    let mut peak = anonymous();
    let mut samples = 0;
    let mut epoch = |end: &mut End| -> anyhow::Result<u64> {
        let mut valid = 0;
        while let Some(rows) = end.next()? {
            first_batch.get_or_insert_with(|| start.elapsed().as_secs_f64());
            valid += rows;
            peak = peak.max(anonymous());
        }
        Ok(valid)
    };
    epoch(&mut end)?;
    let uploaded = |end: &End| end.device().map_or(0, OnDevice::uploaded);
    let (before, warm, processor, up) = (end.stats(), Instant::now(), processor_seconds(), uploaded(&end));
    for _ in 0..arguments.epochs.max(1) {
        samples += epoch(&mut end)?;
    }
    let (seconds, processor) = (warm.elapsed().as_secs_f64(), processor_seconds() - processor);
    let stats = end.stats().since(&before);
    let first_batch = first_batch.unwrap_or_default();
    let measured = Measured { first_batch, samples, seconds, processor, peak_anonymous: peak };
    let uploaded = end.device().map(|device| (device, uploaded(&end) - up));
    let mut out = std::io::stdout().lock();
    if arguments.json {
        let mut document = document(&measured, &stats);
        if let Some((device, bytes)) = uploaded {
            document["device"] = device.document(bytes, seconds);
        }
        writeln!(out, "{document:#}")?;
    } else {
        print(&measured, &stats, &mut out)?;
        if let Some((device, bytes)) = uploaded {
            device.print(bytes, seconds, &mut out)?;
        }
        if arguments.prometheus {
            write!(out, "{}", stats.to_prometheus())?;
        }
    }
    Ok(if stats.bad > 0 { Status::Finding } else { Status::Good })
}

fn print(m: &Measured, stats: &Stats, out: &mut impl Write) -> anyhow::Result<()> {
    let rate = m.samples as f64 / m.seconds;
    writeln!(
        out,
        "{} {}/s, {:.2} processor seconds per 1,000",
        text::count(rate as u64),
        stats.unit,
        m.processor / m.samples as f64 * 1e3
    )?;
    let peak = m.peak_anonymous.map_or("unknown".to_owned(), text::bytes);
    writeln!(out, "first batch after {:.2} s; peak anonymous memory {peak}", m.first_batch)?;
    let (workers, all) = stats.workers;
    writeln!(
        out,
        "{workers} of {all} workers, {} ahead; budget {}",
        text::plural_irregular(stats.depth as u64, "batch", "batches"),
        text::bytes(stats.memory.budget)
    )?;
    writeln!(out, "{:<18} {:>10} {:>12}", "stage", "seconds", "a second")?;
    for (name, stage) in stats.stages() {
        writeln!(
            out,
            "  {name:<16} {:>10.2} {:>12}",
            stage.time.as_secs_f64(),
            text::count(stage.per_second() as u64)
        )?;
    }
    writeln!(out, "{}", stats.verdict())?;
    if stats.bad > 0 {
        writeln!(out, "{}: `shardtool verify --decode` lists them", text::plural(stats.bad, "bad sample"))?;
    }
    Ok(())
}

fn document(m: &Measured, stats: &Stats) -> serde_json::Value {
    json!({
        "rate": m.samples as f64 / m.seconds, "unit": stats.unit, "samples": m.samples, "seconds": m.seconds,
        "cpu_seconds_per_1000": m.processor / m.samples as f64 * 1e3, "first_batch_seconds": m.first_batch,
        "peak_anonymous_bytes": m.peak_anonymous, "stats": stats.to_json(),
    })
}

/// Anonymous memory of this process, in bytes (`RssAnon` of proc(5)).
fn anonymous() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("RssAnon:"))?;
    line.trim().trim_end_matches(" kB").parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Processor time of this process so far, in seconds, of all threads.
fn processor_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
