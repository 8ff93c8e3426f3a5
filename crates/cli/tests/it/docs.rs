//! Runs every command of the documentation in order, and compares the output that README.md shows with the actual one.
//! Commands of `console` blocks run in the documents' order; lines of `sh` blocks run alone, or are skipped for a reason.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the commands of a document: lines beginning with `$ ` in `console` blocks, and the exit status that a trailing
/// `# exits N` states.
fn commands(document: &str) -> Vec<(String, i32)> {
    let mut found = vec![];
    let mut inside = false;
    for line in document.lines() {
        if let Some(language) = line.strip_prefix("```") {
            inside = language == "console";
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| inside) {
            let (command, status) = command.split_once("# exits ").unwrap_or((command, "0"));
            found.push((command.trim().to_owned(), status.trim().parse().expect("a status")));
        }
    }
    found
}

/// Runs a command with `sh`, checks its exit status, and returns its standard output and error.
fn run(folder: &Path, command: &str, status: i32) -> String {
    run_with(folder, command, status, &[])
}

/// As [`run`], with more environment variables.
fn run_with(folder: &Path, command: &str, status: i32, variables: &[(&str, String)]) -> String {
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_shardtool"));
    let path = format!("{}:{}", binary.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let output = Command::new("sh")
        .args(["-c", command])
        .current_dir(folder)
        .env("PATH", path)
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].map(|b| String::from_utf8_lossy(&b).into_owned()).concat();
    assert_eq!(output.status.code(), Some(status), "{command}\n{text}");
    text
}

/// Makes the files that the documents assume: photographs in class folders, a list of two, existing TFRecord files.
fn prepare(folder: &Path) {
    crate::demo::copy_into(folder);
    run(folder, "mv demo/photos photos && cp -r photos photos-val", 0);
    run(folder, "printf 'path,label,weight\\nphotos/owl/000.jpg,owl,0.5\\nphotos/owl/001.jpg,owl,2\\n' > list.csv", 0);
    run(
        folder,
        "mkdir theirs bare && cp demo/dataset/train-*.tfrecord bare && cp demo/dataset/train-*.tfrecord theirs",
        0,
    );
}

#[test]
fn every_command_of_the_documents_runs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = tempfile::tempdir().unwrap();
    prepare(folder.path());
    for (document, least) in [
        ("docs/pack.md", 6),
        ("docs/view.md", 3),
        ("docs/cluster.md", 6),
        ("docs/damage.md", 6),
        ("docs/memory.md", 6),
        ("docs/migrate.md", 6),
        ("docs/change.md", 34),
        ("docs/in-place.md", 5),
        ("docs/faq.md", 2),
    ] {
        let text = std::fs::read_to_string(root.join(document)).unwrap();
        let commands = commands(&text);
        assert!(commands.len() >= least, "{document}");
        for (command, status) in commands {
            run(folder.path(), &command, status);
        }
    }
}

#[test]
fn every_command_about_stores_runs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), "shardtool demo --keep demo && mv demo/dataset imagenet && mkdir -p s3/bucket", 0);
    // An archive, a list and images in the store, and a list of their URLs.
    run(
        folder.path(),
        "shardtool export imagenet tars --to webdataset && mv tars/train-00000.tar s3/bucket/photos.tar",
        0,
    );
    run(
        folder.path(),
        "cp -r demo/photos s3/bucket && printf 'path,label\\nphotos/owl/000.jpg,owl\\n' > s3/bucket/list.csv",
        0,
    );
    run(folder.path(), "sed 's,^photos,s3://bucket/photos,' s3/bucket/list.csv > urls.csv", 0);
    run(folder.path(), "mkdir s3/bucket/records && cp imagenet/train-*.tfrecord s3/bucket/records", 0);
    let server = shardtool_store_server::Server::start(&folder.path().join("s3"), Default::default()).unwrap();
    let commands = commands(&std::fs::read_to_string(root.join("docs/stores.md")).unwrap());
    assert!(commands.len() > 5);
    for (command, status) in commands {
        run_with(folder.path(), &command, status, &server.environment());
    }
}

/// Replaces every word with a digit by `#`: rates, sizes, paths and checksums differ between two runs of the demo.
fn without_figures(text: &str) -> Vec<String> {
    let is_figure = |word: &str| word.chars().any(|c| c.is_ascii_digit());
    let words =
        |line: &str| line.split_whitespace().map(|w| if is_figure(w) { "#" } else { w }.to_owned()).collect::<Vec<_>>();
    text.trim().lines().map(|line| words(line).join(" ")).collect()
}

#[test]
fn readme_shows_the_output_of_the_demo() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let (_, shown) = readme.split_once("$ cargo run --release -- demo\n").expect("the demo and its output");
    let (shown, _) = shown.split_once("```").unwrap();
    let actual = run(&std::env::temp_dir(), "shardtool demo 2>/dev/null", 0);
    assert_eq!(without_figures(shown), without_figures(&actual));
}

/// Lines of `sh` blocks that do not run here, and why.
const SKIPPED: [(&str, &str); 7] = [
    (
        "python -c \"from PIL import Image, ImageOps as o; o.exif_transpose(Image.open('a.avif')).save('a.png')\"",
        "needs Pillow",
    ),
    (
        "python -c \"import pillow_heif; from PIL import Image, ImageOps as o; pillow_heif.register_heif_opener(); \
         o.exif_transpose(Image.open('a.heic')).save('a.png')\"",
        "needs pillow-heif",
    ),
    (
        "mkdir -p videos/juggling/017 && ffmpeg -i 017.mp4 -vf fps=25,scale=-2:256 -q:v 2 videos/juggling/017/%06d.jpg",
        "needs ffmpeg and a video",
    ),
    (
        "scripts/wheel && pip install target/wheels-2.28/shardtool-*.whl",
        "downloads: `scripts/campaign install` runs it",
    ),
    ("scripts/test", "runs this test"),
    ("SHARDTOOL_BUILD_FIXTURES=1 cargo test -p shardtool-format --test conformance", "writes into the checkout"),
    (
        "shardtool pack mds/train dataset --map label=label",
        "only mosaicml-streaming writes its source: `with_formats.py` packs one",
    ),
];

/// Returns the lines of `sh` blocks, without comments.
fn shell_lines(document: &str) -> Vec<String> {
    let mut found = vec![];
    let mut inside = false;
    for line in document.lines() {
        if let Some(language) = line.strip_prefix("```") {
            inside = language == "sh";
        } else if inside {
            found.push(line.split(" #").next().unwrap_or_default().trim().to_owned());
        }
    }
    found
}

#[test]
fn every_shell_line_of_the_documents_runs_or_is_skipped_for_a_reason() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let documents = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let documents = documents.filter(|path| path.is_file());
    let documents: Vec<_> =
        documents.chain(["README.md", "fixtures/conformance/README.md"].map(|name| root.join(name))).collect();
    let read = |path: &PathBuf| shell_lines(&std::fs::read_to_string(path).unwrap());
    let lines: Vec<_> = documents.iter().flat_map(read).collect();
    for (skipped, reason) in SKIPPED {
        assert!(lines.iter().any(|line| line == skipped), "no document has `{skipped}` (skipped: {reason})");
    }
    let folder = tempfile::tempdir().unwrap();
    let mut ran = 0;
    for line in lines.iter().filter(|line| SKIPPED.iter().all(|(skipped, _)| line != skipped)) {
        // Cargo would build this program once more, with optimisation.
        run(folder.path(), &line.replace("cargo run --release --", "shardtool"), 0);
        ran += 1;
    }
    assert!(ran > 0, "`cargo run --release -- demo` of README.md, at least");
}
