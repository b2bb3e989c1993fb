//! The users of the broker inside of a process: a file with a name and a password in each line.

use core::fmt;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use thiserror::Error;

/// The largest number of users.
const USERS: usize = 4_096;
/// The longest name, and the longest password, in bytes: the limit of MQTT.
const LEN_MAX: usize = 65_535;

/// Names with their passwords.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Users(BTreeMap<String, String>);

/// An error in a file of users.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum UsersError {
    /// It cannot be read.
    #[error("cannot read the users in {}: {source}: check the name", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A line is no user.
    #[error("{}, line {line}: {why}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
        /// The reason.
        why: LineError,
    },
}

/// An error in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LineError {
    /// The line has no colon.
    #[error("no colon: write NAME:PASSWORD")]
    NoColon,
    /// The name is empty.
    #[error("no name before the colon: write NAME:PASSWORD")]
    NoName,
    /// The password is empty.
    #[error("no password behind the colon: write NAME:PASSWORD")]
    NoPassword,
    /// The name, or the password, is too long.
    #[error("a name and a password have up to {LEN_MAX} bytes each: shorten it")]
    TooLong,
    /// The name has a password already.
    #[error("the name has a password in a line above: name each user once")]
    Twice,
    /// The file has too many users.
    #[error("the limit is {USERS} users: remove some")]
    TooMany,
}

impl Users {
    /// Reads a file: `NAME:PASSWORD` in each line; the password may have colons. Lines that are empty or begin
    /// with `#` are left out.
    ///
    /// # Errors
    /// [`UsersError`], if it cannot be read, or a line is no user.
    pub fn open(path: &Path) -> Result<Self, UsersError> {
        let text = fs::read_to_string(path).map_err(|source| UsersError::Read {
            path: path.into(),
            source,
        })?;
        Self::read(&text).map_err(|(line, why)| UsersError::Line {
            path: path.into(),
            line,
            why,
        })
    }

    pub(crate) fn read(text: &str) -> Result<Self, (usize, LineError)> {
        let mut users = Self::default();
        for (at, line) in text.lines().enumerate() {
            if !line.is_empty() && !line.starts_with('#') {
                users.add(line).map_err(|why| (at + 1, why))?;
            }
        }
        Ok(users)
    }

    fn add(&mut self, line: &str) -> Result<(), LineError> {
        let (name, password) = line.split_once(':').ok_or(LineError::NoColon)?;
        if name.is_empty() {
            return Err(LineError::NoName);
        }
        if password.is_empty() {
            return Err(LineError::NoPassword);
        }
        if name.len().max(password.len()) > LEN_MAX {
            return Err(LineError::TooLong);
        }
        if self.0.contains_key(name) {
            return Err(LineError::Twice);
        }
        if self.0.len() >= USERS {
            return Err(LineError::TooMany);
        }
        self.0.insert(name.into(), password.into());
        Ok(())
    }

    /// The password of a user.
    #[must_use]
    pub fn password(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// All users, by name, with their passwords.
    pub fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|it| (it.0.as_str(), it.1.as_str()))
    }
}

impl fmt::Debug for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_name_and_a_password() {
        let users = Users::read("# nodes\n\nnode:sesame\r\nother:with:colons \n").unwrap();
        let all: Vec<_> = users.all().collect();
        assert_eq!(all, [("node", "sesame"), ("other", "with:colons ")]);
        assert_eq!(users.password("node"), Some("sesame"));
        assert_eq!(users.password("nobody"), None);
        assert_eq!(format!("{users:?}"), r#"{"node", "other"}"#);
        let longest = "x".repeat(LEN_MAX);
        let users = Users::read(&format!("{longest}:{longest}")).unwrap();
        assert_eq!(users.password(&longest), Some(longest.as_str()));
    }

    #[test]
    fn a_line_that_is_wrong_is_named() {
        let long = format!("a:{}", "x".repeat(LEN_MAX + 1));
        let many: String = (0..=USERS).map(|it| format!("user{it}:x\n")).collect();
        for (text, line, why) in [
            ("a:b\nnode", 2, LineError::NoColon),
            ("a:b\n\n:sesame", 3, LineError::NoName),
            ("node:", 1, LineError::NoPassword),
            (&long, 1, LineError::TooLong),
            ("a:b\nc:d\na:e", 3, LineError::Twice),
            (&many, USERS + 1, LineError::TooMany),
        ] {
            assert_eq!(Users::read(text), Err((line, why)));
        }
        let missing = Users::open(Path::new("/nonexistent/users"));
        assert!(
            matches!(missing, Err(UsersError::Read { .. })),
            "{missing:?}"
        );
    }
}
