//! What cargo knows of the workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;

use crate::shell;

/// Dependencies are counted for one system, so that the number is the same on every machine.
const COUNTED_FOR: &str = "x86_64-unknown-linux-gnu";

#[derive(Debug, Deserialize)]
pub(super) struct Metadata {
    pub(super) packages: Vec<Package>,
    pub(super) workspace_members: Vec<String>,
    pub(super) resolve: Resolve,
}

#[derive(Debug, Deserialize)]
pub(super) struct Package {
    pub(super) id: String,
    pub(super) name: String,
    #[serde(default)]
    pub(super) license: Option<String>,
    #[serde(default)]
    pub(super) dependencies: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Dependency {
    pub(super) name: String,
    /// `dev`, `build` or nothing.
    #[serde(default)]
    pub(super) kind: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Resolve {
    pub(super) nodes: Vec<Node>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Node {
    id: String,
    deps: Vec<Edge>,
}

#[derive(Debug, Deserialize)]
struct Edge {
    pkg: String,
    dep_kinds: Vec<EdgeKind>,
}

#[derive(Debug, Deserialize)]
struct EdgeKind {
    #[serde(default)]
    kind: Option<String>,
}

impl Dependency {
    pub(super) fn is_dev(&self) -> bool {
        self.kind.as_deref() == Some("dev")
    }
}

impl Metadata {
    pub(super) fn read(root: &Path) -> Result<Self, String> {
        let mut command = shell::cargo(root);
        command.args(["metadata", "--format-version", "1", "--filter-platform", COUNTED_FOR]);
        let text = shell::answer(&mut command)
            .ok_or("cargo metadata failed; run it by hand to see why")?;
        serde_json::from_str(&text).map_err(|error| format!("cargo metadata: {error}"))
    }

    /// The packages of the workspace itself.
    pub(super) fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| self.workspace_members.contains(&package.id))
    }

    /// The packages from outside that the named members need to be built and to run.
    /// Packages named in `without`, and what only they need, are left out.
    pub(super) fn needed_by(&self, names: &[&str], without: &[&str]) -> BTreeSet<&str> {
        let left_out: BTreeSet<&str> = self
            .packages
            .iter()
            .filter(|package| without.contains(&package.name.as_str()))
            .map(|package| package.id.as_str())
            .collect();
        let members: BTreeSet<&str> = self.workspace_members.iter().map(String::as_str).collect();
        let edges: BTreeMap<&str, &[Edge]> = self
            .resolve
            .nodes
            .iter()
            .map(|node| (node.id.as_str(), node.deps.as_slice()))
            .collect();
        let mut open: Vec<&str> = self
            .members()
            .filter(|package| names.contains(&package.name.as_str()))
            .map(|package| package.id.as_str())
            .collect();
        let mut seen: BTreeSet<&str> = open.iter().copied().collect();
        while let Some(id) = open.pop() {
            let dependencies = edges.get(id).copied().unwrap_or_default();
            for edge in dependencies.iter().filter(|edge| edge.is_needed()) {
                if !left_out.contains(edge.pkg.as_str()) && seen.insert(&edge.pkg) {
                    open.push(&edge.pkg);
                }
            }
        }
        seen.difference(&members).copied().collect()
    }
}

impl Edge {
    fn is_needed(&self) -> bool {
        self.dep_kinds.iter().any(|edge| edge.kind.as_deref() != Some("dev"))
    }
}
