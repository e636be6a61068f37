//! Random histories against the oracle: every answer, every state and every event, with reopening in between.

use crate::common::{Bed, Listener, StoreFactory, object, stores};
use crate::oracle;
use crate::oracle::{Body, Oracle};
use bough_service::{EventFilter, EventKind, FeedItem, StartAt};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use std::sync::Arc;

/// One call, with choices that mean something in whatever state it meets.
#[derive(Clone, Debug)]
enum Op {
    Create {
        title: String,
        owner: Option<u8>,
    },
    Ensure {
        session: u8,
    },
    SetMeta {
        session: u8,
        title: Option<String>,
        owner: Option<u8>,
    },
    SetStatus {
        session: u8,
        status: u8,
    },
    SetTask {
        session: u8,
        task: Option<String>,
    },
    Archive {
        session: u8,
        archived: bool,
    },
    Delete {
        session: u8,
    },
    Undelete {
        session: u8,
    },
    Purge {
        session: u8,
    },
    Append {
        session: u8,
        text: String,
        custom: bool,
        parent: Choice,
        id: Option<u8>,
        leaf: LeafWish,
    },
    AppendMany {
        session: u8,
        texts: Vec<String>,
        parent: Choice,
    },
    Update {
        session: u8,
        entry: Choice,
        texts: Vec<String>,
        revision: Option<u8>,
    },
    Delta {
        session: u8,
        entry: Choice,
        block: u8,
        text: String,
    },
    SetLeaf {
        session: u8,
        entry: Choice,
    },
    Fork {
        session: u8,
        entry: Choice,
    },
    Label {
        session: u8,
        entry: Choice,
        label: Option<String>,
    },
    Reopen,
}

/// An entry of a session: the default, one of those that are there, or one that is not.
#[derive(Clone, Debug)]
enum Choice {
    None,
    Some(prop::sample::Index),
    Ghost,
}

#[derive(Clone, Debug)]
enum LeafWish {
    None,
    Right,
    Wrong,
}

fn any_op() -> impl Strategy<Value = Op> {
    let session = 0_u8..6;
    let text = "[aé ]{0,5}";
    let texts = prop::collection::vec(text, 0..3);
    let owner = prop::option::of(0_u8..2);
    prop_oneof![
        3 => (text, owner.clone()).prop_map(|(title, owner)| Op::Create { title, owner }),
        2 => session.clone().prop_map(|session| Op::Ensure { session }),
        2 => (session.clone(), prop::option::of(text), owner)
            .prop_map(|(session, title, owner)| Op::SetMeta { session, title, owner }),
        2 => (session.clone(), 0_u8..4).prop_map(|(session, status)| Op::SetStatus { session, status }),
        1 => (session.clone(), prop::option::of(text)).prop_map(|(session, task)| Op::SetTask { session, task }),
        1 => (session.clone(), any::<bool>()).prop_map(|(session, archived)| Op::Archive { session, archived }),
        1 => session.clone().prop_map(|session| Op::Delete { session }),
        1 => session.clone().prop_map(|session| Op::Undelete { session }),
        1 => session.clone().prop_map(|session| Op::Purge { session }),
        8 => (session.clone(), text, any::<bool>(), any_choice(), prop::option::of(0_u8..4), any_leaf_wish())
            .prop_map(|(session, text, custom, parent, id, leaf)| Op::Append { session, text, custom, parent, id, leaf }),
        2 => (session.clone(), texts.clone(), any_choice())
            .prop_map(|(session, texts, parent)| Op::AppendMany { session, texts, parent }),
        5 => (session.clone(), any_choice(), texts, prop::option::of(0_u8..3))
            .prop_map(|(session, entry, texts, revision)| Op::Update { session, entry, texts, revision }),
        4 => (session.clone(), any_choice(), 0_u8..3, text)
            .prop_map(|(session, entry, block, text)| Op::Delta { session, entry, block, text }),
        2 => (session.clone(), any_choice()).prop_map(|(session, entry)| Op::SetLeaf { session, entry }),
        1 => (session.clone(), any_choice()).prop_map(|(session, entry)| Op::Fork { session, entry }),
        1 => (session, any_choice(), prop::option::of("[ab]{1,2}"))
            .prop_map(|(session, entry, label)| Op::Label { session, entry, label }),
        1 => Just(Op::Reopen),
    ]
}

fn any_choice() -> impl Strategy<Value = Choice> {
    prop_oneof![
        4 => Just(Choice::None),
        4 => any::<prop::sample::Index>().prop_map(Choice::Some),
        1 => Just(Choice::Ghost),
    ]
}

fn any_leaf_wish() -> impl Strategy<Value = LeafWish> {
    prop_oneof![4 => Just(LeafWish::None), 1 => Just(LeafWish::Right), 1 => Just(LeafWish::Wrong)]
}

fn run_histories(cases: u32, length: usize, factory: fn() -> Arc<dyn StoreFactory>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let histories = prop::collection::vec(any_op(), 1..length);
    let outcome = TestRunner::new(config).run(&histories, |history| {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            runtime.block_on(Model::check(&factory(), history));
        }));
        result.map_err(|_| TestCaseError::fail("the service and the oracle differ"))
    });
    outcome.unwrap();
}

#[test]
fn histories_on_memory() {
    run_histories(32, 50, stores::memory);
}

#[test]
fn histories_on_fs() {
    run_histories(8, 40, stores::fs);
}

#[test]
fn histories_on_native() {
    run_histories(8, 40, stores::native);
}

struct Model {
    bed: Bed,
    oracle: Oracle,
    listener: Listener,
    /// Sessions that were made, by number; the first ones are ids of our own.
    names: Vec<String>,
}

impl Model {
    async fn check(factory: &Arc<dyn StoreFactory>, history: Vec<Op>) {
        let bed = Bed::on(factory).await;
        let listener = bed.listen().await;
        let names = ["one", "two/2", "drei é"].map(str::to_owned).to_vec();
        let mut model = Self { bed, oracle: Oracle::default(), listener, names };
        for op in history {
            model.bed.tick(1);
            model.apply(op).await;
            model.compare_events().await;
        }
        model.compare_all().await;
        model.reopen().await;
        model.compare_all().await;
    }

    fn now(&self) -> i64 {
        bough_platform::Clock::now_ms(&*self.bed.clock)
    }

    fn name(&self, session: u8) -> String {
        self.names[usize::from(session) % self.names.len()].clone()
    }

    fn choose(&self, session: &str, choice: &Choice) -> Option<String> {
        let entries = self.oracle.sessions.get(session).map_or(&[][..], |session| &session.entries);
        match choice {
            Choice::None => None,
            Choice::Some(_) if entries.is_empty() => Some("ghost".to_owned()),
            Choice::Some(index) => Some(entries[index.index(entries.len())].id.clone()),
            Choice::Ghost => Some("ghost".to_owned()),
        }
    }

    /// Calls, and expects a refusal with this code; or gives the answer.
    async fn call(&self, function: &str, request: Value, refusal: Option<&str>) -> Option<Value> {
        match (self.bed.call(function, request.clone()).await, refusal) {
            (Ok(answer), None) => Some(answer),
            (Err(error), Some(code)) => {
                assert_eq!(error.code(), code, "{function} {request}: {error}");
                None
            }
            (outcome, refusal) => panic!("{function} {request}: {outcome:?}, expected {refusal:?}"),
        }
    }

    async fn apply(&mut self, op: Op) {
        match op {
            Op::Create { title, owner } => self.create(title, owner).await,
            Op::Ensure { session } => self.ensure(self.name(session)).await,
            Op::SetMeta { session, title, owner } => {
                self.set_meta(self.name(session), title, owner).await
            }
            Op::SetStatus { session, status } => self.set_status(self.name(session), status).await,
            Op::SetTask { session, task } => self.set_task(self.name(session), task).await,
            Op::Archive { session, archived } => self.archive(self.name(session), archived).await,
            Op::Delete { session } => {
                let id = self.name(session);
                let answer = self.call("session::delete", json!({"session_id": id}), None).await;
                assert_eq!(answer.unwrap(), json!({"deleted": self.oracle.delete(&id)}));
            }
            Op::Undelete { session } => self.undelete(self.name(session)).await,
            Op::Purge { session } => {
                let id = self.name(session);
                let answer = self.call("session::purge", json!({"session_id": id}), None).await;
                let purged = self.oracle.take_from_trash(&id).is_some();
                assert_eq!(answer.unwrap(), json!({"purged": purged}));
            }
            Op::Append { session, text, custom, parent, id, leaf } => {
                self.append(self.name(session), text, custom, &parent, id, &leaf).await;
            }
            Op::AppendMany { session, texts, parent } => {
                self.append_many(self.name(session), texts, &parent).await
            }
            Op::Update { session, entry, texts, revision } => {
                self.update(self.name(session), &entry, texts, revision).await;
            }
            Op::Delta { session, entry, block, text } => {
                self.delta(self.name(session), &entry, block, text).await
            }
            Op::SetLeaf { session, entry } => self.set_leaf(self.name(session), &entry).await,
            Op::Fork { session, entry } => self.fork(self.name(session), &entry).await,
            Op::Label { session, entry, label } => {
                self.label(self.name(session), &entry, label).await
            }
            Op::Reopen => self.reopen().await,
        }
    }

    async fn create(&mut self, title: String, owner: Option<u8>) {
        let metadata = owner.map(|owner| object(json!({"owner": owner})));
        let answer = self
            .call("session::create", json!({"title": title, "metadata": metadata}), None)
            .await
            .unwrap();
        let id = answer["session_id"].as_str().unwrap().to_owned();
        let now = self.now();
        self.oracle.begin(&id, &title, metadata, now);
        assert_eq!(answer["meta"], self.oracle.sessions[&id].meta());
        self.names.push(id);
    }

    async fn ensure(&mut self, id: String) {
        let answer = self.call("session::ensure", json!({"session_id": id}), None).await.unwrap();
        let created = !self.oracle.sessions.contains_key(&id);
        if created {
            let now = self.now();
            self.oracle.begin(&id, "", None, now);
        }
        assert_eq!(answer["created"], json!(created));
        assert_eq!(answer["meta"], self.oracle.sessions[&id].meta());
    }

    async fn set_meta(&mut self, id: String, title: Option<String>, owner: Option<u8>) {
        let metadata = owner.map(|owner| object(json!({"owner": owner})));
        let request = json!({"session_id": id, "title": title, "metadata": metadata});
        let now = self.now();
        let Some(session) = self.oracle.sessions.get_mut(&id) else {
            self.call("session::set-meta", request, Some("session/not_found")).await;
            return;
        };
        let changes = title.is_some() || metadata.is_some();
        if changes {
            session.title = title.unwrap_or_else(|| session.title.clone());
            session.metadata = metadata.or_else(|| session.metadata.clone());
            session.updated_at = now;
        }
        let meta = session.meta();
        if changes {
            self.oracle.tell("meta-updated", &id);
        }
        let answer = self.call("session::set-meta", request, None).await;
        assert_eq!(answer.unwrap(), json!({"meta": meta}));
    }

    async fn set_status(&mut self, id: String, status: u8) {
        let status = ["idle", "working", "done", "error"][usize::from(status)];
        let request = json!({"session_id": id, "status": status, "reason": "why"});
        let now = self.now();
        let Some(session) = self.oracle.sessions.get_mut(&id) else {
            self.call("session::set-status", request, Some("session/not_found")).await;
            return;
        };
        let previous = std::mem::replace(&mut session.status, status.to_owned());
        if previous != status {
            session.reason = (status == "error").then(|| "why".to_owned());
            session.updated_at = now;
            self.oracle.tell("status-changed", &id);
        }
        let answer = self.call("session::set-status", request, None).await;
        assert_eq!(answer.unwrap(), json!({"status": status, "previous_status": previous}));
    }

    async fn set_task(&mut self, id: String, task: Option<String>) {
        let request = json!({"session_id": id, "task": task});
        let now = self.now();
        let Some(session) = self.oracle.sessions.get_mut(&id) else {
            self.call("session::set-task", request, Some("session/not_found")).await;
            return;
        };
        let task = task.filter(|task| !task.is_empty());
        if session.task != task {
            session.task = task;
            session.updated_at = now;
        }
        self.call("session::set-task", request, None).await;
    }

    async fn archive(&mut self, id: String, archived: bool) {
        let function = if archived { "session::archive" } else { "session::unarchive" };
        let request = json!({"session_id": id});
        let Some(session) = self.oracle.sessions.get_mut(&id) else {
            self.call(function, request, Some("session/not_found")).await;
            return;
        };
        let changed = std::mem::replace(&mut session.archived, archived) != archived;
        let answer = self.call(function, request, None).await;
        assert_eq!(answer.unwrap(), json!({"archived": archived, "changed": changed}));
    }

    async fn undelete(&mut self, id: String) {
        let request = json!({"session_id": id});
        let in_trash = self.oracle.trash.iter().any(|session| session.id == id);
        let refusal = match (in_trash, self.oracle.sessions.contains_key(&id)) {
            (false, _) => Some("session/not_in_trash"),
            (true, true) => Some("session/already_exists"),
            (true, false) => None,
        };
        let answer = self.call("session::undelete", request, refusal).await;
        if let Some(answer) = answer {
            let session = self.oracle.take_from_trash(&id).unwrap();
            assert_eq!(answer, json!({"meta": session.meta()}));
            self.oracle.sessions.insert(id.clone(), session);
            self.oracle.tell("created", &id);
        }
    }

    async fn append(
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

    async fn append_many(&mut self, id: String, texts: Vec<String>, parent: &Choice) {
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

    async fn update(
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

    async fn delta(&mut self, id: String, entry: &Choice, block: u8, text: String) {
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

    async fn set_leaf(&mut self, id: String, entry: &Choice) {
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

    async fn fork(&mut self, id: String, entry: &Choice) {
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

    async fn label(&mut self, id: String, entry: &Choice, label: Option<String>) {
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

    async fn reopen(&mut self) {
        self.compare_events().await;
        self.bed.reopen().await;
        self.listener = self.bed.listen().await;
    }

    /// Everything that was to be told was told, in order within each session.
    async fn compare_events(&mut self) {
        let mut told = Vec::new();
        while let Some(item) = self.listener.subscription.next_ready().await.unwrap() {
            let FeedItem::Event(delivery) = item else { panic!("{item:?}") };
            let kind = delivery.event.kind().name().trim_start_matches("session::");
            told.push((kind, delivery.event.session_id.to_string()));
        }
        assert_eq!(told, std::mem::take(&mut self.oracle.told));
    }

    async fn compare_all(&mut self) {
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

#[tokio::test]
async fn the_oracle_notices_what_it_should() {
    // A feed that tells too much, and one that tells too little, must both be caught.
    for spoil in [0, 1] {
        let bed = Bed::on(&stores::memory()).await;
        let listener = bed.listen().await;
        let mut model =
            Model { bed, oracle: Oracle::default(), listener, names: vec!["s".to_owned()] };
        model.apply(Op::Ensure { session: 0 }).await;
        if spoil == 0 {
            model.oracle.told.clear();
        } else {
            model.oracle.tell("deleted", "s");
        }
        let compared = tokio::spawn(async move { model.compare_events().await }).await;
        assert!(compared.is_err());
    }
    let filter = EventFilter::of([EventKind::Created]);
    let bed = Bed::on(&stores::memory()).await;
    assert!(bed.subscribe(filter, StartAt::Now).await.ready().await.is_empty());
}
