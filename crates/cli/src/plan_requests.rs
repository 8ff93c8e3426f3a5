//! What an epoch costs from an object store, as `shardtool plan` shows it.

use crate::output::Output;
use crate::text;
use serde_json::json;
use shardtool_load::{Config, EpochRequests, Loader, ReplicaShare};
use shardtool_order::Order;
use std::io::Write;

/// Requests of one replica in an epoch of each order.
pub(crate) struct Requests {
    orders: Vec<EpochRequests>,
    /// An interleaved order that needs few requests, if the one in `orders` does not.
    fitting: Option<EpochRequests>,
    /// Shards that the replica opens, each with a request for its index.
    indexes: u64,
    /// Whether the open indexes fit into memory.
    indexes_fit: bool,
    gap: u64,
    size: u64,
    /// Whether the dataset is in an object store.
    in_store: bool,
    /// Bytes of all records of the dataset's splits.
    dataset_bytes: u64,
}

impl Requests {
    pub(crate) fn count(config: &Config, interleaved: Order, share: &ReplicaShare) -> anyhow::Result<Self> {
        let in_order = |order| {
            let mut config = config.clone();
            config.order = order;
            config
        };
        let orders = [Order::Sequential, Order::Shuffled, interleaved];
        let orders: Vec<_> =
            orders.into_iter().map(|order| Loader::epoch_requests(&in_order(order))).collect::<Result<_, _>>()?;
        let costly = orders.last().is_some_and(EpochRequests::is_costly);
        let fitting = if costly { Loader::fitting_order(&in_order(interleaved))? } else { None };
        let fits = |split: &shardtool_read::Split| {
            let bytes = split.entry().shards.iter().map(|shard| shard.index_bytes).sum::<u64>();
            bytes <= split.index_memory_in_store()
        };
        Ok(Requests {
            orders,
            fitting,
            indexes: if config.splits.iter().all(shardtool_read::Split::is_bare) { 0 } else { share.reads.shards },
            indexes_fit: config.splits.iter().all(fits),
            gap: config.prefetch.fetch_gap,
            size: config.prefetch.fetch_size,
            in_store: config.splits.iter().any(shardtool_read::Split::is_in_store),
            dataset_bytes: config.splits.iter().map(|split| split.entry().bytes()).sum(),
        })
    }

    pub(crate) fn document(&self) -> serde_json::Value {
        let ahead = self.orders.first().map(|order| order.ahead);
        json!({
            "orders": self.orders.iter().map(order_document).collect::<Vec<_>>(),
            "fitting": self.fitting.as_ref().map(order_document), "index_requests": self.indexes,
            "read_ahead_bytes": ahead, "fetch_gap_bytes": self.gap, "fetch_size_bytes": self.size,
        })
    }

    pub(crate) fn print(&self, rank: u32, out: &mut Output) -> anyhow::Result<()> {
        let ahead = self.orders.first().map_or(0, |order| order.ahead);
        let condition = if self.in_store { "" } else { ", if the dataset is in an object store" };
        let [ahead_text, size, gap] = [ahead, self.size, self.gap].map(text::bytes);
        let line = format!(
            "requests of replica {rank} per epoch{condition} (--read-ahead {ahead_text}, --fetch-size {size}, --fetch-gap \
             {gap}):"
        );
        writeln!(out, "{}", text::wrapped(&line, "  "))?;
        self.orders.iter().try_for_each(|order| print_order(order, out))?;
        let again = if self.indexes_fit { "" } else { ", and again whenever it is reopened: memory holds only some" };
        writeln!(out, "  in addition, one for the index of each of {}{again}", text::plural(self.indexes, "shard"))?;
        // A dataset on a disk needs no requests: how to have fewer is not its user's question.
        let costly = self.orders.last().filter(|order| self.in_store && order.is_costly());
        let Some(interleaved) = costly else { return Ok(()) };
        // A window of a small dataset holds all of it.
        let bounded = |bytes: Option<u64>| bytes.unwrap_or(0).min(self.dataset_bytes);
        let (window, two) = (bounded(interleaved.window_bytes), bounded(interleaved.two_windows));
        let few = text::count(interleaved.few);
        let each = text::bytes(4 << 20);
        writeln!(out, "{} needs more than one request per {each} and shard ({few}).", interleaved.order)?;
        if two > ahead {
            let (window, two) = (text::bytes(window), text::bytes(two));
            writeln!(out, "  A window has {window}, of which two do not fit: that takes --read-ahead {two}.")?;
        }
        match &self.fitting {
            Some(fitting) => {
                writeln!(out, "  This order needs fewer:")?;
                print_order(fitting, out)
            }
            None => {
                writeln!(
                    out,
                    "  No run and window need fewer: give more --read-ahead or memory, or with several replicas \
                     --policy shard."
                )?;
                Ok(())
            }
        }
    }
}

fn print_order(order: &EpochRequests, out: &mut Output) -> anyhow::Result<()> {
    let about = if order.estimated { "about " } else { "" };
    let (name, requests) = (order.order.to_string(), text::count(order.requests));
    writeln!(out, "  {name:<36} {:>17} {:>11}", format!("{about}{requests}"), text::bytes(order.bytes))?;
    Ok(())
}

fn order_document(order: &EpochRequests) -> serde_json::Value {
    let (run, window) = order.order.interleaving().unzip();
    json!({
        "order": order.order.name(), "run": run, "window": window, "requests": order.requests, "bytes": order.bytes,
        "requests_estimated": order.estimated, "few_requests": order.few,
    })
}
