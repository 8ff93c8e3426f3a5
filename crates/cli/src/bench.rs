//! `shardtool bench`.

use crate::device::{DeviceArguments, OnDevice};
use crate::exit::Exit;
use crate::headings;
use crate::load::LoadArguments;
use crate::output::{self, Output};
use crate::text;
use serde_json::json;
use shardtool_host::system_memory;
use shardtool_load::{Field, Loader, Notice, Stats};
use std::io::Write;
use std::path::Path;
use std::time::Instant;

/// Measure the loader: images/s, CPU time, memory, and which stage bounds the rate
///
/// Runs one epoch to warm up, then the measured epochs. --work selects training (RandomResizedCrop, flip), evaluation
/// (Resize, CenterCrop), or reading records only. With --device, batches are uploaded to that device and normalised there
/// with ImageNet's mean and standard deviation.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    load: LoadArguments,
    #[command(flatten)]
    device: DeviceArguments,
    /// Measured epochs
    #[arg(long, default_value_t = 3, value_name = "N", help_heading = headings::OUTPUT)]
    epochs: u64,
    /// Also print Prometheus text
    #[arg(long, conflicts_with = "json", help_heading = headings::OUTPUT)]
    prometheus: bool,
    /// Print one JSON document
    #[arg(long, help_heading = headings::OUTPUT)]
    json: bool,
}

/// Results of the measured epochs.
struct Measured {
    /// Seconds from the start to the first batch.
    first_batch: f64,
    samples: u64,
    seconds: f64,
    /// CPU seconds of all threads.
    cpu: f64,
    /// Bytes of records read.
    bytes: u64,
    /// Peak anonymous memory in bytes; `None` if the system does not report it.
    peak_anonymous: Option<u64>,
    /// Peak resident memory in bytes, including mapped page cache.
    peak_resident: Option<u64>,
}

/// Where batches are delivered.
enum Target {
    Host(Loader),
    Device(Box<OnDevice>),
}

impl Target {
    /// Takes the next batch and returns its number of valid rows; `None` at the end of an epoch.
    fn next(&mut self) -> anyhow::Result<Option<u64>> {
        match self {
            Target::Host(loader) => {
                Ok(loader.next_batch()?.map(|batch| batch.valid().iter().filter(|v| **v).count() as u64))
            }
            Target::Device(device) => device.next(),
        }
    }

    fn stats(&self) -> Stats {
        match self {
            Target::Host(loader) => loader.stats(),
            Target::Device(device) => device.stats(),
        }
    }

    fn device(&self) -> Option<&OnDevice> {
        match self {
            Target::Host(_) => None,
            Target::Device(device) => Some(device),
        }
    }
}

pub(crate) fn run(arguments: &Arguments, out: &mut Output) -> anyhow::Result<Exit> {
    let mut config = arguments.load.config()?;
    for field in &mut config.fields {
        match field {
            Field::Image(image) => arguments.device.normalize_on_host(&mut image.pixels),
            Field::Clip(clip) => arguments.device.normalize_on_host(&mut clip.pixels),
            _ => {}
        }
    }
    let start = Instant::now();
    let mut target = match arguments.device.loader(&config)? {
        Some(device) => Target::Device(Box::new(device)),
        None => Target::Host(Loader::new(&config)?),
    };
    let mut first_batch = None;
    let mut peak = anonymous();
    let mut samples = 0;
    let mut epoch = |target: &mut Target| -> anyhow::Result<u64> {
        let mut valid = 0;
        while let Some(rows) = target.next()? {
            first_batch.get_or_insert_with(|| start.elapsed().as_secs_f64());
            valid += rows;
            peak = peak.max(anonymous());
        }
        Ok(valid)
    };
    epoch(&mut target)?;
    let uploaded = |target: &Target| target.device().map_or(0, OnDevice::uploaded);
    let (before, warm, cpu, uploaded_before) = (target.stats(), Instant::now(), cpu_seconds(), uploaded(&target));
    for _ in 0..arguments.epochs.max(1) {
        samples += epoch(&mut target)?;
    }
    let (seconds, cpu) = (warm.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    if let Target::Host(loader) = &target {
        // The statistics have the other notices.
        let unmoved = loader.notices().into_iter().filter(|notice| matches!(notice, Notice::UnmovedArray { .. }));
        unmoved.for_each(|notice| output::message(format_args!("warning: {notice}")));
    }
    let total = target.stats();
    let mut stats = total.since(&before);
    // A bad sample is counted once in a run, most often in the warm-up epoch.
    stats.bad = total.bad;
    let first_batch = first_batch.unwrap_or_default();
    let measured = Measured {
        first_batch,
        samples,
        seconds,
        cpu,
        bytes: stats.bytes,
        peak_anonymous: peak,
        peak_resident: system_memory::peak_resident(),
    };
    let uploaded = uploaded(&target) - uploaded_before;
    let uploads = match target {
        Target::Host(_) => None,
        Target::Device(device) => Some(device.finish(uploaded, seconds)),
    };
    if arguments.json {
        let mut document = document(&measured, &stats)?;
        if let Some(uploads) = uploads {
            document["device"] = uploads.document();
        }
        out.json(&document)?;
    } else {
        print(&measured, &stats, out)?;
        if let Some(uploads) = uploads {
            uploads.print(out)?;
        }
        if arguments.prometheus {
            write!(out, "{}", stats.to_prometheus())?;
        }
    }
    Ok(if stats.bad > 0 { Exit::Finding } else { Exit::Success })
}

fn print(m: &Measured, stats: &Stats, out: &mut Output) -> anyhow::Result<()> {
    let rate = m.samples as f64 / m.seconds;
    writeln!(
        out,
        "{} {}/s, {:.0} MB/s, {:.2} CPU s / 1,000 {}",
        text::count(rate as u64),
        stats.unit,
        m.bytes as f64 / m.seconds / 1e6,
        m.cpu / m.samples as f64 * 1e3,
        stats.unit
    )?;
    let shown = |bytes: Option<u64>| bytes.map_or("unknown".to_owned(), text::bytes);
    let (anonymous, resident) = (shown(m.peak_anonymous), shown(m.peak_resident));
    writeln!(out, "first batch after {:.2} s; peak memory {anonymous} anonymous, {resident} resident", m.first_batch)?;
    writeln!(
        out,
        "{} of {} workers, {} prefetched; memory budget {}",
        stats.workers,
        stats.max_workers,
        text::plural_irregular(stats.prefetch as u64, "batch", "batches"),
        text::bytes(stats.memory.budget)
    )?;
    writeln!(out, "{:<18} {:>10} {:>12}", "stage", "seconds", "per second")?;
    for (name, stage) in stats.stages() {
        // The rate of a stage with almost no time is noise.
        let spent = stage.time.as_secs_f64();
        let rate = if spent < 0.005 { "-".to_owned() } else { text::count(stage.per_second() as u64) };
        writeln!(out, "  {name:<16} {spent:>10.2} {rate:>12}")?;
    }
    if !stats.members.is_empty() {
        writeln!(out, "members since the start of the run, with the epoch to warm up:")?;
    }
    for member in &stats.members {
        let (samples, len) = (text::count(member.samples), text::count(member.len));
        let (name, share) = (text::printable(member.name.as_bytes()), text::percent(member.share));
        let passes = member.samples as f64 / member.len.max(1) as f64;
        let line = format!("  {name}: {samples} samples, {passes:.1} passes through {len}; {share} in this stage");
        writeln!(out, "{}", text::wrapped(&line, "  "))?;
    }
    writeln!(out, "{}", stats.bottleneck())?;
    if stats.bad > 0 {
        writeln!(out, "{}: `shardtool verify --decode` lists them", text::plural(stats.bad, "bad sample"))?;
    }
    Ok(())
}

fn document(m: &Measured, stats: &Stats) -> anyhow::Result<serde_json::Value> {
    let stats: serde_json::Value = serde_json::from_str(&stats.to_json())?;
    Ok(json!({
        "images_per_s": m.samples as f64 / m.seconds, "mb_per_s": m.bytes as f64 / m.seconds / 1e6,
        "samples": m.samples, "seconds": m.seconds,
        "cpu_s_per_1000": m.cpu / m.samples as f64 * 1e3, "time_to_first_batch_s": m.first_batch,
        "peak_anon_bytes": m.peak_anonymous, "peak_resident_bytes": m.peak_resident, "stats": stats,
    }))
}

/// Returns the anonymous memory of this process in bytes, if the system reports it.
fn anonymous() -> Option<u64> {
    Some(system_memory::anonymous(Path::new("/"))).filter(|bytes| *bytes > 0)
}

/// Returns the CPU time of all threads of this process so far, in seconds.
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
