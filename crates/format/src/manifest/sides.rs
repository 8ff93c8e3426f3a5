//! Which keypoints change places in a mirrored object, by their names.

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
    let at = |wanted: &str| names.iter().position(|name| *name == wanted);
    let owned = |name: &str| name.to_owned();
    let number = |(number, name): (usize, &&str)| {
        if at(name) != Some(number) {
            return Err(SidesError::Twice { name: owned(name) });
        }
        if let Some(other) = other_side(name) {
            let name = owned(name);
            return at(&other).ok_or(SidesError::Alone { name, other });
        }
        match names.iter().find(|other| is_similar(name, other)) {
            Some(other) => Err(SidesError::Unclear { name: owned(name), other: owned(other) }),
            None => Ok(number),
        }
    };
    names.iter().enumerate().map(number).collect()
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

/// Returns whether two names differ in one letter, which is l in one and r in the other.
fn is_similar(a: &str, b: &str) -> bool {
    let mut differing = a.chars().zip(b.chars()).filter(|(a, b)| a != b);
    let sides = |(a, b): (char, char)| LETTERS.iter().any(|(l, r)| (a, b) == (*l, *r) || (a, b) == (*r, *l));
    a.chars().count() == b.chars().count() && differing.next().is_some_and(sides) && differing.next().is_none()
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
        assert_eq!(flip_index::<&str>(&[]).unwrap(), [0usize; 0]);
    }

    #[test]
    fn names_that_do_not_say_it_are_refused() {
        let alone = |name: &str, other: &str| SidesError::Alone { name: name.to_owned(), other: other.to_owned() };
        assert_eq!(flip_index(&["nose", "left_eye"]).unwrap_err(), alone("left_eye", "right_eye"));
        assert_eq!(flip_index(&["r_eye", "eye"]).unwrap_err(), alone("r_eye", "l_eye"));
        let unclear = flip_index(&["head", "lankle", "rankle"]).unwrap_err();
        assert_eq!(unclear, SidesError::Unclear { name: "lankle".to_owned(), other: "rankle".to_owned() });
        assert_eq!(flip_index(&["a", "a"]).unwrap_err(), SidesError::Twice { name: "a".to_owned() });
    }
}
