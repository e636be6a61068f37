//! What the service shows beside what the oracle expects.

use super::Model;
use crate::common::object;
use crate::oracle;
use bough_service::FeedItem;
use serde_json::{Value, json};

impl Model {
    /// Every expected event was delivered, in order within each session.
    pub(super) async fn compare_events(&mut self) {
        let mut told = Vec::new();
        while let Some(item) = self.listener.subscription.next_ready().await.unwrap() {
            let FeedItem::Event(delivery) = item else { panic!("{item:?}") };
            let kind = delivery.event.kind().name().trim_start_matches("session::");
            told.push((kind, delivery.event.session_id.to_string()));
        }
        assert_eq!(told, std::mem::take(&mut self.oracle.told));
    }

    pub(super) async fn compare_all(&mut self) {
        for session in self.oracle.sessions.values() {
            self.compare_session(session).await;
        }
        self.compare_lists().await;
        self.compare_trash().await;
    }

    async fn compare_session(&self, session: &oracle::Session) {
        let id = &session.id;
        assert_eq!(self.bed.meta(id).await, session.meta());
        for entry in &session.entries {
            assert_eq!(self.bed.entry(id, &entry.id).await, entry.wire());
            self.compare_path(session, Some(&entry.id)).await;
        }
        self.compare_path(session, None).await;
        let listed =
            self.bed.ok("session::branches", json!({"session_id": id, "limit": 500})).await;
        let mut heads: Vec<_> = listed["branches"]
            .as_array()
            .unwrap()
            .iter()
            .map(|branch| {
                (
                    branch["entry_id"].as_str().unwrap().to_owned(),
                    usize::try_from(branch["depth"].as_u64().unwrap()).unwrap(),
                )
            })
            .collect();
        heads.sort();
        assert_eq!(heads, session.heads());
    }

    async fn compare_path(&self, session: &oracle::Session, from: Option<&str>) {
        let leaf = from.or(session.leaf.as_deref());
        let items: Vec<_> = session.path(leaf).into_iter().map(oracle::Entry::item).collect();
        for (function, reversed) in [("session::messages", false), ("session::messages-tail", true)]
        {
            let mut request = json!({"session_id": session.id, "from_entry_id": from, "include_custom": true, "limit": 3});
            let mut shown = Vec::new();
            loop {
                let page = self.bed.ok(function, request.clone()).await;
                shown.extend(page["messages"].as_array().unwrap().clone());
                match page.get("next_cursor") {
                    Some(cursor) => request["cursor"] = cursor.clone(),
                    None => break,
                }
            }
            if reversed {
                shown.reverse();
            }
            assert_eq!(shown, items, "{function}");
        }
        let messages: Vec<_> = items
            .iter()
            .filter(|item| item.get("message").is_some())
            .map(|item| item["entry_id"].clone())
            .collect();
        let request = json!({"session_id": session.id, "from_entry_id": from, "limit": 2});
        let shown: Vec<Value> = self
            .bed
            .pages("session::messages", request)
            .await
            .into_iter()
            .map(Value::from)
            .collect();
        assert_eq!(shown, messages);
    }

    async fn compare_lists(&self) {
        let ids = |filter: &dyn Fn(&oracle::Session) -> bool| {
            let mut sessions: Vec<_> =
                self.oracle.sessions.values().filter(|session| filter(session)).collect();
            sessions
                .sort_by_key(|session| std::cmp::Reverse((session.updated_at, session.id.clone())));
            sessions.into_iter().map(|session| session.id.clone()).collect::<Vec<_>>()
        };
        let list = async |request: Value| self.bed.pages("session::list", request).await;
        assert_eq!(list(json!({"limit": 2})).await, ids(&|session| !session.archived));
        assert_eq!(list(json!({"archived": "only"})).await, ids(&|session| session.archived));
        assert_eq!(
            list(json!({"archived": "include", "status": "working"})).await,
            ids(&|session| session.status == "working")
        );
        let owner = object(json!({"owner": 1}));
        assert_eq!(
            list(json!({"archived": "include", "metadata": owner})).await,
            ids(&|session| session.metadata.as_ref() == Some(&owner))
        );
        for task in self.oracle.sessions.values().filter_map(|session| session.task.clone()) {
            let expected = ids(&|session| session.task.as_ref() == Some(&task));
            assert_eq!(list(json!({"archived": "include", "task": task})).await, expected);
        }
    }

    async fn compare_trash(&self) {
        let listed = self.bed.ok("session::list-trash", json!({"limit": 500})).await;
        let mut shown: Vec<_> = listed["sessions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["meta"].to_string())
            .collect();
        let mut expected: Vec<_> =
            self.oracle.trash.iter().map(|session| session.meta().to_string()).collect();
        shown.sort();
        expected.sort();
        assert_eq!(shown, expected);
    }
}
