//! Calls on the entries of a session, made and foretold.

use super::{Choice, LeafWish, Model};
use crate::oracle;
use crate::oracle::Body;
use serde_json::{Value, json};

impl Model {
    pub(super) async fn append(
        &mut self,
        id: String,
        text: String,
        custom: bool,
        parent: &Choice,
        entry_id: Option<u8>,
        leaf: &LeafWish,
    ) {
        let chosen = self.choose(&id, parent);
        let entry_id = entry_id.map(|number| format!("own-{number}"));
        let body = if custom {
            Body::Custom("mark".to_owned(), json!(text))
        } else {
            Body::Message(vec![text])
        };
        let mut request = json!({"session_id": id, "parent_id": chosen, "entry_id": entry_id});
        match &body {
            Body::Message(texts) => request["message"] = oracle::message(texts),
            Body::Custom(custom_type, data) => {
                request["custom"] = json!({"custom_type": custom_type, "data": data})
            }
        }
        let now = self.now();
        let Some(session) = self.oracle.sessions.get(&id) else {
            self.call("session::append", request, Some("session/not_found")).await;
            return;
        };
        let current = session.leaf.clone();
        match leaf {
            LeafWish::None => {}
            LeafWish::Right => {
                request["expected_leaf"] = json!(current.clone().unwrap_or_default())
            }
            LeafWish::Wrong => request["expected_leaf"] = json!("not this one"),
        }
        if let Some(there) = entry_id.as_ref().and_then(|entry_id| session.entry(entry_id)) {
            let expected = json!({"entry_id": there.id, "parent_id": there.parent, "timestamp": there.timestamp});
            assert_eq!(self.call("session::append", request, None).await.unwrap(), expected);
            return;
        }
        let refusal = if matches!(leaf, LeafWish::Wrong) {
            Some("session/leaf_conflict")
        } else if chosen.as_ref().is_some_and(|parent| session.entry(parent).is_none()) {
            Some("session/parent_not_found")
        } else {
            None
        };
        let Some(answer) = self.call("session::append", request, refusal).await else {
            return;
        };
        let parent = chosen.or(current);
        let new_id = answer["entry_id"].as_str().unwrap().to_owned();
        assert_eq!(
            answer,
            json!({"entry_id": entry_id.unwrap_or_else(|| new_id.clone()), "parent_id": parent, "timestamp": now})
        );
        self.oracle.sessions.get_mut(&id).unwrap().add(&new_id, parent, body, now);
        self.oracle.tell("message-added", &id);
    }

    pub(super) async fn append_many(&mut self, id: String, texts: Vec<String>, parent: &Choice) {
        let chosen = self.choose(&id, parent);
        let messages: Vec<_> =
            texts.iter().map(|text| oracle::message(std::slice::from_ref(text))).collect();
        let request = json!({"session_id": id, "messages": messages, "parent_id": chosen});
        let now = self.now();
        let session = self.oracle.sessions.get(&id);
        let refusal = match session {
            None => Some("session/not_found"),
            Some(_) if texts.is_empty() => Some("session/empty_batch"),
            Some(session)
                if chosen.as_ref().is_some_and(|parent| session.entry(parent).is_none()) =>
            {
                Some("session/parent_not_found")
            }
            Some(_) => None,
        };
        let Some(answer) = self.call("session::append-many", request, refusal).await else {
            return;
        };
        let ids: Vec<_> = answer["entry_ids"]
            .as_array()
            .unwrap()
            .iter()
            .map(|id| id.as_str().unwrap().to_owned())
            .collect();
        assert_eq!((ids.len(), &answer["last_entry_id"]), (texts.len(), &json!(ids.last())));
        let session = self.oracle.sessions.get_mut(&id).unwrap();
        let mut parent = chosen.or_else(|| session.leaf.clone());
        for (entry, text) in ids.iter().zip(texts) {
            session.add(entry, parent.replace(entry.clone()), Body::Message(vec![text]), now);
            self.oracle.told.push(("message-added", id.clone()));
        }
    }

    /// What an update of an entry meets: a refusal, or the message's revision.
    fn target(&self, id: &str, entry: &str) -> Result<u64, &'static str> {
        let session = self.oracle.sessions.get(id).ok_or("session/not_found")?;
        let entry = session.entry(entry).ok_or("session/entry_not_found")?;
        match entry.body {
            Body::Message(_) => Ok(entry.revision),
            Body::Custom(..) => Err("session/invalid_entry_kind"),
        }
    }

    pub(super) async fn update(
        &mut self,
        id: String,
        entry: &Choice,
        texts: Vec<String>,
        revision: Option<u8>,
    ) {
        let entry = self.choose(&id, entry).unwrap_or_else(|| "none".to_owned());
        let request = json!({
            "session_id": id, "entry_id": entry, "content": oracle::content(&texts), "expected_revision": revision,
        });
        let target = self.target(&id, &entry);
        let answer = self.call("session::update-message", request, target.err()).await;
        let (Some(answer), Ok(current)) = (answer, target) else {
            return;
        };
        if revision.is_some_and(|revision| u64::from(revision) != current) {
            assert_eq!(answer, json!({"updated": false, "revision": current}));
            return;
        }
        assert_eq!(answer, json!({"updated": true, "revision": current + 1}));
        self.change(&id, &entry, |old| *old = texts);
    }

    pub(super) async fn delta(&mut self, id: String, entry: &Choice, block: u8, text: String) {
        let entry = self.choose(&id, entry).unwrap_or_else(|| "none".to_owned());
        let request = json!({"session_id": id, "entry_id": entry, "block": block, "text": text});
        let target = self.target(&id, &entry);
        let blocks = match self.oracle.sessions.get(&id).and_then(|session| session.entry(&entry)) {
            Some(oracle::Entry { body: Body::Message(texts), .. }) => texts.len(),
            _ => 0,
        };
        let block = usize::from(block);
        let refusal = target.err().or((block > blocks).then_some("session/invalid_request"));
        let Some(answer) = self.call("session::append-delta", request, refusal).await else {
            return;
        };
        assert_eq!(answer, json!({"updated": true, "revision": target.unwrap() + 1}));
        self.change(&id, &entry, |texts| match texts.get_mut(block) {
            Some(old) => old.push_str(&text),
            None => texts.push(text),
        });
    }

    fn change(&mut self, id: &str, entry: &str, change: impl FnOnce(&mut Vec<String>)) {
        let now = self.now();
        let session = self.oracle.sessions.get_mut(id).unwrap();
        session.updated_at = now;
        let entry = session.entry_mut(entry).unwrap();
        entry.revision += 1;
        if let Body::Message(texts) = &mut entry.body {
            change(texts);
        }
        self.oracle.tell("message-updated", id);
    }

    pub(super) async fn set_leaf(&mut self, id: String, entry: &Choice) {
        let entry = self.choose(&id, entry).unwrap_or_else(|| "none".to_owned());
        let request = json!({"session_id": id, "entry_id": entry});
        let refusal = self.missing(&id, &entry);
        if self.call("session::set-active-leaf", request, refusal).await.is_some() {
            self.oracle.sessions.get_mut(&id).unwrap().leaf = Some(entry);
        }
    }

    fn missing(&self, id: &str, entry: &str) -> Option<&'static str> {
        match self.oracle.sessions.get(id) {
            None => Some("session/not_found"),
            Some(session) if session.entry(entry).is_none() => Some("session/entry_not_found"),
            Some(_) => None,
        }
    }

    pub(super) async fn fork(&mut self, id: String, entry: &Choice) {
        let entry = self.choose(&id, entry).unwrap_or_else(|| "none".to_owned());
        let request = json!({"session_id": id, "entry_id": entry});
        let refusal = self.missing(&id, &entry);
        let now = self.now();
        let Some(answer) = self.call("session::fork", request, refusal).await else {
            return;
        };
        let copy_id = answer["session_id"].as_str().unwrap().to_owned();
        let shown = self
            .bed
            .ok(
                "session::messages",
                json!({"session_id": copy_id, "include_custom": true, "limit": 500}),
            )
            .await;
        let fresh: Vec<_> = shown["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["entry_id"].as_str().unwrap().to_owned())
            .collect();
        let source = &self.oracle.sessions[&id];
        let path: Vec<_> = source.path(Some(&entry)).into_iter().cloned().collect();
        assert_eq!(fresh.len(), path.len());
        let mut copy = source.clone();
        copy.id = copy_id.clone();
        (copy.status, copy.reason) = ("idle".to_owned(), None);
        (copy.archived, copy.task) = (false, None);
        copy.forked_from = Some(id);
        (copy.created_at, copy.updated_at) = (now, now);
        copy.leaf = fresh.last().cloned();
        let renamed = |old: &str| {
            let at = path.iter().position(|entry| entry.id == old);
            at.map_or(old.to_owned(), |at| fresh[at].clone())
        };
        copy.entries = path
            .iter()
            .zip(&fresh)
            .map(|(entry, fresh)| {
                let mut entry = entry.clone();
                if let Body::Custom(_, data) = &mut entry.body
                    && let Some(target) = data.get("target_id").and_then(Value::as_str)
                {
                    data["target_id"] = json!(renamed(target));
                }
                oracle::Entry {
                    id: fresh.clone(),
                    parent: entry.parent.as_deref().map(renamed),
                    revision: 0,
                    ..entry
                }
            })
            .collect();
        assert_eq!(answer["meta"], copy.meta());
        self.oracle.sessions.insert(copy_id.clone(), copy);
        self.oracle.tell("created", &copy_id);
        self.names.push(copy_id);
    }

    pub(super) async fn label(&mut self, id: String, entry: &Choice, label: Option<String>) {
        let entry = self.choose(&id, entry).unwrap_or_else(|| "none".to_owned());
        let request = json!({"session_id": id, "entry_id": entry, "label": label});
        let refusal = self.missing(&id, &entry);
        let now = self.now();
        if self.call("session::set-label", request, refusal).await.is_none() {
            return;
        }
        let session = self.oracle.sessions.get_mut(&id).unwrap();
        let current = session.entries.iter().rev().find_map(|old| match &old.body {
            Body::Custom(kind, data)
                if kind == "bough.label" && data["target_id"] == json!(entry) =>
            {
                Some(data.get("label").and_then(Value::as_str).map(ToOwned::to_owned))
            }
            _ => None,
        });
        if current.flatten() == label {
            return;
        }
        let leaf = session.leaf.clone();
        let listed = self.bed.ok("session::branches", json!({"session_id": id})).await;
        let new_id = listed["active_leaf"].as_str().unwrap().to_owned();
        let data = match label {
            Some(label) => json!({"target_id": entry, "label": label}),
            None => json!({"target_id": entry}),
        };
        session.add(&new_id, leaf, Body::Custom("bough.label".to_owned(), data), now);
        self.oracle.tell("message-added", &id);
    }
}
