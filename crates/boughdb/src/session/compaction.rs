use bough_service::api::{
    CompactRequest, CompactionResponse, PlanCompactionRequest, UndoCompactionRequest,
    UndoCompactionResponse,
};

use super::Session;
use crate::Error;
use crate::options::{CompactOptions, PlanCompactionOptions};

/// Compaction: a summary takes the place of the older part of the conversation in what a model is sent. Nothing is removed.
impl Session {
    /// What [`Session::compact`] would do: what a summary would replace, what stays, tokens before and after, or why there is
    /// nothing to do.
    pub async fn plan_compaction(
        &self,
        options: PlanCompactionOptions,
    ) -> Result<CompactionResponse, Error> {
        let request = PlanCompactionRequest {
            session_id: self.id.clone(),
            keep_recent_tokens: options.keep_recent_tokens,
            only_if_due: Some(options.only_if_due),
            include_conversation: Some(options.include_conversation),
        };
        Ok(self.bough.service().plan_compaction(self.bough.scope(), request).await?)
    }

    /// Puts a summary in the place of the older part of the conversation: yours, or one that is written by fixed rules.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), boughdb::Error> {
    /// use boughdb::{Bough, CompactOptions, PlanCompactionOptions, user};
    ///
    /// let session = Bough::in_memory()?.create("A long talk").await?;
    /// for number in 0..20 {
    ///     session.append(user(&format!("Message {number}: and many more words"))).await?;
    /// }
    ///
    /// let keep_recent_tokens = Some(50);
    /// let options = PlanCompactionOptions {
    ///     keep_recent_tokens,
    ///     include_conversation: true,
    ///     ..PlanCompactionOptions::default()
    /// };
    /// let plan = session.plan_compaction(options).await?;
    /// assert!(plan.conversation.is_some_and(|text| text.contains("Message 0")));
    ///
    /// // A model has read the conversation of the plan, and wrote this.
    /// let summary = Some("Twenty messages were counted.".to_owned());
    /// let options = CompactOptions { summary, keep_recent_tokens, ..CompactOptions::default() };
    /// let done = session.compact(options).await?;
    /// assert!(done.tokens_after < done.tokens_before);
    /// assert!(session.context(None).await?.messages.len() < 20);
    ///
    /// session.undo_compaction().await?;
    /// assert_eq!(session.context(None).await?.messages.len(), 20);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn compact(&self, options: CompactOptions) -> Result<CompactionResponse, Error> {
        let request = CompactRequest {
            session_id: self.id.clone(),
            digest: Some(options.summary.is_none()),
            summary: options.summary,
            keep_recent_tokens: options.keep_recent_tokens,
            only_if_due: Some(options.only_if_due),
            expected_leaf: options.expected_leaf,
        };
        Ok(self.bough.service().compact(self.bough.scope(), request).await?)
    }

    /// Takes the last compaction out of the context again.
    pub async fn undo_compaction(&self) -> Result<UndoCompactionResponse, Error> {
        let request = UndoCompactionRequest { session_id: self.id.clone(), expected_leaf: None };
        Ok(self.bough.service().undo_compaction(self.bough.scope(), request).await?)
    }
}
