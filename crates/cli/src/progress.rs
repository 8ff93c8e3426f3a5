//! Progress of long commands on standard error: a bar on a terminal, otherwise a line every few seconds.

use crate::{interrupt, output, text};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use shardtool_pack::{DestinationError, Step};
use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Interval of lines, and of drawing the bar, which takes longer than a short unit of work.
const LINE_EVERY: Duration = Duration::from_secs(5);
const BAR_EVERY: Duration = Duration::from_millis(125);

/// Progress of `total` units of work; any thread may advance it.
#[derive(Debug)]
pub struct Progress {
    /// What was done to which units: `verified`, `records`.
    verb: &'static str,
    noun: &'static str,
    total: AtomicU64,
    done: AtomicU64,
    bytes: AtomicU64,
    start: Instant,
    bar: Option<ProgressBar>,
    shown: Mutex<Instant>,
}

impl Progress {
    /// Starts progress at 0 of `total`; `verb` and `noun` are for example `verified`, `records`.
    #[expect(clippy::disallowed_methods, reason = "asks whether it is a terminal; the bar holds no text from files")]
    pub fn new(verb: &'static str, noun: &'static str, total: u64) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
            let template = "{bar:20} {human_pos}/{human_len} {msg}, {eta} left";
            bar.set_style(ProgressStyle::with_template(template).expect("a valid template"));
            bar
        });
        let [total, done, bytes] = [total, 0, 0].map(AtomicU64::new);
        let start = Instant::now();
        Progress { verb, noun, total, done, bytes, start, bar, shown: Mutex::new(start) }
    }

    /// Sets the total, if it was unknown at the start.
    fn set_total(&self, total: u64) {
        self.total.store(total, Ordering::Relaxed);
        self.bar.iter().for_each(|bar| bar.set_length(total));
    }

    /// Adds finished units and their bytes.
    pub fn advance(&self, units: u64, bytes: u64) {
        let done = self.done.fetch_add(units, Ordering::Relaxed) + units;
        let bytes = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let every = if self.bar.is_some() { BAR_EVERY } else { LINE_EVERY };
        // If another thread holds the lock, it shows the progress.
        if let Ok(mut shown) = self.shown.try_lock()
            && shown.elapsed() >= every
        {
            *shown = Instant::now();
            self.show(done, bytes);
        }
    }

    fn show(&self, done: u64, bytes: u64) {
        let rates = self.rates(done, bytes);
        if let Some(bar) = &self.bar {
            bar.set_message(rates);
            bar.set_position(done);
            return;
        }
        let total = self.total.load(Ordering::Relaxed);
        let left = total.saturating_sub(done) as f64 / (done as f64 / self.seconds());
        let of = format!("{} of {}", text::count(done), text::count(total));
        output::message(format_args!("{} {of} {}, {rates}, {left:.0} s left", self.verb, self.noun));
    }

    /// Removes the bar.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// Returns the seconds since the start.
    pub(crate) fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    fn rates(&self, done: u64, bytes: u64) -> String {
        let seconds = self.seconds().max(1e-3);
        let (units, megabytes) = (done as f64 / seconds, bytes as f64 / seconds / 1e6);
        format!("{} {}/s {megabytes:.0} MB/s", text::count(units as u64), self.noun)
    }
}

/// Progress of functions of `shardtool_pack`.
#[derive(Debug)]
pub struct Images(Progress);

impl Images {
    /// Starts progress of an unknown number of images; `verb` is for example `packed`.
    pub fn new(verb: &'static str) -> Self {
        Images(Progress::new(verb, "images", 0))
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.0.finish();
    }

    /// Returns the seconds since the start.
    pub(crate) fn seconds(&self) -> f64 {
        self.0.seconds()
    }
}

impl shardtool_pack::Progress for Images {
    fn total(&self, images: u64, _bytes: u64) {
        self.0.set_total(images);
    }

    fn done(&self, images: u64, bytes: u64) {
        self.0.advance(images, bytes);
    }

    fn after(&self, step: Step) -> ControlFlow<()> {
        // Files that are being moved to their names are moved to the end.
        match step {
            Step::Plan | Step::Shard | Step::Index if interrupt::received() => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }

    fn stopped(&self) -> bool {
        interrupt::received()
    }

    fn waiting(&self, waited: Duration, holder: &DestinationError) {
        let Ok(mut shown) = self.0.shown.try_lock() else { return };
        if waited.is_zero() || shown.elapsed() >= LINE_EVERY {
            *shown = Instant::now();
            output::message(format_args!("{holder}; waited {} s", waited.as_secs()));
        }
    }
}
