//! A data directory and V1 files on one disk, real or simulated, and what they must come to.

pub(crate) mod pieces;

use std::sync::Arc;

use bough_log::{Maintenance, Options};
use bough_migrate::{MigrateError, Migrator, Outcome, Plan, Result, Summary, V1File, V1Files};
use bough_platform::{Disk, Platform, RelPath};
use bough_session::codec;
use bough_session::{Entry, EntryId, NewRecord, Record, SessionId};
use bough_store::{MemoryStore, SessionDirectory, StoreExt};
use bough_testkit::{SimClock, SimDisk, SimEntropy};
use serde_json::{Value, json};

/// V1 files by their paths on one disk.
#[derive(Clone, Debug)]
pub(crate) struct DiskFiles(pub(crate) Arc<dyn Disk>);

impl V1Files for DiskFiles {
    fn locate(&self, address: &str) -> Result<V1File> {
        Ok(V1File::new(address, Arc::clone(&self.0), RelPath::parse(address)?))
    }

    fn list(&self, address: &str) -> Result<Vec<(String, bool)>> {
        let listed = self.0.list(&RelPath::parse(address)?)?;
        Ok(listed.into_iter().map(|l| (format!("{address}/{}", l.name), l.is_dir)).collect())
    }
}

pub(crate) fn path(text: &str) -> RelPath {
    RelPath::parse(text).unwrap()
}

pub(crate) fn platform(disk: Arc<dyn Disk>, seed: u64) -> Platform {
    Platform {
        disk,
        clock: Arc::new(SimClock::default()),
        entropy: Arc::new(SimEntropy::new(seed)),
    }
}

/// So that a short file is more than one batch.
pub(crate) const BATCH: usize = 3;

/// Small sizes, so that a short file has segments, an index and checkpoints.
pub(crate) fn small() -> Options {
    Options {
        maintenance: Maintenance::Inline,
        segment_bytes: 1_500,
        checkpoint_every_bytes: 3_000,
        tiny_bytes: 0,
        tail_rows_max: 4,
        ..Options::default()
    }
}

pub(crate) fn inline() -> Options {
    Options { maintenance: Maintenance::Inline, ..Options::default() }
}

/// The logs of sessions.
pub(crate) type LogStore = bough_log::LogStore<bough_session::SessionState>;

pub(crate) fn migrator(disk: &SimDisk, options: Options, seed: u64) -> Migrator {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    migrator_on(disk, options, seed)
}

pub(crate) fn migrator_on(disk: Arc<dyn Disk>, options: Options, seed: u64) -> Migrator {
    let platform = platform(Arc::clone(&disk), seed);
    let sessions = SessionDirectory::open(platform.clone(), options).unwrap();
    Migrator::over(sessions, platform, Arc::new(DiskFiles(disk))).in_batches_of(BATCH)
}

/// The session that most tests are about.
pub(crate) fn session_s() -> SessionId {
    SessionId::from_stored("s")
}

/// A second look at the logs of a disk.
pub(crate) fn logs(disk: &SimDisk) -> LogStore {
    logs_on(Arc::new(disk.clone()))
}

pub(crate) fn logs_on(disk: Arc<dyn Disk>) -> LogStore {
    LogStore::open_to_look(platform(disk, 99), inline())
}

pub(crate) fn plan(migrator: &Migrator, address: &str) -> Plan {
    migrator.plan(address, &mut |_| {}).unwrap()
}

pub(crate) fn try_migrate(migrator: &Migrator, address: &str) -> Result<Summary> {
    let plan = migrator.plan(address, &mut |_| {})?;
    migrator.migrate(plan, None, &mut |_| {})
}

pub(crate) fn migrate(migrator: &Migrator, address: &str) -> Summary {
    let summary = try_migrate(migrator, address).unwrap();
    assert_eq!(summary.outcome, Outcome::Migrated);
    summary
}

/// Every record of a log, decoded.
pub(crate) fn records(log: &LogStore, session: &str) -> Vec<NewRecord> {
    let reader = log.read_segments(session).unwrap();
    assert_eq!(reader.damage(), None);
    let mut found = Vec::new();
    loop {
        let page = reader.records(found.len() as u64, 1_000, |stored| stored.into_owned()).unwrap();
        if page.is_empty() {
            return found;
        }
        for stored in page {
            let at_ms = stored.envelope.at_ms;
            found.push(codec::decode(stored.envelope).at(at_ms));
        }
    }
}

pub(crate) fn entries(records: &[NewRecord]) -> Vec<Entry> {
    records.iter().filter_map(|new| new.record.as_entry().cloned()).collect()
}

/// A store that holds one session made of records.
pub(crate) async fn memory(session: &str, records: Vec<NewRecord>) -> MemoryStore {
    let store = MemoryStore::new(Arc::new(SimEntropy::new(3))).unwrap();
    let appended = store.create(&SessionId::from_stored(session), records.into()).await.unwrap();
    appended.durable.await.unwrap();
    store
}

/// The lines of a text as values; lines that are not JSON as text; blank ones left out.
pub(crate) fn values(text: &[u8]) -> Vec<Value> {
    text.split(|byte| *byte == b'\n')
        .map(|line| String::from_utf8_lossy(line).trim_matches(['\r', ' ', '\t']).to_owned())
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_str(&line).unwrap_or(Value::from(line)))
        .collect()
}

pub(crate) fn header(id: &str) -> Value {
    json!({"type":"session","version":3,"id":id,"timestamp":"2024-12-03T14:00:00.000Z","cwd":"/p"})
}

pub(crate) fn message(id: &str, parent: Option<&str>, text: &str) -> Value {
    json!({"type":"message","id":id,"parentId":parent,"timestamp":"2024-12-03T14:00:01.000Z",
        "message":{"role":"user","content":text,"timestamp":1_733_234_401_000_i64}})
}

pub(crate) fn file(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// A session of some messages in a row and one branch.
pub(crate) fn sample(id: &str) -> String {
    file(&[
        header(id),
        message("a", None, "first"),
        message("b", Some("a"), "second"),
        message("c", Some("b"), "third"),
        message("d", Some("a"), "another second"),
        json!({"type":"label","id":"e","parentId":"d","timestamp":"2024-12-03T14:00:05.000Z","targetId":"b","label":"here"}),
    ])
}

/// A native entry, as a service writes one.
pub(crate) fn native_entry(id: &str, parent: Option<&str>, text: &str, at_ms: i64) -> Entry {
    Entry::new(
        EntryId::from_stored(id),
        parent.map(EntryId::from_stored),
        at_ms,
        bough_session::EntryBody::Message(
            bough_session::AgentMessage::User(bough_session::UserMessage::new(
                vec![bough_session::ContentBlock::text(text)],
                at_ms,
            ))
            .into(),
        ),
    )
}

pub(crate) fn log_record(record: &Record, at_ms: i64) -> bough_log::Envelope<'_> {
    codec::encode(record, at_ms)
}

pub(crate) fn is_exists(error: &MigrateError) -> bool {
    matches!(error, MigrateError::Exists { .. })
}

/// What answers for a session, and what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Nothing in the data directory knows of it.
    Unknown,
    Native(Vec<EntryText>),
    File(Vec<EntryText>),
}

/// An entry in short: id, parent, text.
pub(crate) type EntryText = (String, Option<String>, String);

pub(crate) fn texts_of(entries: &[Entry]) -> Vec<EntryText> {
    let text = |entry: &Entry| entry.message().map_or_else(String::new, |message| message.text());
    let parent = |entry: &Entry| entry.parent_id.as_ref().map(ToString::to_string);
    entries.iter().map(|entry| (entry.id.to_string(), parent(entry), text(entry))).collect()
}

pub(crate) fn live_entries(live: &bough_migrate::LiveV1) -> Vec<Entry> {
    let mut found = Vec::new();
    live.records(&mut |new| found.push(new)).unwrap();
    entries(&found)
}

pub(crate) fn answer(disk: &SimDisk, migrator: &Migrator, session: &str) -> Answer {
    answer_of(&logs(disk), migrator, session)
}

pub(crate) fn answer_of(log: &LogStore, migrator: &Migrator, session: &str) -> Answer {
    let Some(manifest) = log.manifest(session).unwrap() else { return Answer::Unknown };
    if manifest.active_store == bough_log::format::ActiveStore::NativeV2 {
        return Answer::Native(texts_of(&entries(&records(log, session))));
    }
    Answer::File(texts_of(&live_entries(
        &migrator.open_live(&SessionId::from_stored(session)).unwrap(),
    )))
}

pub(crate) fn bytes(disk: &SimDisk, address: &str) -> Vec<u8> {
    let disk: &dyn Disk = disk;
    disk.read_all(&path(address), u64::MAX).unwrap()
}

/// The bytes of a V1 database as the other program writes it.
pub(crate) fn database(lines: &[Value]) -> Vec<u8> {
    let database = rusqlite::Connection::open_in_memory().unwrap();
    database
        .execute_batch(
            "PRAGMA page_size = 512;
             CREATE TABLE pi_session_header (id TEXT PRIMARY KEY, json TEXT);
             CREATE TABLE pi_session_entries (seq INTEGER PRIMARY KEY, json TEXT);
             CREATE TABLE pi_session_meta (key TEXT PRIMARY KEY, value TEXT);
             INSERT INTO pi_session_meta VALUES ('message_count', '4'), ('name', 'Old');",
        )
        .unwrap();
    let (header, entries) = lines.split_first().unwrap();
    let insert = "INSERT INTO pi_session_header VALUES (?1, ?2)";
    database.execute(insert, ["s", &header.to_string()]).unwrap();
    for line in entries {
        let insert = "INSERT INTO pi_session_entries (json) VALUES (?1)";
        database.execute(insert, [line.to_string()]).unwrap();
    }
    database.serialize(rusqlite::MAIN_DB).unwrap().to_vec()
}
