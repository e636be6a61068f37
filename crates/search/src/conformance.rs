//! The conformance suite that every index passes.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a suite of tests")]

use bough_session::{Incarnation, Role, SessionId};
use serde_json::json;

use crate::{
    CandidatePage, Document, Field, FieldKind, IndexBatch, Position, SearchAsk, SearchError,
    SearchIndex, SessionFacts, SessionPut, SessionUpdate, parse_query,
};

/// 2026-11-16T12:00:00Z.
const NOW: i64 = 1_794_830_400_000;

/// Runs the whole suite. `make` makes a new, empty index.
pub async fn check<I: SearchIndex>(make: impl AsyncFn() -> I) {
    words_and_filters(&make().await).await;
    an_excluded_phrase_is_of_one_text(&make().await).await;
    batches_are_whole(&make().await).await;
    documents_are_replaced(&make().await).await;
    hidden_entries_leave_nothing(&make().await).await;
    many_sessions_are_narrowed_as_few_are(&make().await).await;
    the_best_come_first(&make().await).await;
    sessions_go_and_come_back(&make().await).await;
    pages_hold_everything_once(&make().await).await;
    a_clear_forgets(&make().await).await;
    one_at_a_time(&make().await).await;
}

fn id(name: &str) -> SessionId {
    SessionId::from_stored(name)
}

fn incarnation(number: u8) -> Incarnation {
    Incarnation::new([number; 16])
}

fn document(seq: u64, kind: FieldKind, text: &str) -> Document {
    let fields = vec![Field { kind, text: text.to_owned() }];
    let role = Some(Role::User);
    Document { seq, at_ms: NOW - 1000, role, fields, ..Document::default() }
}

fn message(seq: u64, text: &str) -> Document {
    document(seq, FieldKind::Text, text)
}

fn put(session: &str, from: u64, to: u64, documents: Vec<Document>) -> SessionUpdate {
    SessionUpdate::Put(Box::new(SessionPut {
        session_id: id(session),
        incarnation: incarnation(1),
        from: Position { seq: from, step: 0 },
        to: Position { seq: to, step: 0 },
        is_stale: false,
        facts: None,
        documents,
        hidden: Vec::new(),
    }))
}

/// Applies updates at the current cursor of the index.
async fn apply(index: &dyn SearchIndex, updates: Vec<SessionUpdate>) {
    let expected_cursor = index.cursor().await.unwrap();
    let number: u64 = expected_cursor.as_ref().map_or(0, |cursor| cursor.parse().unwrap());
    let cursor = Some((number + 1).to_string());
    let batch = IndexBatch { expected_cursor, cursor, updates, ..IndexBatch::default() };
    index.apply(batch).await.unwrap();
}

async fn page(index: &dyn SearchIndex, text: &str, cursor: Option<&str>) -> CandidatePage {
    let query = parse_query(text, NOW).unwrap();
    let ask = SearchAsk { query: &query, metadata: vec![], limit: 7, cursor, now_ms: NOW };
    index.search(&ask).await.unwrap()
}

/// What is found, as session and number, in order.
async fn found(index: &dyn SearchIndex, text: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut cursor = None;
    loop {
        let page = page(index, text, cursor.as_deref()).await;
        all.extend(page.candidates.iter().map(|hit| format!("{}:{}", hit.session_id, hit.seq)));
        cursor = page.next_cursor;
        if cursor.is_none() {
            all.sort();
            return all;
        }
    }
}

/// Whether a new index finds a text by a query.
#[cfg(test)]
pub(crate) async fn finds(index: &dyn SearchIndex, text: &str, query: &str) -> bool {
    apply(index, vec![put("a", 0, 1, vec![message(1, text)])]).await;
    !found(index, query).await.is_empty()
}

/// Queries, and what each finds among the documents of [`words_and_filters`].
const QUERIES: &[(&str, &[&str])] = &[
    ("hello", &["a:1", "b:0"]),
    ("hello world", &["a:1"]),
    ("hello -world", &["b:0"]),
    ("\"reset by peer\"", &["a:3"]),
    ("\"peer by reset\"", &[]),
    ("src/net/socket.rs", &["a:3"]),
    ("socket", &["a:3"]),
    ("config", &["a:4"]),
    ("parseconfigfile", &["a:4"]),
    ("parseConfigfile", &["a:4"]),
    ("PARSEC*", &["a:4"]),
    ("parseC*", &["a:4"]),
    ("\"parseconfigfile \u{65e5}\u{672c}\"", &["a:4"]),
    ("HeLLo", &["a:1", "b:0"]),
    ("\"helloWorld\"", &["a:1"]),
    ("\"HEllo WoRld\"", &["a:1"]),
    ("hello -WoRld", &["b:0"]),
    ("hello -\"again hello\"", &["a:1", "b:0"]),
    ("parse_config", &["a:4"]),
    ("conf*", &["a:4"]),
    ("\u{65e5}\u{672c}\u{8a9e}", &["a:4"]),
    ("\u{6587}", &["a:4"]),
    ("\u{7ae0}", &["a:4"]),
    ("\u{8a9e}\u{306e}", &["a:4"]),
    ("\u{672c}\u{6587}", &[]),
    ("cafe", &["a:4"]),
    ("CAFE\u{301}", &["a:4"]),
    ("\u{1112}\u{1161}\u{11ab}\u{1100}\u{116e}\u{11a8}", &["a:4"]),
    ("peer role:tool", &["a:3"]),
    ("peer -role:tool", &["b:1"]),
    ("tool:bash", &["a:3"]),
    ("tool:run_bash peer", &["a:3"]),
    ("tool:ShElL::RUN_bash", &["a:3"]),
    ("model:opus", &["a:4"]),
    ("agent:reviewer", &["a:4"]),
    ("is:title", &["b:0"]),
    ("is:thinking config", &["a:4"]),
    ("is:thinking build", &[]),
    ("is:call build", &["a:4"]),
    ("is:call config", &[]),
    ("is:call is:thinking build config", &["a:4"]),
    ("build config", &["a:4"]),
    ("before:2026-11-01", &["a:4"]),
    ("after:2026-09-01 before:2026-10-01", &["a:4"]),
    ("hello after:1d", &["a:1", "b:0"]),
    ("session:b", &["b:0", "b:1"]),
    ("project:/home/ann hello", &["a:1"]),
    ("project:bough hello", &["a:1"]),
    ("outdated", &[]),
    ("outdated is:old", &["a:2"]),
];

async fn words_and_filters(index: &dyn SearchIndex) {
    let mut tool = document(3, FieldKind::Result, "connection reset by peer in src/net/socket.rs");
    tool.role = Some(Role::FunctionResult);
    tool.tools = vec!["shell::run_bash".to_owned()];
    let mut thought = document(
        4,
        FieldKind::Thinking,
        "parseConfigFile \u{65e5}\u{672c}\u{8a9e}\u{306e}\u{6587}\u{7ae0}",
    );
    let call = "cargo build caf\u{e9} \u{d55c}\u{ad6d}\u{c5b4}".to_owned();
    thought.fields.push(Field { kind: FieldKind::Call, text: call });
    thought.role = Some(Role::Assistant);
    thought.model = Some("anthropic claude-opus-4".to_owned());
    thought.agent = Some("reviewer".to_owned());
    thought.at_ms = NOW - 60 * 24 * 60 * 60 * 1000;
    let mut old = message(2, "outdated words");
    old.old_revision = Some(0);
    let facts = SessionFacts {
        metadata: json!({"owner": "ann", "n": 3}).as_object().unwrap().clone(),
        project: Some("/home/ann/bough".to_owned()),
        agent: None,
    };
    let SessionUpdate::Put(mut first) =
        put("a", 0, 4, vec![message(1, "Hello WORLD"), message(2, "new"), old, tool, thought])
    else {
        return;
    };
    first.facts = Some(facts);
    let second =
        put("b", 0, 1, vec![document(0, FieldKind::Title, "hello again"), message(1, "peer")]);
    apply(index, vec![SessionUpdate::Put(first), second]).await;
    for (query, expected) in QUERIES {
        assert_eq!(found(index, query).await, *expected, "{query}");
    }
    let query = parse_query("hello", NOW).unwrap();
    for (key, value, count) in
        [("owner", json!("ann"), 1), ("owner", json!("bob"), 0), ("n", json!(3), 1)]
    {
        let metadata = vec![(key, &value)];
        let ask = SearchAsk { query: &query, metadata, limit: 7, cursor: None, now_ms: NOW };
        assert_eq!(index.search(&ask).await.unwrap().candidates.len(), count, "{key}={value}");
    }
}

async fn an_excluded_phrase_is_of_one_text(index: &dyn SearchIndex) {
    let mut two = message(1, "fields end");
    two.fields.push(Field { kind: FieldKind::Text, text: "begin again".to_owned() });
    two.tools = vec!["read_file".to_owned(), "write_file".to_owned()];
    apply(index, vec![put("a", 0, 1, vec![two])]).await;
    for query in ["fields -\"end begin\"", "fields -endBegin", "fields -tool:file_write"] {
        assert_eq!(found(index, query).await, ["a:1"], "{query}");
    }
    assert!(found(index, "fields -AGAIN").await.is_empty());
}

async fn batches_are_whole(index: &dyn SearchIndex) {
    apply(index, vec![put("a", 0, 1, vec![message(1, "one")])]).await;
    let batch = |expected: &str, updates| IndexBatch {
        expected_cursor: Some(expected.to_owned()),
        cursor: Some("9".to_owned()),
        updates,
        is_waited_for: true,
    };
    let two =
        || vec![put("b", 0, 1, vec![message(1, "two")]), put("a", 5, 6, vec![message(6, "two")])];
    let elsewhere = index.apply(batch("0", two())).await;
    assert!(matches!(elsewhere, Err(SearchError::Conflict)));
    let hole = index.apply(batch("1", two())).await;
    assert!(matches!(hole, Err(SearchError::Conflict)));
    assert_eq!(index.cursor().await.unwrap().as_deref(), Some("1"));
    assert!(found(index, "two").await.is_empty());
    assert_eq!(index.session(&id("b")).await.unwrap(), None);
    assert_eq!(index.session(&id("a")).await.unwrap().unwrap().place.seq, 1);
}

async fn documents_are_replaced(index: &dyn SearchIndex) {
    apply(index, vec![put("a", 0, 2, vec![message(1, "first"), message(2, "second")])]).await;
    apply(index, vec![put("a", 2, 3, vec![message(1, "changed")])]).await;
    assert!(found(index, "first").await.is_empty());
    assert_eq!(found(index, "changed").await, ["a:1"]);
    assert_eq!(found(index, "second").await, ["a:2"]);
    let nothing = Document { seq: 2, ..Document::default() };
    apply(index, vec![put("a", 3, 4, vec![nothing])]).await;
    assert!(found(index, "second").await.is_empty());
}

async fn hidden_entries_leave_nothing(index: &dyn SearchIndex) {
    let mut old = message(1, "draft");
    old.old_revision = Some(0);
    apply(index, vec![put("a", 0, 3, vec![message(1, "secret"), old, message(2, "kept")])]).await;
    assert_eq!(found(index, "draft is:old").await, ["a:1"]);
    let SessionUpdate::Put(mut hide) = put("a", 3, 4, vec![]) else { return };
    hide.hidden = vec![1];
    apply(index, vec![SessionUpdate::Put(hide)]).await;
    assert!(found(index, "secret").await.is_empty());
    assert!(found(index, "draft is:old").await.is_empty());
    assert_eq!(found(index, "kept").await, ["a:2"]);
}

async fn many_sessions_are_narrowed_as_few_are(index: &dyn SearchIndex) {
    let many = crate::limits::SESSION_TERMS_MAX + 5;
    let updates = (0..2 * many).map(|number| {
        let name = format!("s{number}");
        let mut update = put(&name, 0, 1, vec![message(1, "word")]);
        if let SessionUpdate::Put(put) = &mut update {
            let owner = if number < many { "ann" } else { "bob" };
            put.facts = Some(SessionFacts {
                metadata: json!({"owner": owner, "n": number}).as_object().unwrap().clone(),
                project: Some(format!("/home/{owner}")),
                agent: None,
            });
        }
        update
    });
    apply(index, updates.collect()).await;
    for (query, count) in [
        ("word", 2 * many),
        ("word project:/home/ann", many),
        ("project:bob", many),
        ("word session:s3 project:/home/ann", 11),
        ("word session:nobody", 0),
        ("-word session:s3", 0),
    ] {
        assert_eq!(found(index, query).await.len(), count, "{query}");
    }
    let mut whole = parse_query("word session:s3", NOW).unwrap();
    whole.filters.is_whole_session = true;
    let ask = SearchAsk { query: &whole, metadata: vec![], limit: 99, cursor: None, now_ms: NOW };
    assert_eq!(index.search(&ask).await.unwrap().candidates.len(), 1, "and not s30");
    let query = parse_query("word", NOW).unwrap();
    for (key, value, count) in [("owner", json!("ann"), many), ("n", json!(3), 1)] {
        let metadata = vec![(key, &value)];
        let ask = SearchAsk { query: &query, metadata, limit: 999, cursor: None, now_ms: NOW };
        assert_eq!(index.search(&ask).await.unwrap().candidates.len(), count, "{key}={value}");
    }
}

async fn the_best_come_first(index: &dyn SearchIndex) {
    let documents = vec![
        message(1, "we saw the flaky test again and again"),
        message(2, "rare rare rare"),
        message(3, "test flaky"),
        message(4, "rare among many other words that say nothing of it"),
    ];
    apply(index, vec![put("a", 0, 4, documents)]).await;
    for (query, best) in [("flaky test", 1), ("rare", 2)] {
        assert_eq!(page(index, query, None).await.candidates[0].seq, best, "{query}");
    }
}

async fn sessions_go_and_come_back(index: &dyn SearchIndex) {
    let stale = |session: &str| SessionUpdate::Stale { session_id: id(session) };
    let gone = |incarnation| SessionUpdate::Remove { session_id: id("a"), incarnation };
    apply(index, vec![put("a", 0, 1, vec![message(1, "word")]), stale("b")]).await;
    assert_eq!(index.stale(9).await.unwrap()[0].session_id, id("b"));
    apply(index, vec![gone(Some(incarnation(2)))]).await;
    assert_eq!(found(index, "word").await, ["a:1"]);
    apply(index, vec![gone(Some(incarnation(1))), put("b", 0, 1, vec![])]).await;
    assert!(found(index, "word").await.is_empty());
    assert!(index.stale(9).await.unwrap().is_empty());
    assert_eq!(index.sessions(None, 9).await.unwrap().len(), 1);
    apply(index, vec![put("a", 0, 1, vec![message(1, "word")])]).await;
    assert_eq!(found(index, "word").await, ["a:1"]);
    // A batch from the beginning forgets everything indexed before.
    apply(index, vec![put("a", 0, 1, vec![message(1, "other")])]).await;
    assert!(found(index, "word").await.is_empty());
    assert_eq!(index.sessions(Some(&id("a")), 9).await.unwrap().len(), 1);
}

async fn pages_hold_everything_once(index: &dyn SearchIndex) {
    let many = u64::try_from(crate::limits::RANKED_TOGETHER).unwrap() + 25;
    let documents = (1..=many).map(|seq| message(seq, &format!("needle {}", "hay ".repeat(3))));
    apply(index, vec![put("a", 0, many, documents.collect())]).await;
    let all = found(index, "needle").await;
    assert_eq!(all.len(), usize::try_from(many).unwrap());
    let mut unique = all.clone();
    unique.dedup();
    assert_eq!(unique.len(), all.len());
    // A page can also go on after any one candidate.
    let first = page(index, "needle", None).await;
    let rest = page(index, "needle", first.candidates[2].cursor.as_deref()).await;
    assert_eq!(rest.candidates[0], first.candidates[3]);
    let query = parse_query("needle", NOW).unwrap();
    let cursor = Some("nonsense");
    let ask = SearchAsk { query: &query, metadata: vec![], limit: 7, cursor, now_ms: NOW };
    assert!(matches!(index.search(&ask).await, Err(SearchError::InvalidCursor)));
}

async fn a_clear_forgets(index: &dyn SearchIndex) {
    apply(index, vec![put("a", 0, 1, vec![message(1, "word")])]).await;
    index.clear().await.unwrap();
    assert_eq!(index.cursor().await.unwrap(), None);
    assert!(found(index, "word").await.is_empty());
    apply(index, vec![put("a", 0, 1, vec![message(1, "word")])]).await;
    assert_eq!(found(index, "word").await, ["a:1"]);
}

async fn one_at_a_time(index: &dyn SearchIndex) {
    let held = index.lock().await.unwrap();
    assert!(held.is_some());
    drop(held);
    assert!(index.lock().await.unwrap().is_some());
}
