//! Where stages begin, and their weights, as whole numbers.

use crate::error::StageProblem;
use crate::options::{Decimal, Start};

/// The sum to which the weights of a stage are rounded.
const SUM: u128 = 1 << 20;

/// Returns the position of a run at which a stage begins, rounded to the nearest one.
pub(super) fn start(stage: usize, start: Start, draws: u64, epochs: Option<u64>) -> Result<u64, StageProblem> {
    let too_late = || StageProblem::Start { stage, start, problem: "is later than 2^64 samples" };
    let part = |decimal: Decimal, whole: u128| {
        let scale = 10u128.checked_pow(decimal.places);
        let product = u128::from(decimal.digits).checked_mul(whole).ok_or_else(too_late)?;
        let rounded = scale.map_or(Some(0), |scale| Some(product.checked_add(scale / 2)? / scale));
        rounded.and_then(|position| u64::try_from(position).ok()).ok_or_else(too_late)
    };
    let position = match start {
        Start::Samples(samples) => samples,
        Start::Epochs(decimal) => part(decimal, draws.into())?,
        Start::Percent(decimal) => {
            let epochs = epochs.ok_or(StageProblem::NoEpochs { stage, start })?;
            // Of a hundredth of the run.
            let run = u128::from(draws).checked_mul(epochs.into()).ok_or_else(too_late)?;
            part(Decimal { places: decimal.places + 2, ..decimal }, run)?
        }
    };
    match epochs.and_then(|epochs| draws.checked_mul(epochs)) {
        Some(end) if position >= end => {
            Err(StageProblem::Start { stage, start, problem: "is not before the end of the run" })
        }
        _ => Ok(position),
    }
}

/// Returns whole weights, in the proportion of those given; if their sum is larger than 2²⁰ and they have fractions, rounded to that
/// sum by the largest remainder, of equal ones the earlier first.
pub(super) fn whole_weights(
    stage: usize,
    given: &[Decimal],
    name: impl Fn(usize) -> String,
) -> Result<Vec<u64>, StageProblem> {
    let places = given.iter().map(|weight| weight.places).max().unwrap_or(0);
    let scaled = |places: u32| {
        given.iter().map(move |weight| {
            let digits = u128::from(weight.digits);
            match places.checked_sub(weight.places) {
                Some(more) => digits.checked_mul(10u128.checked_pow(more)?),
                None => Some(10u128.checked_pow(weight.places - places).map_or(0, |scale| digits / scale)),
            }
        })
    };
    let exact: Option<Vec<u128>> = scaled(places).collect();
    if let Some(exact) = &exact {
        let divisor = exact.iter().copied().fold(0, gcd).max(1);
        let reduced: Vec<u128> = exact.iter().map(|weight| weight / divisor).collect();
        let sum = reduced.iter().fold(0u128, |sum, weight| sum.saturating_add(*weight));
        if sum == 0 {
            return Err(StageProblem::NoWeight { stage });
        }
        if sum <= SUM {
            return Ok(reduced.into_iter().map(|weight| weight as u64).collect());
        }
        if places == 0 {
            return Err(StageProblem::WeightSum { stage, sum });
        }
    }
    // As many places as 36 digits have room for, so that a product with 2²⁰ and a sum of all fit into 128 bits.
    let largest = |places| scaled(places).try_fold(0, |most: u128, weight| Some(most.max(weight?)));
    let kept = (0..=places).rev().find(|places| largest(*places).is_some_and(|most| most < 10u128.pow(26)));
    let weights: Vec<u128> = scaled(kept.unwrap_or(0)).map(|weight| weight.unwrap_or(0)).collect();
    let sum: u128 = weights.iter().sum::<u128>().max(1);
    let mut rounded: Vec<u64> = weights.iter().map(|weight| (weight * SUM / sum) as u64).collect();
    let mut by_remainder: Vec<usize> = (0..rounded.len()).collect();
    by_remainder.sort_by_key(|&i| (std::cmp::Reverse(weights[i] * SUM % sum), i));
    let left = SUM as u64 - rounded.iter().sum::<u64>();
    by_remainder.into_iter().take(left as usize).for_each(|i| rounded[i] += 1);
    match (0..given.len()).find(|&i| rounded[i] == 0 && given[i].digits > 0) {
        Some(i) => Err(StageProblem::TooSmall { stage, weight: given[i], member: name(i) }),
        None => Ok(rounded),
    }
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weights(texts: &[&str]) -> Result<Vec<u64>, String> {
        let given: Vec<Decimal> = texts.iter().map(|text| text.parse().unwrap()).collect();
        whole_weights(2, &given, |at| format!("m{at}")).map_err(|problem| problem.to_string())
    }

    #[test]
    fn weights_are_exact_where_they_can_be() {
        assert_eq!(weights(&["0.9", "0.1"]), Ok(vec![9, 1]));
        assert_eq!(weights(&["0.7", "0.2", "0.1"]), Ok(vec![7, 2, 1]));
        assert_eq!(weights(&["1e-300", "2e-300"]), Ok(vec![1, 2]));
        assert_eq!(weights(&["1048575", "1"]), Ok(vec![1048575, 1]));
        assert_eq!(weights(&["3000000", "0", "6000000"]), Ok(vec![1, 0, 2]));
    }

    #[test]
    fn fractions_without_a_small_common_unit_are_rounded_to_a_millionth() {
        // 2²⁰ thirds: 349525.33 each, so the first gets the one that is left.
        assert_eq!(weights(&["0.3333333333", "0.3333333333", "0.3333333334"]).unwrap(), [349525, 349525, 349526]);
        let sum: u64 = weights(&["0.1234567", "3.7", "2.00000001"]).unwrap().iter().sum();
        assert_eq!(sum, 1 << 20);
        let large = weights(&["10000000000000000000", "0.5"]).unwrap_err();
        assert!(large.contains("0.5") && large.contains("m1") && large.contains("stage 2"), "{large}");
    }

    #[test]
    fn weights_that_cannot_be_kept_are_refused() {
        assert!(weights(&["0", "0.0"]).unwrap_err().contains("stage 2"));
        let whole = weights(&["1281167", "50000"]).unwrap_err();
        assert!(whole.contains("1331167") && whole.contains("1048576"), "{whole}");
    }

    #[test]
    fn stages_begin_at_epochs_percentages_and_samples() {
        let at = |text: &str, epochs| start(1, text.parse().unwrap(), 1000, epochs).map_err(|e| e.to_string());
        assert_eq!(at("3", None), Ok(3000));
        assert_eq!(at("2.5", None), Ok(2500));
        assert_eq!(at("0.0019", None), Ok(2));
        assert_eq!(at("0.3333333333333333", None), Ok(333));
        for places in 30..45 {
            assert_eq!(at(&format!("1e-{places}%"), Some(3)), Ok(0), "{places}");
        }
        assert_eq!(at("20%", Some(90)), Ok(18_000));
        assert_eq!(at("33.33%", Some(1)), Ok(333));
        assert_eq!(at("77 samples", None), Ok(77));
        assert!(at("20%", None).unwrap_err().contains("epochs"));
        assert!(at("100%", Some(2)).unwrap_err().contains("100%"));
        assert!(at("2", Some(2)).unwrap_err().contains("end of the run"));
        assert!(at("2000 samples", Some(2)).unwrap_err().contains("end of the run"));
        assert_eq!(at("1999 samples", Some(2)), Ok(1999));
        assert!(at("18446744073709551615", None).unwrap_err().contains("later"));
    }
}
