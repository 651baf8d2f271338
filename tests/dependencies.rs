//! What ddbx is built from: `deny.toml`, as far as it can be checked without cargo-deny.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use serde::Deserialize;

/// All who read it know the same file.
#[derive(Deserialize)]
struct Deny {
    advisories: Advisories,
    licenses: Licenses,
    bans: Bans,
}

#[derive(Deserialize)]
struct Advisories {
    ignore: Vec<Ignored>,
}

#[derive(Deserialize)]
struct Ignored {
    id: String,
    reason: String,
}

#[derive(Deserialize)]
struct Licenses {
    allow: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Bans {
    skip: Vec<Skipped>,
}

#[derive(Deserialize)]
struct Skipped {
    /// A name and the beginning of a version.
    #[serde(rename = "crate")]
    name: String,
    reason: String,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
    workspace_members: Vec<String>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Edge>,
}

#[derive(Deserialize)]
struct Edge {
    pkg: String,
    dep_kinds: Vec<EdgeKind>,
}

#[derive(Deserialize)]
struct EdgeKind {
    /// `dev` or `build`, or none.
    kind: Option<String>,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    source: Option<String>,
}

#[test]
fn every_licence_is_allowed() {
    let allowed = deny().licenses.allow;
    for Package { name, version, license, .. } in packages() {
        let license = license.unwrap_or_else(|| panic!("{name} {version} has no licence"));
        assert!(is_allowed(&license, &allowed), "{name} {version}: {license} is not in deny.toml");
    }
}

#[test]
fn licences_are_read_as_they_are_meant() {
    let allowed = BTreeSet::from(["MIT".to_owned(), "Unicode-3.0".to_owned()]);
    let is_allowed = |license| is_allowed(license, &allowed);
    assert!(is_allowed("MIT") && is_allowed("GPL-3.0 OR MIT") && is_allowed("GPL-3.0/MIT"));
    assert!(is_allowed("(MIT OR Apache-2.0) AND Unicode-3.0"));
    assert!(!is_allowed("(MIT OR Apache-2.0) AND GPL-3.0"));
    assert!(!is_allowed("GPL-3.0") && !is_allowed("MIT AND GPL-3.0"));
}

#[test]
fn a_crate_is_there_once_or_there_is_a_reason() {
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in shipped() {
        versions.entry(package.name).or_default().insert(package.version);
    }
    let mut skipped = deny().bans.skip;
    for (name, versions) in versions {
        let mut is_skipped = |version: &&String| {
            let found = skipped.iter().position(|skipped| {
                let (of, begins) = skipped.name.split_once('@').unwrap();
                of == name && format!("{version}.").starts_with(&format!("{begins}."))
            });
            found.map(|found| skipped.swap_remove(found)).is_some()
        };
        let kept: Vec<_> = versions.iter().filter(|version| !is_skipped(version)).collect();
        assert!(kept.len() <= 1, "{name} is there {kept:?} times: say why in deny.toml, or update");
    }
    let left: Vec<_> = skipped.iter().map(|skipped| &skipped.name).collect();
    assert!(left.is_empty(), "deny.toml skips {left:?}, of which there is no second version");
}

#[test]
fn all_comes_from_the_registry_of_rust() {
    for Package { name, source, .. } in packages() {
        let ours = source.is_none() && (name == "ddbx" || name.starts_with("ddbx-"));
        let registry = "registry+https://github.com/rust-lang/crates.io-index";
        assert!(ours || source.as_deref() == Some(registry), "{name} comes from {source:?}");
    }
}

#[test]
fn exceptions_have_reasons() {
    let Deny { advisories, bans, .. } = deny();
    for Ignored { id, reason } in advisories.ignore {
        assert!(id.starts_with("RUSTSEC-") && reason.len() > 20, "{id}: {reason:?}");
    }
    for Skipped { name, reason } in bans.skip {
        assert!(!reason.is_empty(), "{name}");
    }
}

/// A licence expression as crates write them: one of several, or several at once.
fn is_allowed(license: &str, allowed: &BTreeSet<String>) -> bool {
    let all = license.replace('/', " OR ");
    let parts = all.split(" AND ").map(|part| part.trim().trim_matches(['(', ')']));
    parts.into_iter().all(|part| part.split(" OR ").any(|one| allowed.contains(one.trim())))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn deny() -> Deny {
    toml::from_str(&fs::read_to_string(root().join("deny.toml")).unwrap()).unwrap()
}

/// What is built here, tests included.
fn packages() -> Vec<Package> {
    let Metadata { mut packages, resolve, .. } = metadata();
    let used: BTreeSet<_> = resolve.nodes.into_iter().map(|node| node.id).collect();
    packages.retain(|package| used.contains(&package.id));
    assert!(
        packages.len() > 100,
        "only {} packages: is the test reading it right?",
        packages.len()
    );
    packages
}

/// What is linked into something that is built here: what only tests or build scripts use of
/// others' crates does not count, as in cargo-deny.
fn shipped() -> Vec<Package> {
    let Metadata { mut packages, resolve, workspace_members } = metadata();
    let nodes: BTreeMap<_, _> =
        resolve.nodes.into_iter().map(|node| (node.id, node.deps)).collect();
    let (mut found, mut next) = (BTreeSet::new(), workspace_members);
    while let Some(id) = next.pop() {
        let linked =
            nodes[&id].iter().filter(|edge| edge.dep_kinds.iter().any(|of| of.kind.is_none()));
        if found.insert(id.clone()) {
            next.extend(linked.map(|edge| edge.pkg.clone()));
        }
    }
    packages.retain(|package| found.contains(&package.id));
    packages
}

fn metadata() -> Metadata {
    let host = Command::new(env::var_os("RUSTC").unwrap_or("rustc".into())).arg("-vV").output();
    let host = String::from_utf8(host.unwrap().stdout).unwrap();
    let host = host.lines().find_map(|line| line.strip_prefix("host: ")).unwrap().to_owned();
    let metadata = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--locked", "--filter-platform", &host])
        .current_dir(root())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&metadata.stderr);
    assert!(metadata.status.success(), "cargo metadata: {said}");
    serde_json::from_slice(&metadata.stdout).unwrap()
}
