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
        let home = std::env::var("HOME").unwrap_or_default();
        let query = with_home(&request.query, &home);
        self.call("session::search", &SearchRequest { query, ..request.clone() }).await
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

/// Expands `~` in the filter `project:` to the caller's home directory, which a server does not know.
fn with_home(query: &str, home: &str) -> String {
    let in_quotes = |path: &str| path.replace('"', "\"\"");
    let home = in_quotes(home.trim_end_matches('/'));
    if home.is_empty() {
        return query.to_owned();
    }
    let query = query.replace("project:\"~", &format!("project:\"{home}"));
    let mut parts = query.split("project:~");
    let mut expanded = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(char::is_whitespace).unwrap_or(part.len());
        let (path, rest) = part.split_at(end);
        // In quotes, because a home directory may have a space in its name.
        expanded.push_str(&format!("project:\"{home}{}\"{rest}", in_quotes(path)));
    }
    expanded
}

#[cfg(test)]
mod tests {
    use super::with_home;

    #[test]
    fn a_tilde_is_the_home_directory_also_in_quotes() {
        let expanded = |query| with_home(query, "/home/ann/");
        assert_eq!(expanded("x project:~/y z"), "x project:\"/home/ann/y\" z");
        assert_eq!(expanded("project:\"~/my work\""), "project:\"/home/ann/my work\"");
        assert_eq!(expanded("project:~"), "project:\"/home/ann\"");
        assert_eq!(expanded("a ~/b"), "a ~/b");
        assert_eq!(with_home("project:~/y", "/home/a b"), "project:\"/home/a b/y\"");
        assert_eq!(with_home("project:~/y", ""), "project:~/y");
    }
}
