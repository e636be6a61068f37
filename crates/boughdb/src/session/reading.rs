use std::sync::Arc;

use bough_service::ServiceError;
use bough_service::api::{
    ContextRequest, ContextResponse, EntriesRequest, EntriesResponse, EntryItem, EntryOrder,
    EntryRequest, MessagesRequest, PathRequest, UsageRequest, UsageResponse,
};
use bough_session::{AgentMessage, EntryId};

use super::Session;
use crate::Error;
use crate::options::{ContextOptions, EntriesOptions, MessagesOptions};

/// One message of a path.
#[derive(Clone, Debug, PartialEq)]
pub struct PathMessage {
    /// The entry that holds it.
    pub entry_id: EntryId,
    /// The message.
    pub message: Arc<AgentMessage>,
}

impl PathMessage {
    /// The words, without thoughts, calls and pictures.
    #[must_use]
    pub fn text(&self) -> String {
        self.message.text()
    }
}

/// Reading.
impl Session {
    /// The messages of the active path, oldest first: all of them. [`Session::messages_with`] reads the newest, or some.
    ///
    /// A message that still streams has the stop reason [`End`](crate::StopReason::End) here, where there must be one; in the JSON
    /// that `messages_with` gives, it has none.
    pub async fn messages(&self) -> Result<Vec<PathMessage>, Error> {
        self.read_path(None).await
    }

    /// The messages of the path that ends at an entry.
    pub async fn messages_to(&self, entry: &EntryId) -> Result<Vec<PathMessage>, Error> {
        self.read_path(Some(entry.clone())).await
    }

    /// Messages of a path with their place in the tree: in a format, newest first, at most so many.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), boughdb::Error> {
    /// use boughdb::{Bough, EntryOrder, Format, MessagesOptions};
    ///
    /// let session = Bough::in_memory()?.create("Weather").await?;
    /// session.append_many(["one", "two", "three"]).await?;
    /// let options = MessagesOptions {
    ///     format: Some(Format::OpenaiChat),
    ///     order: EntryOrder::Newest,
    ///     limit: Some(2),
    ///     ..MessagesOptions::default()
    /// };
    /// let newest = session.messages_with(options).await?;
    /// assert_eq!(newest.len(), 2);
    /// let last = newest[0].message.as_ref().expect("a message").value();
    /// assert_eq!(last["content"][0]["text"], "three");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn messages_with(&self, options: MessagesOptions) -> Result<Vec<EntryItem>, Error> {
        let wanted = options.limit.unwrap_or(usize::MAX);
        let (service, scope) = (self.bough.service(), self.bough.scope());
        let mut request = PathRequest {
            session_id: self.id.clone(),
            limit: None,
            cursor: None,
            roles: options.roles,
            from_entry_id: options.from_entry_id,
            include_custom: Some(options.include_custom),
            format: options.format,
        };
        let mut found = Vec::new();
        loop {
            request.limit = Some(wanted - found.len());
            let asked = request.clone();
            let page = match options.order {
                EntryOrder::Oldest => service.path(scope, asked).await?,
                EntryOrder::Newest => service.path_tail(scope, asked).await?,
            };
            found.extend(page.messages);
            request.cursor = page.next_cursor;
            if request.cursor.is_none() || found.len() >= wanted {
                return Ok(found);
            }
        }
    }

    /// One entry; `session/entry_not_found` when the session has none with that id.
    pub async fn entry(&self, entry: &EntryId) -> Result<EntryItem, Error> {
        let request =
            EntryRequest { session_id: self.id.clone(), entry_id: entry.clone(), format: None };
        let found = self.bough.service().entry(self.bough.scope(), request).await?;
        let missing = || ServiceError::EntryNotFound {
            session: self.id.to_string(),
            entry: entry.to_string(),
        };
        Ok(found.ok_or_else(missing)?.entry)
    }

    /// One page of entries by key, on any branch: by ids, by custom type, by how their ids begin.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), boughdb::Error> {
    /// use boughdb::{BatchEntry, Bough, EntriesOptions, EntryOrder};
    /// use serde_json::json;
    ///
    /// let session = Bough::in_memory()?.create("Weather").await?;
    /// session.append_many([0, 3].map(|rain| BatchEntry::custom("forecast", json!(rain)))).await?;
    /// let newest = EntriesOptions {
    ///     custom_type: Some("forecast".to_owned()),
    ///     order: EntryOrder::Newest,
    ///     limit: Some(1),
    ///     ..EntriesOptions::default()
    /// };
    /// let page = session.entries(newest).await?;
    /// assert_eq!(page.entries[0].custom.as_ref().map(|custom| custom.data.get()), Some("3"));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn entries(&self, options: EntriesOptions) -> Result<EntriesResponse, Error> {
        let request = EntriesRequest {
            session_id: self.id.clone(),
            ids: options.ids,
            custom_type: options.custom_type,
            id_prefix: options.id_prefix,
            order: Some(options.order),
            limit: options.limit,
            max_bytes: options.max_bytes,
            cursor: options.cursor,
            format: options.format,
        };
        Ok(self.bough.service().entries(self.bough.scope(), request).await?)
    }

    /// What a model would be sent, within a budget of tokens.
    pub async fn context(&self, max_tokens: Option<u64>) -> Result<ContextResponse, Error> {
        self.context_with(ContextOptions { max_tokens, ..ContextOptions::default() }).await
    }

    /// The same as the API of a format takes it, and to any entry.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), boughdb::Error> {
    /// use boughdb::{Bough, ContextOptions, Format};
    ///
    /// let session = Bough::in_memory()?.create("Weather").await?;
    /// session.append("Will it rain?").await?;
    /// let format = Some(Format::Anthropic);
    /// let context = session.context_with(ContextOptions { format, ..ContextOptions::default() }).await?;
    /// let conversation = context.conversation.expect("a format was asked for");
    /// assert_eq!(conversation.messages[0].value()["role"], "user");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn context_with(&self, options: ContextOptions) -> Result<ContextResponse, Error> {
        let request = ContextRequest {
            format: options.format,
            session_id: self.id.clone(),
            from_entry_id: options.from_entry_id,
            max_tokens: options.max_tokens,
        };
        Ok(self.bough.service().context(self.bough.scope(), request).await?)
    }

    /// Tokens and cost, of the session and of the active branch.
    pub async fn usage(&self) -> Result<UsageResponse, Error> {
        let request = UsageRequest { session_id: self.id.clone(), from_entry_id: None };
        Ok(self.bough.service().usage(self.bough.scope(), request).await?)
    }

    async fn read_path(&self, from: Option<EntryId>) -> Result<Vec<PathMessage>, Error> {
        let mut request = MessagesRequest {
            session_id: self.id.clone(),
            limit: Some(usize::MAX),
            cursor: None,
            roles: None,
            from_entry_id: from,
            include_custom: None,
        };
        let mut messages = Vec::new();
        loop {
            let page = self.bough.service().messages(self.bough.scope(), request.clone()).await?;
            messages.extend(page.messages.into_iter().filter_map(|item| {
                Some(PathMessage { entry_id: item.entry_id, message: item.message? })
            }));
            if page.next_cursor.is_none() {
                return Ok(messages);
            }
            request.cursor = page.next_cursor;
        }
    }
}
