//! `shardtool bench`.

use crate::device::{DeviceArguments, OnDevice};
use crate::load::LoadArguments;
use crate::status::Status;
use crate::text;
use serde_json::json;
use shardtool_load::{Content, Loader, Stats};
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
    /// Of records read.
    bytes: u64,
    /// Bytes; `None` where the system does not tell.
    peak_anonymous: Option<u64>,
    /// The same of all memory, page cache that is mapped included.
    peak_resident: Option<u64>,
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
    let mut config = arguments.load.config()?;
    if let Content::Images(images) = &mut config.content {
        images.output = arguments.device.host_output()?;
    }
    let start = Instant::now();
    let mut end = match arguments.device.loader(&config)? {
        Some(device) => End::Device(Box::new(device)),
        None => End::Host(Loader::new(&config)?),
    };
    let mut first_batch = None;
    let mut peak = memory("RssAnon:");
    let mut samples = 0;
    let mut epoch = |end: &mut End| -> anyhow::Result<u64> {
        let mut valid = 0;
        while let Some(rows) = end.next()? {
            first_batch.get_or_insert_with(|| start.elapsed().as_secs_f64());
            valid += rows;
            peak = peak.max(memory("RssAnon:"));
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
    let measured = Measured {
        first_batch,
        samples,
        seconds,
        processor,
        bytes: stats.bytes,
        peak_anonymous: peak,
        peak_resident: memory("VmHWM:"),
    };
    let uploaded = uploaded(&end) - up;
    let uploads = match end {
        End::Host(_) => None,
        End::Device(device) => Some(device.finish(uploaded, seconds)),
    };
    let mut out = std::io::stdout().lock();
    if arguments.json {
        let mut document = document(&measured, &stats);
        if let Some(uploads) = uploads {
            document["device"] = uploads.document();
        }
        writeln!(out, "{document:#}")?;
    } else {
        print(&measured, &stats, &mut out)?;
        if let Some(uploads) = uploads {
            uploads.print(&mut out)?;
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
        "{} {}/s, {:.0} MB/s, {:.2} processor seconds per 1,000",
        text::count(rate as u64),
        stats.unit,
        m.bytes as f64 / m.seconds / 1e6,
        m.processor / m.samples as f64 * 1e3
    )?;
    let told = |bytes: Option<u64>| bytes.map_or("unknown".to_owned(), text::bytes);
    let (anonymous, resident) = (told(m.peak_anonymous), told(m.peak_resident));
    writeln!(out, "first batch after {:.2} s; peak memory {anonymous} anonymous, {resident} resident", m.first_batch)?;
    let (workers, all) = stats.workers;
    writeln!(
        out,
        "{workers} of {all} workers, {} ahead; budget {}",
        text::plural_irregular(stats.depth as u64, "batch", "batches"),
        text::bytes(stats.memory.budget)
    )?;
    writeln!(out, "{:<18} {:>10} {:>12}", "stage", "seconds", "a second")?;
    for (name, stage) in stats.stages() {
        // A rate says nothing where hardly any time was spent.
        let spent = stage.time.as_secs_f64();
        let rate = if spent < 0.005 { "-".to_owned() } else { text::count(stage.per_second() as u64) };
        writeln!(out, "  {name:<16} {spent:>10.2} {rate:>12}")?;
    }
    writeln!(out, "{}", stats.verdict())?;
    if stats.bad > 0 {
        writeln!(out, "{}: `shardtool verify --decode` lists them", text::plural(stats.bad, "bad sample"))?;
    }
    Ok(())
}

fn document(m: &Measured, stats: &Stats) -> serde_json::Value {
    json!({
        "images_per_s": m.samples as f64 / m.seconds, "mb_per_s": m.bytes as f64 / m.seconds / 1e6,
        "samples": m.samples, "seconds": m.seconds,
        "cpu_s_per_1000": m.processor / m.samples as f64 * 1e3, "time_to_first_batch_s": m.first_batch,
        "peak_anon_bytes": m.peak_anonymous, "peak_resident_bytes": m.peak_resident, "stats": stats.to_json(),
    })
}

/// A figure of this process's memory, in bytes (`RssAnon:`, `VmHWM:` of proc_pid_status(5)).
fn memory(line: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let value = status.lines().find_map(|l| l.strip_prefix(line))?;
    value.trim().trim_end_matches(" kB").parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Processor time of this process so far, in seconds, of all threads.
fn processor_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
