//! The file of tokens.
//!
//! It exists from the first token on, and from then on callers need a token. A server without the file is open on
//! loopback, and revoking or removing the last token must not open it again. Only [`TokenFile::allow_tokenless`] does.

use std::io;

use bough_platform::{Disk, Entropy, Lock, LockError, RelPath};
use bough_service::{function, functions};
use bough_session::hex;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::secret::draw_secret;
use super::tokens::{NewToken, PREFIX, TokenError, TokenRecord, TokenText, Tokens, printable};
use crate::api::nearest;
use crate::limits::{ENDED_TOKENS_KEPT, TOKEN_RECORD_BYTES_MAX, TOKENS_FILE_BYTES_MAX, TOKENS_MAX};

/// The file that holds the tokens, below the data directory.
pub const TOKENS_FILE: &str = "tokens.json";

/// The tokens of a data directory, for creating, listing and revoking.
#[derive(Debug)]
pub struct TokenFile<'a> {
    disk: &'a dyn Disk,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    version: u32,
    /// Whether the owner went back to access without tokens.
    #[serde(default)]
    tokenless: bool,
    tokens: Vec<TokenRecord>,
}

impl<'a> TokenFile<'a> {
    /// The tokens of the data directory that `disk` is rooted at.
    #[must_use]
    pub fn new(disk: &'a dyn Disk) -> Self {
        Self { disk }
    }

    /// The tokens that the file holds, ready to be compared; `None` where there is no file.
    pub fn load(&self) -> Result<Option<Tokens>, TokenError> {
        match self.content()? {
            None => Ok(None),
            Some(content) if content.tokenless => Ok(Some(Tokens::default())),
            Some(content) => Tokens::from_records(&content.tokens).map(Some),
        }
    }

    /// Every token that was made here and is remembered.
    pub fn list(&self) -> Result<Vec<TokenRecord>, TokenError> {
        Ok(self.content()?.map(|content| content.tokens).unwrap_or_default())
    }

    fn content(&self) -> Result<Option<Content>, TokenError> {
        let path = file_path()?;
        if self.disk.stat(&path)?.is_none() {
            return Ok(None);
        }
        let bytes = self.disk.read_all(&path, TOKENS_FILE_BYTES_MAX)?;
        let damaged = |reason: String| TokenError::Damaged { reason };
        let content: Content =
            serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
        if content.version != 1 {
            return Err(damaged(format!("version {} is not known here", content.version)));
        }
        Ok(Some(content))
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
        new.functions.iter().flatten().try_for_each(|name| check_function(name))?;
        let mut id = [0; 6];
        entropy.fill(&mut id)?;
        let id = hex(&id);
        let text = format!("{PREFIX}{id}_{}", draw_secret(entropy)?);
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
        let size = serde_json::to_vec(&record).map_err(io::Error::other)?.len();
        if size > TOKEN_RECORD_BYTES_MAX {
            return Err(TokenError::TooLarge);
        }
        self.change(now_ms, |tokens| {
            if tokens.len() >= TOKENS_MAX {
                tokens.retain(|token| token.ended_at(now_ms).is_none());
            }
            if tokens.len() >= TOKENS_MAX {
                return Err(TokenError::TooMany);
            }
            tokens.push(record.clone());
            Ok(())
        })?;
        Ok((TokenText(text), record))
    }

    /// Revokes a token. It stays in the list for a while, so that people can find out what happened to it.
    pub fn revoke(&self, id: &str, now_ms: i64) -> Result<TokenRecord, TokenError> {
        self.change(now_ms, |tokens| {
            let found = tokens.iter_mut().find(|token| token.id == id);
            let token = found.ok_or_else(|| TokenError::Unknown { id: printable(id) })?;
            token.revoked_at.get_or_insert(now_ms);
            Ok(token.clone())
        })
    }

    /// Removes a token, which is not valid from then on. Callers need a token even after the last one was removed.
    pub fn remove(&self, id: &str, now_ms: i64) -> Result<TokenRecord, TokenError> {
        self.change(now_ms, |tokens| {
            let found = tokens.iter().position(|token| token.id == id);
            let at = found.ok_or_else(|| TokenError::Unknown { id: printable(id) })?;
            Ok(tokens.remove(at))
        })
    }

    /// Removes every token and goes back to access without tokens on this machine. Returns how many tokens there were.
    pub fn allow_tokenless(&self) -> Result<usize, TokenError> {
        let lock = self.lock()?;
        let count = self.list()?.len();
        self.write(&Content { version: 1, tokenless: true, tokens: Vec::new() })?;
        lock.remove()?;
        Ok(count)
    }

    /// Changes the list, and drops tokens that ended long ago.
    fn change<T>(
        &self,
        now_ms: i64,
        change: impl FnOnce(&mut Vec<TokenRecord>) -> Result<T, TokenError>,
    ) -> Result<T, TokenError> {
        let lock = self.lock()?;
        let mut tokens = self.list()?;
        let remembered = i64::try_from(ENDED_TOKENS_KEPT.as_millis()).unwrap_or(i64::MAX);
        tokens.retain(|token| {
            token.ended_at(now_ms).is_none_or(|end| now_ms.saturating_sub(end) <= remembered)
        });
        let changed = change(&mut tokens)?;
        self.write(&Content { version: 1, tokenless: false, tokens })?;
        lock.remove()?;
        Ok(changed)
    }

    fn lock(&self) -> Result<Box<dyn Lock>, TokenError> {
        let holder = format!("pid {}", std::process::id());
        self.disk.lock(&name("tokens.lock")?, &holder).map_err(|error| match error {
            LockError::Held { holder } => TokenError::Busy { holder },
            LockError::Io(error) => TokenError::Io(error),
        })
    }

    fn write(&self, content: &Content) -> Result<(), TokenError> {
        let text = content.text().map_err(io::Error::other)?;
        Ok(self.disk.replace(&file_path()?, &name("tokens.json.tmp")?, text.as_bytes())?)
    }
}

impl Content {
    /// JSON with a line for each token, so that the size of the file follows from the sizes of the tokens.
    fn text(&self) -> serde_json::Result<String> {
        let Self { version, tokenless, tokens } = self;
        let lines: Vec<String> =
            tokens.iter().map(serde_json::to_string).collect::<serde_json::Result<_>>()?;
        let lines = lines.join(",\n");
        Ok(format!(
            "{{\"version\":{version},\"tokenless\":{tokenless},\"tokens\":[\n{lines}\n]}}\n"
        ))
    }
}

pub(crate) fn file_path() -> io::Result<RelPath> {
    name(TOKENS_FILE)
}

fn name(text: &str) -> io::Result<RelPath> {
    Ok(RelPath::root().join(text)?)
}

/// Refuses a name that no function has.
fn check_function(name: &str) -> Result<(), TokenError> {
    if function(name).is_some() {
        return Ok(());
    }
    let meant = nearest(name, functions().iter().map(|known| known.id));
    let meant = match meant {
        Some(meant) => format!("; did you mean `{meant}`?"),
        None => "; `GET /openapi.json` names them (`x-function`)".to_owned(),
    };
    Err(TokenError::NoSuchFunction { name: name.to_owned(), meant })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bough_platform::{OsDisk, OsEntropy};
    use bough_service::Right;
    use bough_session::JsonMap;
    use serde_json::json;

    use super::*;
    use crate::limits::TOKEN_BYTES_MAX;

    fn dir() -> (tempfile::TempDir, Arc<dyn Disk>) {
        let dir = tempfile::tempdir().unwrap();
        let disk: Arc<dyn Disk> = Arc::new(OsDisk::open(dir.path()).unwrap());
        (dir, disk)
    }

    fn reader(expires_at: Option<i64>) -> NewToken {
        NewToken { rights: vec![Right::Read], expires_at, ..NewToken::default() }
    }

    fn loaded(file: &TokenFile<'_>) -> Tokens {
        file.load().unwrap().unwrap()
    }

    #[test]
    fn a_token_is_good_until_it_ends_or_is_taken_back() {
        let (_dir, disk) = dir();
        let file = TokenFile::new(&*disk);
        assert!(file.load().unwrap().is_none());
        let (text, record) = file.create(reader(Some(100)), &OsEntropy, 1).unwrap();
        let tokens = loaded(&file);
        assert!(tokens.bearer(text.reveal(), 99).is_some());
        assert!(tokens.bearer(text.reveal(), 100).is_none());
        assert!(
            tokens.scope_of(&record.id, 99).is_some() && tokens.scope_of("other", 99).is_none()
        );
        file.revoke(&record.id, 50).unwrap();
        let tokens = loaded(&file);
        assert!(tokens.bearer(text.reveal(), 60).is_none());
        assert!(tokens.are_in_use(), "taking back the last token must not open the server to all");
        assert!(matches!(file.revoke("unknown", 1), Err(TokenError::Unknown { .. })));
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

    /// A list as large as it gets, with names as long as they get.
    #[test]
    fn a_full_list_can_be_read_and_changed() {
        let (_dir, disk) = dir();
        let file = TokenFile::new(&*disk);
        let name = "n".repeat(3 * TOKEN_RECORD_BYTES_MAX / 4);
        let (_, record) = file.create(NewToken { name, ..reader(None) }, &OsEntropy, 1).unwrap();
        let id = |number: usize| format!("{number:012x}");
        let tokens = (0..TOKENS_MAX).map(|number| TokenRecord { id: id(number), ..record.clone() });
        let tokens = tokens.collect();
        file.write(&Content { version: 1, tokenless: false, tokens }).unwrap();
        let one_more = || file.create(reader(None), &OsEntropy, 2);
        assert!(matches!(one_more(), Err(TokenError::TooMany)));
        file.revoke(&id(7), 2).unwrap();
        one_more().unwrap();
        let listed = file.list().unwrap();
        assert_eq!(listed.len(), TOKENS_MAX, "a full list forgets the revoked token first");
        assert!(listed.iter().all(|token| token.id != id(7)));
        assert!(loaded(&file).scope_of(&id(8), 3).is_some());
    }

    #[test]
    fn a_token_that_is_too_large_for_the_list_is_refused() {
        let (_dir, disk) = dir();
        let name = "n".repeat(TOKEN_RECORD_BYTES_MAX);
        let new = NewToken { name, ..reader(None) };
        let refused = TokenFile::new(&*disk).create(new, &OsEntropy, 1);
        assert!(matches!(refused, Err(TokenError::TooLarge)));
    }

    #[test]
    fn tokens_that_ended_long_ago_are_forgotten() {
        let (_dir, disk) = dir();
        let file = TokenFile::new(&*disk);
        let (_, revoked) = file.create(reader(None), &OsEntropy, 1).unwrap();
        let (_, expired) = file.create(reader(Some(2)), &OsEntropy, 1).unwrap();
        let (_, good) = file.create(reader(None), &OsEntropy, 1).unwrap();
        file.revoke(&revoked.id, 2).unwrap();
        let ids = || file.list().unwrap().into_iter().map(|token| token.id).collect::<Vec<_>>();
        assert_eq!(ids(), [revoked.id, expired.id, good.id.clone()]);
        let later = 3 + i64::try_from(ENDED_TOKENS_KEPT.as_millis()).unwrap();
        let (_, new) = file.create(reader(None), &OsEntropy, later).unwrap();
        assert_eq!(ids(), [good.id, new.id]);
    }

    #[test]
    fn only_the_owner_s_word_goes_back_to_access_without_tokens() {
        let (_dir, disk) = dir();
        let file = TokenFile::new(&*disk);
        let (text, record) = file.create(reader(None), &OsEntropy, 1).unwrap();
        file.remove(&record.id, 2).unwrap();
        assert!(file.list().unwrap().is_empty());
        assert!(
            loaded(&file).are_in_use(),
            "removing the last token must not open the server to all"
        );
        assert!(matches!(file.remove(&record.id, 2), Err(TokenError::Unknown { .. })));
        file.create(reader(None), &OsEntropy, 3).unwrap();
        assert_eq!(file.allow_tokenless().unwrap(), 1);
        assert!(!loaded(&file).are_in_use());
        assert!(loaded(&file).bearer(text.reveal(), 3).is_none());
        file.create(reader(None), &OsEntropy, 4).unwrap();
        assert!(loaded(&file).are_in_use(), "a new token ends access without tokens");
    }

    #[test]
    fn a_token_for_a_function_that_there_is_not_is_refused() {
        let (_dir, disk) = dir();
        let create = |name: &str| {
            let new = NewToken { functions: Some(vec![name.to_owned()]), ..reader(None) };
            TokenFile::new(&*disk).create(new, &OsEntropy, 1)
        };
        let refused = create("session::apend").unwrap_err().to_string();
        assert_eq!(
            refused,
            "there is no function `session::apend`; did you mean `session::append`?"
        );
        assert!(create("nosuch").is_err());
        assert!(create("session::append").is_ok());
    }
}
