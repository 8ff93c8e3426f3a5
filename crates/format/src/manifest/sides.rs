//! Which keypoints change places in a mirrored object, by their names.

use std::collections::HashMap;

/// Words for the two sides of an object.
const WORDS: [(&str, &str); 3] = [("left", "right"), ("Left", "Right"), ("LEFT", "RIGHT")];
/// Letters for the two sides, where they stand alone: `l_eye`, `eye.R`.
const LETTERS: [(char, char); 2] = [('l', 'r'), ('L', 'R')];

/// Why names do not say which points change places.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SidesError {
    /// A name occurs twice.
    #[error("{name:?} occurs twice")]
    Twice {
        /// The name.
        name: String,
    },
    /// A point of one side, without that of the other.
    #[error("has {name:?}, but not {other:?}")]
    Alone {
        /// The name.
        name: String,
        /// That of the other side.
        other: String,
    },
    /// A point that has a number and no side, among others with sides: `face-0` and `face-16` may be two sides, or not.
    #[error("has {name:?}, a number without a side, while other names have sides: give the numbers")]
    Counted {
        /// The name.
        name: String,
    },
    /// Two names that may be the two sides, or not.
    #[error("has {name:?} and {other:?}, which may be two sides, or not: give the numbers")]
    Unclear {
        /// The first.
        name: String,
        /// The second.
        other: String,
    },
}

/// Returns the number that each point has in a mirrored object: `left_eye` and `right_eye` change places, also `l_eye` and `r_eye`;
/// names without a side stay.
///
/// # Errors
/// [`SidesError`].
pub fn flip_index(names: &[impl AsRef<str>]) -> Result<Vec<usize>, SidesError> {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    let mut at = HashMap::new();
    for (number, name) in names.iter().enumerate() {
        if at.insert(*name, number).is_some() {
            return Err(SidesError::Twice { name: (*name).to_owned() });
        }
    }
    let number = |(number, name): (usize, &&str)| {
        let name = *name;
        if name.chars().count() == 1 && other_side(name).is_some_and(|other| at.contains_key(&*other)) {
            // Letters that count points, perhaps.
            return Err(SidesError::Unclear { name: name.to_owned(), other: other_side(name).unwrap_or_default() });
        }
        if let Some(other) = other_side(name) {
            return at.get(&*other).copied().ok_or(SidesError::Alone { name: name.to_owned(), other });
        }
        match similar(name).find(|other| at.contains_key(&**other)) {
            Some(other) => Err(SidesError::Unclear { name: name.to_owned(), other }),
            None => Ok(number),
        }
    };
    let order = names.iter().enumerate().map(number).collect::<Result<Vec<_>, _>>()?;
    if order.iter().enumerate().any(|(number, other)| number != *other) {
        check_others(names.iter().copied().filter(|name| other_side(name).is_none()))?;
    }
    Ok(order)
}

/// Checks names without a side, among others with sides: they may have sides in other words.
///
/// # Errors
/// [`SidesError::Counted`], [`SidesError::Unclear`] of two names that differ in one letter, such as `oeil_g` and `oeil_d`.
fn check_others<'n>(names: impl Iterator<Item = &'n str>) -> Result<(), SidesError> {
    let mut seen: HashMap<(&str, &str), &str> = HashMap::new();
    for name in names {
        if name.contains(|c: char| c.is_ascii_digit()) {
            return Err(SidesError::Counted { name: name.to_owned() });
        }
        for (at, letter) in name.char_indices() {
            if let Some(other) = seen.insert((&name[..at], &name[at + letter.len_utf8()..]), name) {
                return Err(SidesError::Unclear { name: other.to_owned(), other: name.to_owned() });
            }
        }
    }
    Ok(())
}

/// Returns the name of the other side; `None` for a name without a side.
fn other_side(name: &str) -> Option<String> {
    let pairs = || WORDS.into_iter().flat_map(|(a, b)| [(a, b), (b, a)]);
    if let Some((here, there)) = pairs().find(|(here, _)| name.contains(here)) {
        return Some(name.replace(here, there));
    }
    let letters: Vec<char> = name.chars().collect();
    let stands_alone = |at: usize| {
        let is_letter = |at: Option<usize>| at.and_then(|at| letters.get(at)).is_some_and(|c| c.is_alphanumeric());
        !is_letter(at.checked_sub(1)) && !is_letter(Some(at + 1))
    };
    let other = |at: usize, c: char| {
        let pair = LETTERS.iter().find(|(l, r)| c == *l || c == *r).filter(|_| stands_alone(at));
        pair.map_or(c, |(l, r)| if c == *l { *r } else { *l })
    };
    let turned: String = letters.iter().enumerate().map(|(at, c)| other(at, *c)).collect();
    (turned != name).then_some(turned)
}

/// Returns the names that differ from this one in one letter, which is l in one and r in the other.
fn similar(name: &str) -> impl Iterator<Item = String> {
    let other = |letter: char| {
        LETTERS.iter().find_map(|(l, r)| match letter {
            letter if letter == *l => Some(*r),
            letter if letter == *r => Some(*l),
            _ => None,
        })
    };
    name.char_indices().filter_map(move |(at, letter)| {
        let end = at + letter.len_utf8();
        Some(format!("{}{}{}", &name[..at], other(letter)?, &name[end..]))
    })
}

#[cfg(test)]
mod tests {
    use super::{SidesError, flip_index};

    #[test]
    fn sides_change_places() {
        let coco = ["nose", "left_eye", "right_eye", "left_ear", "right_ear"];
        assert_eq!(flip_index(&coco).unwrap(), [0, 2, 1, 4, 3]);
        assert_eq!(flip_index(&["RightHand", "LeftHand", "Head"]).unwrap(), [1, 0, 2]);
        assert_eq!(flip_index(&["r_ankle", "l_ankle", "pelvis", "eye.L", "eye.R"]).unwrap(), [1, 0, 2, 4, 3]);
        assert_eq!(flip_index(&["collar", "roller", "tail"]).unwrap(), [0, 1, 2]);
        assert_eq!(flip_index(&[""; 0]).unwrap(), [0usize; 0]);
    }

    #[test]
    fn names_that_do_not_say_it_are_refused() {
        let alone = |name: &str, other: &str| SidesError::Alone { name: name.to_owned(), other: other.to_owned() };
        assert_eq!(flip_index(&["nose", "left_eye"]).unwrap_err(), alone("left_eye", "right_eye"));
        assert_eq!(flip_index(&["r_eye", "eye"]).unwrap_err(), alone("r_eye", "l_eye"));
        let unclear = |name: &str, other: &str| SidesError::Unclear { name: name.to_owned(), other: other.to_owned() };
        assert_eq!(
            flip_index(&["left_hand", "right_hand", "oeil_g", "oeil_d"]).unwrap_err(),
            unclear("oeil_g", "oeil_d")
        );
        assert_eq!(flip_index(&["k", "l", "m", "r"]).unwrap_err(), unclear("l", "r"));
        let counted = flip_index(&["left_eye", "right_eye", "face-0", "face-16"]).unwrap_err();
        assert_eq!(counted, SidesError::Counted { name: "face-0".to_owned() });
        assert_eq!(flip_index(&["head", "lankle", "rankle"]).unwrap_err(), unclear("lankle", "rankle"));
        assert_eq!(flip_index(&["a", "a"]).unwrap_err(), SidesError::Twice { name: "a".to_owned() });
    }
}
