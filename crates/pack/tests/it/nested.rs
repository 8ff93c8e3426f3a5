//! Nested lists, objects in images, COCO files and lists without images, compared with values computed here.

use crate::support::{chain, check, jpeg, manifest, put, records, rejected};
use shardtool_format::BoxFormat;
use shardtool_format::example::{Example, Feature};
use shardtool_pack::SourceError;
use shardtool_pack::{Error, Options, PixelStore, pack};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The values of a feature.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Found {
    Int(Vec<i64>),
    Float(Vec<f32>),
    Bytes(Vec<String>),
}

/// Key → feature → values, of all records of a split.
pub(crate) fn features(folder: &Path) -> BTreeMap<String, BTreeMap<String, Found>> {
    let mut all = BTreeMap::new();
    for shard in &manifest(folder).split("train").unwrap().shards {
        let file = fs::read(folder.join(&shard.file)).unwrap();
        for (_, data) in records(&file) {
            let example = Example::parse(data).unwrap();
            let found =
                example.features().iter().filter(|(name, _)| *name != "image/encoded").map(|(name, feature)| {
                    let values = match feature {
                        Feature::Int64(list) => Found::Int(list.iter().collect()),
                        Feature::Float(list) => Found::Float(list.iter().collect()),
                        Feature::Bytes(list) => {
                            Found::Bytes(list.iter().map(|b| String::from_utf8_lossy(b).into_owned()).collect())
                        }
                        Feature::Empty => Found::Bytes(vec![]),
                    };
                    (name.to_string(), values)
                });
            let key = String::from_utf8(example.bytes("image/key").unwrap().to_vec()).unwrap();
            all.insert(key, found.collect());
        }
    }
    all
}

struct Made {
    temp: tempfile::TempDir,
}

impl Made {
    /// Four photographs of 40 × 20 pixels.
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        (0..4).for_each(|i| put(&temp.path().join(format!("photos/{i}.jpg")), &jpeg(i, 40, 20)));
        Made { temp }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.temp.path().join(name)
    }

    fn packed(&self, list: &str, text: &str) -> BTreeMap<String, BTreeMap<String, Found>> {
        put(&self.path(list), text.as_bytes());
        self.pack(Options::new(self.path(list), self.path(&format!("{list}.set"))))
    }

    fn pack(&self, options: Options) -> BTreeMap<String, BTreeMap<String, Found>> {
        pack(&options, &()).unwrap();
        check(&options.destination, "train");
        features(&options.destination)
    }
}

#[test]
fn nested_lists_become_columns() {
    let made = Made::new();
    let found = made.packed(
        "list.jsonl",
        r#"{"path":"photos/0.jpg","boxes":[[1,2,3,4],[5,6,7,8.5]],"rows":[[1],[2,3]],"meta":{"a":1,"b":{"c":"x"}}}
{"path":"photos/1.jpg","boxes":[],"rows":[[4,5],[6,7]]}
{"path":"photos/2.jpg","rows":[]}
"#,
    );
    let of = |key: usize, name: &str| found[&format!("photos/{key}.jpg")].get(name).cloned();
    assert_eq!(of(0, "boxes"), Some(Found::Float(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.5])));
    assert_eq!([of(0, "boxes/shape"), of(1, "boxes/shape")], [vec![2, 4], vec![0]].map(|v| Some(Found::Int(v))));
    assert_eq!([of(0, "rows"), of(1, "rows")], [vec![1, 2, 3], vec![4, 5, 6, 7]].map(|v| Some(Found::Int(v))));
    // A column that is ragged in one row has lengths in all rows.
    let lengths = [vec![1, 2], vec![2, 2], vec![]].map(|v| Some(Found::Int(v)));
    assert_eq!([of(0, "rows/lengths"), of(1, "rows/lengths"), of(2, "rows/lengths")], lengths);
    assert_eq!(of(1, "rows/shape"), None);
    assert_eq!((of(0, "meta/a"), of(0, "meta/b/c")), (Some(Found::Int(vec![1])), Some(Found::Bytes(vec!["x".into()]))));
}

#[test]
fn objects_become_boxes() {
    let made = Made::new();
    let list = |boxes: [[f32; 4]; 2]| {
        format!(
            r#"{{"path":"photos/0.jpg","objects":{{"bbox":{boxes:?},"category":[3,0],"area":[1,2],"id":[7,8]}}}}
{{"path":"photos/1.jpg","objects":{{"bbox":[],"category":[],"area":[],"id":[]}}}}
"#
        )
    };
    let expected = Found::Float(vec![0.25, 0.1, 0.5, 0.6, 0.0, 0.0, 1.0, 1.0]);
    let found = made.packed("xywh.jsonl", &list([[10.0, 2.0, 10.0, 10.0], [0.0, 0.0, 40.0, 20.0]]));
    assert_eq!(found["photos/0.jpg"]["image/object/bbox"], expected);
    assert_eq!(found["photos/0.jpg"]["image/object/class/label"], Found::Int(vec![3, 0]));
    assert_eq!(found["photos/0.jpg"]["image/object/id"], Found::Int(vec![7, 8]));
    assert_eq!(found["photos/1.jpg"]["image/object/bbox"], Found::Float(vec![]));
    let of = |name: &str, boxes, format| {
        let source = made.path(&format!("{name}.jsonl"));
        put(&source, list(boxes).as_bytes());
        with!(Options::new(source, made.path(name)), boxes = format)
    };
    let options = of("cxcywh", [[15.0, 7.0, 10.0, 10.0], [20.0, 10.0, 40.0, 20.0]], BoxFormat::Cxcywh);
    assert_eq!(made.pack(options)["photos/0.jpg"]["image/object/bbox"], expected);
    let options = of("xyxy", [[10.0, 2.0, 20.0, 12.0], [0.0, 0.0, 40.0, 20.0]], BoxFormat::Xyxy);
    assert_eq!(made.pack(options.clone())["photos/0.jpg"]["image/object/bbox"], expected);
    // Smaller images, stored as pixels: the same fractions.
    let resize = Some(shardtool_pack::Resize::Shorter(10));
    let small = with!(options, resize = resize, pixels = PixelStore::Raw, destination = made.path("small"));
    let found = &made.pack(small)["photos/0.jpg"];
    assert_eq!((&found["image/width"], &found["image/object/bbox"]), (&Found::Int(vec![20]), &expected));
    let bad = r#"{"path":"photos/0.jpg","objects":{"bbox":[[1,2,3]],"category":[1]}}"#;
    put(&made.path("bad.jsonl"), bad.as_bytes());
    let error = pack(&Options::new(made.path("bad.jsonl"), made.path("bad")), &()).unwrap_err();
    assert!(chain(&error).contains("line 1: `bbox` of its objects: expected four numbers"), "{error}");
}

/// An object: its box, its class, and the id of its category.
type Object = (Vec<f32>, i64, i64);

/// A COCO document, and the objects that must be packed.
fn coco() -> (serde_json::Value, BTreeMap<String, Vec<Object>>) {
    let categories = [(90, "toothbrush"), (1, "person"), (18, "dog")];
    let (mut images, mut annotations, mut expected) = (vec![], vec![], BTreeMap::new());
    for i in 0..4i64 {
        images.push(serde_json::json!({"id": 1000 - i, "file_name": format!("{i}.jpg"), "width": 40, "height": 20}));
        let mut objects = vec![];
        for o in 0..i {
            let (x, y, w, h) = (2 * o, o, 4 + i, 3 + o);
            let category = categories[((i + o) % 3) as usize].0;
            annotations.push(serde_json::json!({"id": i * 10 + o, "image_id": 1000 - i, "category_id": category,
                "bbox": [x, y, w, h], "area": w * h, "iscrowd": 0, "segmentation": [[x, y, x + w, y + h, x, y + h]]}));
            let [x, y, w, h] = [x, y, w, h].map(|v| v as f32);
            let class = [1, 18, 90].iter().position(|id| *id == category).unwrap() as i64;
            objects.push((vec![x / 40.0, y / 20.0, (x + w) / 40.0, (y + h) / 20.0], class, category));
        }
        expected.insert(format!("{i}.jpg"), objects);
    }
    let categories = categories.map(|(id, name)| serde_json::json!({"id": id, "name": name, "supercategory": "s"}));
    (serde_json::json!({"info": {}, "images": images, "annotations": annotations, "categories": categories}), expected)
}

#[test]
fn packs_a_coco_file_with_its_boxes() {
    let made = Made::new();
    let (document, expected) = coco();
    put(&made.path("instances.json"), document.to_string().as_bytes());
    let source = made.path("instances.json");
    let missing = pack(&Options::new(&source, made.path("missing")), &()).unwrap_err();
    assert!(matches!(missing, Error::Source(SourceError::Empty { rejected: Some(_), .. })), "{missing}");
    let options = with!(Options::new(&source, made.path("set")), images = Some(made.path("photos")));
    let found = made.pack(options.clone());
    assert_eq!(manifest(&options.destination).classes, ["person", "dog", "toothbrush"]);
    assert_eq!(manifest(&options.destination).label, None);
    assert_eq!(found.len(), 4);
    for (key, objects) in expected {
        let of = |name: &str| found[&key][name].clone();
        let boxes: Vec<_> = objects.iter().flat_map(|(b, ..)| b.clone()).collect();
        assert_eq!(of("image/object/bbox"), Found::Float(boxes), "{key}");
        assert_eq!(of("image/object/class/label"), Found::Int(objects.iter().map(|o| o.1).collect()));
        assert_eq!(of("image/object/category_id"), Found::Int(objects.iter().map(|o| o.2).collect()));
        let Found::Bytes(polygons) = of("image/object/segmentation") else { panic!() };
        assert_eq!(polygons.len(), objects.len());
    }
    assert_eq!(found["2.jpg"]["image/id"], Found::Int(vec![998]));
    // Packing again finds it complete; another folder of images is another source.
    assert!(pack(&options, &()).unwrap().already_complete);
}

#[test]
fn refuses_a_coco_file_that_contradicts_itself() {
    let made = Made::new();
    let refused = |change: &dyn Fn(&mut serde_json::Value), expected: &str| {
        let (mut document, _) = coco();
        change(&mut document);
        put(&made.path("photos/bad.json"), document.to_string().as_bytes());
        let options = Options::new(made.path("photos/bad.json"), made.path("bad"));
        let error = pack(&options, &()).unwrap_err();
        assert!(
            matches!(error, Error::Source(SourceError::Coco { .. })) && chain(&error).contains(expected),
            "{error}"
        );
    };
    refused(&|d| d["annotations"][0]["category_id"] = 7.into(), "category 7, which is not among");
    refused(&|d| d["annotations"][0]["image_id"] = 7.into(), "image 7, which is not among");
    refused(&|d| d["categories"][0]["name"] = "dog".into(), "two categories have the name `dog`");
    refused(&|d| d["images"] = 3.into(), "invalid type");
    let remove = |member: &'static str| {
        move |d: &mut serde_json::Value| drop(d["annotations"][1].as_object_mut().unwrap().remove(member))
    };
    refused(&remove("bbox"), "annotation 20 has no `bbox`, which every object needs");
    refused(&remove("category_id"), "annotation 20 has no `category_id`");
    let unnamed = |d: &mut serde_json::Value| drop(d["images"][2].as_object_mut().unwrap().remove("file_name"));
    refused(&unnamed, "image 998 has no `file_name`, and no `coco_url`");
    // Captions and objects in one file.
    let mixed = |d: &mut serde_json::Value| {
        d["annotations"][1] = serde_json::json!({"id": 5, "image_id": 1000, "caption": "a dog"});
    };
    refused(&mixed, "annotation 5 has no `bbox`");
    let panoptic = serde_json::json!([{"image_id": 1000, "file_name": "0.png", "segments_info": []}]);
    refused(&|d| d["annotations"] = panoptic.clone(), "its PNGs were expected in");
    refused(&|d| d["images"][3]["id"] = 999.into(), "1.jpg, 3.jpg have the same id 999");
}

#[test]
fn captions_of_a_coco_file_are_texts_of_their_image() {
    let made = Made::new();
    let (mut document, _) = coco();
    document.as_object_mut().unwrap().remove("categories");
    // In the order of the file, also if the captions of an image are not together; the last image has none.
    let caption = |id: i64, image: i64, text: &str| serde_json::json!({"id": id, "image_id": image, "caption": text});
    document["annotations"] = serde_json::json!([
        caption(7, 1000, "a dog"),
        caption(8, 999, "two dogs"),
        caption(3, 1000, "ein Hündchen"),
        caption(9, 998, "")
    ]);
    put(&made.path("photos/captions.json"), document.to_string().as_bytes());
    let options = Options::new(made.path("photos/captions.json"), made.path("set"));
    let found = made.pack(options.clone());
    assert_eq!(manifest(&options.destination).classes, Vec::<String>::new());
    let texts = |texts: &[&str]| Found::Bytes(texts.iter().map(|text| (*text).to_owned()).collect());
    assert_eq!(found["0.jpg"]["caption"], texts(&["a dog", "ein Hündchen"]));
    assert_eq!(found["0.jpg"]["caption/id"], Found::Int(vec![7, 3]));
    assert_eq!(found["1.jpg"]["caption"], texts(&["two dogs"]));
    assert_eq!(found["2.jpg"]["caption"], texts(&[""]));
    assert!(found["3.jpg"].get("caption").is_none_or(|caption| *caption == texts(&[])), "{:?}", found["3.jpg"]);
    assert_eq!((found.len(), &found["3.jpg"]["image/id"]), (4, &Found::Int(vec![997])));
    // An image's own member of the same name.
    let mut twice = document.clone();
    twice["images"][0]["caption"] = "a title".into();
    put(&made.path("photos/twice.json"), twice.to_string().as_bytes());
    let error = pack(&Options::new(made.path("photos/twice.json"), made.path("twice")), &()).unwrap_err();
    assert!(chain(&error).contains("two members become the feature `caption`"), "{error}");
    // Other members of the captions are kept.
    document["annotations"].as_array_mut().unwrap().iter_mut().for_each(|caption| caption["score"] = 0.5.into());
    put(&made.path("photos/captions.json"), document.to_string().as_bytes());
    let found = made.pack(Options::new(made.path("photos/captions.json"), made.path("scored")));
    assert_eq!(found["0.jpg"]["caption/score"], Found::Float(vec![0.5, 0.5]));
    // Members that objects have, too.
    for caption in document["annotations"].as_array_mut().unwrap() {
        let members = serde_json::json!({"area": 2.5, "category_id": 3, "iscrowd": 1, "keypoints": [1.0, 2.0], "bbox": null,
            "segmentation": [[1, 2]]});
        caption.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    }
    put(&made.path("photos/captions.json"), document.to_string().as_bytes());
    let found = made.pack(Options::new(made.path("photos/captions.json"), made.path("members")));
    assert_eq!(found["0.jpg"]["caption/area"], Found::Float(vec![2.5, 2.5]));
    for (name, value) in [("category_id", 3), ("iscrowd", 1)] {
        assert_eq!(found["0.jpg"][&format!("caption/{name}")], Found::Int(vec![value; 2]));
    }
    assert_eq!(found["0.jpg"]["caption/keypoints"], texts(&["[1.0,2.0]", "[1.0,2.0]"]));
    assert_eq!(found["0.jpg"]["caption/segmentation"], texts(&["[[1,2]]", "[[1,2]]"]));
}

#[test]
fn images_of_lvis_are_named_by_their_addresses() {
    let made = Made::new();
    let (mut document, expected) = coco();
    for (i, image) in document["images"].as_array_mut().unwrap().iter_mut().enumerate() {
        image.as_object_mut().unwrap().remove("file_name");
        let query = ["", "?x=y", "?path=/a/b", "#top"][i];
        image["coco_url"] = format!("http://images.example.org/photos/{i}.jpg{query}").into();
        image["neg_category_ids"] = serde_json::json!([1, 18]);
    }
    put(&made.path("lvis.json"), document.to_string().as_bytes());
    let found = made.pack(Options::new(made.path("lvis.json"), made.path("set")));
    assert_eq!(found.len(), 4);
    for (key, objects) in expected {
        let boxes: Vec<_> = objects.iter().flat_map(|(b, ..)| b.clone()).collect();
        let image = &found[&format!("photos/{key}")];
        assert_eq!(image["image/object/bbox"], Found::Float(boxes), "{key}");
        assert_eq!(image["neg_category_ids"], Found::Bytes(vec!["[1,18]".to_owned()]));
    }
}

#[test]
fn keypoints_of_coco_have_their_shape() {
    let made = Made::new();
    let (mut document, _) = coco();
    let count = document["annotations"].as_array().unwrap().len();
    for at in 0..count {
        document["annotations"][at]["keypoints"] = serde_json::json!([10, 5, 2, 40, 20, 1]);
    }
    put(&made.path("photos/keypoints.json"), document.to_string().as_bytes());
    let found = made.pack(Options::new(made.path("photos/keypoints.json"), made.path("set")));
    assert_eq!(found["2.jpg"]["image/object/keypoints/shape"], Found::Int(vec![2, 2, 3]));
    let one = [0.25, 0.25, 2.0, 1.0, 1.0, 1.0];
    assert_eq!(found["2.jpg"]["image/object/keypoints"], Found::Float([one, one].concat()));
}

#[test]
fn rows_without_images_are_samples() {
    let made = Made::new();
    let options = Options::new(made.path("text.csv"), made.path("text"));
    put(&options.source, b"text,score,label\nhello,0.5,good\nbye,1,bad\n");
    let found = made.pack(options.clone());
    let manifest = manifest(&options.destination);
    assert_eq!((manifest.image, &manifest.classes[..]), (None, &["bad".to_owned(), "good".to_owned()][..]));
    assert_eq!(found.keys().collect::<Vec<_>>(), ["text.csv#0", "text.csv#1"]);
    let of = |key: &str, name: &str| found[key][name].clone();
    assert_eq!(
        (of("text.csv#0", "score"), of("text.csv#1", "text")),
        (Found::Float(vec![0.5]), Found::Bytes(vec!["bye".into()]))
    );
    assert_eq!(of("text.csv#0", "image/class/label"), Found::Int(vec![1]));
    assert!(!found["text.csv#0"].contains_key("image/width"));
    let numbers = made.packed("numbers.jsonl", "{\"key\":\"a\",\"x\":[1,2]}\n{\"key\":\"b\",\"x\":[]}\n");
    assert_eq!(numbers["a"]["x"], Found::Int(vec![1, 2]));
    // Boxes in pixels need an image, whose size converts them to fractions; a row without boxes needs none.
    put(&made.path("boxes.jsonl"), b"{\"objects\":{\"bbox\":[[1,2,3,4]]}}\n{\"objects\":{\"bbox\":[]}}\n");
    let options = with!(Options::new(made.path("boxes.jsonl"), made.path("boxes")), allow_empty = true);
    let summary = pack(&options, &()).unwrap();
    assert_eq!(summary.rejected, 1);
    assert!(rejected(&summary.rejected_file.unwrap())[0].1.contains("whose size converts pixels"));
}
