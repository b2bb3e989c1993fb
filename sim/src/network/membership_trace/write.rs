use std::io::{self, Write};

use selvedge_core::Delta;

use super::{HEADER, MembershipTrace};

impl MembershipTrace {
    /// Writes the trace; the format is described [above](Self). Writes line by line, so give it a
    /// buffered writer.
    ///
    /// # Errors
    /// When writing fails. The output is then incomplete.
    pub fn write(&self, mut to: impl Write) -> io::Result<()> {
        writeln!(to, "{HEADER}")?;
        for entry in &self.entries {
            let member = entry.delta.member();
            writeln!(
                to,
                "{} {} {} {} {}",
                entry.at.0,
                entry.observer,
                kind(entry.delta),
                member.id,
                member.incarnation.0
            )?;
        }
        to.flush()
    }
}

const fn kind(delta: Delta) -> &'static str {
    match delta {
        Delta::Joined(_) => "joined",
        Delta::Suspected(_) => "suspected",
        Delta::Refuted(_) => "refuted",
        Delta::Failed(_) => "failed",
        Delta::Left(_) => "left",
        Delta::Confirmed(_) => "confirmed",
    }
}
