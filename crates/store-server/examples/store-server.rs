//! Serves a folder as S3 until it is ended, and prints the environment variables that clients need.

use clap::Parser;
use shardtool_store_server::{Faults, Options, Server};
use std::path::PathBuf;
use std::time::Duration;

/// An S3 server on a folder, for tests and benchmarks
#[derive(Parser)]
struct Arguments {
    /// Each folder in it is a bucket
    root: PathBuf,
    /// 0 chooses a free port
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Do not ask for signatures: also serves plain HTTP requests
    #[arg(long)]
    anonymous: bool,
    /// Change one of N answers, as failing servers and networks do
    #[arg(long, default_value_t = 0)]
    one_in: u64,
    /// Change answers to requests that write, too
    #[arg(long)]
    writes: bool,
    /// Ignore the conditions of requests, as some stores do (needs --anonymous: conditions are signed)
    #[arg(long, requires = "anonymous")]
    ignore_conditions: bool,
    /// Selects the changed answers
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Time before each answer, in milliseconds
    #[arg(long, default_value_t = 0)]
    delay: u64,
}

fn main() -> std::io::Result<()> {
    let Arguments { root, port, anonymous, one_in, writes, ignore_conditions, seed, delay } = Arguments::parse();
    let faults = Faults { seed, one_in, only: None, writes, delay: Duration::from_millis(delay) };
    let server = Server::start(&root, Options { anonymous, port, faults, ignore_conditions, ..Options::default() })?;
    for (name, value) in server.environment() {
        println!("export {name}={value}");
    }
    // Answers each line with what it has sent so far, and ends with the program that started it.
    let mut line = String::new();
    while std::io::stdin().read_line(&mut line)? > 0 {
        println!("requests {} bytes {}", server.requests(), server.bytes());
    }
    println!("requests {} injected {}", server.requests(), server.injected());
    Ok(())
}
