//! `diff` of datasets whose features differ.

use crate::made;
use serde_json::{Value, json};
use std::path::Path;

fn run(folder: &Path, arguments: &str, status: i32) -> String {
    let output = made::run(folder, arguments);
    assert_eq!(output.status.code(), Some(status), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn names_the_features_that_differ_and_compares_the_others() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    made::list(folder, "plain", "label,rank", (0..6).map(|i| format!("{},{i}", i % 2)));
    made::list(folder, "more", "label,rank,weight", (0..6).map(|i| format!("{},{i},{}.5", i % 2, i)));
    // The rank of one record is another one.
    made::list(folder, "other", "label,rank,weight", (0..6).map(|i| format!("{},{},1.5", i % 2, i.max(1))));
    for name in ["plain", "more", "other"] {
        run(folder, &format!("pack {name}.csv {name}"), 0);
    }
    run(folder, "pack plain.csv retyped --column rank:float", 0);

    let text = run(folder, "diff plain more", 1);
    assert!(text.contains("  feature weight (float) only in the second\n"), "{text}");
    assert!(text.contains("6 records and 6 records; 0 equal\n  6 equal but for feature weight\n"), "{text}");
    assert!(!text.contains("differ:"), "{text}");
    let found: Value = serde_json::from_str(&run(folder, "diff more plain --json", 1)).unwrap();
    assert_eq!(
        found["features"],
        json!({"only_a": [{"name": "weight", "type": "float"}], "only_b": [], "changed": []})
    );
    assert_eq!((&found["splits"][0]["same"], &found["splits"][0]["same_but_features"]), (&0.into(), &6.into()));
    assert_eq!(found["splits"][0]["differing"]["count"], 0);

    let text = run(folder, "diff plain other", 1);
    assert!(text.contains("  5 equal but for feature weight\n  1 differ:\n    images/000.jpg\n"), "{text}");

    let text = run(folder, "diff plain retyped", 1);
    assert!(text.contains("  feature rank is int64 in the first, float in the second\n"), "{text}");
    assert!(text.contains("  6 equal but for feature rank\n"), "{text}");
}
