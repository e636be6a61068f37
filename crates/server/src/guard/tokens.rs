//! Bearer tokens: random, stored hashed, each with a scope, rights and an expiry.

use std::collections::HashMap;
use std::fmt;
use std::io;

use bough_service::{Right, Scope};
use bough_session::{JsonMap, unhex};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::token_file::TOKENS_FILE;
use crate::limits::{TOKEN_BYTES_MAX, TOKEN_RECORD_BYTES_MAX, TOKENS_MAX};

/// The prefix of every token, so that a scanner for leaked secrets can find one.
pub(super) const PREFIX: &str = "bough_";

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

/// The values of a new token.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewToken {
    /// Its purpose.
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

/// A token's text. It is shown once, when the token is created, and never by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenText(pub(super) String);

impl TokenText {
    /// The text, for showing it once.
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
    /// The file is invalid. The server does not start with it.
    #[error("{TOKENS_FILE} is damaged ({reason}); repair it, or remove it and make new tokens")]
    Damaged {
        /// What is wrong.
        reason: String,
    },
    /// Another process is changing the tokens.
    #[error("another process is changing the tokens ({holder}); try again")]
    Busy {
        /// That process.
        holder: String,
    },
    /// There are too many.
    #[error("there are {TOKENS_MAX} tokens already; remove some with `bough token rm`")]
    TooMany,
    /// Name, scope and functions of a token are too long together.
    #[error(
        "a token takes at most {TOKEN_RECORD_BYTES_MAX} bytes with its name, scope and functions; shorten them"
    )]
    TooLarge,
    /// A token without rights is good for nothing.
    #[error("a token needs at least one right: read, write, admin, bridge or metrics")]
    NoRights,
    /// A token for a function that there is not could call nothing.
    #[error("there is no function `{name}`{meant}")]
    NoSuchFunction {
        /// The given name.
        name: String,
        /// A sentence that names the nearest known name.
        meant: String,
    },
    /// No token has this id.
    #[error("no token has the id {id}; see the list of tokens")]
    Unknown {
        /// The given id.
        id: String,
    },
}

/// All tokens of a server, ready to be compared with those of requests.
#[derive(Clone, Debug, Default)]
pub struct Tokens {
    by_id: HashMap<String, Known>,
    are_in_use: bool,
}

#[derive(Clone, Debug)]
struct Known {
    digest: [u8; 32],
    scope: Scope,
    expires_at: Option<i64>,
    is_revoked: bool,
}

impl Tokens {
    /// Reads the records of a token file; a damaged record is an error, not skipped.
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
        Ok(Self { by_id, are_in_use: true })
    }

    /// Whether callers need a token. That is so from the first token on, even if all of them were revoked or removed.
    #[must_use]
    pub fn are_in_use(&self) -> bool {
        self.are_in_use
    }

    /// The bearer of this token, if it is ours and still valid.
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

    /// The scope of the token with this id, if it is still valid.
    #[must_use]
    pub fn scope_of(&self, id: &str, now_ms: i64) -> Option<Scope> {
        self.by_id.get(id).filter(|known| known.is_good(now_ms)).map(|known| known.scope.clone())
    }
}

impl TokenRecord {
    /// When it stopped being good; `None` while it is.
    pub(super) fn ended_at(&self, now_ms: i64) -> Option<i64> {
        let expired = self.expires_at.filter(|end| *end <= now_ms);
        [self.revoked_at, expired].into_iter().flatten().min()
    }
}

impl Known {
    fn is_good(&self, now_ms: i64) -> bool {
        !self.is_revoked && self.expires_at.is_none_or(|end| now_ms < end)
    }
}

/// Text for a message: short and without control characters.
pub(super) fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(64).collect()
}
