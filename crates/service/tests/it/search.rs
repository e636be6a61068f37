//! Everything that was said is found, and nothing else.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use bough_platform::OsDisk;
use bough_search::{
    CandidatePage, IndexBatch, IndexCounts, IndexLock, IndexedSession, NativeIndex, SearchAsk,
    SearchError, SearchIndex, parse_query,
};
use bough_service::{Right, Scope, Service};
use bough_session::{Canonical, ContentBlock, SessionId};
use bough_store::{ListQuery, Position, StoreExt};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::common::{StoreFactory, TestService, object, stores, user};

on_every_store!(
    planted_words_of_every_kind_are_found,
    an_old_revision_is_found_only_when_asked_for,
    a_message_that_streams_is_found,
    hidden_entries_are_found_by_nobody,
    deleted_sessions_are_not_found_and_restored_ones_are,
    a_session_made_again_is_another,
    switching_branches_changes_nothing_but_what_is_active,
    tenants_find_their_own,
    labels_and_titles_are_those_of_now,
    pages_go_on_where_they_ended,
    a_cleared_index_is_built_again,
    filters_narrow_what_is_found,
    sessions_are_listed_once_with_their_details,
    what_was_acknowledged_is_found_while_others_write,
);

/// An index where the store's own would be: in its folder, or in memory.
fn index_for(factory: &Arc<dyn StoreFactory>, bed: &TestService) -> Arc<dyn SearchIndex> {
    match factory.directory() {
        Some(folder) => {
            let disk = Arc::new(OsDisk::create(folder).unwrap());
            Arc::new(NativeIndex::in_folder(disk, folder, bed.clock.clone()).unwrap())
        }
        None => Arc::new(NativeIndex::in_memory().unwrap()),
    }
}

fn index(bed: &TestService) {
    bed.service.set_search_index(Some(index_for(&bed.factory, bed)));
}

/// Searches until the index has everything that was stored when the search began.
async fn search(bed: &TestService, query: &str) -> Value {
    loop {
        let found = bed.ok("session::search", json!({"query": query, "limit": 100})).await;
        if found["index"]["is_complete"] == json!(true) {
            return found;
        }
    }
}

/// The entries that are found, or `title` for a session.
async fn found(bed: &TestService, query: &str) -> Vec<String> {
    let answer = search(bed, query).await;
    let hits = answer["hits"].as_array().unwrap().iter();
    let mut ids: Vec<String> =
        hits.map(|hit| hit["entry_id"].as_str().unwrap_or("title").to_owned()).collect();
    ids.sort();
    ids
}

async fn append_id(bed: &TestService, session: &str, request: Value) -> String {
    bed.append(session, request).await["entry_id"].as_str().unwrap().to_owned()
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

async fn sessions_are_listed_once_with_their_details(bed: TestService) {
    index(&bed);
    let (one, two) = (bed.create(json!({})).await, bed.create(json!({})).await);
    for session in [&one, &two, &one, &one] {
        bed.say(session, "a lighthouse").await;
    }
    assert_eq!(search(&bed, "lighthouse").await["hits"].as_array().unwrap().len(), 4);
    let request = json!({"query": "lighthouse", "by_session": true});
    let listed = bed.ok("session::search", request).await;
    let hits = listed["hits"].as_array().unwrap();
    let sessions: BTreeSet<&str> =
        hits.iter().map(|hit| hit["meta"]["session_id"].as_str().unwrap()).collect();
    assert_eq!((hits.len(), sessions), (2, BTreeSet::from([&*one, &*two])));
    let counts = hits.iter().map(|hit| hit["details"]["entry_count"].as_u64().unwrap());
    assert_eq!(counts.sum::<u64>(), 4, "{listed}");
}

async fn planted_words_of_every_kind_are_found(bed: TestService) {
    index(&bed);
    let id = bed
        .create(json!({"title": "plantedtitle", "description": "plantedabout", "metadata": {"cwd": "/home/u/plantedproject"}}))
        .await;
    let asked = bed.say(&id, "plantedtext and Straße, 日本語の文章, src/planted/main.rs").await;
    let said = append_id(&bed, &id, json!({"message": {
        "role": "assistant", "stop_reason": "error", "error_message": "plantederror E0308", "model": "opus-9", "provider": "p",
        "warnings": ["plantedwarning"], "timestamp": 2, "content": [
            {"type": "thinking", "text": "plantedthought"},
            text("parsePlantedIdentifier snake_planted_case"),
            {"type": "function_call", "id": "c", "function_id": "shell::bash",
             "arguments": {"command": "cat /etc/plantedfile", "nested": [{"deep": "planteddeep"}]}},
        ],
    }})).await;
    let result = append_id(&bed, &id, json!({"message": {
        "role": "function_result", "function_call_id": "c", "function_id": "shell::bash", "timestamp": 3,
        "content": [text("plantedresult: No such file or directory (os error 2)")],
        "details": {"stdout": "planteddetail"}, "is_error": false,
    }})).await;
    let summed = append_id(
        &bed,
        &id,
        json!({"custom": {"custom_type": "bough.compaction", "data": {
            "summary": "plantedsummary", "first_kept_entry_id": asked, "tokens_before": 9,
        }}}),
    )
    .await;
    let custom = append_id(
        &bed,
        &id,
        json!({"custom": {"custom_type": "plantedtype", "data": {
            "note": "planteddata",
        }}}),
    )
    .await;
    let label = json!({"session_id": id, "entry_id": asked, "label": "plantedlabel"});
    bed.ok("session::set-label", label).await;
    let title = "title".to_owned();
    for (query, expected) in [
        ("plantedtext", &asked),
        ("STRASSE", &asked),
        ("日本語", &asked),
        ("本", &asked),
        ("文章", &asked),
        ("src/planted/main.rs", &asked),
        ("main.rs", &asked),
        ("plantederror", &said),
        ("e0308", &said),
        ("plantedwarning", &said),
        ("plantedthought", &said),
        ("is:thinking plantedthought", &said),
        ("parseplantedidentifier", &said),
        ("identifier", &said),
        ("snake_planted_case", &said),
        ("plantedfile", &said),
        ("/etc/plantedfile", &said),
        ("planteddeep", &said),
        ("plantedresult", &result),
        ("\"no such file or directory\"", &result),
        ("planteddetail", &result),
        ("plantedsummary", &summed),
        ("plantedtype", &custom),
        ("planteddata", &custom),
        ("plantedlabel", &asked),
        ("plantedtitle", &title),
        ("plantedabout", &title),
        ("plantedproject", &title),
    ] {
        assert_eq!(found(&bed, query).await, [expected.as_str()], "{query}");
    }
    for query in ["plantednowhere", "\"text planted\"", "is:thinking plantedtext", "planted"] {
        let expected: &[&str] = if query == "planted" { &[&asked, &said] } else { &[] };
        let mut expected: Vec<&str> = expected.to_vec();
        expected.sort_unstable();
        assert_eq!(found(&bed, query).await, expected, "{query}");
    }
    let hit = search(&bed, "plantedresult").await["hits"][0].clone();
    assert_eq!(hit["snippet"]["kind"], json!("result"));
    assert_eq!(hit["snippet"]["highlights"], json!([[0, 13]]));
    assert_eq!(hit["meta"]["session_id"], json!(id));
    assert_eq!(hit["role"], json!("function_result"));
}

async fn an_old_revision_is_found_only_when_asked_for(bed: TestService) {
    index(&bed);
    let id = bed.create(json!({})).await;
    let entry = bed.say(&id, "outdated words").await;
    assert_eq!(found(&bed, "outdated").await, [entry.as_str()]);
    bed.update(&id, &entry, "fresh words").await;
    assert_eq!(found(&bed, "outdated").await, [""; 0]);
    assert_eq!(found(&bed, "fresh").await, [entry.as_str()]);
    let old = search(&bed, "outdated is:old").await;
    assert_eq!(old["hits"][0]["entry_id"], json!(entry));
    assert_eq!(old["hits"][0]["revision"], json!(0));
    assert_eq!(found(&bed, "fresh is:old").await, [""; 0]);
}

async fn a_message_that_streams_is_found(bed: TestService) {
    index(&bed);
    let id = bed.create(json!({})).await;
    let entry = bed.say(&id, "begins").await;
    for word in [" alpha", " beta", " gamma"] {
        let delta = json!({"session_id": id, "entry_id": entry, "block": 0, "text": word});
        bed.ok("session::append-delta", delta).await;
        assert_eq!(found(&bed, word.trim()).await, [entry.as_str()], "{word}");
    }
    bed.say(&id, "next").await;
    assert_eq!(found(&bed, "\"begins alpha beta gamma\"").await, [entry.as_str()]);
    assert_eq!(found(&bed, "alpha is:old").await, [""; 0], "it only grew");
}

async fn hidden_entries_are_found_by_nobody(bed: TestService) {
    let index = index_for(&bed.factory, &bed);
    bed.service.set_search_index(Some(index.clone()));
    let id = bed.create(json!({})).await;
    let entry = bed.say(&id, "firstsecret").await;
    bed.update(&id, &entry, "secondsecret").await;
    let kept = bed.say(&id, "kept").await;
    let label = json!({"session_id": id, "entry_id": entry, "label": "labelled"});
    bed.ok("session::set-label", label).await;
    assert_eq!(found(&bed, "labelled").await, [entry.as_str()]);
    assert_eq!(found(&bed, "secondsecret").await, [entry.as_str()]);
    assert_eq!(found(&bed, "firstsecret is:old").await, [entry.as_str()]);
    bed.ok("session::hide-entries", json!({"session_id": id, "entry_ids": [entry]})).await;
    for round in 0..2 {
        for query in ["secondsecret", "firstsecret", "firstsecret is:old", "bough.hidden"] {
            assert_eq!(found(&bed, query).await, [""; 0], "{query}");
            // Not even the index knows the words any more.
            let query = parse_query(query, 0).unwrap();
            let ask =
                SearchAsk { query: &query, metadata: vec![], limit: 9, cursor: None, now_ms: 0 };
            assert_eq!(index.search(&ask).await.unwrap().candidates, [], "round {round}");
        }
        assert_eq!(found(&bed, "kept").await, [kept.as_str()]);
        assert_eq!(found(&bed, "labelled").await, [""; 0]);
        bed.ok("session::reindex", json!({})).await;
    }
}

async fn deleted_sessions_are_not_found_and_restored_ones_are(bed: TestService) {
    index(&bed);
    let (gone, kept) = (bed.create(json!({"title": "word"})).await, bed.create(json!({})).await);
    let in_gone = bed.say(&gone, "a word").await;
    let in_kept = bed.say(&kept, "a word").await;
    let mut all = vec![in_gone, in_kept.clone(), "title".to_owned()];
    all.sort();
    assert_eq!(found(&bed, "word").await, all);
    bed.ok("session::delete", json!({"session_id": gone})).await;
    assert_eq!(found(&bed, "word").await, [in_kept.as_str()]);
    bed.ok("session::undelete", json!({"session_id": gone})).await;
    assert_eq!(found(&bed, "word").await, all);
}

async fn a_session_made_again_is_another(bed: TestService) {
    index(&bed);
    bed.ok("session::ensure", json!({"session_id": "s"})).await;
    bed.say("s", "earlier").await;
    assert_eq!(found(&bed, "earlier").await.len(), 1);
    bed.ok("session::delete", json!({"session_id": "s"})).await;
    bed.ok("session::ensure", json!({"session_id": "s"})).await;
    let entry = bed.say("s", "later").await;
    assert_eq!(found(&bed, "earlier").await, [""; 0]);
    assert_eq!(found(&bed, "later").await, [entry.as_str()]);
}

async fn switching_branches_changes_nothing_but_what_is_active(bed: TestService) {
    index(&bed);
    let id = bed.create(json!({})).await;
    let root = bed.say(&id, "root").await;
    let left = bed.say(&id, "left branch").await;
    let right =
        append_id(&bed, &id, json!({"message": user("right branch"), "parent_id": root})).await;
    let active = async || {
        let hits = search(&bed, "branch").await["hits"].as_array().unwrap().clone();
        let of = |id: &str| {
            hits.iter().find(|hit| hit["entry_id"] == json!(id)).unwrap()["on_active_path"].clone()
        };
        assert_eq!(hits.len(), 2);
        (of(&left), of(&right))
    };
    assert_eq!(active().await, (json!(false), json!(true)));
    bed.ok("session::set-active-leaf", json!({"session_id": id, "entry_id": left})).await;
    assert_eq!(active().await, (json!(true), json!(false)));
}

async fn tenants_find_their_own(bed: TestService) {
    index(&bed);
    let tenant = |name: &str| {
        let metadata = object(json!({"owner": name}));
        let scope = Scope::new(name, [Right::Read, Right::Write]).only_sessions_with(metadata);
        bed.with_scope(scope)
    };
    let (ann, bob) = (tenant("ann"), tenant("bob"));
    let hers = ann.create(json!({"title": "secret"})).await;
    let entry = ann.say(&hers, "a secret").await;
    assert_eq!(found(&ann, "secret").await, [entry.as_str(), "title"]);
    assert_eq!(found(&bob, "secret").await, [""; 0]);
    assert_eq!(found(&bed, "secret").await.len(), 2);
    let (hers, all) = (search(&ann, "secret").await, search(&bed, "secret").await);
    assert_eq!((hers["hits"][0].get("score"), hers["hits"][1].get("score")), (None, None));
    assert!(all["hits"][0]["score"].is_number());
    let his = bob.ok("session::search", json!({"query": "secret"})).await;
    assert_eq!(his["index"]["behind_changes"], json!(0));
    bob.err("session::reindex", json!({})).await;
}

async fn labels_and_titles_are_those_of_now(bed: TestService) {
    index(&bed);
    let id = bed.create(json!({"title": "firsttitle"})).await;
    let entry = bed.say(&id, "x").await;
    let set = async |label: Value| {
        let request = json!({"session_id": id, "entry_id": entry, "label": label});
        bed.ok("session::set-label", request).await;
    };
    set(json!("firstlabel")).await;
    assert_eq!(found(&bed, "firstlabel").await, [entry.as_str()]);
    set(json!("secondlabel")).await;
    bed.ok("session::set-meta", json!({"session_id": id, "title": "secondtitle"})).await;
    assert_eq!(found(&bed, "firstlabel").await, [""; 0]);
    assert_eq!(found(&bed, "secondlabel").await, [entry.as_str()]);
    set(json!("firstlabel")).await;
    assert_eq!(found(&bed, "firstlabel").await, [entry.as_str()], "once");
    set(json!("secondlabel")).await;
    assert_eq!(found(&bed, "firsttitle").await, [""; 0]);
    assert_eq!(found(&bed, "secondtitle").await, ["title"]);
    set(json!(null)).await;
    assert_eq!(found(&bed, "secondlabel").await, [""; 0]);
}

async fn pages_go_on_where_they_ended(bed: TestService) {
    index(&bed);
    let id = bed.create(json!({})).await;
    let messages: Vec<Value> = (0..25).map(|n| user(&format!("needle {n}"))).collect();
    bed.ok("session::append-many", json!({"session_id": id, "messages": messages})).await;
    search(&bed, "needle").await;
    let mut seen = BTreeSet::new();
    let mut request = json!({"query": "needle", "limit": 7});
    let mut pages = 0;
    loop {
        let page = bed.ok("session::search", request.clone()).await;
        for hit in page["hits"].as_array().unwrap() {
            assert!(seen.insert(hit["entry_id"].as_str().unwrap().to_owned()));
        }
        pages += 1;
        match page.get("next_cursor") {
            Some(cursor) => request["cursor"] = cursor.clone(),
            None => break,
        }
    }
    assert_eq!((seen.len(), pages), (25, 4));
    let (code, _) = bed.err("session::search", json!({"query": "needle", "cursor": "x"})).await;
    assert_eq!(code, "session/invalid_cursor");
    let (code, _) = bed.err("session::search", json!({"query": "role:nobody"})).await;
    assert_eq!(code, "session/invalid_request");
}

async fn a_cleared_index_is_built_again(bed: TestService) {
    index(&bed);
    let id = bed.create(json!({})).await;
    let entry = bed.say(&id, "word").await;
    assert_eq!(found(&bed, "word").await, [entry.as_str()]);
    let status = bed.ok("session::reindex", json!({})).await;
    assert_eq!(status["is_complete"], json!(false));
    assert_eq!(found(&bed, "word").await, [entry.as_str()]);
    let status = bed.ok("session::search-status", json!({})).await;
    let expected = json!({
        "is_complete": true, "behind_changes": 0, "behind_sessions": 0, "indexed_documents": 1, "is_elsewhere": false,
    });
    assert_eq!(status, expected);
}

async fn filters_narrow_what_is_found(bed: TestService) {
    index(&bed);
    let metadata = json!({"cwd": "/home/u/bough", "agent_id": "reviewer"});
    let id = bed.create(json!({"metadata": metadata})).await;
    let other = bed.create(json!({})).await;
    let asked = bed.say(&id, "word").await;
    let answer = json!({"message": {
        "role": "assistant", "content": [text("word")], "stop_reason": "end", "model": "claude-opus-4",
        "provider": "anthropic", "timestamp": 2,
    }});
    let said = append_id(&bed, &id, answer).await;
    let elsewhere = bed.say(&other, "word").await;
    let check = async |query: &str, expected: &[&str]| {
        let mut expected: Vec<&str> = expected.to_vec();
        expected.sort_unstable();
        assert_eq!(found(&bed, query).await, expected, "{query}");
    };
    check("word", &[&asked, &said, &elsewhere]).await;
    check("word role:user", &[&asked, &elsewhere]).await;
    check("word -role:user", &[&said]).await;
    check("word model:opus", &[&said]).await;
    check("word -model:opus", &[&asked, &elsewhere]).await;
    check("word project:/home/u", &[&asked, &said]).await;
    check("word project:/home/u/bou", &[]).await;
    check("word project:bough", &[&asked, &said]).await;
    check("word agent:reviewer", &[&asked, &said]).await;
    check(&format!("word session:{other}"), &[&elsewhere]).await;
    check(&format!("word session:{}", &other[..other.len() - 1]), &[&elsewhere]).await;
    // A whole id is no beginning of others.
    let longer = format!("{other}0");
    bed.ok("session::ensure", json!({"session_id": longer})).await;
    let in_longer = bed.say(&longer, "word").await;
    check(&format!("word session:{other}"), &[&elsewhere]).await;
    check(&format!("word session:{longer}"), &[&in_longer]).await;
    bed.ok("session::delete", json!({"session_id": longer})).await;
    check("word after:2023-11-01", &[&asked, &said, &elsewhere]).await;
    check("word before:2023-11-01", &[]).await;
    let narrowed = json!({"query": "word", "metadata": {"cwd": "/home/u/bough"}});
    assert_eq!(bed.ok("session::search", narrowed).await["hits"].as_array().unwrap().len(), 2);
    // Another agent for the session is another agent for each of its entries.
    let metadata = json!({"session_id": id, "metadata": {"agent_id": "planner"}});
    bed.ok("session::set-meta", metadata).await;
    check("word agent:planner", &[&asked, &said]).await;
    check("word agent:reviewer", &[]).await;
    check("word project:bough", &[]).await;
}

async fn what_was_acknowledged_is_found_while_others_write(bed: TestService) {
    index(&bed);
    let indexing = {
        let service = bed.service.clone();
        tokio::spawn(async move { service.keep_indexing().await })
    };
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let service = bed.service.clone();
            tokio::spawn(async move {
                let scope = Scope::owner();
                let session = format!("w{writer}");
                let ensured = json!({"session_id": session});
                service.call(&scope, "session::ensure", ensured).await.unwrap();
                for n in 0..40 {
                    let message = user(&format!("noise planted{writer}x{n}"));
                    let request = json!({"session_id": session, "message": message});
                    service.call(&scope, "session::append", request).await.unwrap();
                }
            })
        })
        .collect();
    bed.ok("session::ensure", json!({"session_id": "mine"})).await;
    for n in 0..10 {
        let entry = bed.say("mine", &format!("acknowledged{n}")).await;
        assert_eq!(found(&bed, &format!("acknowledged{n}")).await, [entry.as_str()]);
    }
    for writer in writers {
        writer.await.unwrap();
    }
    assert_eq!(found(&bed, "noise").await.len(), 100, "a page");
    for writer in 0..4 {
        assert_eq!(found(&bed, &format!("planted{writer}x39")).await.len(), 1);
    }
    indexing.abort();
}

#[tokio::test]
async fn an_index_that_missed_everything_catches_up() {
    let factory = stores::native();
    let mut bed = TestService::on(&factory).await;
    let id = bed.create(json!({})).await;
    let entry = bed.say(&id, "before").await;
    index(&bed);
    assert_eq!(found(&bed, "before").await, [entry.as_str()]);
    // Another process writes, deletes and restores while nobody indexes.
    bed.reopen().await;
    let more = bed.say(&id, "meanwhile").await;
    let gone = bed.create(json!({"title": "before"})).await;
    bed.ok("session::delete", json!({"session_id": gone})).await;
    bed.reopen().await;
    index(&bed);
    assert_eq!(found(&bed, "meanwhile").await, [more.as_str()]);
    assert_eq!(found(&bed, "before").await, [entry.as_str()]);
    // The catalogue, and with it the feed of all sessions, begins anew.
    bed.service.store().close().await.unwrap();
    bed.service = Service::new(
        stores::memory().open(bed.entropy.clone(), bed.clock.clone()).await,
        bed.clock.clone(),
        bed.entropy.clone(),
    );
    let folder = factory.directory().unwrap();
    for suffix in ["", "-wal", "-shm"] {
        drop(std::fs::remove_file(folder.join(format!("catalogue.sqlite{suffix}"))));
    }
    bed.reopen().await;
    let last = bed.say(&id, "afterwards").await;
    index(&bed);
    assert_eq!(found(&bed, "afterwards").await, [last.as_str()]);
    assert_eq!(found(&bed, "before").await, [entry.as_str()]);
}

/// An index whose file turns out to be damaged when it is searched, and is replaced by an empty one as [`NativeIndex`] does.
struct DamagedOnce {
    inner: NativeIndex,
    is_damaged: AtomicBool,
}

#[async_trait]
impl SearchIndex for DamagedOnce {
    async fn cursor(&self) -> Result<Option<String>, SearchError> {
        self.inner.cursor().await
    }

    async fn session(&self, session: &SessionId) -> Result<Option<IndexedSession>, SearchError> {
        self.inner.session(session).await
    }

    async fn sessions(
        &self,
        after: Option<&SessionId>,
        limit: usize,
    ) -> Result<Vec<IndexedSession>, SearchError> {
        self.inner.sessions(after, limit).await
    }

    async fn stale(&self, limit: usize) -> Result<Vec<IndexedSession>, SearchError> {
        self.inner.stale(limit).await
    }

    async fn counts(&self) -> Result<IndexCounts, SearchError> {
        self.inner.counts().await
    }

    async fn apply(&self, batch: IndexBatch) -> Result<(), SearchError> {
        self.inner.apply(batch).await
    }

    async fn search(&self, ask: &SearchAsk<'_>) -> Result<CandidatePage, SearchError> {
        if self.is_damaged.swap(false, Ordering::Relaxed) {
            self.inner.clear().await?;
        }
        self.inner.search(ask).await
    }

    async fn clear(&self) -> Result<(), SearchError> {
        self.inner.clear().await
    }

    async fn lock(&self) -> Result<Option<IndexLock>, SearchError> {
        self.inner.lock().await
    }
}

#[tokio::test]
async fn a_search_that_finds_the_index_damaged_is_made_again() {
    let bed = TestService::on(&stores::memory()).await;
    let inner = NativeIndex::in_memory().unwrap();
    let index = Arc::new(DamagedOnce { inner, is_damaged: AtomicBool::new(false) });
    bed.service.set_search_index(Some(index.clone()));
    let id = bed.create(json!({})).await;
    let entry = bed.say(&id, "planted").await;
    assert_eq!(found(&bed, "planted").await, [entry.as_str()]);
    index.is_damaged.store(true, Ordering::Relaxed);
    assert_eq!(found(&bed, "planted").await, [entry.as_str()]);
    assert!(!index.is_damaged.load(Ordering::Relaxed));
}

#[tokio::test]
async fn a_second_process_reads_what_the_first_one_indexes() {
    let factory = stores::native();
    let bed = TestService::on(&factory).await;
    index(&bed);
    let id = bed.create(json!({})).await;
    let entry = bed.say(&id, "shared").await;
    assert_eq!(found(&bed, "shared").await, [entry.as_str()]);
    let other = TestService::on(&factory).await;
    index(&other);
    assert_eq!(found(&other, "shared").await, [entry.as_str()]);
    let more = bed.say(&id, "again").await;
    assert_eq!(found(&bed, "again").await, [more.as_str()]);
    assert_eq!(found(&other, "again").await, [more.as_str()]);
}

/// One thing that is done to the sessions of a random history.
#[derive(Clone, Debug)]
enum Step {
    Say(usize, String),
    Change(usize, usize, String),
    Title(usize, String),
    Delete(usize),
    Restore(usize),
    Branch(usize, usize),
    Label(usize, usize, String),
    Hide(usize, usize),
    Index,
}

const WORDS: [&str; 8] = ["red", "green", "blue", "reD", "fooBar", "foo_bar", "日本語", "bar"];

fn words() -> impl Strategy<Value = String> {
    let word = prop::sample::select(WORDS.to_vec());
    prop::collection::vec(word, 1..4).prop_map(|words| words.join(" "))
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..3usize, words()).prop_map(|(s, text)| Step::Say(s, text)),
        2 => (0..3usize, 0..9usize, words()).prop_map(|(s, e, text)| Step::Change(s, e, text)),
        1 => (0..3usize, words()).prop_map(|(s, text)| Step::Title(s, text)),
        1 => (0..3usize).prop_map(Step::Delete),
        1 => (0..3usize).prop_map(Step::Restore),
        1 => (0..3usize, 0..9usize).prop_map(|(s, e)| Step::Branch(s, e)),
        1 => (0..3usize, 0..9usize, words()).prop_map(|(s, e, text)| Step::Label(s, e, text)),
        1 => (0..3usize, 0..9usize).prop_map(|(s, e)| Step::Hide(s, e)),
        2 => Just(Step::Index),
    ]
}

async fn perform(bed: &TestService, step: &Step) {
    let entry_of = async |session: usize, entry: usize| {
        let store = bed.service.store();
        let id = bough_session::SessionId::from_stored(format!("s{session}"));
        let page = store.records(&id, Position::default(), 100).await.ok()?;
        let mut entries = Vec::new();
        for added in page.records.iter().filter_map(|stored| stored.record.as_entry()) {
            let now = store.entry(&id, &added.id).await.unwrap().unwrap().entry;
            if !now.is_hidden() && matches!(now.canonical(), Canonical::Message(_)) {
                entries.push(now.id.to_string());
            }
        }
        entries.get(entry % entries.len().max(1)).cloned()
    };
    let session_of = |step: &Step| match step {
        Step::Say(s, _)
        | Step::Change(s, ..)
        | Step::Title(s, _)
        | Step::Delete(s)
        | Step::Restore(s)
        | Step::Label(s, ..)
        | Step::Hide(s, _)
        | Step::Branch(s, _) => format!("s{s}"),
        Step::Index => String::new(),
    };
    let id = session_of(step);
    match step {
        Step::Say(_, text) => {
            bed.ok("session::ensure", json!({"session_id": id})).await;
            bed.say(&id, text).await;
        }
        Step::Change(s, e, text) => {
            if let Some(entry) = entry_of(*s, *e).await {
                bed.update(&id, &entry, text).await;
            }
        }
        Step::Title(_, text) => {
            drop(bed.call("session::set-meta", json!({"session_id": id, "title": text})).await)
        }
        Step::Delete(_) => drop(bed.call("session::delete", json!({"session_id": id})).await),
        Step::Restore(_) => drop(bed.call("session::undelete", json!({"session_id": id})).await),
        Step::Branch(s, e) => {
            if let Some(entry) = entry_of(*s, *e).await {
                bed.ok("session::set-active-leaf", json!({"session_id": id, "entry_id": entry}))
                    .await;
            }
        }
        Step::Label(s, e, text) => {
            if let Some(entry) = entry_of(*s, *e).await {
                let label = json!({"session_id": id, "entry_id": entry, "label": text});
                bed.ok("session::set-label", label).await;
            }
        }
        Step::Hide(s, e) => {
            if let Some(entry) = entry_of(*s, *e).await {
                let hidden = json!({"session_id": id, "entry_ids": [entry]});
                bed.ok("session::hide-entries", hidden).await;
            }
        }
        Step::Index => drop(found(bed, "red").await),
    }
}

/// A scan of all sessions by rules of its own: a word is found where it stands by itself, whatever its case and whether a line
/// below joins its parts.
async fn scan(bed: &TestService, query: &[&str]) -> Vec<String> {
    let plain = |text: &str| format!(" {} ", text.to_lowercase().replace('_', " "));
    let fits = |text: &str| {
        query.iter().all(|word| {
            let glued = text.split_whitespace().any(|other| other.eq_ignore_ascii_case(word));
            let parts = plain(&text.replace("fooBar", "foo Bar"))
                .contains(&plain(&word.replace("fooBar", "foo Bar")));
            let inside = !word.is_ascii() && text.contains(word);
            glued || parts || inside
        })
    };
    let store = bed.service.store();
    let mut hits = Vec::new();
    for listed in
        store.list(&ListQuery { limit: 100, ..ListQuery::default() }).await.unwrap().sessions
    {
        if fits(&listed.meta.title) && !listed.meta.title.is_empty() {
            hits.push("title".to_owned());
        }
        let id = &listed.meta.session_id;
        let state = store.state(id).await.unwrap().unwrap().state;
        for stored in store.records(id, Position::default(), 100).await.unwrap().records {
            let Some(entry) = stored.record.as_entry() else { continue };
            let now = store.entry(id, &entry.id).await.unwrap().unwrap().entry;
            if now.is_hidden() {
                continue;
            }
            let label = state.labels.get(&now.id).filter(|label| fits(label));
            hits.extend(label.map(|_| now.id.to_string()));
            let Canonical::Message(message) = now.canonical() else { continue };
            let text: Vec<&str> =
                message.content().iter().filter_map(ContentBlock::as_text).collect();
            if fits(&text.join(" ")) {
                hits.push(entry.id.to_string());
            }
        }
    }
    hits.sort();
    hits
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 200, ..ProptestConfig::default() })]
    #[test]
    fn random_histories_are_found_as_a_scan_finds_them(
        steps in prop::collection::vec(step(), 1..25),
        queries in prop::collection::vec(prop::collection::vec(prop::sample::select(vec!["red", "GREEN", "blue", "foobar", "foo_bar", "bar", "日本", "本"]), 1..3), 1..5),
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        runtime.block_on(async {
            let bed = TestService::on(&stores::memory()).await;
            index(&bed);
            for step in &steps {
                perform(&bed, step).await;
            }
            for query in &queries {
                let expected = scan(&bed, query).await;
                assert_eq!(found(&bed, &query.join(" ")).await, expected, "{query:?} after {steps:?}");
            }
        });
    }
}
