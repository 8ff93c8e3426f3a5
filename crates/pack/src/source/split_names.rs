//! Finds the split in the name of a file or folder, for all commands.
//!
//! A name is cut into words at separators, between letters and digits, and where the case changes. It is named for a split if
//! one of its words is a split's: `train-00000-of-00009.parquet` (Hugging Face), `mnist-test.tfrecord-00000-of-00001`
//! (TensorFlow Datasets), `instances_val2017.json` (COCO), `ILSVRC2012_img_train.tar` (ImageNet),
//! `imagenet1k-validation-00.tar` (WebDataset). A part before `-NNNNN-of-NNNNN` that begins with such a word is a split's
//! whole name: `train_sft-00000-of-00003.parquet`; likewise before `-NNNNN`, as this program names its shards.

/// Words that name splits. Those of one row are spellings of one split.
const SPELLINGS: [&[&str]; 7] = [
    &["train", "training", "trainset"],
    &["val", "valid", "validation", "valset"],
    &["test", "testing", "testset"],
    &["dev", "devset"],
    &["eval", "evaluation"],
    &["trainval"],
    &["minival"],
];

/// What a name says about the split.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NamedSplit {
    /// Nothing.
    None,
    /// It names this split.
    One(String),
    /// It names all of these.
    Several(Vec<String>),
}

impl NamedSplit {
    /// Returns what the name of a file or folder says.
    pub(crate) fn of(name: &str) -> Self {
        if let Some(split) = sharded(name) {
            return NamedSplit::One(split.to_owned());
        }
        let mut found: Vec<_> = words(name).into_iter().filter(|word| spellings(word).is_some()).collect();
        found.dedup();
        match found.len() {
            0 => NamedSplit::None,
            1 => NamedSplit::One(found.swap_remove(0)),
            _ => NamedSplit::Several(found),
        }
    }

    /// Returns what the name of a folder says about the files in it: its last word is that of a split (`val`, `photos-val`,
    /// `ILSVRC2012_img_val`), and no other one is. Names such as `test_photos` are chosen for other reasons.
    pub(crate) fn of_folder(name: &str) -> Self {
        let last = words(name).into_iter().rfind(|word| !is_number(word));
        match (last.filter(|word| spellings(word).is_some()), Self::of(name)) {
            (Some(_), NamedSplit::One(split)) => NamedSplit::One(split),
            _ => NamedSplit::None,
        }
    }
}

/// Returns whether a name is that of a split and nothing else, except for a number: `val`, `train2017`.
pub(crate) fn is_split(name: &str) -> bool {
    let mut words = words(name).into_iter();
    words.next().is_some_and(|word| spellings(&word).is_some()) && words.all(|word| is_number(&word))
}

/// Returns whether two names are spellings of one split, such as `val` and `validation`.
pub(crate) fn is_same(a: &str, b: &str) -> bool {
    a == b || spellings(a).is_some_and(|spellings| spellings.contains(&b))
}

/// Returns the year that follows the word of a split without a separator (`train2017`): other years are other samples.
pub(crate) fn year(name: &str) -> Option<String> {
    let name = name.to_lowercase();
    let words = SPELLINGS.into_iter().flatten();
    let digits = |at: usize| name[at..].chars().take_while(char::is_ascii_digit).collect::<String>();
    let mut after = words.flat_map(|word| name.match_indices(word).map(|(at, word)| digits(at + word.len())));
    after.find(|year| year.len() == 4 && (year.starts_with("19") || year.starts_with("20")))
}

fn spellings(word: &str) -> Option<&'static [&'static str]> {
    SPELLINGS.into_iter().find(|spellings| spellings.contains(&word))
}

fn is_number(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the part of a file's name before its number, `-NNNNN-of-NNNNN` or `-NNNNN`; `None` without a number.
pub(crate) fn before_number(name: &str) -> Option<&str> {
    let digits = |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let numbered = |(at, _): &(usize, &str)| {
        let rest = &name[at + 1..];
        let count = digits(rest);
        let total = rest[count..].strip_prefix("-of-").is_some_and(|total| digits(total) == count);
        (count >= 4 && total) || (count >= 5 && !rest[count..].starts_with(|c: char| c.is_alphanumeric()))
    };
    let (at, _) = name.match_indices('-').find(numbered)?;
    let formats = ["tfrecord", "array_record", "arrow"];
    let bare = formats.iter().find_map(|format| name[..at].strip_suffix(format)?.strip_suffix('.'));
    Some(bare.unwrap_or(&name[..at]))
}

/// Returns the split of a file with a number: the part before it, from the last `-`, if it begins with the word of a split.
fn sharded(name: &str) -> Option<&str> {
    let part = before_number(name)?.rsplit('-').next()?;
    let first = part.split(['_', '.']).next()?;
    spellings(first).map(|_| part)
}

/// Returns the words of a name in lower case. Capitals before small letters belong to the word before or to the word after
/// (`VOCtest`, `CIFARTest`): both readings are among the words.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![];
    for part in name.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty()) {
        let letters: Vec<char> = part.chars().collect();
        let mut begin = 0;
        while begin < letters.len() {
            let kind = |c: char| (c.is_numeric(), c.is_uppercase());
            let run =
                |from: usize| from + letters[from..].iter().take_while(|c| kind(**c) == kind(letters[from])).count();
            let mut end = run(begin);
            let capitals = end - begin;
            if letters[begin].is_uppercase() && letters.get(end).is_some_and(|c| !c.is_numeric()) {
                let small = end..run(end);
                if capitals > 1 {
                    words.push(letters[begin..end].iter().collect::<String>());
                    words.push(letters[small.clone()].iter().collect());
                }
                (begin, end) = (end - 1, small.end);
            }
            words.push(letters[begin..end].iter().collect());
            begin = end;
        }
    }
    words.iter_mut().for_each(|word| *word = word.to_lowercase());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(name: &str) -> NamedSplit {
        NamedSplit::One(name.to_owned())
    }

    #[test]
    fn names_of_other_tools_tell_their_split() {
        for (name, split) in [
            ("train-00000-of-00009.parquet", "train"),
            ("validation-00000-of-00001-a09b74b3ef9c3b56.parquet", "validation"),
            ("train_sft-00000-of-00003.parquet", "train_sft"),
            ("train_small-00007.tfrecord", "train_small"),
            ("cifar-10-test-00000.tfrecord", "test"),
            ("train.clean.100-00000-of-00003.parquet", "train.clean.100"),
            ("mnist-test.tfrecord-00000-of-00001", "test"),
            ("imagenet2012-validation.tfrecord-00007-of-00064", "validation"),
            ("test-photos-train.array_record-00000-of-00002", "train"),
            ("train2017", "train"),
            ("instances_val2017.json", "val"),
            ("ILSVRC2012_img_train.tar", "train"),
            ("VOCtest_06-Nov-2007.tar", "test"),
            ("VOCtrainval_11-May-2012.tar", "trainval"),
            ("imagenet1k-train-0000.tar", "train"),
            ("imagenet1k-validation-00.tar.gz", "validation"),
            ("TRAIN.csv", "train"),
            ("photosTrain.tfrecord", "train"),
            ("CIFARTest", "test"),
            ("trainA", "train"),
            ("dev.jsonl", "dev"),
            ("x_eval_0.tar", "eval"),
        ] {
            assert_eq!(NamedSplit::of(name), one(split), "{name}");
        }
    }

    #[test]
    fn other_names_tell_none() {
        for name in [
            "photos-00000-of-00009.parquet",
            "trains",
            "constraint.tar",
            "latest.tar",
            "0000.tar",
            "evaluated",
            "bus",
            "",
        ] {
            assert_eq!(NamedSplit::of(name), NamedSplit::None, "{name}");
        }
        assert!(matches!(NamedSplit::of("train_val.tar"), NamedSplit::Several(splits) if splits == ["train", "val"]));
    }

    #[test]
    fn a_folder_is_named_for_a_split_by_its_last_word() {
        for (name, split) in
            [("photos-val", "val"), ("ILSVRC2012_img_val", "val"), ("val2017", "val"), ("Test", "test")]
        {
            assert_eq!(NamedSplit::of_folder(name), one(split), "{name}");
        }
        for name in ["test_photos", "train-station", "photos", "2017", "test_of_train0"] {
            assert_eq!(NamedSplit::of_folder(name), NamedSplit::None, "{name}");
        }
        assert!(is_split("train2017") && is_split("Test") && !is_split("bullet_train") && !is_split("test_tube"));
    }

    #[test]
    fn spellings_and_years() {
        assert!(is_same("val", "validation") && is_same("a", "a") && !is_same("val", "test") && !is_same("a", "b"));
        assert_eq!(year("train2017"), Some("2017".to_owned()));
        assert_eq!((year("train-2017"), year("train0000")), (None, None));
    }
}
