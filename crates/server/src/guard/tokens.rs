//! Bearer tokens: random, stored hashed, each with a scope, rights and an end.
//!
//! A revoked token stays in the file, marked: a server without tokens is open on loopback, and revoking the last one must not
//! let everybody in.

use std::collections::HashMap;
use std::fmt;
use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bough_platform::{Disk, Entropy, LockError, RelPath};
use bough_service::{Right, Scope};
use bough_session::{JsonMap, hex, unhex};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::limits::{SETTINGS_FILE_BYTES_MAX, TOKEN_BYTES_MAX, TOKENS_MAX};

/// The file that holds the tokens, below the data directory.
pub const TOKENS_FILE: &str = "tokens.json";

/// How every token begins, so that a scanner for leaked secrets can find one.
const PREFIX: &str = "bough_";

/// One token as the file keeps it: everything but the secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenRecord {
    /// Names the token; the part of its text that is no secret.
    pub id: String,
    /// What it is for, in its maker's words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// SHA-256 of the whole token, in hex.
    pub sha256: String,
    /// Only sessions with these metadata exist for its bearer.
    #[serde(default, skip_serializing_if = "JsonMap::is_empty")]
    pub scope: JsonMap,
    /// What its bearer may do.
    pub rights: Vec<Right>,
    /// The only functions that its bearer may call; all that the rights allow when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub functions: Option<Vec<String>>,
    /// When it was made, milliseconds since the epoch.
    pub created_at: i64,
    /// When it ends, milliseconds since the epoch; never when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<i64>,
    /// When it was taken back, milliseconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<i64>,
}

/// What a new token is to be.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewToken {
    /// What it is for.
    pub name: String,
    /// Only sessions with these metadata.
    pub scope: JsonMap,
    /// What its bearer may do.
    pub rights: Vec<Right>,
    /// The only functions that its bearer may call.
    pub functions: Option<Vec<String>>,
    /// When it ends, milliseconds since the epoch.
    pub expires_at: Option<i64>,
}

/// A token's text. It is shown once, when the token is made, and never by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenText(String);

impl TokenText {
    /// The text, to show it to the one who asked for it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for TokenText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenText(...)")
    }
}

/// Why the tokens could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The disk did not answer.
    #[error("cannot read or write {TOKENS_FILE}: {0}")]
    Io(#[from] io::Error),
    /// The file is not what it should be. Nothing is served with it.
    #[error("{TOKENS_FILE} is damaged ({reason}); mend it or remove it and make new tokens")]
    Damaged {
        /// What is wrong.
        reason: String,
    },
    /// Somebody else is changing the tokens.
    #[error("another process is changing the tokens ({holder}); try again")]
    Busy {
        /// Who.
        holder: String,
    },
    /// There are too many.
    #[error("there are {TOKENS_MAX} tokens already; revoke and remove some")]
    TooMany,
    /// A token without rights is good for nothing.
    #[error("a token needs at least one right: read, write, admin or bridge")]
    NoRights,
    /// No token has this id.
    #[error("no token has the id {id}; see the list of tokens")]
    Unknown {
        /// What was asked for.
        id: String,
    },
}

/// All tokens of a server, ready to be compared with what callers show.
#[derive(Clone, Debug, Default)]
pub struct Tokens {
    by_id: HashMap<String, Known>,
}

#[derive(Clone, Debug)]
struct Known {
    digest: [u8; 32],
    scope: Scope,
    expires_at: Option<i64>,
    is_revoked: bool,
}

impl Tokens {
    /// Takes the records of a file; a damaged one is refused, not skipped.
    pub fn from_records(records: &[TokenRecord]) -> Result<Self, TokenError> {
        let mut by_id = HashMap::new();
        for record in records {
            let digest = unhex(&record.sha256).ok_or_else(|| TokenError::Damaged {
                reason: format!("token {} has no SHA-256", printable(&record.id)),
            })?;
            let mut scope = Scope::new(&record.id, record.rights.iter().copied())
                .only_sessions_with(record.scope.clone());
            if let Some(functions) = &record.functions {
                scope = scope.only_functions(functions.iter().cloned());
            }
            let known = Known {
                digest,
                scope,
                expires_at: record.expires_at,
                is_revoked: record.revoked_at.is_some(),
            };
            by_id.insert(record.id.clone(), known);
        }
        Ok(Self { by_id })
    }

    /// Whether no token was ever made.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// Who bears this token, if it is one of ours and still good.
    #[must_use]
    pub fn bearer(&self, text: &str, now_ms: i64) -> Option<Scope> {
        if text.len() > TOKEN_BYTES_MAX {
            return None;
        }
        let digest: [u8; 32] = Sha256::digest(text.as_bytes()).into();
        let id = text.strip_prefix(PREFIX)?.split('_').next()?;
        let known = self.by_id.get(id)?;
        let is_equal: bool = known.digest.ct_eq(&digest).into();
        (is_equal && known.is_good(now_ms)).then(|| known.scope.clone())
    }

    /// Whether the token with this id, which was good once, still is.
    #[must_use]
    pub fn is_still_good(&self, id: &str, now_ms: i64) -> bool {
        self.by_id.get(id).is_some_and(|known| known.is_good(now_ms))
    }
}

impl Known {
    fn is_good(&self, now_ms: i64) -> bool {
        !self.is_revoked && self.expires_at.is_none_or(|end| now_ms < end)
    }
}

/// The tokens of a data directory, for making, listing and taking back.
#[derive(Debug)]
pub struct TokenFile<'a> {
    disk: &'a dyn Disk,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    version: u32,
    tokens: Vec<TokenRecord>,
}

impl<'a> TokenFile<'a> {
    /// The tokens of the data directory that `disk` is rooted at.
    #[must_use]
    pub fn new(disk: &'a dyn Disk) -> Self {
        Self { disk }
    }

    /// Every token that was ever made here and not removed.
    pub fn list(&self) -> Result<Vec<TokenRecord>, TokenError> {
        let path = file_path()?;
        if self.disk.stat(&path)?.is_none() {
            return Ok(Vec::new());
        }
        let bytes = self.disk.read_all(&path, SETTINGS_FILE_BYTES_MAX)?;
        let damaged = |reason: String| TokenError::Damaged { reason };
        let content: Content =
            serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
        if content.version != 1 {
            return Err(damaged(format!("version {} is not known here", content.version)));
        }
        Ok(content.tokens)
    }

    /// Makes a token. Its text is returned and kept nowhere.
    pub fn create(
        &self,
        new: NewToken,
        entropy: &dyn Entropy,
        now_ms: i64,
    ) -> Result<(TokenText, TokenRecord), TokenError> {
        if new.rights.is_empty() {
            return Err(TokenError::NoRights);
        }
        let (mut id, mut secret) = ([0; 6], [0; 32]);
        entropy.fill(&mut id)?;
        entropy.fill(&mut secret)?;
        let id = hex(&id);
        let text = format!("{PREFIX}{id}_{}", URL_SAFE_NO_PAD.encode(secret));
        let record = TokenRecord {
            id,
            name: new.name,
            sha256: hex(&Sha256::digest(text.as_bytes())),
            scope: new.scope,
            rights: new.rights,
            functions: new.functions,
            created_at: now_ms,
            expires_at: new.expires_at,
            revoked_at: None,
        };
        self.change(|tokens| {
            if tokens.len() >= TOKENS_MAX {
                return Err(TokenError::TooMany);
            }
            tokens.push(record.clone());
            Ok(())
        })?;
        Ok((TokenText(text), record))
    }

    /// Takes a token back. It stays in the file, so that taking back the last one does not open the door.
    pub fn revoke(&self, id: &str, now_ms: i64) -> Result<TokenRecord, TokenError> {
        let mut revoked = None;
        self.change(|tokens| {
            let found = tokens.iter_mut().find(|token| token.id == id);
            let token = found.ok_or_else(|| TokenError::Unknown { id: printable(id) })?;
            token.revoked_at.get_or_insert(now_ms);
            revoked = Some(token.clone());
            Ok(())
        })?;
        revoked.ok_or_else(|| TokenError::Unknown { id: printable(id) })
    }

    fn change(
        &self,
        change: impl FnOnce(&mut Vec<TokenRecord>) -> Result<(), TokenError>,
    ) -> Result<(), TokenError> {
        let holder = format!("pid {}", std::process::id());
        let lock = self.disk.lock(&name("tokens.lock")?, &holder).map_err(|error| match error {
            LockError::Held { holder } => TokenError::Busy { holder },
            LockError::Io(error) => TokenError::Io(error),
        })?;
        let mut tokens = self.list()?;
        change(&mut tokens)?;
        let content = Content { version: 1, tokens };
        let mut bytes = serde_json::to_vec_pretty(&content).map_err(io::Error::other)?;
        bytes.push(b'\n');
        self.disk.replace(&file_path()?, &name("tokens.json.tmp")?, &bytes)?;
        lock.remove()?;
        Ok(())
    }
}

pub(crate) fn file_path() -> io::Result<RelPath> {
    name(TOKENS_FILE)
}

fn name(text: &str) -> io::Result<RelPath> {
    Ok(RelPath::root().join(text)?)
}

/// Text for a message: short and without control characters.
fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(64).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bough_platform::{OsDisk, OsEntropy};
    use serde_json::json;

    use super::*;

    fn dir() -> (tempfile::TempDir, Arc<dyn Disk>) {
        let dir = tempfile::tempdir().unwrap();
        let disk: Arc<dyn Disk> = Arc::new(OsDisk::open(dir.path()).unwrap());
        (dir, disk)
    }

    fn reader(expires_at: Option<i64>) -> NewToken {
        NewToken { rights: vec![Right::Read], expires_at, ..NewToken::default() }
    }

    fn loaded(file: &TokenFile<'_>) -> Tokens {
        Tokens::from_records(&file.list().unwrap()).unwrap()
    }

    #[test]
    fn a_token_is_good_until_it_ends_or_is_taken_back() {
        let (_dir, disk) = dir();
        let file = TokenFile::new(&*disk);
        assert!(loaded(&file).is_empty());
        let (text, record) = file.create(reader(Some(100)), &OsEntropy, 1).unwrap();
        let tokens = loaded(&file);
        assert!(tokens.bearer(text.reveal(), 99).is_some());
        assert!(tokens.bearer(text.reveal(), 100).is_none());
        assert!(tokens.is_still_good(&record.id, 99) && !tokens.is_still_good("other", 99));
        file.revoke(&record.id, 50).unwrap();
        let tokens = loaded(&file);
        assert!(tokens.bearer(text.reveal(), 60).is_none());
        assert!(!tokens.is_empty(), "taking back the last token must not open the door");
        assert!(matches!(file.revoke("nobody", 1), Err(TokenError::Unknown { .. })));
    }

    #[test]
    fn only_the_whole_text_is_a_token() {
        let (_dir, disk) = dir();
        let file = TokenFile::new(&*disk);
        let (text, record) = file.create(reader(None), &OsEntropy, 1).unwrap();
        let tokens = loaded(&file);
        let good = text.reveal();
        assert!(good.starts_with(&format!("bough_{}_", record.id)));
        let long = "x".repeat(TOKEN_BYTES_MAX + 1);
        let cut = &good[..good.len() - 1];
        for bad in ["", "bough_", cut, &record.id, &format!("{good}x"), &good.to_uppercase(), &long]
        {
            assert!(tokens.bearer(bad, 1).is_none(), "{bad}");
        }
    }

    #[test]
    fn the_secret_is_nowhere_but_in_the_answer() {
        let (dir, disk) = dir();
        let file = TokenFile::new(&*disk);
        let scope = json!({"owner": "u_1"}).as_object().unwrap().clone();
        let new = NewToken { scope: scope.clone(), ..reader(None) };
        let (text, record) = file.create(new, &OsEntropy, 1).unwrap();
        // The secret may have underscores of its own.
        let secret = text.reveal().splitn(3, '_').nth(2).unwrap();
        let stored = disk.read_all(&file_path().unwrap(), 10_000).unwrap();
        assert!(!String::from_utf8(stored).unwrap().contains(secret));
        assert!(!format!("{text:?} {record:?} {:?}", loaded(&file)).contains(secret));
        let bearer = loaded(&file).bearer(text.reveal(), 1).unwrap();
        assert_eq!((bearer.who(), bearer.metadata()), (record.id.as_str(), &scope));
        assert!(bearer.has(Right::Read) && !bearer.has(Right::Write));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = dir.path().join(TOKENS_FILE).metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn a_damaged_file_is_an_error_and_never_no_tokens() {
        let (_dir, disk) = dir();
        let file = disk.create(&file_path().unwrap()).unwrap();
        for text in ["", "{", r#"{"version":2,"tokens":[]}"#, r#"{"version":1,"tokens":[{}]}"#] {
            file.set_len(0).unwrap();
            file.write_at(0, text.as_bytes()).unwrap();
            let refused = TokenFile::new(&*disk).list().unwrap_err();
            assert!(matches!(refused, TokenError::Damaged { .. }), "{text}");
        }
        let record = TokenRecord {
            id: "a".into(),
            name: String::new(),
            sha256: "short".into(),
            scope: JsonMap::new(),
            rights: vec![Right::Read],
            functions: None,
            created_at: 0,
            expires_at: None,
            revoked_at: None,
        };
        assert!(Tokens::from_records(&[record]).is_err());
    }

    #[test]
    fn a_token_needs_a_right() {
        let (_dir, disk) = dir();
        let refused = TokenFile::new(&*disk).create(NewToken::default(), &OsEntropy, 1);
        assert!(matches!(refused, Err(TokenError::NoRights)));
    }
}
