//! Gallery, record and columns pages.

use crate::support::{MARKUP, Site, write};

#[test]
fn markup_in_keys_classes_and_text_is_escaped_on_every_page() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 30);
    let site = Site::of(folder.path());
    let mut escaped = 0;
    let found = "/train?q=%3Cscript%3E";
    for path in [
        "/train",
        found,
        "/train/columns",
        "/train/record/3",
        "/train/record/5",
        "/-/health",
        "/train?filter=caption%3D%3Cscript%3E",
        "/train?sort=%3Cscript%3E",
        "/train?filter=%3Cscript%3E",
        "/train/record/3?steps=%3Cscript%3E",
        "/%3Cscript%3Ealert('x')",
    ] {
        let text = site.get(path).text();
        assert!(!text.contains("<script>alert"), "{path}");
        assert!(!text.contains("alert('x')</script"), "{path}");
        escaped += usize::from(text.contains("&lt;script&gt;"));
    }
    let dataset = shardtool_read::Dataset::open(folder.path()).unwrap();
    for report in [shardtool_view::html_report, shardtool_view::markdown] {
        let text = report(dataset.clone(), &Default::default()).text;
        assert!(!text.contains("<script") && text.contains("&lt;script"), "{text}");
    }
    assert!(escaped >= 8, "markup is shown as text: {escaped}");
    assert_eq!(site.ids(found), (0..30).filter(|i| i % 3 == 1 || [3, 5].contains(i)).collect::<Vec<_>>(), "{MARKUP}");
}

#[test]
fn pages_without_script_show_every_record_once() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 150);
    let site = Site::of(folder.path());
    assert_eq!(site.get("/").header("location"), Some("/train"));
    let (mut path, mut ids) = ("/train".to_owned(), vec![]);
    loop {
        let page = site.page(&path);
        ids.extend(site.ids(&path));
        let Some(before) = page.split("\" rel=\"next\"").next().filter(|before| before.len() < page.len()) else {
            break;
        };
        path = before.rsplit("href=\"").next().unwrap().to_owned();
    }
    assert_eq!(ids, (0..150).collect::<Vec<_>>());
    assert!(site.page("/train?start=9999").contains("No records from this position on"));
}

#[test]
fn a_record_shows_its_features_boxes_place_and_neighbours() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 60);
    let site = Site::of(folder.path());
    let page = site.page("/train/record/2");
    // The box of 0.25, 0.25, 0.75, 0.5 in an image of 66 × 48 pixels.
    assert!(page.contains(r#"<rect class="class-0" x="16.5" y="12.0" width="33.0" height="12.0""#), "{page}");
    for text in ["caption number 2", "66 × 48 pixels", "/train/record/1?at=1", "/train/record/3?at=3", " good"] {
        assert!(page.contains(text), "{text}: {page}");
    }
    assert!(!page.contains("damaged"));
    // Neighbours are those of the selection: the records of a class.
    let page = site.page("/train/record/33?filter=image%2Fclass%2Flabel%3D0&at=11");
    assert!(page.contains("/train/record/30?") && page.contains("/train/record/36?"), "{page}");
    let image = site.get("/train/image/2");
    assert_eq!(image.header("content-type"), Some("image/jpeg"));
    assert_eq!(image.body, crate::support::jpeg(66, 48, 2), "the stored bytes");
    let thumbnail = site.get("/train/thumb/2");
    assert_eq!(thumbnail.header("content-type"), Some("image/jpeg"));
    assert_eq!(
        shardtool_decode::probe(&thumbnail.body, &Default::default()).map(|i| (i.width, i.height)).unwrap(),
        (66, 48)
    );
    for path in ["/train/record/60", "/nothing", "/nothing/record/0"] {
        assert_eq!(site.get(path).status, 404, "{path}");
    }
    assert_eq!(site.get("/train/record/x").status, 400);
}

#[test]
fn columns_are_summarised_and_their_bars_are_filters() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 70);
    let site = Site::of(folder.path());
    let page = site.page("/train/columns");
    assert!(page.contains("14.3 % missing"), "weights of every seventh record: {page}");
    // Each bar of a histogram leads to as many records as it says.
    let mut bars = 0;
    for link in page.split("<a href=\"").skip(1) {
        let Some(words) = link.split_once("aria-label=\"").map(|(_, rest)| rest.split('"').next().unwrap()) else {
            continue;
        };
        let Some(count) = words.strip_suffix(" records").or(words.strip_suffix(" record")) else { continue };
        let count: usize = count.rsplit(' ').next().unwrap().parse().unwrap();
        let url = link.split('"').next().unwrap().replace("&amp;", "&");
        if link.split_once('>').is_some_and(|(tag, _)| tag.contains("cell-state")) {
            continue;
        }
        assert_eq!(site.page(&url).matches("class=\"cell\"").count(), count.min(60), "{words}: {url}");
        bars += 1;
    }
    assert!(bars > 40, "histograms of weights, widths and bytes, and the sizes: {bars}");
}
