//! Searching, as commands and screens use it.

use bough_service::api::{
    IndexStatus, ReindexRequest, SearchRequest, SearchResponse, SearchStatusRequest,
};

use super::{Backend, CallError};

impl Backend {
    /// What a query finds.
    pub(crate) async fn search(
        &self,
        request: &SearchRequest,
    ) -> Result<SearchResponse, CallError> {
        self.call("session::search", request).await
    }

    /// The progress of the index; an index in this process continues meanwhile.
    pub(crate) async fn search_status(&self) -> Result<IndexStatus, CallError> {
        self.call("session::search-status", &SearchStatusRequest::default()).await
    }

    /// Clears the index, so that it is built again.
    pub(crate) async fn reindex(&self) -> Result<IndexStatus, CallError> {
        self.call("session::reindex", &ReindexRequest::default()).await
    }
}
