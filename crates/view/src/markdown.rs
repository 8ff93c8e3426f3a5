//! Parts of a card in Markdown.

use crate::objects::Examined;
use crate::text;
use std::fmt::Write;

/// Describes the objects of a split: sentences, boxes that cannot be right, and tables.
pub(crate) fn objects(objects: &Examined, class_name: impl Fn(i64) -> String) -> String {
    let mut out = String::new();
    for sentence in objects.sentences() {
        let _ = write!(out, "\n{}\n", escaped(&sentence));
    }
    for (found, keys) in objects.problems() {
        let _ = write!(out, "\n{}, first in\n", escaped(&found));
        keys.iter().for_each(|key| out += &format!("- {}\n", escaped(key)));
    }
    for table in objects.tables(class_name) {
        if !table.rows.is_empty() {
            let _ = write!(out, "\n| {} | {} | |\n|---|---:|---:|\n", table.title, table.unit);
        }
        for row in &table.rows {
            let _ =
                writeln!(out, "| {} | {} | {} |", escaped(&row.name), text::count(row.count), escaped(&row.further));
        }
        if let Some(more) = &table.more {
            let _ = write!(out, "\n{}: {more}\n", table.title);
        }
    }
    out
}

/// Escapes text so that Markdown and HTML show it as it is.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text::printable_text(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '!' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_is_escaped() {
        assert_eq!(escaped("<b>a|b</b> [x](y) `c`"), r"&lt;b>a\|b&lt;/b> \[x\](y) \`c\`");
    }
}
