//! `ddbx certs`: what a session across machines needs, made once.
//!
//! Every session has an authority of its own, whose key is thrown away when both
//! certificates are made: nobody can ever make another one that the session accepts.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use clap::Args;
use ddbx_protocol::link::{
    AUTHORITY_FILE, CENTRAL_FILES, CLIENT_FILES, SECRET_FILE, Secret, SecretError,
};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};
use serde_json::json;
use thiserror::Error;
use time::{Duration, OffsetDateTime};

use crate::exit::Failure;
use crate::session::{print, print_json};
use crate::text::escaped;

/// Make the certificates for a session across machines
///
/// Central and all others show each other certificates that no other session accepts, and
/// prove the same secret. All of it is made here, in a new directory that is yours alone.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  ddbx certs certs --host db1.example.org       central runs on db1
  ddbx certs certs --host db1 --host 10.0.0.7   and is reached by both
  ddbx central --session tcp:0.0.0.0:4000 --tls certs
                                                open the session, on db1
  DDBX_SESSION=tcp:db1.example.org:4000 DDBX_TLS=certs ./inventory
                                                a service elsewhere, with a copy
  DDBX_SESSION=tcp:db1.example.org:4000 DDBX_TLS=certs ddbx ps

Copies keep mode 600: `scp -p`, `rsync -p`, `install -m 600`.")]
pub(crate) struct CertsArgs {
    /// Where they are put; it must not be there yet
    #[arg(value_name = "DIR")]
    dir: PathBuf,

    /// A name or an IP address under which others reach central; this machine always does
    #[arg(long, value_name = "NAME|IP", value_parser = parse_host)]
    host: Vec<String>,

    /// For how many days they are good
    #[arg(long, value_name = "N", default_value = "30", value_parser = clap::value_parser!(u16).range(1..=3650))]
    days: u16,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What others call this machine when they are on it.
const HERE: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

fn parse_host(text: &str) -> Result<String, String> {
    let port = if text.contains(':') { format!("[{text}]:1") } else { format!("{text}:1") };
    match ddbx_protocol::link::Address::parse(&format!("tcp:{port}")) {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err("neither the name of a host nor an IP address".to_owned()),
    }
}

pub(crate) fn run(args: &CertsArgs) -> Result<(), Failure> {
    // Clocks of others may be a little behind.
    let from = OffsetDateTime::now_utc() - Duration::hours(1);
    let valid = Valid { from, until: from + Duration::days(args.days.into()) };
    let made = make(&args.dir, &args.host, valid).map_err(|error| match error {
        CertsError::Exists(_) => Failure::BadInput(error.to_string()),
        _ => Failure::Failed(error.to_string()),
    })?;
    let dir = std::path::absolute(&args.dir)?.display().to_string();
    let (central, others) = (files_of(CENTRAL_FILES), files_of(CLIENT_FILES));
    if args.json {
        return print_json(&json!({
            "directory": dir,
            "hosts": made,
            "days": args.days,
            "central": central,
            "others": others,
        }));
    }
    let (dir, host) = (escaped(&dir), args.host.first().map_or("127.0.0.1", String::as_str));
    print(&format!(
        "made in {dir}, good for {days} days and for {hosts}\n  \
         central needs          {central}\n  \
         all others need        {others}\n\
         open the session with  ddbx central --session tcp:0.0.0.0:4000 --tls {dir}\n\
         take part with         DDBX_SESSION=tcp:{host}:4000 DDBX_TLS=DIR, a copy with mode 600\n\
         who has a copy of client.key and secret can do all that your services can do",
        days = args.days,
        hosts = made.join(", "),
        central = central.join(" "),
        others = others.join(" "),
    ))
}

fn files_of((certificate, key): (&'static str, &'static str)) -> [&'static str; 4] {
    [AUTHORITY_FILE, certificate, key, SECRET_FILE]
}

/// From when until when certificates are good.
#[derive(Clone, Copy, Debug)]
pub struct Valid {
    /// Not before this.
    pub from: OffsetDateTime,
    /// Not after this.
    pub until: OffsetDateTime,
}

/// Makes a directory with all that a session needs; central is reached under these names
/// and from its own machine. All its names.
///
/// # Errors
///
/// If it is there already, or cannot be made.
pub fn make(dir: &Path, hosts: &[String], valid: Valid) -> Result<Vec<String>, CertsError> {
    let mut names: Vec<String> = hosts.to_vec();
    names.extend(HERE.map(str::to_owned));
    names.sort_by_key(|name| (name.parse::<IpAddr>().is_ok(), HERE.contains(&name.as_str())));
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    let mut authority = described("ddbx authority", valid);
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;
    let signed = |what: &str, use_: ExtendedKeyUsagePurpose, names: &[String]| {
        let mut of = described(what, valid);
        of.subject_alt_names = CertificateParams::new(names)?.subject_alt_names;
        of.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        of.extended_key_usages = vec![use_];
        of.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = of.signed_by(&key, &authority)?;
        Ok::<_, CertsError>((certificate.pem(), key.serialize_pem()))
    };
    let central = signed("ddbx central", ExtendedKeyUsagePurpose::ServerAuth, &names)?;
    let client = signed("ddbx client", ExtendedKeyUsagePurpose::ClientAuth, &[])?;

    DirBuilder::new().mode(0o700).create(dir).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => CertsError::Exists(dir.to_owned()),
        _ => CertsError::Io(dir.to_owned(), error),
    })?;
    let write = |name: &str, text: &str| {
        let path = dir.join(name);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|error| CertsError::Io(path, error))
    };
    let all = || -> Result<(), CertsError> {
        write(AUTHORITY_FILE, &authority.pem())?;
        for ((certificate, key), (chain, secret)) in
            [(CENTRAL_FILES, &central), (CLIENT_FILES, &client)]
        {
            write(certificate, chain)?;
            write(key, secret)?;
        }
        Secret::create(&dir.join(SECRET_FILE))?;
        Ok(())
    };
    all().inspect_err(|_| {
        // Half of it would be in the way of the next attempt.
        let _ = fs::remove_dir_all(dir);
    })?;
    Ok(names)
}

fn described(what: &str, valid: Valid) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, what);
    (params.not_before, params.not_after) = (valid.from, valid.until);
    params
}

/// Why there are no certificates.
#[derive(Debug, Error)]
pub enum CertsError {
    /// Nothing is ever overwritten.
    #[error(
        "{} is there already: choose another directory, or remove it if no session uses it any \
         more", .0.display()
    )]
    Exists(PathBuf),
    /// Something cannot be written.
    #[error("{} cannot be made: {}", .0.display(), .1)]
    Io(PathBuf, io::Error),
    /// The secret cannot be made.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// A certificate cannot be made.
    #[error("the certificates cannot be made: {0}")]
    Certificate(#[from] rcgen::Error),
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use ddbx_protocol::link::{CentralTls, ClientTls};

    use super::*;

    fn now() -> Valid {
        let from = OffsetDateTime::now_utc();
        Valid { from, until: from + Duration::days(1) }
    }

    #[test]
    fn all_is_ours_alone_and_nothing_is_overwritten() {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join("certs");
        let hosts = ["127.0.0.1", "db1", "10.0.0.7", "db1"].map(str::to_owned);
        let names = make(&dir, &hosts, now()).unwrap();
        assert_eq!(names, ["db1", "localhost", "10.0.0.7", "127.0.0.1", "::1"]);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&dir), 0o700);
        let files: Vec<_> = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap()).collect();
        assert_eq!(files.len(), 6);
        let mut before = Vec::new();
        for file in files {
            assert_eq!(mode(&file.path()), 0o600, "{file:?}");
            before.push((file.path(), fs::read(file.path()).unwrap()));
        }
        CentralTls::read(&dir).unwrap();
        ClientTls::read(&dir).unwrap();
        assert!(matches!(make(&dir, &[], now()), Err(CertsError::Exists(_))));
        for (path, content) in before {
            assert_eq!(fs::read(&path).unwrap(), content, "{}", path.display());
        }
    }

    #[test]
    fn keys_that_others_can_read_are_none() {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join("certs");
        make(&dir, &[], now()).unwrap();
        let set = |name: &str, mode: u32| {
            fs::set_permissions(dir.join(name), fs::Permissions::from_mode(mode)).unwrap();
        };
        set("client.pem", 0o644);
        set("client.key", 0o640);
        let error = ClientTls::read(&dir).unwrap_err().to_string();
        assert!(error.contains("client.key is open to other users (mode 640)"), "{error}");
        set("client.key", 0o600);
        ClientTls::read(&dir).unwrap();
        // Whoever can change it lets in whom it wants.
        set("ca.pem", 0o664);
        let error = ClientTls::read(&dir).unwrap_err().to_string();
        assert!(error.contains("ca.pem is open to other users (mode 664)"), "{error}");
        fs::remove_file(dir.join("central.key")).unwrap();
        set("ca.pem", 0o600);
        let error = CentralTls::read(&dir).unwrap_err().to_string();
        assert!(error.contains("central.key cannot be read") && error.contains("ddbx certs"));
        fs::write(dir.join("client.pem"), "nothing").unwrap();
        let error = ClientTls::read(&dir).unwrap_err().to_string();
        assert!(error.contains("client.pem does not hold what it should"), "{error}");
    }

    #[test]
    fn a_host_is_a_name_or_an_address() {
        for host in ["db1", "db1.example.org", "10.0.0.7", "::1", "fe80::1"] {
            assert_eq!(parse_host(host).as_deref(), Ok(host));
        }
        for host in ["", "a b", "a:80", "http://a", "a\u{1b}", "*.org"] {
            assert!(parse_host(host).is_err(), "{host}");
        }
    }
}
