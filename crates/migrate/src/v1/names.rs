//! Names of files in pi's session directory.

use super::time::{format_iso, parse_iso};

/// How a session file is spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelling {
    /// `2024-12-03T14-00-00-000Z_<id>.jsonl`: neither colons nor dots, the whole id.
    Dashes,
    /// `2024-12-03T14-00-00.000Z_<first 8 of the id>.jsonl`: the dot is kept, as the seed describes it.
    Dot,
}

/// What a session file's name says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionFileName {
    /// When the session began, milliseconds since the epoch.
    pub timestamp_ms: i64,
    /// The session's id, or the beginning of it.
    pub id: String,
    /// How the name is spelled; only [`Spelling::Dashes`] carries the whole id.
    pub spelling: Spelling,
}

impl SessionFileName {
    /// Reads a file name in either spelling, with `.jsonl` or `.sqlite` at its end.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let stem = name.strip_suffix(".jsonl").or_else(|| name.strip_suffix(".sqlite"))?;
        let (time, id) = stem.split_once('_')?;
        let (date, clock) = time.split_once('T')?;
        let clock = clock.strip_suffix('Z')?;
        let spelling = if clock.contains('.') { Spelling::Dot } else { Spelling::Dashes };
        let mut parts = clock.splitn(4, ['-', '.']);
        let (hour, minute, second) = (parts.next()?, parts.next()?, parts.next()?);
        let milli = parts.next()?;
        let timestamp_ms = parse_iso(&format!("{date}T{hour}:{minute}:{second}.{milli}Z"))?;
        Some(Self { timestamp_ms, id: id.to_owned(), spelling }).filter(|name| !name.id.is_empty())
    }

    /// The name as it is written.
    #[must_use]
    pub fn file_name(&self) -> String {
        let iso = format_iso(self.timestamp_ms).replace(':', "-");
        match self.spelling {
            Spelling::Dashes => format!("{}_{}.jsonl", iso.replace('.', "-"), safe(&self.id)),
            Spelling::Dot => {
                let short: String = self.id.chars().take(8).collect();
                let short = if short.is_empty() { "session".to_owned() } else { safe(&short) };
                format!("{iso}_{short}.jsonl")
            }
        }
    }
}

/// An id as part of a file name.
fn safe(id: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    id.chars().map(|c| if plain(c) { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_are_read_and_written() {
        let check = |name: &str, id: &str, spelling: Spelling| {
            let parsed = SessionFileName::parse(name).unwrap();
            assert_eq!(parsed.timestamp_ms, 1_733_234_400_000, "{name}");
            assert_eq!((parsed.id.as_str(), parsed.spelling), (id, spelling), "{name}");
            assert_eq!(parsed.file_name(), name);
        };
        let id = "01938a3e-0000-7000-8000-000000000001";
        check(&format!("2024-12-03T14-00-00-000Z_{id}.jsonl"), id, Spelling::Dashes);
        check("2024-12-03T14-00-00.000Z_0f0e0d0c.jsonl", "0f0e0d0c", Spelling::Dot);
    }

    #[test]
    fn other_names_are_not_taken_for_sessions() {
        for name in [
            "session-index.sqlite",
            "notes.jsonl",
            "2024-12-03T14-00-00-000Z_.jsonl",
            "2024-12-03_x.jsonl",
            "2024-99-03T14-00-00-000Z_x.jsonl",
        ] {
            assert_eq!(SessionFileName::parse(name), None, "{name}");
        }
    }

    #[test]
    fn ids_never_make_a_path() {
        let name = SessionFileName {
            timestamp_ms: 0,
            id: "../../x y".to_owned(),
            spelling: Spelling::Dashes,
        };
        assert_eq!(name.file_name(), "1970-01-01T00-00-00-000Z_.._.._x_y.jsonl");
    }
}
