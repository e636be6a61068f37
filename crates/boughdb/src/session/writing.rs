use bough_service::ServiceError;
use bough_service::api::{
    AppendDeltaRequest, AppendEntriesRequest, AppendEntryRequest, AppendedEntry,
    HideEntriesRequest, UpdateMessageRequest,
};
use bough_session::{ContentBlock, EntryId, OpaqueBody, RawJson};

use super::Session;
use crate::options::{AppendOptions, BatchEntry, BatchOptions};
use crate::reply::{FinishOptions, Reply, StreamOptions, block_count};
use crate::{Error, MessageInput};

/// Writing. What is appended, changed or hidden is durable when the call returns.
impl Session {
    /// Appends a message after the active leaf. A text is a message of the user.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), boughdb::Error> {
    /// use boughdb::{Bough, assistant};
    ///
    /// let session = Bough::in_memory()?.create("Weather").await?;
    /// session.append("Will it rain?").await?;
    /// session.append(assistant("my-provider", "my-model", "No.")).await?;
    /// assert_eq!(session.messages().await?.len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn append(&self, message: impl Into<MessageInput>) -> Result<EntryId, Error> {
        Ok(self.append_with(message, AppendOptions::default()).await?.entry_id)
    }

    /// Appends a message with options: in another format, under an id of your own, as a branch, only after a leaf.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), boughdb::Error> {
    /// use boughdb::{AppendOptions, Bough, Format, MessagesOptions};
    /// use serde_json::json;
    ///
    /// let session = Bough::in_memory()?.create("Weather").await?;
    /// let message = json!({
    ///     "role": "user",
    ///     "content": [{ "type": "text", "text": "Rain?", "cache_control": { "type": "ephemeral" } }],
    /// });
    /// let anthropic = AppendOptions { format: Some(Format::Anthropic), ..AppendOptions::default() };
    /// session.append_with(message.clone(), anthropic).await?;
    ///
    /// // In the format that it came in, it comes back as it was.
    /// let options = MessagesOptions { format: Some(Format::Anthropic), ..MessagesOptions::default() };
    /// let back = session.messages_with(options).await?;
    /// assert_eq!(back[0].message.as_ref().map(|message| message.value()), Some(message));
    /// // Every other reader sees it in its own.
    /// assert_eq!(session.messages().await?[0].text(), "Rain?");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn append_with(
        &self,
        message: impl Into<MessageInput>,
        options: AppendOptions,
    ) -> Result<AppendedEntry, Error> {
        let request = AppendEntryRequest {
            message: Some(message.into().into_raw()),
            ..self.append_request(options)
        };
        self.send(request).await
    }

    /// Appends a message under an id of your own: appending the same again changes nothing, so a call whose answer was lost
    /// may be repeated. Another message under the same id is `session/other_content`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), boughdb::Error> {
    /// use boughdb::Bough;
    ///
    /// let session = Bough::in_memory()?.create("Weather").await?;
    /// session.append_once("q1", "Will it rain?").await?;
    /// session.append_once("q1", "Will it rain?").await?;
    /// assert_eq!(session.messages().await?.len(), 1);
    /// let other = session.append_once("q1", "Will it snow?").await.unwrap_err();
    /// assert_eq!(other.code(), Some("session/other_content"));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn append_once(
        &self,
        entry_id: &str,
        message: impl Into<MessageInput>,
    ) -> Result<EntryId, Error> {
        let entry_id = Some(EntryId::from_stored(entry_id));
        let options = AppendOptions { entry_id, ..AppendOptions::default() };
        Ok(self.append_with(message, options).await?.entry_id)
    }

    /// Appends a message only if nothing was appended since `leaf`; otherwise `session/leaf_conflict`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), boughdb::Error> {
    /// use boughdb::Bough;
    ///
    /// let session = Bough::in_memory()?.create("two writers").await?;
    /// let seen = session.append("question").await?;
    /// session.append_after(&seen, "first answer").await?;
    /// let late = session.append_after(&seen, "second answer").await.unwrap_err();
    /// assert_eq!(late.code(), Some("session/leaf_conflict"));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn append_after(
        &self,
        leaf: &EntryId,
        message: impl Into<MessageInput>,
    ) -> Result<EntryId, Error> {
        let expected_leaf = Some(leaf.to_string());
        let options = AppendOptions { expected_leaf, ..AppendOptions::default() };
        Ok(self.append_with(message, options).await?.entry_id)
    }

    /// Appends a message after any entry: a new branch, which becomes the active one.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), boughdb::Error> {
    /// use boughdb::Bough;
    ///
    /// let session = Bough::in_memory()?.create("Weather").await?;
    /// let question = session.append("Will it rain?").await?;
    /// session.append("Tomorrow.").await?;
    /// session.append_to(&question, "On Friday.").await?;
    /// assert_eq!(session.branches().await?.len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn append_to(
        &self,
        parent: &EntryId,
        message: impl Into<MessageInput>,
    ) -> Result<EntryId, Error> {
        let parent_id = Some(parent.clone());
        let options = AppendOptions { parent_id, ..AppendOptions::default() };
        Ok(self.append_with(message, options).await?.entry_id)
    }

    /// Appends any JSON under a word of the application. It is no message, and conversations leave it out.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), boughdb::Error> {
    /// use boughdb::{AppendOptions, Bough};
    /// use serde_json::json;
    ///
    /// let session = Bough::in_memory()?.create("Weather").await?;
    /// let options = AppendOptions::default();
    /// let noted = session.append_custom("forecast", json!({ "rain_mm": 0.0 }), options).await?;
    /// let entry = session.entry(&noted.entry_id).await?;
    /// assert_eq!(entry.custom.map(|custom| custom.data.value()), Some(json!({ "rain_mm": 0.0 })));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn append_custom(
        &self,
        custom_type: &str,
        data: impl Into<RawJson>,
        options: AppendOptions,
    ) -> Result<AppendedEntry, Error> {
        let custom = OpaqueBody { custom_type: custom_type.to_owned(), data: data.into() };
        let request = AppendEntryRequest { custom: Some(custom), ..self.append_request(options) };
        self.send(request).await
    }

    /// Appends several entries in order, all or none, in one durable write.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), boughdb::Error> {
    /// use boughdb::{BatchEntry, Bough};
    /// use serde_json::json;
    ///
    /// let session = Bough::in_memory()?.create("Trip").await?;
    /// let both = [BatchEntry::from("Book a train"), BatchEntry::custom("budget", json!(120))];
    /// session.append_many(both).await?;
    /// assert_eq!(session.messages().await?.len(), 1, "a document is no message");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn append_many<E: Into<BatchEntry>>(
        &self,
        entries: impl IntoIterator<Item = E> + Send,
    ) -> Result<Vec<AppendedEntry>, Error> {
        self.append_many_with(entries, BatchOptions::default()).await
    }

    /// The same with options: only after a leaf, with a change of the metadata, in a session that is made for it.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), boughdb::Error> {
    /// use boughdb::{BatchOptions, Bough};
    ///
    /// let bough = Bough::in_memory()?;
    /// let session = bough.session("trip");
    /// let options = BatchOptions { create: true, ..BatchOptions::default() };
    /// session.append_many_with(["Book a train", "To Porto, I mean"], options).await?;
    /// assert!(session.exists().await?);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn append_many_with<E: Into<BatchEntry>>(
        &self,
        entries: impl IntoIterator<Item = E> + Send,
        options: BatchOptions,
    ) -> Result<Vec<AppendedEntry>, Error> {
        let request = AppendEntriesRequest {
            session_id: self.id.clone(),
            entries: entries.into_iter().map(|entry| entry.into().into_new()).collect(),
            meta: options.meta,
            expected_leaf: options.expected_leaf,
            create: Some(options.create),
        };
        let appended = self.bough.service().append_entries(self.bough.scope(), request).await?;
        Ok(appended.entries)
    }

    /// Begins a message that is written piece by piece; readers see each piece as soon as it is durable. It is closed as
    /// aborted when it is dropped before [`Reply::finish`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), boughdb::Error> {
    /// use boughdb::{Bough, FinishOptions, StreamOptions, Usage};
    ///
    /// let session = Bough::in_memory()?.create("Poem").await?;
    /// let mut reply = session.stream(StreamOptions::model("m-1")).await?;
    /// for word in ["Roses ", "are ", "red"] {
    ///     reply.text(word).await?;
    /// }
    /// let usage = Usage { input: Some(12), output: Some(3), ..Usage::default() };
    /// reply.finish(FinishOptions { usage: Some(usage), ..FinishOptions::default() }).await?;
    /// assert_eq!(session.messages().await?[0].text(), "Roses are red");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn stream(&self, options: StreamOptions) -> Result<Reply, Error> {
        let (message, options) = options.begin();
        let blocks = block_count(&message);
        let request = AppendEntryRequest {
            message: Some(message.into()),
            stream: Some(true),
            ..self.append_request(options)
        };
        let begun = self.send(request).await?;
        Ok(Reply::new(self.clone(), begun.entry_id, begun.revision, blocks))
    }

    /// The same with a function that writes the message: it is finished when the function returns, as an error with its
    /// words when that fails.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), boughdb::Error> {
    /// use boughdb::{Bough, Error, FinishOptions, StreamOptions};
    ///
    /// let session = Bough::in_memory()?.create("Poem").await?;
    /// let reply = session.stream_with(StreamOptions::model("m-1"), async |reply| {
    ///     reply.text("Roses are ").await?;
    ///     Err::<FinishOptions, Error>(std::io::Error::other("the provider hung up").into())
    /// });
    /// assert!(reply.await.is_err());
    /// // The text so far is kept, with the reason why it ended.
    /// let reply = &session.messages().await?[0];
    /// assert_eq!(reply.text(), "Roses are ");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn stream_with<E>(
        &self,
        options: StreamOptions,
        write: impl AsyncFnOnce(&mut Reply) -> Result<FinishOptions, E>,
    ) -> Result<EntryId, E>
    where
        E: From<Error> + std::fmt::Display,
    {
        let mut reply = self.stream(options).await?;
        let entry_id = reply.entry_id().clone();
        match write(&mut reply).await {
            Ok(end) => {
                reply.finish(end).await?;
                Ok(entry_id)
            }
            Err(error) => {
                let why = Some(error.to_string());
                // What went wrong in the function is what the caller has to know.
                drop(reply.finish(FinishOptions { error: why, ..FinishOptions::default() }).await);
                Err(error)
            }
        }
    }

    /// Adds text to a block of any message, counted from 0; says which revision that is. [`Session::stream`] does this for a
    /// whole reply.
    pub async fn append_delta(
        &self,
        entry: &EntryId,
        block: u32,
        text: &str,
    ) -> Result<u64, Error> {
        let request = AppendDeltaRequest {
            session_id: self.id.clone(),
            entry_id: entry.clone(),
            block,
            text: text.to_owned(),
            kind: None,
            function_call_id: None,
            function_id: None,
            expected_revision: None,
            origin: None,
        };
        let added = self.bough.service().append_delta(self.bough.scope(), request).await?;
        Ok(added.revision)
    }

    /// Replaces a message's content; says which revision that is. With `expected_revision`, only if it still is at that one;
    /// otherwise `session/revision_conflict`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), boughdb::Error> {
    /// use boughdb::{Bough, ContentBlock};
    ///
    /// let session = Bough::in_memory()?.create("Weather").await?;
    /// let question = session.append("Will it ran?").await?;
    /// let mended = vec![ContentBlock::text("Will it rain?")];
    /// assert_eq!(session.update(&question, mended.clone(), Some(0)).await?, 1);
    /// let late = session.update(&question, mended, Some(0)).await.unwrap_err();
    /// assert_eq!(late.code(), Some("session/revision_conflict"));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn update(
        &self,
        entry: &EntryId,
        content: Vec<ContentBlock>,
        expected_revision: Option<u64>,
    ) -> Result<u64, Error> {
        let request = UpdateMessageRequest {
            session_id: self.id.clone(),
            entry_id: entry.clone(),
            content,
            details: None,
            expected_revision,
            origin: None,
        };
        let updated = self.bough.service().update_message(self.bough.scope(), request).await?;
        if updated.updated {
            return Ok(updated.revision);
        }
        Err(ServiceError::RevisionConflict { revision: updated.revision }.into())
    }

    /// Hides entries from every read, for good, all or none; what follows them stays. Says how many were hidden now.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), boughdb::Error> {
    /// use boughdb::Bough;
    ///
    /// let session = Bough::in_memory()?.create("Weather").await?;
    /// let slip = session.append("My password is hunter2").await?;
    /// session.append("Will it rain?").await?;
    /// assert_eq!(session.hide([slip]).await?, 1);
    /// assert_eq!(session.messages().await?.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn hide(
        &self,
        entry_ids: impl IntoIterator<Item = EntryId> + Send,
    ) -> Result<usize, Error> {
        let request = HideEntriesRequest {
            session_id: self.id.clone(),
            entry_ids: entry_ids.into_iter().collect(),
        };
        let done = self.bough.service().hide_entries(self.bough.scope(), request).await?;
        Ok(done.hidden)
    }

    fn append_request(&self, options: AppendOptions) -> AppendEntryRequest {
        AppendEntryRequest {
            session_id: self.id.clone(),
            entry_id: options.entry_id,
            parent_id: options.parent_id.map(Some),
            format: options.format,
            message: None,
            custom: None,
            origin: options.origin,
            stream: None,
            expected_leaf: options.expected_leaf,
            create: Some(options.create),
        }
    }

    async fn send(&self, request: AppendEntryRequest) -> Result<AppendedEntry, Error> {
        Ok(self.bough.service().append_entry(self.bough.scope(), request).await?)
    }
}
