//! Measures the server of `shardtool view`, in a separate process, with many records: `campaign write FOLDER RECORDS`, then
//! `campaign measure FOLDER`; and with photographs: `campaign pack PHOTOS FOLDER`, then `campaign thumbnails FOLDER`.
//! `scripts/campaign view` runs all of them; `campaign serve FOLDER` is the process that is measured.

use rayon::prelude::*;
use shardtool_decode::{PixelsRef, encode_jpeg};
use shardtool_format::manifest::DType;
use shardtool_pack::{Image, Label, Sample, Value, Writer, WriterOptions};
use shardtool_read::Dataset;
use shardtool_view::{Options, Server};
use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// What issue and documentation promise, for 10^7 records on a local disk with a warm page cache.
const FIRST_PAGE: Duration = Duration::from_secs(1);
const JUMP: Duration = Duration::from_millis(300);
const SORT: Duration = Duration::from_secs(2);
const MEMORY_MB: u64 = 200;
/// The exit status if only a time limit was exceeded, which a machine with other work may do. Every other failure has status 1.
const SLOW: u8 = 3;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    match arguments[1..] {
        ["write", folder, records] => write(Path::new(folder), records.parse()?).map(|()| ExitCode::SUCCESS),
        ["pack", photos, folder] => {
            shardtool_pack::pack(&shardtool_pack::Options::new(photos, folder), &())?;
            Ok(ExitCode::SUCCESS)
        }
        ["serve", folder] => serve(folder).map(|()| ExitCode::SUCCESS),
        ["measure", folder] => measure(folder),
        ["thumbnails", folder] => thumbnails(folder).map(|()| ExitCode::SUCCESS),
        _ => {
            Err("usage: campaign write FOLDER RECORDS | pack PHOTOS FOLDER | measure FOLDER | thumbnails FOLDER".into())
        }
    }
}

/// Writes a split of tiny images with keys, labels, sizes that look like those of photographs, and captions.
fn write(folder: &Path, records: u64) -> Result<(), Box<dyn Error>> {
    let mut options = WriterOptions::new(folder, "train");
    options.classes = (0..1000).map(|class| format!("class {class:04}")).collect();
    options.features = [("camera/width", DType::Int64), ("weight", DType::Float), ("caption", DType::Bytes)]
        .map(|(name, dtype)| (name.to_owned(), dtype))
        .to_vec();
    options.entry_points = false;
    options.shard_size = 64 << 20;
    let images: Vec<_> = (0..64u8)
        .map(|n| encode_jpeg(PixelsRef::new(16, 16, &[n * 4; 768]).expect("16 × 16 pixels"), 50))
        .collect::<Result<_, _>>()?;
    let writer = Writer::open(&options)?;
    (0..records).into_par_iter().try_for_each(|i| {
        // A hash (SplitMix64), so that columns are not sorted.
        let mut hash = i.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash ^= hash >> 31;
        let class = hash % 1000;
        let key = format!("n{class:08}/n{class:08}_{i:08}.jpg");
        let sample = Sample {
            key: &key,
            image: Some(Image::File(&images[(hash >> 20) as usize % 64])),
            label: Some(Label::Id(class as i64)),
            values: vec![
                ("camera/width", Value::Int64(vec![200 + (hash >> 32) as i64 % 6000])),
                ("weight", Value::Float(vec![(hash >> 40) as f32 / 1e3])),
                ("caption", Value::Bytes(vec![format!("a picture of {}", hash >> 44).into_bytes()])),
            ],
        };
        writer.write(&sample).map(drop)
    })?;
    writer.finish()?;
    Ok(())
}

/// Serves a dataset and prints its URL, as `shardtool view` does.
fn serve(folder: &str) -> Result<(), Box<dyn Error>> {
    let mut options = Options::default();
    options.port = Some(0);
    let server = Server::bind(Dataset::open(folder)?, &options)?;
    println!("{}", server.url());
    Ok(server.run()?)
}

/// A running server.
struct Site {
    child: Child,
    address: String,
}

impl Site {
    fn start(folder: &str) -> Result<Self, Box<dyn Error>> {
        let mut child =
            Command::new(std::env::current_exe()?).args(["serve", folder]).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("no standard output")?).read_line(&mut line)?;
        let address = line.trim().trim_start_matches("http://").trim_end_matches('/').to_owned();
        Ok(Site { child, address })
    }

    /// Requests a page; returns how long it took, and the page.
    fn get(&self, path: &str) -> Result<(Duration, Vec<u8>), Box<dyn Error>> {
        let since = Instant::now();
        let mut stream = TcpStream::connect(&self.address)?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address)?;
        let mut answer = vec![];
        stream.read_to_end(&mut answer)?;
        if !answer.starts_with(b"HTTP/1.1 200") {
            return Err(format!("{path}: {}", String::from_utf8_lossy(&answer)).into());
        }
        Ok((since.elapsed(), answer))
    }

    /// Returns the CPU time of the server so far, in seconds: fields 14 and 15 of proc_pid_stat(5), in hundredths.
    fn cpu_seconds(&self) -> Result<f64, Box<dyn Error>> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let after_name = stat.rsplit(')').next().unwrap_or_default();
        let ticks = after_name.split_whitespace().skip(11).take(2).map(str::parse::<f64>).sum::<Result<f64, _>>()?;
        Ok(ticks / 100.0)
    }

    /// Returns the anonymous memory of the server and its peak resident memory, in MB.
    fn memory(&self) -> Result<(u64, u64), Box<dyn Error>> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let field = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap_or_default();
            line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) * 1024 / 1_000_000
        };
        Ok((field("RssAnon"), field("VmHWM")))
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn measure(folder: &str) -> Result<ExitCode, Box<dyn Error>> {
    // Maps the indexes once, so that the page cache is warm.
    Site::start(folder)?.get("/train/columns")?;
    std::thread::sleep(Duration::from_secs(3));
    let site = Site::start(folder)?;
    let middle = Dataset::open(folder)?.split("train")?.len() / 2;
    let cells = |query: &str| format!("/train/cells?count=60&{query}");
    let steps = [
        ("first page", "/train".to_owned(), FIRST_PAGE),
        ("jump to the middle", cells(&format!("start={middle}")), JUMP),
        ("filter: a class", cells("filter=image/class/label%3D417"), JUMP),
        ("filter: a range", cells("filter=camera/width%3E%3D3000&filter=camera/width%3C3100"), JUMP),
        ("filter: half of all", cells("filter=weight%3E8000"), JUMP),
        ("search, few matches", cells("q=_00012345"), JUMP),
        ("search, many matches", cells("q=picture+of+7"), JUMP),
        ("sort by an integer, first", cells("sort=camera/width"), SORT),
        ("sort by an integer, again", cells("sort=-camera/width&start=77"), JUMP),
        ("sort by a float, first", cells("sort=weight"), SORT),
        ("sort by key, first", cells("sort=key"), SORT),
        ("sorted and filtered", cells("sort=key&filter=image/class/label%3D417"), JUMP),
        ("a record", format!("/train/record/{middle}"), JUMP),
        ("columns", "/train/columns".to_owned(), FIRST_PAGE),
    ];
    let (mut slow, mut most) = (false, 0);
    for (name, path, limit) in steps {
        let peak = std::sync::atomic::AtomicBool::new(true);
        let (took, anonymous) = std::thread::scope(|scope| {
            let sampled = scope.spawn(|| {
                let mut most = 0;
                while peak.load(std::sync::atomic::Ordering::Relaxed) {
                    most = most.max(site.memory().map_or(0, |(anonymous, _)| anonymous));
                    std::thread::sleep(Duration::from_millis(5));
                }
                most
            });
            let took = site.get(&path);
            peak.store(false, std::sync::atomic::Ordering::Relaxed);
            (took, sampled.join().unwrap_or(0))
        });
        let took = took?.0;
        most = most.max(anonymous);
        slow |= took > limit;
        let mark = if took > limit { "  above the limit" } else { "" };
        println!(
            "{name:28} {:7.1} ms  limit {:4} ms  {anonymous:4} MB{mark}",
            took.as_secs_f64() * 1e3,
            limit.as_millis()
        );
    }
    let (_, resident) = site.memory()?;
    println!(
        "{:28} {most:7} MB  limit {MEMORY_MB:4} MB  (resident with mapped pages: {resident} MB)",
        "anonymous memory, peak"
    );
    Ok(match (most > MEMORY_MB, slow) {
        (true, _) => ExitCode::FAILURE,
        (false, true) => SLOW.into(),
        (false, false) => ExitCode::SUCCESS,
    })
}

/// Prints how many thumbnails the server makes per second, requested one after the other.
fn thumbnails(folder: &str) -> Result<(), Box<dyn Error>> {
    let site = Site::start(folder)?;
    let page = String::from_utf8(site.get("/train/cells?count=1")?.1)?;
    let total =
        page.lines().find_map(|line| line.strip_prefix("x-total: ")).ok_or("no total")?.trim().parse::<u64>()?;
    let (since, cpu) = (Instant::now(), site.cpu_seconds()?);
    let mut bytes = 0;
    for id in 0..total {
        let picture = site.get(&format!("/train/thumb/{id}"))?.1;
        if picture.windows(13).any(|w| w == b"image/svg+xml") {
            return Err(format!("record {id} has no thumbnail").into());
        }
        bytes += picture.len() as u64;
    }
    let seconds = since.elapsed().as_secs_f64();
    println!(
        "{:28} {:7.0} a second, one at a time; {:.0} a CPU second; {} bytes each",
        "thumbnails",
        total as f64 / seconds,
        total as f64 / (site.cpu_seconds()? - cpu),
        bytes / total.max(1)
    );
    Ok(())
}
