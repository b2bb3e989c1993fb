//! The address of a broker, and the credentials for it.

use core::fmt;
use core::str::FromStr;

use thiserror::Error;

/// The address of a broker: a name or an address, and a port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// A name, or an address of IPv4 or IPv6 without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// The error for a text that is no [`Address`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0:?} is no address: write HOST:PORT, as in 127.0.0.1:1883 or [::1]:1883")]
pub struct AddressError(String);

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let error = || AddressError(text.into());
        let (host, port) = text.rsplit_once(':').ok_or_else(error)?;
        let port = port.parse().map_err(|_| error())?;
        let bare = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        let is_clear = bare.is_some() || !host.contains(':');
        let host = bare.unwrap_or(host);
        if host.is_empty() || !is_clear || port == 0 {
            return Err(error());
        }
        let host = host.into();
        Ok(Self { host, port })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// The settings for connections to brokers: name, password and TLS.
#[derive(Clone, Default)]
pub struct Access {
    /// The name; without it, brokers are expected not to ask for one.
    pub user: Option<String>,
    /// The password.
    pub password: String,
    /// The brokers that it trusts; without it, connections are not encrypted.
    #[cfg(feature = "tls")]
    pub tls: Option<crate::tls::Trust>,
}

impl Access {
    /// The same settings, without TLS.
    #[must_use]
    pub fn in_the_clear(&self) -> Self {
        let it = self.clone();
        #[cfg(feature = "tls")]
        let it = Self { tls: None, ..it };
        it
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_written_alike() {
        for text in ["127.0.0.1:1883", "[::1]:1883", "broker.example:8883"] {
            let address: Address = text.parse().unwrap();
            assert_eq!(address.to_string(), text);
        }
        for text in [
            "",
            ":1883",
            "host",
            "host:",
            "host:0",
            "host:65536",
            "::1:1883",
        ] {
            let error = text.parse::<Address>().unwrap_err();
            assert_eq!(error, AddressError(text.into()));
        }
    }

    #[test]
    fn a_password_is_not_printed() {
        let access = Access {
            user: Some("node".into()),
            password: "secret".into(),
            ..Access::default()
        };
        assert_eq!(format!("{access:?}"), "Access { user: Some(\"node\"), .. }");
    }
}
