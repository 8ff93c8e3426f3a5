//! Fragments for notebooks.

use crate::support::{MARKUP, write};
use shardtool_read::Dataset;
use shardtool_view::{dataset_html, image_html, records_html, split_html};

#[test]
fn fragments_show_pictures_and_columns_and_escape_everything() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 40);
    let dataset = Dataset::open(folder.path()).unwrap();
    let split = dataset.split("train").unwrap();
    let fragments = [dataset_html(&dataset), split_html(split), records_html(split, &[3, 39, 5])];
    for (fragment, pictures) in fragments.iter().zip([6, 6, 3]) {
        assert_eq!(fragment.matches("data:image/jpeg;base64,").count(), pictures, "{fragment}");
        assert!(!fragment.contains(MARKUP) && !fragment.contains("<script"), "{fragment}");
    }
    assert!(fragments[1].contains("100") && fragments[1].contains("weight") && fragments[1].contains("15.0 %"));
    let order: Vec<_> = ["3 ", "39 ", "5 "].iter().map(|id| fragments[2].find(&format!("\">{id}")).unwrap()).collect();
    assert!(order.is_sorted(), "in the order that was asked for: {order:?}");
}

#[test]
fn what_is_no_picture_says_why() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 4);
    let dataset = Dataset::open(folder.path()).unwrap();
    let split = dataset.split("train").unwrap();
    let image = split.get(0).unwrap().image().unwrap().unwrap().to_vec();
    assert!(image_html(&image).contains("data:image/jpeg"));
    assert!(!image_html(&image[..40]).contains("<img"));
    assert!(image_html(b"<b>").contains("<i>"));
    assert!(!image_html(b"<script>").contains("<script"));
    assert!(records_html(split, &[99]).contains("99"), "an id that is out of range does not panic");
}
