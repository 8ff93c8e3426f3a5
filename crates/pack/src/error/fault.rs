//! Decides whether an error of the operating system is the fault of one input, which costs that input, or the system's,
//! which stops the run: no further input would fare better.

use rustix::io::Errno;
use std::error::Error;
use std::io;

/// Errors about the name or the kind of one file: it vanished, is a folder, or is reached through a loop of links.
const OF_ONE_NAME: [Errno; 9] = [
    Errno::NOENT,
    Errno::NOTDIR,
    Errno::ISDIR,
    Errno::LOOP,
    Errno::NAMETOOLONG,
    Errno::EXIST,
    Errno::NXIO,
    Errno::INVAL,
    Errno::ILSEQ,
];

/// Errors about the permissions of one file. For a folder they are the system's: everything in it would be missing.
const OF_ONE_FILE: [Errno; 2] = [Errno::ACCESS, Errno::PERM];

/// Returns the code of an error of opening or reading a file if it is the system's: too few descriptors, no memory, a full
/// disk, a failing device, a lost server. Returns `None` if the input is at fault, or no system call failed.
pub(crate) fn of_file(error: &(dyn Error + 'static)) -> Option<i32> {
    of_name(error).filter(|code| !OF_ONE_FILE.iter().any(|own| own.raw_os_error() == *code))
}

/// As [`of_file`], for `stat`, for listing a folder, and for creating a file.
pub(crate) fn of_name(error: &(dyn Error + 'static)) -> Option<i32> {
    code(error).filter(|code| !OF_ONE_NAME.iter().any(|own| own.raw_os_error() == *code))
}

/// Returns the system's code in an error or its sources.
fn code(error: &(dyn Error + 'static)) -> Option<i32> {
    match error.downcast_ref::<io::Error>() {
        Some(io) => io.raw_os_error().or_else(|| code(io.get_ref()?)),
        None => code(error.source()?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_system_are_told_from_those_of_one_input() {
        let system = |errno: Errno| of_file(&io::Error::from(errno)).is_some();
        for errno in [
            Errno::MFILE,
            Errno::NFILE,
            Errno::NOMEM,
            Errno::NOSPC,
            Errno::DQUOT,
            Errno::IO,
            Errno::STALE,
            Errno::ROFS,
            Errno::TIMEDOUT,
        ] {
            assert!(system(errno), "{errno}");
        }
        for errno in [Errno::NOENT, Errno::ISDIR, Errno::LOOP, Errno::NAMETOOLONG, Errno::ACCESS] {
            assert!(!system(errno), "{errno}");
        }
        assert!(of_name(&io::Error::from(Errno::ACCESS)).is_some(), "of a folder");
        assert_eq!(of_file(&io::Error::other("damage")), None);
        let wrapped = io::Error::other(io::Error::from(Errno::IO));
        assert_eq!(of_file(&wrapped), Some(Errno::IO.raw_os_error()));
    }
}
