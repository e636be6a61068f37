//! Rows: what was measured, beside its peers.

use std::fmt::Write;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

/// One figure of Bough and the same figure of its peers.
#[derive(Debug, Serialize)]
pub struct Row {
    name: String,
    unit: String,
    value: f64,
    peers: Pairs,
    ratio: Pairs,
}

impl Row {
    /// A figure of Bough without peers.
    pub fn new(name: impl Into<String>, unit: impl Into<String>, value: f64) -> Self {
        Self {
            name: name.into(),
            unit: unit.into(),
            value: rounded(value),
            peers: Pairs::default(),
            ratio: Pairs::default(),
        }
    }

    /// Adds a peer; the ratio is Bough's value over the peer's, and is left out when the peer's is zero.
    pub fn beside(mut self, peer: &str, value: f64) -> Self {
        self.peers.0.push((peer.to_owned(), rounded(value)));
        if value != 0.0 {
            let ratio = rounded(self.value / value);
            self.ratio.0.push((peer.to_owned(), ratio));
        }
        self
    }

    fn ratio_to(&self, peer: &str) -> Option<f64> {
        let found = self.ratio.0.iter().find(|(name, _)| name == peer);
        found.map(|(_, ratio)| *ratio)
    }
}

/// Names with figures, in the order in which they were measured.
#[derive(Debug, Default)]
struct Pairs(Vec<(String, f64)>);

impl Serialize for Pairs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// The rows as an aligned table, one line a peer.
pub fn table(rows: &[Row]) -> String {
    let mut lines = vec![["name", "unit", "bough", "peer", "value", "ratio"].map(str::to_owned)];
    for row in rows {
        lines.extend(lines_of(row));
    }
    let width_of = |column: usize| {
        let widths = lines.iter().map(|line| line.get(column).map_or(0, String::len));
        widths.max().unwrap_or(0)
    };
    let widths = [0, 1, 2, 3, 4, 5].map(width_of);
    let mut out = String::new();
    for [name, unit, value, peer, theirs, ratio] in &lines {
        let [a, b, c, d, e, f] = widths;
        let line =
            format!("{name:<a$}  {unit:<b$}  {value:>c$}  {peer:<d$}  {theirs:>e$}  {ratio:>f$}");
        // Writing to a String cannot fail.
        writeln!(out, "{}", line.trim_end()).ok();
    }
    out
}

fn lines_of(row: &Row) -> Vec<[String; 6]> {
    let own = [row.name.clone(), row.unit.clone(), shown(row.value)];
    let nothing = [String::new(), String::new(), String::new()];
    if row.peers.0.is_empty() {
        let [name, unit, value] = own;
        let [peer, theirs, ratio] = nothing;
        return vec![[name, unit, value, peer, theirs, ratio]];
    }
    let firsts = std::iter::once(own).chain(std::iter::repeat(nothing));
    row.peers
        .0
        .iter()
        .zip(firsts)
        .map(|((peer, value), [name, unit, own])| {
            let ratio = row.ratio_to(peer).map_or_else(String::new, shown);
            [name, unit, own, peer.clone(), shown(*value), ratio]
        })
        .collect()
}

/// Four significant digits: more would be noise.
fn rounded(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

fn shown(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Row> {
        vec![
            Row::new("appends", "entries/s", 1234.56).beside("raw", 2469.0).beside("off", 0.0),
            Row::new("inodes", "files", 4.0),
        ]
    }

    #[test]
    fn the_object_has_the_promised_keys() {
        let expected = r#"[{"name":"appends","unit":"entries/s","value":1235.0,"peers":{"raw":2469.0,"off":0.0},"ratio":{"raw":0.5002}},{"name":"inodes","unit":"files","value":4.0,"peers":{},"ratio":{}}]"#;
        assert_eq!(serde_json::to_string(&rows()).unwrap(), expected);
    }

    #[test]
    fn the_table_is_aligned() {
        let expected = "\
name     unit       bough  peer  value   ratio
appends  entries/s   1235  raw    2469  0.5002
                           off       0
inodes   files          4
";
        assert_eq!(table(&rows()), expected);
    }
}
