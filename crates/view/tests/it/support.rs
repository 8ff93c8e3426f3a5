//! Datasets, servers, and a client that speaks plain HTTP/1.1.

use shardtool_decode::{PixelsRef, encode_jpeg};
use shardtool_format::manifest::DType;
use shardtool_pack::{Image, Label, Sample, Value, Writer, WriterOptions};
use shardtool_read::Dataset;
use shardtool_view::{Options, Server};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

/// A class name and a key that are markup.
pub(crate) const MARKUP: &str = "<script>alert('x')</script>\"&";

/// Returns a JPEG of one colour.
pub(crate) fn jpeg(width: u32, height: u32, value: u8) -> Vec<u8> {
    let mut data = vec![value; width as usize * height as usize * 3];
    for (i, pixel) in data.iter_mut().enumerate() {
        *pixel = pixel.wrapping_add((i % 61) as u8);
    }
    encode_jpeg(PixelsRef::new(width, height, &data).unwrap(), 90).unwrap()
}

/// Writes a split of `records` images in shards of a few records: keys `k/00000.jpg` …, classes in turn, widths that grow, a
/// weight that every seventh record lacks, captions.
pub(crate) fn write(folder: &Path, records: u32) {
    let mut options = WriterOptions::new(folder, "train");
    options.classes = vec!["cat".to_owned(), MARKUP.to_owned(), "owl".to_owned(), "never".to_owned()];
    options.features = vec![
        ("weight".to_owned(), DType::Float),
        ("caption".to_owned(), DType::Bytes),
        ("image/object/bbox".to_owned(), DType::Float),
    ];
    options.shard_size = 40_000;
    let writer = Writer::open(&options).unwrap();
    for i in 0..records {
        let image = jpeg(64 + i % 40, 48, i as u8);
        let key = if i == 3 { format!("k/{MARKUP}.jpg") } else { format!("k/{i:05}.jpg") };
        let caption = if i == 5 { MARKUP.to_owned() } else { format!("caption number {i}") };
        let mut values = vec![("caption", Value::Bytes(vec![caption.into_bytes()]))];
        if i % 7 != 0 {
            values.push(("weight", Value::Float(vec![100.0 - i as f32 / 2.0])));
        }
        if i == 2 {
            values.push(("image/object/bbox", Value::Float(vec![0.25, 0.25, 0.75, 0.5])));
        }
        let class = options.classes[i as usize % 3].as_str();
        let sample = Sample { key: &key, image: Some(Image::File(&image)), label: Some(Label::Name(class)), values };
        writer.write(&sample).unwrap();
    }
    writer.finish().unwrap();
}

/// A server in a thread, which runs until the test process ends.
pub(crate) struct Site {
    pub(crate) address: String,
    pub(crate) url: String,
}

impl Site {
    /// Serves a dataset on loopback.
    pub(crate) fn of(path: &Path) -> Self {
        Site::with(path, "127.0.0.1")
    }

    pub(crate) fn with(path: &Path, host: &str) -> Self {
        let mut options = Options::default();
        options.host = host.to_owned();
        options.port = Some(0);
        let server = Server::bind(Dataset::open(path).unwrap(), &options).unwrap();
        let url = server.url();
        let port = url.split(':').nth(2).unwrap().split('/').next().unwrap().to_owned();
        std::thread::spawn(move || server.run().unwrap());
        Site { address: format!("127.0.0.1:{port}"), url }
    }

    /// Sends a request; `headers` and `body` as they are.
    pub(crate) fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut request =
            format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        if headers.iter().all(|(name, _)| !name.eq_ignore_ascii_case("host")) {
            request += &format!("Host: {}\r\n", self.address);
        }
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all((request + "\r\n" + body).as_bytes()).unwrap();
        let mut answer = vec![];
        stream.read_to_end(&mut answer).unwrap();
        Answer::parse(&answer)
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.request("GET", path, &[], "")
    }

    /// Returns a page, which must be good.
    pub(crate) fn page(&self, path: &str) -> String {
        loop {
            let answer = self.get(path);
            assert_eq!(answer.status, 200, "{path}: {}", answer.text());
            // A page answers before its search has ended, which takes long on a busy machine.
            if !answer.text().contains("data-searching=") {
                return answer.text();
            }
        }
    }

    /// Returns the ids of the records that a gallery shows, in its order.
    pub(crate) fn ids(&self, path: &str) -> Vec<u64> {
        let page = self.page(path);
        page.split("/thumb/").skip(1).map(|rest| rest.split('?').next().unwrap().parse().unwrap()).collect()
    }
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    fn parse(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|w| w == b"\r\n\r\n").expect("headers");
        let head = std::str::from_utf8(&bytes[..end]).unwrap();
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers: Vec<_> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let mut body = bytes[end + 4..].to_vec();
        if headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked") {
            body = unchunked(&body);
        }
        Answer { status, headers, body }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

fn unchunked(mut rest: &[u8]) -> Vec<u8> {
    let mut out = vec![];
    while let Some(end) = rest.windows(2).position(|w| w == b"\r\n") {
        let length = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap(), 16).unwrap();
        out.extend_from_slice(&rest[end + 2..end + 2 + length]);
        rest = &rest[end + 2 + length + 2..];
    }
    out
}
