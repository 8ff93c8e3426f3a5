//! Which members of a tar are one sample, which of them is the image and which the label: refused where names may be meant in
//! two ways, and each sample that is not whole is rejected for that reason.

use crate::support::{chain, check, jpeg, put, rejected, tar};
use shardtool_pack::{ArchiveError, Error, MemberKey, Options, pack, plan};
use std::path::PathBuf;

struct Made {
    _temp: tempfile::TempDir,
    options: Options,
    set: PathBuf,
}

/// A tar with these members: an image, unless the name ends in `.cls` or `.json`.
fn made(members: &[(&str, &str)]) -> Made {
    let temp = tempfile::tempdir().unwrap();
    let image = jpeg(3, 24, 20);
    let content = |text: &&str| if text.is_empty() { image.clone() } else { text.as_bytes().to_vec() };
    let members: Vec<_> = members.iter().map(|(name, text)| (*name, content(text))).collect();
    put(&temp.path().join("a.tar"), &tar(&members.iter().map(|(name, bytes)| (*name, &bytes[..])).collect::<Vec<_>>()));
    let set = temp.path().join("set");
    let options = Options::new(temp.path().join("a.tar"), &set);
    Made { _temp: temp, options, set }
}

impl Made {
    fn keys(&self, member_key: Option<MemberKey>) -> Vec<String> {
        let set = self.set.with_extension(format!("{member_key:?}"));
        let options = with!(self.options.clone(), member_key = member_key, destination = set.clone());
        let summary = pack(&options, &()).map_err(|error| chain(&error)).unwrap();
        assert_eq!((summary.rejected, summary.samples), (0, summary.split.records()));
        check(&set, "train").into_keys().collect()
    }

    fn error(&self) -> Error {
        let error = plan(&self.options).err().unwrap();
        assert!(!self.set.exists());
        error
    }
}

#[test]
fn refuses_members_that_may_be_several_samples() {
    for (members, first, last) in [
        (&[("cam_0.00.jpg", ""), ("cam_0.00.cls", "0"), ("cam_0.05.jpg", ""), ("cam_0.05.cls", "1")][..], 1, 2),
        (&[("x/cam_0.00.jpg", ""), ("x/cam_0.05.jpg", "")], 1, 2),
        (&[("1.jpg", ""), ("1.cls", "0"), ("1.5.jpg", ""), ("1.5.cls", "1")], 1, 2),
        (&[("photo.v2.jpg", ""), ("photo.v2.cls", "1")], 1, 1),
        (&[("2024.01.02.jpg", ""), ("2024.01.02.json", "{}"), ("2024.01.03.jpg", ""), ("2024.01.03.json", "{}")], 1, 2),
    ] {
        let made = made(members);
        let error = made.error();
        assert!(matches!(&error, Error::Archive(ArchiveError::MemberKeys { .. })), "{error:?}");
        let text = chain(&error);
        let member = members[0].0.rsplit('/').next().unwrap();
        assert!(text.contains(member) && text.contains("--member-key first-dot or --member-key last-dot"), "{text}");
        assert_eq!(made.keys(Some(MemberKey::LastDot)).len(), last, "{members:?}");
        // Several fields may then be the image: refused as well.
        let first_dot = with!(made.options.clone(), member_key = Some(MemberKey::FirstDot));
        match plan(&first_dot) {
            Ok(plan) => assert_eq!(plan.images(), first, "{members:?}"),
            Err(error) => assert!(chain(&error).contains("--map image="), "{}", chain(&error)),
        }
    }
}

#[test]
fn the_last_dot_finds_image_and_label() {
    let made = made(&[("cam_0.00.jpg", ""), ("cam_0.00.cls", "0"), ("cam_0.05.jpg", ""), ("cam_0.05.cls", "1")]);
    assert_eq!(made.keys(Some(MemberKey::LastDot)), ["cam_0.00", "cam_0.05"]);
    let set = made.set.with_extension("Some(LastDot)");
    assert_eq!(check(&set, "train")["cam_0.05"].1, Some(1));
    // Another grouping is another plan.
    let other = with!(made.options.clone(), destination = set, member_key = Some(MemberKey::FirstDot));
    assert!(pack(&other, &()).is_err());
}

#[test]
fn fields_with_dots_are_no_doubt() {
    for members in [
        &[("0.jpg", ""), ("0.seg.png", "x"), ("0.cls", "1"), ("1.jpg", ""), ("1.seg.png", "x"), ("1.cls", "1")][..],
        &[("0.jpg", ""), ("0.meta.json", "{}"), ("1.jpg", "")],
        &[("a.b/0.jpg", ""), ("a.b/1.jpg", "")],
    ] {
        assert_eq!(made(members).keys(None).len(), members.iter().filter(|(name, _)| name.ends_with(".jpg")).count());
    }
}

#[test]
fn asks_which_field_is_the_image() {
    let made = made(&[("0.depth.png", ""), ("0.rgb.png", ""), ("1.depth.png", ""), ("1.rgb.png", "")]);
    let text = chain(&made.error());
    assert!(text.contains("depth.png, rgb.png may be") && text.contains("--map image=depth.png"), "{text}");
    let map = vec![("image".to_owned(), "rgb.png".to_owned())];
    let summary = pack(&with!(made.options.clone(), map = map), &()).unwrap();
    assert_eq!((summary.split.records(), summary.rejected), (2, 0));
    // Each may be a sample.
    let hashes = self::made(&[("img.ab3f.jpg", ""), ("img.c001.jpg", "")]);
    assert!(chain(&hashes.error()).contains("--member-key last-dot"));
    assert_eq!(hashes.keys(Some(MemberKey::LastDot)), ["img.ab3f", "img.c001"]);
    // One is named as images are.
    assert_eq!(self::made(&[("0.depth.png", ""), ("0.jpg", "")]).keys(None), ["0"]);
}

#[test]
fn samples_whose_members_are_not_adjacent_are_rejected_for_that_reason() {
    for members in [
        &[("0.jpg", ""), ("1.jpg", ""), ("0.cls", "0"), ("1.cls", "1"), ("2.jpg", ""), ("2.cls", "1")][..],
        // Without labels, the image would be a sample without its caption.
        &[("0.jpg", ""), ("1.jpg", ""), ("1.txt", "b"), ("0.txt", "a")],
    ] {
        let made = made(members);
        let summary = pack(&made.options, &()).unwrap();
        let scattered = rejected(&summary.rejected_file.unwrap());
        assert_eq!((summary.split.records(), summary.samples), (1, 1 + scattered.len() as u64));
        assert!(scattered.iter().all(|(_, reason)| reason.contains("not adjacent")), "{scattered:?}");
    }
    // Samples of the same name are samples.
    let twice = made(&[("0.jpg", ""), ("0.cls", "0"), ("1.jpg", ""), ("1.cls", "0"), ("0.jpg", ""), ("0.cls", "1")]);
    assert_eq!(twice.keys(None).len(), 3);
}

#[test]
fn asks_which_of_two_labels() {
    let made = made(&[("0.jpg", ""), ("0.cls", "1"), ("0.json", r#"{"label": 7, "weight": 2}"#)]);
    let text = chain(&made.error());
    assert!(text.contains("cls and label") && text.contains("--map label="), "{text}");
    let map = vec![("label".to_owned(), "cls".to_owned())];
    pack(&with!(made.options.clone(), map = map), &()).unwrap();
    assert_eq!(check(&made.set, "train")["0"].1, Some(1));
    // Equal ones count once, and a name next to an id is not another id.
    for json in [r#"{"label": 1}"#, r#"{"label": "cat"}"#] {
        assert_eq!(self::made(&[("0.jpg", ""), ("0.cls", "1"), ("0.json", json)]).keys(None), ["0"]);
    }
}

#[test]
fn exported_names_read_back() {
    let made = made(&[("cam_0.00.jpg", ""), ("cam_0.00.cls", "0"), ("cam_0.05.jpg", ""), ("cam_0.05.cls", "1")]);
    made.keys(Some(MemberKey::LastDot));
    let set = made.set.with_extension("Some(LastDot)");
    let dataset = shardtool_read::Dataset::open(&set).unwrap();
    let options = shardtool_pack::ExportOptions::new(shardtool_pack::ExportKind::Webdataset);
    let tars = made.set.join("../tars");
    shardtool_pack::export(dataset.splits(), &tars, &options, &()).unwrap();
    let again = made.set.join("../again");
    pack(&Options::new(tars.join("*.tar"), &again), &()).unwrap();
    assert_eq!(check(&again, "train"), check(&set, "train"));
}
