mod compaction;
mod reading;
mod writing;

use bough_service::api::{
    ArchiveRequest, Branch, BranchesRequest, ClearActiveLeafRequest, DeleteRequest,
    DescribeResponse, ForkRequest, GetRequest, MetaPatch, PatchRequest, PatchResponse,
    SetActiveLeafRequest, SetLabelRequest, SetStatusRequest,
};
use bough_service::{EventFilter, ServiceError, StartAt};
use bough_session::{EntryId, SessionId, SessionMeta, SessionStatus};

use crate::options::ForkOptions;
use crate::{Bough, Error, Subscription};

pub use reading::PathMessage;

/// One conversation: a tree of entries with an active path. A handle, cheap to clone.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), boughdb::Error> {
/// use boughdb::{Bough, assistant, user};
///
/// let session = Bough::in_memory()?.create("Weather").await?;
/// let question = session.append(user("Will it rain?")).await?;
/// session.append(assistant("local", "small", "Yes.")).await?;
/// // Another answer to the same question: a second branch, which is the active one now.
/// session.append_to(&question, assistant("local", "small", "A little.")).await?;
/// let texts: Vec<String> = session.messages().await?.iter().map(|item| item.text()).collect();
/// assert_eq!(texts, ["Will it rain?", "A little."]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Session {
    bough: Bough,
    id: SessionId,
}

impl Session {
    pub(crate) const fn new(bough: Bough, id: SessionId) -> Self {
        Self { bough, id }
    }

    /// Names the session.
    #[must_use]
    pub const fn id(&self) -> &SessionId {
        &self.id
    }

    /// The store that it is in.
    #[must_use]
    pub const fn bough(&self) -> &Bough {
        &self.bough
    }

    /// What it says of itself; `session/not_found` when there is no such session.
    pub async fn meta(&self) -> Result<SessionMeta, Error> {
        Ok(self.describe().await?.meta)
    }

    /// The same with the active leaf and the version, which [`Session::set_meta`] compares with.
    pub async fn describe(&self) -> Result<DescribeResponse, Error> {
        let missing = || ServiceError::NotFound { session: self.id.to_string() };
        Ok(self.look().await?.ok_or_else(missing)?)
    }

    /// Whether there is such a session.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), boughdb::Error> {
    /// let bough = boughdb::Bough::in_memory()?;
    /// assert!(!bough.session("chat-42").exists().await?);
    /// bough.ensure("chat-42").await?;
    /// assert!(bough.session("chat-42").exists().await?);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn exists(&self) -> Result<bool, Error> {
        Ok(self.look().await?.is_some())
    }

    async fn look(&self) -> Result<Option<DescribeResponse>, Error> {
        let request = GetRequest { session_id: self.id.clone() };
        Ok(self.bough.service().describe(self.bough.scope(), request).await?)
    }

    /// Changes title, description and some of the metadata: members that are `null` are removed, others stay. With
    /// `expected_version`, only if the metadata did not change since; otherwise `session/version_conflict`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), boughdb::Error> {
    /// use boughdb::{Bough, MetaPatch};
    /// use serde_json::json;
    ///
    /// let session = Bough::in_memory()?.create("Weather").await?;
    /// let seen = session.describe().await?.version;
    /// let metadata = json!({ "city": "Oslo" }).as_object().cloned();
    /// let patch = MetaPatch { metadata, ..MetaPatch::default() };
    /// let changed = session.set_meta(patch.clone(), Some(&seen)).await?;
    /// assert_eq!(changed.meta.metadata.map(|all| all["city"].clone()), Some(json!("Oslo")));
    /// let late = session.set_meta(MetaPatch { title: Some("Rain".into()), ..patch }, Some(&seen)).await;
    /// assert_eq!(late.unwrap_err().code(), Some("session/version_conflict"));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn set_meta(
        &self,
        patch: MetaPatch,
        expected_version: Option<&str>,
    ) -> Result<PatchResponse, Error> {
        let request = PatchRequest {
            session_id: self.id.clone(),
            title: patch.title,
            description: patch.description,
            metadata: patch.metadata.map(Some),
            expected_version: expected_version.map(ToOwned::to_owned),
        };
        Ok(self.bough.service().patch(self.bough.scope(), request).await?)
    }

    /// Copies the path up to an entry into a session of its own.
    pub async fn fork(&self, entry: &EntryId) -> Result<Self, Error> {
        self.fork_with(ForkOptions { entry_id: Some(entry.clone()), ..ForkOptions::default() })
            .await
    }

    /// Copies a path, or the whole tree, into a session of its own. `session/already_exists` when the chosen id is in use.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), boughdb::Error> {
    /// use boughdb::{Bough, ForkOptions, SessionId};
    ///
    /// let session = Bough::in_memory()?.create("Weather").await?;
    /// let question = session.append("Will it rain?").await?;
    /// session.append("Tomorrow.").await?;
    /// session.append_to(&question, "On Friday.").await?;
    /// let options = ForkOptions {
    ///     new_session_id: Some(SessionId::from_stored("copy")),
    ///     whole: true,
    ///     keep_ids: true,
    ///     ..ForkOptions::default()
    /// };
    /// let copy = session.fork_with(options).await?;
    /// assert_eq!(copy.branches().await?.len(), 2);
    /// assert!(copy.entry(&question).await.is_ok(), "its entries have their ids");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn fork_with(&self, options: ForkOptions) -> Result<Self, Error> {
        let request = ForkRequest {
            session_id: self.id.clone(),
            entry_id: options.entry_id,
            title: options.title,
            new_session_id: options.new_session_id,
            whole: Some(options.whole),
            keep_ids: Some(options.keep_ids),
        };
        let fork = self.bough.service().fork(self.bough.scope(), request).await?;
        Ok(self.bough.at(fork.session_id))
    }

    /// Makes the active path end at an entry: later appends go on from there.
    pub async fn switch_to(&self, entry: &EntryId) -> Result<(), Error> {
        self.switch_if(Some(entry), None).await
    }

    /// The same, or before the first entry with `None`, only if the active leaf still is `expected_leaf` (`""` for none); otherwise
    /// `session/leaf_conflict`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), boughdb::Error> {
    /// use boughdb::Bough;
    ///
    /// let session = Bough::in_memory()?.create("Weather").await?;
    /// let first = session.append("Will it rain?").await?;
    /// let second = session.append("Tomorrow, I mean.").await?;
    /// session.switch_if(Some(&first), Some(second.as_str())).await?;
    /// assert_eq!(session.messages().await?.len(), 1);
    /// let late = session.switch_if(None, Some(second.as_str())).await.unwrap_err();
    /// assert_eq!(late.code(), Some("session/leaf_conflict"));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn switch_if(
        &self,
        entry: Option<&EntryId>,
        expected_leaf: Option<&str>,
    ) -> Result<(), Error> {
        let (service, scope) = (self.bough.service(), self.bough.scope());
        let (session_id, expected_leaf) = (self.id.clone(), expected_leaf.map(ToOwned::to_owned));
        match entry.cloned() {
            Some(entry_id) => {
                let request = SetActiveLeafRequest { expected_leaf, session_id, entry_id };
                service.set_active_leaf(scope, request).await?;
            }
            None => {
                let request = ClearActiveLeafRequest { session_id, expected_leaf };
                service.clear_active_leaf(scope, request).await?;
            }
        }
        Ok(())
    }

    /// The ends of the session's branches, the most recently active first.
    pub async fn branches(&self) -> Result<Vec<Branch>, Error> {
        let (mut branches, mut cursor) = (Vec::new(), None);
        loop {
            let request =
                BranchesRequest { session_id: self.id.clone(), limit: Some(usize::MAX), cursor };
            let page = self.bough.service().branches(self.bough.scope(), request).await?;
            branches.extend(page.branches);
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(branches);
            }
        }
    }

    /// Names an entry, or takes its name away.
    pub async fn label(&self, entry: &EntryId, label: Option<&str>) -> Result<(), Error> {
        let request = SetLabelRequest {
            session_id: self.id.clone(),
            entry_id: entry.clone(),
            label: label.map(ToOwned::to_owned),
        };
        self.bough.service().set_label(self.bough.scope(), request).await?;
        Ok(())
    }

    /// Sets the status; a reason is kept for `error` only.
    pub async fn set_status(
        &self,
        status: SessionStatus,
        reason: Option<&str>,
    ) -> Result<(), Error> {
        let request = SetStatusRequest {
            session_id: self.id.clone(),
            status,
            reason: reason.map(ToOwned::to_owned),
        };
        self.bough.service().set_status(self.bough.scope(), request).await?;
        Ok(())
    }

    /// Puts the session away: lists leave it out.
    pub async fn archive(&self) -> Result<(), Error> {
        let request = ArchiveRequest { session_id: self.id.clone() };
        self.bough.service().archive(self.bough.scope(), request).await?;
        Ok(())
    }

    /// Takes an archived session back.
    pub async fn unarchive(&self) -> Result<(), Error> {
        let request = ArchiveRequest { session_id: self.id.clone() };
        self.bough.service().unarchive(self.bough.scope(), request).await?;
        Ok(())
    }

    /// Moves the session to the trash, from where it can be brought back for a while; says whether it was there.
    pub async fn delete(&self) -> Result<bool, Error> {
        let request = DeleteRequest { session_id: self.id.clone() };
        let done = self.bough.service().delete(self.bough.scope(), request).await?;
        Ok(done.deleted)
    }

    /// Watches this session from now on.
    pub async fn watch(&self) -> Result<Subscription, Error> {
        self.watch_from(StartAt::Now).await
    }

    /// Watches this session from a place on.
    pub async fn watch_from(&self, start: StartAt) -> Result<Subscription, Error> {
        let filter = EventFilter::everything().in_session(self.id.clone());
        self.bough.watch_from(filter, start).await
    }
}
