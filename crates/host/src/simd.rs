//! The vector instructions that this process may use: those of its processor, unless the environment variable `SHARDTOOL_SIMD` names
//! fewer. The results are the same with all of them.

use std::fmt;
use std::sync::OnceLock;

/// The environment variable that limits the vector instructions.
pub const SIMD_VARIABLE: &str = "SHARDTOOL_SIMD";

/// Vector instructions that code is compiled for: each includes those before it that are of the same architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Simd {
    /// Those that every processor of the architecture has, where the compiler chooses them.
    Portable,
    /// NEON (aarch64).
    Neon,
    /// SSE4.1 (x86-64).
    Sse41,
    /// AVX2, and what all processors with it have: FMA, F16C, BMI1, BMI2, LZCNT and MOVBE (x86-64).
    Avx2,
    /// AVX-512 (x86-64).
    Avx512,
}

impl Simd {
    /// All of this architecture.
    #[cfg(target_arch = "x86_64")]
    pub const ALL: &[Simd] = &[Simd::Portable, Simd::Sse41, Simd::Avx2, Simd::Avx512];
    /// All of this architecture.
    #[cfg(target_arch = "aarch64")]
    pub const ALL: &[Simd] = &[Simd::Portable, Simd::Neon];

    /// The last of them.
    const MOST: Simd = Simd::ALL[Simd::ALL.len() - 1];

    /// Returns the name in `SHARDTOOL_SIMD`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Simd::Portable => "portable",
            Simd::Neon => "neon",
            Simd::Sse41 => "sse4.1",
            Simd::Avx2 => "avx2",
            Simd::Avx512 => "avx512",
        }
    }
}

/// `SHARDTOOL_SIMD` has a value that names no vector instructions of this architecture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimdError {
    value: String,
}

impl fmt::Display for SimdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SIMD_VARIABLE} is \"{}\"; on {} it may be ", self.value, std::env::consts::ARCH)?;
        let (last, others) = Simd::ALL.split_last().expect("there is portable code");
        let others: Vec<&str> = others.iter().map(|simd| simd.name()).collect();
        write!(f, "{} or {}: set one of them, or unset it", others.join(", "), last.name())
    }
}

impl std::error::Error for SimdError {}

/// Returns the most vector instructions that this process may use. The processor may have fewer. The environment is read once.
///
/// # Panics
/// If `SHARDTOOL_SIMD` names none: programs call [`check_simd`] first.
#[must_use]
pub fn allowed_simd() -> Simd {
    static ALLOWED: OnceLock<Simd> = OnceLock::new();
    *ALLOWED.get_or_init(|| check_simd().unwrap_or_else(|error| panic!("{error}")))
}

/// Returns the most vector instructions that `SHARDTOOL_SIMD` allows.
///
/// # Errors
/// [`SimdError`] if it is set, not empty, and names none of this architecture.
pub fn check_simd() -> Result<Simd, SimdError> {
    parse(std::env::var_os(SIMD_VARIABLE).map(|value| value.to_string_lossy().into_owned()))
}

fn parse(value: Option<String>) -> Result<Simd, SimdError> {
    match value {
        Some(value) if !value.is_empty() => {
            Simd::ALL.iter().copied().find(|simd| simd.name() == value).ok_or(SimdError { value })
        }
        _ => Ok(Simd::MOST),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_limit_the_instructions() {
        for simd in Simd::ALL {
            assert_eq!(parse(Some(simd.name().to_owned())), Ok(*simd));
        }
        assert_eq!((parse(None), parse(Some(String::new()))), (Ok(Simd::MOST), Ok(Simd::MOST)));
    }

    #[test]
    fn an_unknown_name_is_an_error_with_the_known_ones() {
        let foreign = if cfg!(target_arch = "aarch64") { "avx2" } else { "neon" };
        for name in ["avx1024", "AVX2", "1", foreign] {
            let text = parse(Some(name.to_owned())).unwrap_err().to_string();
            assert!(text.contains(name) && text.contains("portable") && text.contains(Simd::MOST.name()), "{text}");
        }
    }
}
