//! Colour for terminals, none for files and pipes.

use std::io::IsTerminal;

/// True if text has colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour(bool);

impl Colour {
    /// Plain text.
    pub const NEVER: Self = Self(false);

    /// Colour if `stream` is a terminal and colour is not turned off (see no-color.org).
    #[must_use]
    pub fn on(stream: &impl IsTerminal) -> Self {
        Self(stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|it| it.is_empty()))
    }

    /// Colours unimportant text.
    #[must_use]
    pub fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    /// Colours text about success.
    #[must_use]
    pub fn good(self, text: &str) -> String {
        self.paint("32", text)
    }

    /// Colours text about failure.
    #[must_use]
    pub fn bad(self, text: &str) -> String {
        self.paint("31", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.0 {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}
