//! Random histories against the oracle: every answer, every state and every event, with reopening in between.

mod compare;
mod entries;
mod ops;

use self::ops::{Choice, LeafWish, Op, any_op};
use crate::common::{Listener, StoreFactory, TestService, object, stores};
use crate::oracle::Oracle;
use bough_service::{EventFilter, EventKind, StartAt};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use std::sync::Arc;

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
    bed: TestService,
    oracle: Oracle,
    listener: Listener,
    /// Sessions that were made, by number; the first ones are ids of our own.
    names: Vec<String>,
}

impl Model {
    async fn check(factory: &Arc<dyn StoreFactory>, history: Vec<Op>) {
        let bed = TestService::on(factory).await;
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

    async fn reopen(&mut self) {
        self.compare_events().await;
        self.bed.reopen().await;
        self.listener = self.bed.listen().await;
    }
}

#[tokio::test]
async fn the_oracle_notices_what_it_should() {
    // A feed that tells too much, and one that tells too little, must both be caught.
    for spoil in [0, 1] {
        let bed = TestService::on(&stores::memory()).await;
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
    let bed = TestService::on(&stores::memory()).await;
    assert!(bed.subscribe(filter, StartAt::Now).await.ready().await.is_empty());
}
