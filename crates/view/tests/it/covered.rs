//! What objects cover is drawn over their image.

use crate::support::{Site, jpeg};
use shardtool_format::manifest::DType;
use shardtool_pack::{Image, Sample, Value, Writer, WriterOptions};

#[test]
fn polygons_and_run_lengths_are_drawn_and_what_cannot_be_drawn_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = WriterOptions::new(folder.path(), "train");
    options.features = vec![
        ("image/object/bbox".to_owned(), DType::Float),
        ("image/object/class/label".to_owned(), DType::Int64),
        ("image/object/segmentation".to_owned(), DType::Bytes),
    ];
    let writer = Writer::open(&options).unwrap();
    // Three rows of the column 10, the last two of column 11 and the first of column 12.
    let runs = format!(r#"{{"size":[48,64],"counts":[485,3,{},3,{}]}}"#, 11 * 48 + 46 - 488, 64 * 48 - 12 * 48 - 1);
    let texts = [
        r#"[[1,2,30,4,5,26.25],[40,1,44,1,44,5]]"#,
        &runs,
        "null",
        r#"{"size":[1,1],"counts":[1]}"#,
        "[[1e308,-1e308,9,1e308,2,3]]",
    ];
    let values = vec![
        ("image/object/bbox", Value::Float([0.1, 0.1, 0.5, 0.5].repeat(5))),
        ("image/object/class/label", Value::Int64(vec![4, 13, 0, 0, 1])),
        ("image/object/segmentation", Value::Bytes(texts.map(|text| text.as_bytes().to_vec()).to_vec())),
    ];
    let image = jpeg(64, 48, 0);
    writer.write(&Sample { key: "one", image: Some(Image::File(&image)), label: None, values }).unwrap();
    writer.finish().unwrap();

    let site = Site::of(folder.path());
    let page = site.page("/train/record/0");
    let (_, objects) = page.split_once(r#"data-layer="objects">"#).unwrap();
    let (objects, _) = objects.split_once("</g>").unwrap();
    let paths: Vec<_> = objects.split("<path ").skip(1).collect();
    assert_eq!(paths.len(), 3, "{objects}");
    assert!(
        paths[0].starts_with(r#"class="class-4" d="M1.0 2.0L30.0 4.0L5.0 26.2ZM40.0 1.0L44.0 1.0L44.0 5.0Z""#),
        "{objects}"
    );
    let column = |x: u32, top: u32, bottom: u32| {
        format!("M{x}.0 {top}.0L{0}.0 {top}.0L{0}.0 {bottom}.0L{x}.0 {bottom}.0Z", x + 1)
    };
    let expected = [column(10, 5, 8), column(11, 46, 48), column(12, 0, 1)].concat();
    assert!(paths[1].starts_with(&format!(r#"class="class-3" d="{expected}""#)), "{objects}");
    assert!(paths[2].starts_with(r#"class="class-1" d="M100000.0 -100000.0L9.0 100000.0L2.0 3.0Z""#), "{objects}");
    assert!(page.contains(r#"data-toggle="objects""#));
    // What a trainer sees has them as well, moved.
    let (_, drawn) = page.split_once("<ul class=\"draws\">").unwrap();
    assert!(drawn.contains(r#"data-layer="objects"><path class="class-4" d="M"#), "{drawn}");
}
