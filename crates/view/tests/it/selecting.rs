//! Filters, search, order and jumps, against the same computed from what was written.

use crate::support::{Site, write};

const RECORDS: u64 = 200;

/// Returns the weight of a record, as `support::write` writes it.
fn weight(i: u64) -> Option<f32> {
    (!i.is_multiple_of(7)).then_some(100.0 - i as f32 / 2.0)
}

fn width(i: u64) -> u64 {
    64 + i % 40
}

fn all(site: &Site, query: &str) -> Vec<u64> {
    let mut ids = vec![];
    loop {
        let part = site.ids(&format!("/train/cells?{query}&start={}&count=60", ids.len()));
        if part.is_empty() {
            return ids;
        }
        ids.extend(part);
    }
}

#[test]
fn filters_keep_exactly_the_records_that_meet_them() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), RECORDS as u32);
    let site = Site::of(folder.path());
    let check = |query: &str, holds: &dyn Fn(u64) -> bool| {
        assert_eq!(all(&site, query), (0..RECORDS).filter(|i| holds(*i)).collect::<Vec<_>>(), "{query}");
    };
    check("filter=image/width%3D70", &|i| width(i) == 70);
    check("filter=image/width%3E%3D100", &|i| width(i) >= 100);
    check("filter=image/width%3E%3D70&filter=image/width%3C75", &|i| (70..75).contains(&width(i)));
    check("filter=weight%3C20", &|i| weight(i).is_some_and(|w| w < 20.0));
    check("filter=weight%3D", &|i| weight(i).is_none());
    check("filter=weight!%3D", &|i| weight(i).is_some());
    check("filter=image/class/label%3D2", &|i| i % 3 == 2);
    check("q=k/0010", &|i| (100..110).contains(&i));
    check("q=number+19", &|i| i == 19 || (190..200).contains(&i));
    check("q=owl", &|i| i % 3 == 2);
    check("q=owl&filter=image/width%3D70", &|i| i % 3 == 2 && width(i) == 70);
    check("filter=caption~number+7", &|i| i == 7 || (70..80).contains(&i));
    check("q=nothing+like+this", &|_| false);
    for wrong in
        ["filter=image/width%3Dx", "filter=nothing%3D1", "filter=image/width", "sort=nothing", "sort=image/object/bbox"]
    {
        assert_eq!(site.get(&format!("/train?{wrong}")).status, 400, "{wrong}");
    }
}

#[test]
fn sorts_by_any_column_with_missing_values_last() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), RECORDS as u32);
    let site = Site::of(folder.path());
    let mut by_weight: Vec<_> = (0..RECORDS).collect();
    by_weight.sort_by(|a, b| match (weight(*a), weight(*b)) {
        (Some(x), Some(y)) => x.total_cmp(&y),
        (x, y) => y.is_some().cmp(&x.is_some()),
    });
    assert_eq!(all(&site, "sort=weight"), by_weight);
    let mut descending = by_weight.clone();
    descending.reverse();
    assert_eq!(all(&site, "sort=-weight"), descending);
    let mut by_width: Vec<_> = (0..RECORDS).collect();
    by_width.sort_by_key(|i| width(*i));
    assert_eq!(all(&site, "sort=image/width"), by_width);
    by_width.retain(|i| i % 3 == 0);
    assert_eq!(all(&site, "sort=image/width&filter=image/class/label%3D0"), by_width);
    let mut by_caption: Vec<_> = (0..RECORDS).filter(|i| *i != 5).collect();
    by_caption.sort_by_key(|i| format!("caption number {i}"));
    assert_eq!(all(&site, "sort=caption")[1..], by_caption, "markup first: `<` is before letters");
    assert_eq!(all(&site, "sort=key")[..3], [0, 1, 2]);
}

#[test]
fn jumps_to_any_position() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), RECORDS as u32);
    let site = Site::of(folder.path());
    assert_eq!(site.ids("/train?start=137")[..2], [137, 138]);
    let jump = site.get("/train/go?position=100&q=owl");
    assert_eq!(jump.header("location"), Some("/train?q=owl&start=100"));
    let filter = site.get("/train/go?column=image%2Fwidth&operator=%3E%3D&value=+80+&sort=-weight");
    assert_eq!(filter.header("location"), Some("/train?filter=image%2Fwidth%3E%3D80&sort=-weight"));
    assert!(site.ids("/train/cells?start=18446744073709551615&count=18446744073709551615").is_empty());
    assert_eq!(site.ids("/train/cells?start=10&count=99999999").len(), 190, "as many as there are, below the limit");
}
