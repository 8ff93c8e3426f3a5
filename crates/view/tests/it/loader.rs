//! A trial of the loader, run from the page.

use crate::support::{Site, write};

fn token(site: &Site, page: &str) -> String {
    site.page(page).split("name=\"token\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
}

fn start(site: &Site, form: &str) -> Option<String> {
    let form = format!("{form}&token={}", token(site, "/train/loader"));
    let answer = site.request("POST", "/train/loader", &[], &form);
    assert_eq!(answer.status, 303, "{}", answer.text());
    answer.header("location").map(str::to_owned)
}

/// Waits for the end of a trial and returns the part that shows it.
fn end(site: &Site) -> String {
    loop {
        let part = site.page("/train/loader/part");
        if !part.contains("data-running") {
            return part;
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_trial_shows_stages_curves_and_what_bounds_the_rate() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 60);
    let site = Site::of(folder.path());
    assert!(!site.page("/train/loader/part").contains("Stages"), "nothing has run");
    let location = start(&site, "work=train&size=32&batch=8&seconds=1&workers=1&budget=64").unwrap();
    for pair in ["size=32", "batch=8", "workers=1", "budget=64", "seconds=1", "work=train"] {
        assert!(location.contains(pair), "{pair}: {location}");
    }
    let part = end(&site);
    for text in
        ["bounds the rate", "Stages", "decode", "consumer wait", "images a second", "budget of 67.1 MB", "Ended"]
    {
        assert!(part.contains(text), "{text}: {part}");
    }
    // A second of work on tiny images: many epochs, all of them counted.
    let samples = part.split("active; ").nth(1).unwrap().split(' ').next().unwrap().replace(',', "");
    let batches_of_epoch = 60 / 8;
    assert!(samples.parse::<u64>().unwrap() > 8 * batches_of_epoch, "{part}");
    // The page has the settings of the URL, and Python with the same.
    let page = site.page(&location);
    for text in ["batch_size=8,", "fields=[st.RandomResizedCrop(32), st.HorizontalFlip()],", "memory=&quot;64MiB&quot;"]
    {
        assert!(page.contains(text), "{text}: {page}");
    }
}

#[test]
fn a_schedule_shows_what_each_member_has_had() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 60);
    let site = Site::of(folder.path());
    let location =
        start(&site, "work=read&batch=4&seconds=1&schedule=0%3A+1+where+image%2Fclass%2Flabel%3D0%3B+1%3A+1").unwrap();
    let part = end(&site);
    for text in ["Members of the schedule", "where image/class/label=0", "100.0 %", "Share in this stage"] {
        assert!(part.contains(text), "{text}: {part}");
    }
    let page = site.page(&location);
    let python = "source=st.Scheduled({0: st.Stage([1], where=[&quot;image/class/label=0&quot;]), 1: [1]}),";
    assert!(page.contains(python) && page.contains("value=\"0: 1 where image/class/label=0; 1: 1\""), "{page}");
    start(&site, "work=read&batch=4&seconds=1&schedule=0%3A+1%2C2");
    let part = end(&site);
    assert!(part.contains("stage 0 has 2 weights for 1 members"), "{part}");
    start(&site, "work=read&batch=4&seconds=1&schedule=soon");
    assert!(end(&site).contains("expected START: WEIGHT"));
}

#[test]
fn a_consumer_that_is_slow_bounds_the_rate() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 60);
    let site = Site::of(folder.path());
    start(&site, "work=read&batch=4&seconds=1&step=120");
    let part = end(&site);
    assert!(part.contains("the consumer bounds the rate"), "{part}");
}

#[test]
fn one_thing_runs_at_a_time_and_a_trial_can_be_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 60);
    let site = Site::of(folder.path());
    start(&site, "work=read&batch=4&seconds=300");
    assert!(start(&site, "work=read&batch=4").unwrap().contains("busy=1"), "no second trial");
    let token = token(&site, "/-/health");
    let check = site.request("POST", "/-/check", &[], &format!("kind=verify&token={token}"));
    assert_eq!(check.header("location"), Some("/-/health?busy=1"), "no check meanwhile");
    let cancelled = site.request("POST", "/-/cancel", &[], &format!("split=train&token={token}"));
    assert_eq!(cancelled.header("location"), Some("/train/loader"));
    assert!(end(&site).contains("Cancelled"));
    let check = site.request("POST", "/-/check", &[], &format!("kind=verify&token={token}"));
    assert_eq!(check.header("location"), Some("/-/health"), "the turn is free again");
}

#[test]
fn what_cannot_be_loaded_says_why_and_forms_need_the_token() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 10);
    let site = Site::of(folder.path());
    for (form, why) in [
        ("batch=0&seconds=1", "batch"),
        ("batch=100000&seconds=1", "batch"),
        ("budget=1&size=4000&batch=10&seconds=1", "budget"),
    ] {
        start(&site, form);
        let part = end(&site);
        assert!(part.contains("role=\"alert\"") && part.contains(why), "{form}: {part}");
    }
    for form in ["batch=4", "batch=4&token=00"] {
        assert_eq!(site.request("POST", "/train/loader", &[], form).status, 403);
    }
    assert_eq!(site.request("POST", "/nothing/loader", &[], "").status, 403);
    assert_eq!(site.get("/nothing/loader").status, 404);
}
