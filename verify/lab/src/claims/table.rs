//! The table for the terminal.

use std::io::{self, Write};

use super::{Finding, Verdict};
use selvedge_home::term::Colour;

/// The longest line of a reason.
const WIDTH: usize = 100;

/// Writes the table, with the reasons under the rows.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write_table(out: &mut impl Write, colour: Colour, findings: &[Finding]) -> io::Result<()> {
    for finding in findings {
        let claim = &finding.claim;
        let title = format!("{:4} {}", claim.id, claim.claim);
        let Some(judgement) = &finding.judgement else {
            writeln!(out, "{title}\n     {}", colour.bad("no trial was run"))?;
            continue;
        };
        writeln!(out, "{title}  {}", colour.dim(claim.source))?;
        let verdict = match judgement.verdict {
            Verdict::Better => colour.good("better"),
            Verdict::Holds => colour.good("holds"),
            Verdict::Differs => colour.bad("differs"),
        };
        writeln!(
            out,
            "     paper {} {unit}, ours {} {unit}: {verdict}, {} trials",
            judgement.paper,
            judgement.ours,
            judgement.trials,
            unit = claim.unit,
        )?;
        for line in wrapped(&judgement.reason) {
            writeln!(out, "     {}", colour.dim(&line))?;
        }
    }
    Ok(())
}

fn wrapped(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) | None => lines.push(word.to_owned()),
        }
    }
    lines
}
