//! `shardtool view`.

use crate::exit::Exit;
use crate::headings;
use crate::open::{CachedDataset, all};
use crate::output::Output;
use anyhow::Context;
use shardtool_view::{Options, Server};
use std::io::Write;
use std::process::{Command, Stdio};

/// Show a dataset in a browser: pictures, records, columns, damage
///
/// Serves pages on this machine until Ctrl-C. Nothing is sent to other machines, and the dataset is only read.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    dataset: CachedDataset,
    /// Split that the first page shows
    ///
    /// [default: the only one, else `train`, else the first]
    #[arg(long, help_heading = headings::RECORDS)]
    split: Option<String>,
    /// Port; 0 is any free one [default: 7117, or next free]
    #[arg(long, value_name = "N", help_heading = headings::OUTPUT)]
    port: Option<u16>,
    /// Interface to listen on
    ///
    /// Name or address of an interface, such as 0.0.0.0. The printed URL then has a token, without which no request is
    /// answered. The connection is not encrypted.
    #[arg(long, default_value = "127.0.0.1", value_name = "HOST", help_heading = headings::OUTPUT)]
    host: String,
    /// Memory for decoding pictures
    ///
    /// Larger images get a placeholder.
    #[arg(long, value_parser = shardtool_load::parse_size, default_value = "96MiB", value_name = "SIZE", help_heading = headings::MACHINE)]
    memory: u64,
    /// Open the page in a browser (xdg-open)
    #[arg(long, help_heading = headings::OUTPUT)]
    open: bool,
}

pub(crate) fn run(arguments: &Arguments, out: &mut Output) -> anyhow::Result<Exit> {
    let dataset = arguments.dataset.open()?;
    all(&dataset)?;
    if let Some(split) = &arguments.split {
        dataset.split(split)?;
    }
    let mut options = Options::default();
    options.host.clone_from(&arguments.host);
    options.split.clone_from(&arguments.split);
    options.port = arguments.port;
    options.memory = arguments.memory;
    let port = arguments.port.map_or(String::new(), |port| format!(", port {port}"));
    let server = Server::bind(dataset, &options);
    let server = server.with_context(|| format!("cannot listen on {}{port}", arguments.host))?;
    let url = server.url();
    writeln!(out, "{url}")?;
    out.flush()?;
    eprintln!("Ctrl-C ends");
    if arguments.open {
        let opened =
            Command::new("xdg-open").arg(&url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        if let Err(error) = opened {
            eprintln!("warning: cannot run xdg-open ({error}): open the URL yourself");
        }
    }
    server.run().context("the server failed")?;
    Ok(Exit::Success)
}
