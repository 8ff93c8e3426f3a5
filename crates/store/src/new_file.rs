//! The names of files of HDFS that are being written: `.NAME.DIGITS.new`.

/// What such a name ends with.
pub(crate) const NEW: &str = ".new";

/// Returns the name that a file of HDFS will have when it is complete; `None` if this is not the name of a new file.
pub(crate) fn new_file_of(new: &str) -> Option<&str> {
    let (name, digits) = new.strip_prefix('.')?.strip_suffix(NEW)?.rsplit_once('.')?;
    let valid = digits.len() == 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    (valid && !name.is_empty() && !name.contains('/')).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_files_have_the_names_of_files_in_them() {
        assert_eq!(new_file_of(".train-00000.tfrecord.0123456789abcdef.new"), Some("train-00000.tfrecord"));
        assert_eq!(new_file_of("..pack-train.lock.0123456789abcdef.new"), Some(".pack-train.lock"));
        for other in ["train.0123456789abcdef.new", ".train.new", ".train.0123.new", ".a/b.0123456789abcdef.new"] {
            assert_eq!(new_file_of(other), None, "{other}");
        }
    }
}
