//! Makes hostile inputs, and runs commands on them.

use shardtool_format::checksum::crc32c;
use shardtool_format::example::{self, Column};
use shardtool_format::frame;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Runs `shardtool`.
pub(crate) fn shardtool(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

/// Runs `shardtool` and returns its exit status and standard error.
pub(crate) fn status(arguments: &[&str]) -> (Option<i32>, String) {
    let output = shardtool(arguments);
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Runs `shardtool` with a pipe as standard output, whose reading end is closed already.
pub(crate) fn unread(arguments: &[&str]) -> (Option<i32>, String) {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = command(arguments).stdout(writer).stderr(Stdio::piped()).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Runs `shardtool` with at most `mib` MiB of address space and 100 s of CPU time, beyond which the system ends it: so a
/// command that allocates or computes without a bound fails, instead of disturbing the machine.
pub(crate) fn limited(mib: u64, arguments: &[&str]) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", r#"ulimit -t 100 && ulimit -v "$0" && exec "$@""#]).arg((mib * 1024).to_string());
    command.arg(env!("CARGO_BIN_EXE_shardtool")).args(arguments).output().unwrap()
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shardtool"));
    command.args(arguments);
    command
}

/// Returns a path as text.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Writes a file and the folders above it.
pub(crate) fn put(path: &Path, bytes: &[u8]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

/// Returns a bitmap of 2x1 pixels; `n` is in one of them.
pub(crate) fn bitmap(n: u8) -> Vec<u8> {
    let mut bmp = b"BM\x3e\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x02\0\0\0\x01\0\0\0\x01\0\x18\0".to_vec();
    bmp.extend([0; 24]);
    bmp.extend([255, 0, n, 0, 255, 0, 0, 0]);
    bmp
}

/// Returns a TFRecord frame.
pub(crate) fn framed(data: &[u8]) -> Vec<u8> {
    [&frame::header(data.len() as u64)[..], data, &frame::footer(crc32c(data))].concat()
}

/// Returns an Example.
pub(crate) fn encoded(features: &mut [(&str, Column<'_>)]) -> Vec<u8> {
    let mut data = vec![];
    example::encode(features, &mut data);
    data
}

/// Packs `classes` folders of `each` bitmaps into FOLDER/set. Returns the path of the dataset.
pub(crate) fn packed(folder: &Path, classes: &[&str], each: u8) -> PathBuf {
    let (photos, set) = (folder.join("photos"), folder.join("set"));
    for (c, class) in classes.iter().enumerate() {
        for n in 0..each {
            put(&photos.join(class).join(format!("{n}.bmp")), &bitmap(c as u8 * each + n));
        }
    }
    let (code, errors) = status(&["pack", text(&photos), text(&set)]);
    assert_eq!(code, Some(0), "{errors}");
    set
}

/// Flips a bit in the image of a shard's last record.
pub(crate) fn damage(shard: &Path) {
    let mut bytes = std::fs::read(shard).unwrap();
    let at = bytes.len() - 30;
    bytes[at] ^= 1;
    std::fs::write(shard, bytes).unwrap();
}
