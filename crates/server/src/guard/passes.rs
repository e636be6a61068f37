//! Passes: they stand for a token where the token itself cannot or should not be sent.
//!
//! A page logs in once and then has a cookie; an `EventSource`, which cannot send headers, uses a ticket. Passes are
//! kept in memory by their digest, and have the rights that their token has when they are used.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bough_platform::Entropy;
use sha2::{Digest, Sha256};

use super::secret::draw_secret;
use crate::limits::{LOGIN_TIME, PASSES_MAX, PASSES_PER_CALLER_MAX, TICKET_TIME};

/// The kind of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PassKind {
    /// A cookie, valid for every request of a browser.
    Login,
    /// Good for one stream.
    Ticket,
}

/// A new pass.
pub(crate) struct NewPass {
    /// Its text, which is kept nowhere.
    pub(crate) text: String,
    /// When it ends, milliseconds since the epoch.
    pub(crate) ends_at: i64,
}

/// Why no pass was issued.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PassError {
    #[error("there are too many logins and tickets")]
    TooMany,
    #[error("the system has no randomness: {0}")]
    Entropy(#[from] io::Error),
}

/// All passes of a server.
#[derive(Debug)]
pub(super) struct Passes {
    entropy: Arc<dyn Entropy>,
    by_digest: Mutex<HashMap<[u8; 32], Pass>>,
}

#[derive(Debug)]
struct Pass {
    kind: PassKind,
    caller_id: Option<String>,
    ends_at: i64,
}

impl PassKind {
    const fn time(self) -> Duration {
        match self {
            Self::Login => LOGIN_TIME,
            Self::Ticket => TICKET_TIME,
        }
    }
}

impl Passes {
    pub(super) fn new(entropy: Arc<dyn Entropy>) -> Self {
        Self { entropy, by_digest: Mutex::default() }
    }

    /// Issues a pass for a caller. If the caller has too many, its oldest pass is dropped.
    pub(super) fn issue(
        &self,
        kind: PassKind,
        caller_id: Option<&str>,
        now_ms: i64,
    ) -> Result<NewPass, PassError> {
        let text = draw_secret(&*self.entropy)?;
        let time = i64::try_from(kind.time().as_millis()).unwrap_or(i64::MAX);
        let ends_at = now_ms.saturating_add(time);
        let mut passes = self.passes();
        passes.retain(|_, pass| now_ms < pass.ends_at);
        let of_caller = |pass: &Pass| pass.kind == kind && pass.caller_id.as_deref() == caller_id;
        let own = passes.iter().filter(|(_, pass)| of_caller(pass));
        if own.clone().count() >= PASSES_PER_CALLER_MAX {
            let oldest = own.min_by_key(|(_, pass)| pass.ends_at).map(|(digest, _)| *digest);
            oldest.map(|digest| passes.remove(&digest));
        }
        if passes.len() >= PASSES_MAX {
            return Err(PassError::TooMany);
        }
        let caller_id = caller_id.map(str::to_owned);
        passes.insert(digest(&text), Pass { kind, caller_id, ends_at });
        Ok(NewPass { text, ends_at })
    }

    /// The caller that a pass was issued for; `None` if the pass is not valid. A ticket is valid once.
    pub(super) fn caller_id(
        &self,
        kind: PassKind,
        text: &str,
        now_ms: i64,
    ) -> Option<Option<String>> {
        let digest = digest(text);
        let mut passes = self.passes();
        let pass = passes.get(&digest).filter(|pass| pass.kind == kind && now_ms < pass.ends_at)?;
        let caller_id = pass.caller_id.clone();
        if kind == PassKind::Ticket {
            passes.remove(&digest);
        }
        Some(caller_id)
    }

    /// Ends a pass.
    pub(super) fn remove(&self, text: &str) {
        self.passes().remove(&digest(text));
    }

    fn passes(&self) -> MutexGuard<'_, HashMap<[u8; 32], Pass>> {
        self.by_digest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Passes are looked up by their digest, so the time of a look-up reveals nothing about their text.
fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use bough_platform::OsEntropy;

    use super::*;

    fn passes() -> Passes {
        Passes::new(Arc::new(OsEntropy))
    }

    #[test]
    fn a_ticket_is_good_once_and_a_login_until_it_ends() {
        let passes = passes();
        let ticket = passes.issue(PassKind::Ticket, Some("a"), 1).unwrap();
        assert_eq!(passes.caller_id(PassKind::Login, &ticket.text, 2), None, "it is no login");
        let shown = || passes.caller_id(PassKind::Ticket, &ticket.text, 2);
        assert_eq!(shown(), Some(Some("a".to_owned())));
        assert_eq!(shown(), None);
        let login = passes.issue(PassKind::Login, None, 1).unwrap();
        let shown = |now_ms| passes.caller_id(PassKind::Login, &login.text, now_ms);
        assert_eq!((shown(2), shown(login.ends_at - 1)), (Some(None), Some(None)));
        assert_eq!(shown(login.ends_at), None);
        passes.remove(&login.text);
        assert_eq!(shown(2), None);
        let late = passes.issue(PassKind::Ticket, None, 1).unwrap();
        assert_eq!(passes.caller_id(PassKind::Ticket, &late.text, late.ends_at), None);
    }

    #[test]
    fn a_caller_with_too_many_passes_loses_its_own_oldest() {
        let passes = passes();
        let other = passes.issue(PassKind::Login, Some("b"), 0).unwrap();
        let issue = |now_ms| passes.issue(PassKind::Login, Some("a"), now_ms).unwrap().text;
        let texts: Vec<String> = (1..).take(PASSES_PER_CALLER_MAX + 1).map(issue).collect();
        let is_good = |text: &str| passes.caller_id(PassKind::Login, text, 9).is_some();
        assert!(!is_good(&texts[0]) && is_good(&texts[1]) && is_good(&other.text));
    }
}
