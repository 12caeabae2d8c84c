//! TLS by rustls, with the cryptography of ring: it needs no other build tools.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use thiserror::Error;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{Error as PemError, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{Error as RustlsError, ServerConfig};

/// Why there is no TLS.
#[derive(Debug, Error)]
pub enum TlsError {
    /// The certificates cannot be read.
    #[error("cannot read certificates from `{path}`: {source}; --tls-cert must be PEM, the server's own first")]
    Certificate {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: PemError,
    },
    /// The key cannot be read.
    #[error("cannot read a private key from `{path}`: {source}; --tls-key must be PEM, without a password")]
    Key {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: PemError,
    },
    /// Certificate and key cannot be used together.
    #[error("`{cert}` and `{key}` cannot be used: {source}; the key must be that of the first certificate")]
    Pair {
        /// The file of the certificates.
        cert: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// What is wrong.
        source: RustlsError,
    },
}

/// What a server shows of itself and proves, from two PEM files. HTTP/1.1 is offered, over TLS 1.2 and 1.3.
pub fn tls(cert: &Path, key: &Path) -> Result<TlsAcceptor, TlsError> {
    let unread = |source| TlsError::Certificate { path: cert.to_path_buf(), source };
    let chain: Vec<_> =
        CertificateDer::pem_file_iter(cert).map_err(unread)?.collect::<Result<_, _>>().map_err(unread)?;
    if chain.is_empty() {
        return Err(unread(PemError::NoItemsFound));
    }
    let secret =
        PrivateKeyDer::from_pem_file(key).map_err(|source| TlsError::Key { path: key.to_path_buf(), source })?;
    let unusable = |source| TlsError::Pair { cert: cert.to_path_buf(), key: key.to_path_buf(), source };
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(unusable)?
        .with_no_client_auth()
        .with_single_cert(chain, secret)
        .map_err(unusable)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
