//! Names and paths: how an id becomes a folder, and what the files in it are called.

use bough_platform::RelPath;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;

use crate::error::{Damage, DamageKind, LogError, Result};
use crate::format::Manifest;
use crate::limits;
use crate::record::{check_size, invalid};
use bough_record::{Incarnation, hex};

/// Folder of the live logs.
pub(crate) const SESSIONS: &str = "sessions";
/// Folder of the deleted ones.
pub(crate) const TRASH: &str = "trash";
/// Folder of those that are being built.
pub(crate) const STAGING: &str = "staging";

/// An escaped id is cut to this length, and a hash takes the place of the rest.
const NAME_CHARS_MAX: usize = 150;
/// Two hex digits and a half of the id's hash: 4,096 shards.
const SHARD_DIGITS: usize = 3;

/// The paths of one incarnation of one log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// The folder.
    pub dir: RelPath,
}

impl Container {
    /// The container in `sessions/` of an incarnation of an id.
    pub(crate) fn live(id: &str, incarnation: Incarnation) -> Result<Self> {
        let dir = shard_dir(id)?.join(&container_name(id, incarnation)?)?;
        Ok(Self { dir })
    }

    /// A link or a file has a container's name: what it leads to is not ours to read or write.
    pub(crate) fn no_folder(&self) -> Damage {
        let text = "this is a link or a file, and a session is a folder";
        Damage::new(DamageKind::Manifest, self.dir.as_str(), 0, text)
    }

    /// Refuses a manifest of another incarnation than the folder is named after: one was copied or moved over the other.
    pub(crate) fn check_incarnation(&self, manifest: &Manifest) -> Result<()> {
        let named = parse_container_name(self.dir.file_name()).map(|(_, incarnation)| incarnation);
        if named == Some(manifest.incarnation) {
            return Ok(());
        }
        let text =
            format!("the folder is named after another incarnation than {}", manifest.incarnation);
        Err(Damage::new(DamageKind::Manifest, "manifest.json", 0, text).into())
    }

    /// The folder of the same name in `trash/` or `staging/`.
    pub(crate) fn moved_to(&self, folder: &str) -> Result<Self> {
        Ok(Self { dir: RelPath::parse(folder)?.join(self.dir.file_name())? })
    }

    pub(crate) fn manifest(&self) -> Result<RelPath> {
        self.file("manifest.json")
    }

    pub(crate) fn lock(&self) -> Result<RelPath> {
        self.file("lock")
    }

    /// The mark of a container that stands in the place of another incarnation, until that is gone.
    pub(crate) fn replaces(&self) -> Result<RelPath> {
        self.file("replaces")
    }

    pub(crate) fn segments(&self) -> Result<RelPath> {
        self.file("segments")
    }

    pub(crate) fn segment(&self, number: u64) -> Result<RelPath> {
        Ok(self.segments()?.join(&format!("{number:016}.seg"))?)
    }

    pub(crate) fn index(&self) -> Result<RelPath> {
        self.file("index")
    }

    pub(crate) fn offsets(&self) -> Result<RelPath> {
        Ok(self.index()?.join("offsets.jsonl")?)
    }

    pub(crate) fn id_table(&self, number: u64) -> Result<RelPath> {
        Ok(self.index()?.join(&format!("ids-{number:016}.tbl"))?)
    }

    pub(crate) fn checkpoints(&self) -> Result<RelPath> {
        self.file("checkpoints")
    }

    pub(crate) fn checkpoint(&self, number: u64) -> Result<RelPath> {
        Ok(self.checkpoints()?.join(&format!("{number:016}.json"))?)
    }

    pub(crate) fn migrations(&self) -> Result<RelPath> {
        self.file("migrations")
    }

    pub(crate) fn ledger(&self) -> Result<RelPath> {
        Ok(self.migrations()?.join("ledger.jsonl")?)
    }

    pub(crate) fn stream(&self) -> Result<RelPath> {
        self.file("stream.log")
    }

    /// Where a file stands until it is whole. A plain name beside the others rather than a folder: a
    /// tiny log has no inode to spare.
    pub(crate) fn temp(&self, name: &str) -> Result<RelPath> {
        self.file(&format!("{name}.tmp"))
    }

    fn file(&self, name: &str) -> Result<RelPath> {
        Ok(self.dir.join(name)?)
    }
}

/// The shard's folder: spreads many logs over many folders.
pub(crate) fn shard_dir(id: &str) -> Result<RelPath> {
    let digest = hex_digest(id);
    let shard = digest.get(..SHARD_DIGITS).unwrap_or("000");
    Ok(RelPath::parse(SESSIONS)?.join(shard)?)
}

/// The folder's name: the escaped id, a dot, the incarnation.
pub(crate) fn container_name(id: &str, incarnation: Incarnation) -> Result<String> {
    Ok(format!("{}.{incarnation}", escape_id(id)?))
}

/// Takes a folder's name apart; `None` for names that we did not make.
pub(crate) fn parse_container_name(name: &str) -> Option<(&str, Incarnation)> {
    let (escaped, incarnation) = name.rsplit_once('.')?;
    Some((escaped, incarnation.parse().ok()?)).filter(|(escaped, _)| !escaped.is_empty())
}

/// An id as part of a file name. Lower-case letters, digits, `_` and `-` stand for themselves, every
/// other byte is `%XX`, so that no id is another's name even where a file system ignores case. Long ones
/// end in a hash in place of the rest.
pub(crate) fn escape_id(id: &str) -> Result<String> {
    check_id(id)?;
    let mut name = String::with_capacity(id.len());
    for byte in id.bytes() {
        if matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-') {
            name.push(char::from(byte));
        } else {
            let _ = write!(name, "%{byte:02X}");
        }
    }
    if name.len() > NAME_CHARS_MAX {
        name.truncate(NAME_CHARS_MAX - 33);
        let digest = hex_digest(id);
        let _ = write!(name, "~{}", digest.get(..32).unwrap_or_default());
    }
    Ok(name)
}

/// The id that a folder's name was made of; `None` when a hash stands for a part of it.
pub(crate) fn unescape_id(escaped: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(escaped.len());
    let mut rest = escaped.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => u8::from_str_radix(&hex_pair(&mut rest)?, 16).ok()?,
            byte => byte,
        });
    }
    let id = String::from_utf8(bytes).ok()?;
    // Only what escaping gives is a name: one that is cut, or that another program made, is not.
    escape_id(&id).is_ok_and(|again| again == escaped).then_some(id)
}

fn hex_pair(rest: &mut impl Iterator<Item = u8>) -> Option<String> {
    Some([char::from(rest.next()?), char::from(rest.next()?)].into_iter().collect())
}

/// Refuses ids that no log can have.
pub(crate) fn check_id(id: &str) -> Result<()> {
    check_size("an id", id.len(), limits::ID_BYTES_MAX)?;
    if id.is_empty() {
        return Err(invalid("an id is empty".to_owned()));
    }
    Ok(())
}

fn hex_digest(id: &str) -> String {
    hex(&Sha256::digest(id.as_bytes()))
}

/// The number in a segment's file name; `None` for names that we did not make.
pub(crate) fn parse_segment_name(name: &str) -> Option<u64> {
    parse_number(name.strip_suffix(".seg")?)
}

/// The number in a checkpoint's file name; `None` for names that we did not make.
pub(crate) fn parse_checkpoint_name(name: &str) -> Option<u64> {
    parse_number(name.strip_suffix(".json")?)
}

/// The number in an id table's file name; `None` for names that we did not make.
pub(crate) fn parse_table_name(name: &str) -> Option<u64> {
    parse_number(name.strip_prefix("ids-")?.strip_suffix(".tbl")?)
}

fn parse_number(digits: &str) -> Option<u64> {
    let plain = digits.len() == 16 && digits.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten().filter(|number| *number > 0)
}

/// No log of that id.
pub(crate) fn not_found(id: &str) -> LogError {
    LogError::NotFound { id: id.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_id_leaves_the_data_directory_or_takes_anothers_name() {
        let long = "x".repeat(1024);
        let longer = format!("{}y", "x".repeat(1023));
        let ids =
            ["..", ".", "a/b", "../../etc/passwd", "A", "a", "nul", "a\0b", "%41", &long, &longer];
        let mut names = std::collections::HashSet::new();
        for id in ids {
            let container = Container::live(id, Incarnation::new([7; 16])).unwrap();
            assert!(container.dir.as_str().starts_with("sessions/"), "{id:?}");
            assert!(container.dir.file_name().len() <= 200, "{id:?}");
            let (escaped, incarnation) = parse_container_name(container.dir.file_name()).unwrap();
            assert_eq!(
                (escaped, incarnation),
                (escape_id(id).unwrap().as_str(), Incarnation::new([7; 16]))
            );
            assert!(names.insert(container.dir.file_name().to_ascii_lowercase()), "{id:?}");
            let whole = (!escaped.contains('~')).then(|| id.to_owned());
            assert_eq!(unescape_id(escaped), whole, "{id:?}");
        }
        assert!(escape_id("").is_err());
        assert!(escape_id(&"x".repeat(1025)).is_err());
    }

    #[test]
    fn names_that_are_not_ours_are_not_taken_for_ours() {
        for name in
            ["1.seg", "0000000000000000.seg", "000000000000000x.seg", "0000000000000001.tmp"]
        {
            assert_eq!(parse_segment_name(name), None, "{name}");
        }
        assert_eq!(parse_segment_name("0000000000000012.seg"), Some(12));
        assert_eq!(parse_container_name("README"), None);
        assert_eq!(parse_container_name(".0123456789abcdef0123456789abcdef"), None);
        for name in ["%", "%4", "%zz", "%61", "A", "a.b", "a~0", "%ff"] {
            assert_eq!(unescape_id(name), None, "{name}");
        }
    }
}
