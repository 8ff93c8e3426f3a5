//! Builds the stand-in driver from `cuda.c` and `kernel.cpp`, and reads its report.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// What the stand-in driver reported when the child ended.
pub(crate) struct Report(pub(crate) Value);

impl Report {
    /// Reads the file that STANDIN_REPORT named.
    pub(crate) fn read(file: &Path) -> Self {
        Report(serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap())
    }

    pub(crate) fn number(&self, name: &str) -> i64 {
        self.0[name].as_i64().unwrap_or_else(|| panic!("{name} in {}", self.0))
    }

    /// Fails if the driver was misused, or if a resource was not released.
    pub(crate) fn assert_clean(&self) {
        assert_eq!(self.number("violations"), 0, "{}", self.0);
        for left in ["device_memory", "pinned_memory", "events", "streams", "modules", "contexts"] {
            assert_eq!(self.number(left), 0, "{left} not released: {}", self.0);
        }
    }
}

/// Returns the folder with the stand-in `libcuda.so.1`, built once per process.
pub(crate) fn driver() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("standin-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        // Tests of other crates include this file.
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cuda/tests/standin");
        let made = Command::new(std::env::var_os("CC").unwrap_or("cc".into()))
            .args(["-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas", "-shared", "-fPIC", "-o"])
            .arg(folder.join("libcuda.so.1"))
            .args([source.join("cuda.c"), source.join("kernel.cpp")])
            .args(["-lpthread", "-lm"])
            .status()
            .expect("a compiler of C and C++, as `cc` or in CC");
        assert!(made.success());
        folder
    })
}
