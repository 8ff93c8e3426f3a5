//! Writes the test vectors of `order-spec.md`: `cargo run -p shardtool-order --example vectors -- FOLDER`.

mod cases;

fn main() -> std::io::Result<()> {
    let Some(folder) = std::env::args_os().nth(1) else {
        eprintln!("usage: vectors FOLDER");
        std::process::exit(2);
    };
    std::fs::create_dir_all(&folder)?;
    cases::files().iter().try_for_each(|(name, text)| std::fs::write(std::path::Path::new(&folder).join(name), text))
}
