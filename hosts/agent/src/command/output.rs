//! Lines for people and for programs.

use std::io::{self, Write as _};

use selvedge_client::Value;
use serde::Serialize;

use super::Failure;

/// Writes bytes as they are.
pub(super) fn bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut output = io::stdout().lock();
    let written = output.write_all(bytes).and_then(|()| output.flush());
    written.map_err(Failure::Output)
}

/// Writes a line.
pub(super) fn line(text: &str) -> Result<(), Failure> {
    bytes(format!("{}\n", plain(text)).as_bytes())
}

/// Writes a value as one line of JSON.
pub(super) fn json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(value);
    let text = text.map_err(|it| Failure::Output(it.into()))?;
    bytes(format!("{text}\n").as_bytes())
}

/// Writes rows below a head, with columns of one width.
pub(super) fn table<const N: usize>(
    head: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> Result<(), Failure> {
    let mut all = vec![head.map(str::to_owned)];
    all.extend(rows.into_iter().map(|row| row.map(|it| plain(&it))));
    let mut widths = [0; N];
    for row in &all {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let mut text = String::new();
    for row in &all {
        let cells = row.iter().zip(widths);
        let line: Vec<_> = cells
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        text.push_str(line.join("  ").trim_end());
        text.push('\n');
    }
    bytes(text.as_bytes())
}

/// The text without characters that control a terminal.
pub(super) fn plain(text: &str) -> String {
    text.replace(char::is_control, "\u{fffd}")
}

/// A value for people.
pub(super) fn shown(value: &Value) -> String {
    match value.as_text() {
        Some(text) => text.to_owned(),
        None => format!("({} bytes)", value.0.len()),
    }
}
