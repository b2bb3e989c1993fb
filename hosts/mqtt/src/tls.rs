//! Connections by TLS: the brokers that a program trusts, and the certificate of a broker inside of a
//! process.

use core::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use thiserror::Error;

/// A certificate and its key, for the clients of a broker inside of a process, and for a broker that asks a
/// program for one.
#[derive(Clone)]
pub struct Identity {
    certificates: Vec<CertificateDer<'static>>,
    key: Arc<PrivateKeyDer<'static>>,
    #[cfg_attr(
        not(feature = "broker"),
        allow(dead_code, reason = "no client connects")
    )]
    server: Arc<ServerConfig>,
}

/// The brokers that a program trusts.
#[derive(Clone)]
pub struct Trust(Arc<ClientConfig>);

/// An error in the TLS settings.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}: check the name", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A file has no certificate.
    #[error("{} has no certificate in PEM: look for -----BEGIN CERTIFICATE-----", .0.display())]
    NoCertificate(PathBuf),
    /// A file has no key.
    #[error("{} has no private key in PEM: look for -----BEGIN PRIVATE KEY-----", .0.display())]
    NoKey(PathBuf),
    /// A certificate cannot be used.
    #[error("{} has a certificate that cannot be used: {why}", path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: rustls::Error,
    },
    /// A certificate and a key do not belong together.
    #[error("{} and the key in {} cannot be used together: {why}", certificate.display(), key.display())]
    Pair {
        /// The file with the certificate.
        certificate: PathBuf,
        /// The file with the key.
        key: PathBuf,
        /// The reason.
        why: rustls::Error,
    },
    /// The library offers no version of TLS, which is a defect.
    #[error("no version of TLS can be used: {0}")]
    Version(rustls::Error),
}

impl Identity {
    /// Reads a certificate, followed by the certificates that vouch for it, and its key, both in PEM.
    ///
    /// # Errors
    /// [`TlsError`], if a file has none, or they do not belong together.
    pub fn open(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let certificates = certificates(certificate)?;
        let no_key = |_| TlsError::NoKey(key.into());
        let private = PrivateKeyDer::from_pem_slice(&read(key)?).map_err(no_key)?;
        let builder = ServerConfig::builder_with_provider(provider());
        let builder = builder.with_safe_default_protocol_versions();
        let server = builder
            .map_err(TlsError::Version)?
            .with_no_client_auth()
            .with_single_cert(certificates.clone(), private.clone_key());
        let server = server.map_err(|why| TlsError::Pair {
            certificate: certificate.into(),
            key: key.into(),
            why,
        })?;
        Ok(Self {
            certificates,
            key: Arc::new(private),
            server: Arc::new(server),
        })
    }

    /// The acceptor of connections that presents this certificate.
    #[cfg(feature = "broker")]
    pub(crate) fn acceptor(&self) -> tokio_rustls::TlsAcceptor {
        tokio_rustls::TlsAcceptor::from(Arc::clone(&self.server))
    }
}

impl Trust {
    /// Trusts brokers with a certificate that one in this file vouches for, in PEM. A broker that asks for a
    /// certificate gets `own`.
    ///
    /// # Errors
    /// [`TlsError`], if the file has none that can be used.
    pub fn open(ca: &Path, own: Option<&Identity>) -> Result<Self, TlsError> {
        let mut roots = RootCertStore::empty();
        for it in certificates(ca)? {
            let path = || ca.to_path_buf();
            let unfit = |why| TlsError::Certificate { path: path(), why };
            roots.add(it).map_err(unfit)?;
        }
        let builder = ClientConfig::builder_with_provider(provider());
        let builder = builder.with_safe_default_protocol_versions();
        let builder = builder
            .map_err(TlsError::Version)?
            .with_root_certificates(roots);
        let client = match own {
            None => builder.with_no_client_auth(),
            Some(own) => {
                let own = (own.certificates.clone(), own.key.clone_key());
                let shown = builder.with_client_auth_cert(own.0, own.1);
                // It was checked when it was read.
                shown.map_err(TlsError::Version)?
            }
        };
        Ok(Self(Arc::new(client)))
    }

    pub(crate) fn config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.0)
    }
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Trust")
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Identity")
    }
}

/// The ring provider, named because the process may have several.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(path).map_err(|source| TlsError::Read {
        path: path.into(),
        source,
    })
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let bytes = read(path)?;
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match all {
        Ok(all) if !all.is_empty() => Ok(all),
        Ok(_) | Err(_) => Err(TlsError::NoCertificate(path.into())),
    }
}
