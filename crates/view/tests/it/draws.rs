//! What the trainer sees is what the loader delivers.

use crate::support::{Site, write};
use shardtool_decode::{DecodeOptions, Pipeline, decode};
use shardtool_load::{Config, Content, Images, Loader};
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
        let mut config = Config::new(split.clone(), Content::Images(Images::new(pipeline)), 12);
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
