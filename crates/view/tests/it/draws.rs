//! What the trainer sees is what the loader delivers.

use crate::support::{Site, write};
use shardtool_decode::{DecodeOptions, Pipeline, decode};
use shardtool_load::{BOXES, Config, Image, Loader, Objects, Values};
use shardtool_order::Order;
use shardtool_read::Dataset;

#[test]
fn a_draw_is_the_loaders_pixels_for_that_seed_and_epoch() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 12);
    let site = Site::of(folder.path());
    let split = Dataset::open(folder.path()).unwrap().split("train").unwrap().clone();
    let recipes = [("", Pipeline::train(32).unwrap()), ("&work=eval", Pipeline::eval(36, 32).unwrap())];
    let mut different = 0;
    for (work, pipeline) in recipes {
        let mut config = Config::new(split.clone(), [Image::new(pipeline)], 12);
        (config.seed, config.order) = (77, Order::Sequential);
        let mut loader = Loader::new(&config).unwrap();
        for epoch in 0..3 {
            let batch = loader.next_batch().unwrap().unwrap();
            let pixels = batch.images().unwrap();
            for (row, id) in batch.ids().iter().enumerate() {
                let path = format!("/train/drawn/{id}?seed=77&epoch={epoch}&size=32{work}");
                let drawn = decode(&site.get(&path).body, &DecodeOptions::default()).unwrap();
                assert_eq!((drawn.width, drawn.height), (32, 32));
                assert!(drawn.data == pixels[row * 3072..(row + 1) * 3072], "{path}");
                let other = site.get(&path.replace("seed=77", "seed=78")).body;
                different += usize::from(decode(&other, &DecodeOptions::default()).unwrap().data != drawn.data);
            }
            drop(batch);
            assert!(loader.next_batch().unwrap().is_none(), "the epoch ends");
        }
    }
    assert!(different >= 30, "another seed draws something else: {different}");
}

/// Returns the corners of the boxes that a page draws over one picture.
fn rectangles(svg: &str) -> Vec<[f32; 4]> {
    let number = |rect: &str, name: &str| {
        let (_, value) = rect.split_once(&format!(" {name}=\"")).expect(rect);
        value.split('"').next().unwrap().parse::<f32>().unwrap()
    };
    let corners = |rect: &str| {
        let [x, y, width, height] = ["x", "y", "width", "height"].map(|name| number(rect, name));
        [x, y, x + width, y + height]
    };
    svg.split("<rect").skip(1).map(corners).collect()
}

#[test]
fn drawn_boxes_are_those_that_the_loader_delivers() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 12);
    let site = Site::of(folder.path());
    let split = Dataset::open(folder.path()).unwrap().split("train").unwrap().clone();
    let recipes = [("", Pipeline::train(32).unwrap()), ("&work=eval", Pipeline::eval(36, 32).unwrap())];
    let mut compared = 0;
    for (work, pipeline) in recipes {
        let mut objects = Objects::default();
        objects.properties = vec![];
        let mut config = Config::new(split.clone(), [Image::new(pipeline)], 12).with(objects);
        (config.seed, config.order) = (7, Order::Sequential);
        let mut loader = Loader::new(&config).unwrap();
        for epoch in 0..4 {
            let batch = loader.next_batch().unwrap().unwrap();
            let Some(Values::RaggedFloat { offsets, values }) = batch.column(BOXES) else { panic!("boxes") };
            // The third record has a box.
            let row = batch.ids().iter().position(|id| *id == 2).unwrap();
            let expected = values[offsets[row] as usize..offsets[row + 1] as usize].as_chunks::<4>().0;
            let page = site.get(&format!("/train/record/2?seed=7&epoch={epoch}&size=32{work}")).text();
            let (_, drawn) = page.split_once("<ul class=\"draws\">").unwrap();
            let found = rectangles(drawn.split("</li>").next().unwrap());
            assert_eq!(found.len(), expected.len(), "epoch {epoch}{work}");
            for (found, expected) in found.iter().zip(expected) {
                // The page has one decimal of each position and length.
                assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() <= 0.11), "{found:?} {expected:?}");
                compared += 1;
            }
            drop(batch);
            assert!(loader.next_batch().unwrap().is_none(), "the epoch ends");
        }
    }
    assert!(compared >= 4, "{compared} boxes");
    let of_the_image = site.get("/train/record/2").text();
    assert!(of_the_image.contains("<rect class=\"class-0\""), "a box has the colour of its class");
}
