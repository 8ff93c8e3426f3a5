//! A local web page that shows a dataset: a gallery of thumbnails, records, columns, damage. Pages are rendered on the server
//! and work without JavaScript; one script makes the gallery scroll.
//!
//! | module | contents |
//! |---|---|
//! | `server` | binding, addresses, the end by Ctrl-C |
//! | `guard` | which requests are answered: `Host`, `Origin`, token; headers of every answer |
//! | `routes` | from URLs to pages |
//! | `app`, `split_view` | the dataset and its splits, and what is kept between requests |
//! | `query` | the state of a gallery as a URL |
//! | `columns`, `condition` | columns of an index; conditions on them |
//! | `matching`, `piece`, `sorting`, `selection` | the records of a gallery, in its order |
//! | `summary` | histograms, counts of classes, sizes of images |
//! | `metadata` | counts of images with positions and thumbnails in their metadata |
//! | `objects` | counts of objects: boxes, their sizes, classes, and boxes that cannot be right |
//! | `picture` | thumbnails, previews, and what a trainer sees, within limits |
//! | `measured` | depths, flow and normals as pictures |
//! | `versions`, `comparison` | other versions of the dataset; what differs between two |
//! | `check` | verification and the search for duplicates, in the background |
//! | `trial` | a trial of the loader, in the background |
//! | `turn` | work in the background, one at a time |
//! | `pages` | HTML |
//! | `report` | the same as one file, as Markdown, or the numbers as JSON |
//! | `markdown` | parts of a card in Markdown |
//! | `notebook` | the same as fragments of HTML for notebooks |
//! | `text` | numbers and text for people |
//!
//! Nothing here writes to the dataset. Everything that comes from a dataset is escaped by the templates.
#![forbid(unsafe_code)]

mod app;
mod check;
mod columns;
mod comparison;
mod condition;
mod guard;
mod markdown;
mod matching;
mod measured;
mod metadata;
mod notebook;
mod objects;
mod pages;
mod picture;
mod piece;
mod query;
mod report;
mod routes;
mod selection;
mod server;
mod sorting;
mod split_view;
mod summary;
mod text;
mod trial;
mod turn;
mod versions;

pub use notebook::{dataset_html, image_html, records_html, split_html};
pub use report::{Report, ReportOptions, html_report, json_report, markdown};
pub use server::{Options, Server};

/// Memory for decoding pictures by default, in bytes.
pub const MEMORY: u64 = 96 << 20;
