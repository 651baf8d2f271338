//! Strangers who speak TLS.

use std::fs;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use ddbx_protocol::link::{
    Address, ClientTls, DialError, Fault, Keys, Refusal, Role, VERSION, Whose, dial,
};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::attempt::HTTP;
use super::kinds::{Door, Kind};
use super::raw::{MayHear, Outcome, Raw, hello, say};
use super::target::Targets;

pub(super) async fn make(
    targets: &Targets,
    kind: Kind,
    mut random: fastrand::Rng,
) -> io::Result<Outcome> {
    match kind {
        Kind::ForeignCertificate => client(targets, "foreign", Fault::Foreign).await,
        Kind::ExpiredCertificate => client(targets, "expired", Fault::Expired).await,
        Kind::NoCertificate => {
            let raw = connect(targets, None).await?;
            Ok(say(raw, &hello(VERSION, 2, &mut random), MayHear::Nothing).await)
        }
        _ => {
            let raw = connect(targets, Some("certs")).await?;
            let http = HTTP[random.usize(..HTTP.len())];
            Ok(say(raw, http.as_bytes(), MayHear::Nothing).await)
        }
    }
}

/// The real client, with these certificates.
async fn client(targets: &Targets, certificates: &str, fault: Fault) -> io::Result<Outcome> {
    let since = Instant::now();
    let target = targets.at(Door::Tls);
    let tls = ClientTls::read(&targets.place.dir().join(certificates)).map_err(io::Error::other)?;
    let keys = Keys { secret: target.keys.secret.clone(), tls: Some(tls) };
    let expected = (Whose::Ours, fault);
    Ok(match dial(&target.address, keys, Role::Controller).await {
        Err(DialError::NotAllowed(Refusal::Certificate { whose, fault }))
            if (whose, fault) == expected =>
        {
            Outcome::refused_if(true, "", since)
        }
        Err(error) => Outcome::refused_if(false, error.to_string(), since),
        Ok(_) => Outcome::refused_if(false, "it was let in", since),
    })
}

/// A connection that speaks TLS, with these certificates or none, and then anything. It is
/// there before central has looked at them.
async fn connect(targets: &Targets, certificates: Option<&str>) -> io::Result<Raw> {
    let dir = targets.place.dir();
    let Address::Tcp(at) = targets.at(Door::Tls).address else {
        return Err(io::Error::other("no port"));
    };
    let mut roots = RootCertStore::empty();
    for root in CertificateDer::pem_slice_iter(&fs::read(dir.join("certs/ca.pem"))?) {
        roots.add(root.map_err(io::Error::other)?).map_err(io::Error::other)?;
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots);
    let config = match certificates {
        None => config.with_no_client_auth(),
        Some(of) => {
            let chain = CertificateDer::from_pem_slice(&fs::read(dir.join(of).join("client.pem"))?);
            let key = PrivateKeyDer::from_pem_slice(&fs::read(dir.join(of).join("client.key"))?);
            let (chain, key) = (chain.map_err(io::Error::other)?, key.map_err(io::Error::other)?);
            config.with_client_auth_cert(vec![chain], key).map_err(io::Error::other)?
        }
    };
    let name = ServerName::IpAddress(at.ip().into());
    let stream = TlsConnector::from(Arc::new(config)).connect(name, TcpStream::connect(at).await?);
    Ok(Box::new(stream.await?))
}
