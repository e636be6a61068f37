//! What is known to go wrong in the original, and does not here.
//!
//! The numbers are those of the list of weaknesses of session-manager 1.0.0 that this project keeps. Those about the command
//! line, the engine and delivery over a network have their tests with the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::ALLOCATOR;
use crate::common;
use crate::common::stores::{self, DiskFactory, DiskKind};
use crate::common::{CountingEntropy, HandClock, StoreFactory, TestService, assistant, user};
use bough_platform::{OsDisk, Platform, RelPath, SystemClock};
use bough_service::{Right, Scope, Service, Settings};
use bough_testkit::{Call, Fault, FaultPlan, SimDisk, SlowSync, SyncDelay};
use serde_json::{Value, json};
use stats_alloc::Region;

on_every_store!(
    w05_asking_for_what_is_not_there_leaves_nothing_behind,
    w08_a_streamed_reply_costs_what_it_says,
    w11_no_id_breaks_a_file_name_and_no_error_shows_a_path,
    w15_a_consumer_that_was_away_goes_on_where_it_stopped,
);

/// A service on a simulated disk, which can lose what was not synced.
pub(crate) struct OnSimDisk {
    pub(crate) disk: SimDisk,
    kind: DiskKind,
    /// Catalogues, one a service: they are made from the logs.
    catalogues: tempfile::TempDir,
    opened: AtomicU64,
    entropy: Arc<CountingEntropy>,
    clock: Arc<HandClock>,
}

impl OnSimDisk {
    pub(crate) fn new(kind: DiskKind) -> Self {
        let clock = HandClock::at(1_700_000_000_000);
        Self {
            disk: SimDisk::new().with_clock(clock.clone()),
            kind,
            catalogues: tempfile::tempdir().unwrap(),
            opened: AtomicU64::new(0),
            entropy: Arc::new(CountingEntropy::default()),
            clock,
        }
    }

    async fn service_on(&self, disk: SimDisk) -> TestService {
        let number = self.opened.fetch_add(1, Ordering::SeqCst);
        let root = self.catalogues.path().join(number.to_string());
        drop(bough_platform::OsDisk::create(&root).unwrap());
        let platform = Platform {
            disk: Arc::new(disk),
            clock: self.clock.clone(),
            entropy: self.entropy.clone(),
        };
        let store = self.kind.open_on(platform, root).await;
        let service = Service::new(store, self.clock.clone(), self.entropy.clone());
        TestService {
            service,
            scope: Scope::owner(),
            clock: self.clock.clone(),
            entropy: self.entropy.clone(),
            factory: stores::memory(),
        }
    }

    pub(crate) async fn service(&self) -> TestService {
        self.service_on(self.disk.clone()).await
    }

    /// A service on what is left when the power is cut now: only what was synced.
    async fn after_power_cut(&self) -> TestService {
        self.service_on(self.disk.platter()).await
    }
}

#[tokio::test]
async fn w01_what_was_acknowledged_survives_a_power_cut() {
    for kind in DiskKind::ALL {
        let sim = OnSimDisk::new(kind);
        let bed = sim.service().await;
        let id = bed.create(json!({"title": "kept"})).await;
        assert_eq!(sim.after_power_cut().await.meta(&id).await["title"], json!("kept"), "{kind:?}");
        let mut texts = Vec::new();
        for number in 0..5 {
            let entry = bed.say(&id, "").await;
            for step in 0..3 {
                texts.truncate(number);
                texts.push(format!("{number}.{step}"));
                bed.update(&id, &entry, &texts[number]).await;
                assert_eq!(sim.after_power_cut().await.texts(&id).await, texts, "{kind:?}");
            }
        }
        bed.ok("session::delete", json!({"session_id": id})).await;
        let after = sim.after_power_cut().await;
        assert_eq!(
            after.ok("session::get", json!({"session_id": id})).await,
            Value::Null,
            "{kind:?}"
        );
        assert_eq!(
            after.ok("session::list-trash", json!({})).await["sessions"][0]["meta"]["title"],
            json!("kept")
        );
    }
}

/// The files of a simulated disk that hold this text.
fn files_with(disk: &SimDisk, text: &str) -> Vec<(RelPath, Vec<u8>)> {
    let holds = |bytes: &[u8]| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    disk.files().into_iter().filter(|(_, bytes)| holds(bytes)).collect()
}

#[tokio::test]
async fn w02_a_torn_tail_costs_nothing_that_was_acknowledged() {
    for kind in DiskKind::ALL {
        let sim = OnSimDisk::new(kind);
        let bed = sim.service().await;
        let id = bed.create(json!({})).await;
        bed.say(&id, "first-marker").await;
        bed.ok("session::list", json!({})).await;
        drop(bed);
        for (path, mut bytes) in files_with(&sim.disk, "first-marker") {
            bytes.extend_from_slice(b"{\"type\":\"entry\",\"entry\":{\"kind\":\"mess");
            sim.disk.plant(&path, &bytes).unwrap();
        }
        let torn = sim.service_on(sim.disk.copy()).await;
        torn.say(&id, "second").await;
        assert_eq!(torn.texts(&id).await, ["first-marker", "second"], "{kind:?}");
        drop(torn);
    }
}

#[tokio::test]
async fn w03_an_append_is_there_as_a_whole_or_not_at_all() {
    let sim = OnSimDisk::new(DiskKind::Fs);
    let bed = sim.service().await;
    let id = bed.create(json!({})).await;
    bed.say(&id, "one-marker").await;
    let before = files_with(&sim.disk, "one-marker").remove(0);
    let messages = [user("two"), user("three")];
    bed.ok("session::append-many", json!({"session_id": id, "messages": messages})).await;
    let (path, after) = files_with(&sim.disk, "one-marker").remove(0);
    drop(bed);
    for cut in before.1.len()..=after.len() {
        let disk = sim.disk.copy();
        disk.plant(&path, &after[..cut]).unwrap();
        let bed = sim.service_on(disk).await;
        let texts = bed.texts(&id).await;
        // Without its last line break the batch is still whole.
        let whole = cut + 1 >= after.len();
        assert_eq!(texts.len(), if whole { 3 } else { 1 }, "cut at {cut}: {texts:?}");
        assert_eq!(bed.meta(&id).await["message_count"], json!(texts.len()), "cut at {cut}");
        bed.say(&id, "next").await;
        assert_eq!(bed.texts(&id).await.len(), texts.len() + 1, "cut at {cut}");
    }
}

#[tokio::test]
async fn w03_a_failed_write_is_not_shown_and_not_the_end() {
    for kind in DiskKind::ALL {
        let sim = OnSimDisk::new(kind);
        let bed = sim.service().await;
        let id = bed.create(json!({})).await;
        let other = bed.create(json!({})).await;
        bed.say(&id, "one").await;
        sim.disk.inject(FaultPlan::from(Fault::Broken, 1).only(Call::Sync));
        let request = json!({"session_id": id, "message": user("lost")});
        let (code, text) = bed.err("session::append", request).await;
        assert_eq!(code, "session/storage", "{kind:?}: {text}");
        sim.disk.heal();
        assert_eq!(bed.texts(&id).await, ["one"], "{kind:?}: what failed is not shown");
        bed.say(&other, "unharmed").await;
        // The session is opened again by itself. Whether what was never acknowledged is found then is the disk's choice; but
        // what is shown from now on is there to stay.
        bed.say(&id, "two").await;
        let shown = bed.texts(&id).await;
        assert_eq!(
            (shown.first().unwrap().as_str(), shown.last().unwrap().as_str()),
            ("one", "two")
        );
        assert_eq!(sim.after_power_cut().await.texts(&id).await, shown, "{kind:?}");
        assert!(bed.service.reopened_sessions() > 0, "{kind:?}");
    }
}

#[tokio::test]
async fn w04_one_bad_file_hides_no_other() {
    let factory = DiskFactory::new(DiskKind::Fs);
    let directory = factory.directory.path().to_owned();
    let factory: Arc<dyn StoreFactory> = Arc::new(factory);
    let mut bed = TestService::on(&factory).await;
    let id = bed.create(json!({})).await;
    bed.say(&id, "a").await;
    write(&directory.join("noise.jsonl"), b"\xff\xfe\x00 not text\n");
    write(&directory.join("empty.jsonl"), b"");
    write(&directory.join("%zz.jsonl"), b"{}\n");
    write(&directory.join("notes.txt"), b"hello");
    bed.reopen().await;
    assert_eq!(bed.pages("session::list", json!({})).await, std::slice::from_ref(&id));
    assert_eq!(bed.texts(&id).await, ["a"]);
}

#[expect(
    clippy::disallowed_methods,
    reason = "the test spoils the directory behind the store's back"
)]
fn write(path: &std::path::Path, bytes: &[u8]) {
    std::fs::write(path, bytes).unwrap();
}

async fn w05_asking_for_what_is_not_there_leaves_nothing_behind(bed: TestService) {
    let id = bed.create(json!({})).await;
    for number in 0..300 {
        let absent = format!("absent-{number}");
        assert_eq!(bed.ok("session::get", json!({"session_id": absent})).await, Value::Null);
        bed.err("session::append", json!({"session_id": absent, "message": user("a")})).await;
        bed.err("session::set-meta", json!({"session_id": absent})).await;
    }
    assert_eq!(bed.pages("session::list", json!({})).await, [id]);
    if let Some(directory) = bed.factory.directory() {
        let names = names_in(directory);
        assert!(names.iter().all(|name| !name.contains("absent")), "{names:?}");
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the test looks at the directory behind the store's back"
)]
fn names_in(directory: &std::path::Path) -> Vec<String> {
    let names = std::fs::read_dir(directory).unwrap();
    names.map(|name| name.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

#[expect(
    clippy::disallowed_methods,
    reason = "the test looks at the directory behind the store's back"
)]
fn bytes_in(directory: &std::path::Path) -> u64 {
    let entries = std::fs::read_dir(directory).unwrap();
    // The catalogue is derived from the logs, and made anew when it is missing.
    let is_catalogue =
        |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().starts_with("catalogue");
    entries
        .map(Result::unwrap)
        .filter(|entry| !is_catalogue(entry))
        .map(|entry| {
            if entry.file_type().unwrap().is_dir() {
                bytes_in(&entry.path())
            } else {
                entry.metadata().unwrap().len()
            }
        })
        .sum()
}

/// The original clones every entry of the session for each page.
#[tokio::test]
async fn w06_a_page_costs_the_same_however_long_the_session_is() {
    let bed = TestService::on(&stores::native()).await;
    let page_of = async |length: usize| {
        let id = bed.create(json!({})).await;
        for start in (0..length).step_by(500) {
            let messages: Vec<_> = (start..start + 500).map(|n| user(&format!("{n:08}"))).collect();
            bed.ok("session::append-many", json!({"session_id": id, "messages": messages})).await;
        }
        let ask = async || {
            let region = Region::new(ALLOCATOR);
            let page = bed.ok("session::messages", json!({"session_id": id, "limit": 20})).await;
            assert_eq!(page["messages"].as_array().unwrap().len(), 20);
            region.change().bytes_allocated
        };
        ask().await;
        let mut costs = [ask().await, ask().await, ask().await];
        costs.sort_unstable();
        costs[0]
    };
    let (short, long) = (page_of(500).await, page_of(5000).await);
    assert!(long < short + short / 2, "{long} bytes of memory for a page, instead of {short}");
}

/// The original reads and writes files on the thread that serves everybody.
#[tokio::test]
async fn w07_nobody_waits_for_the_disk_of_another_session() {
    for kind in DiskKind::ALL {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().to_owned();
        let (clock, entropy) = (Arc::new(SystemClock::new()), Arc::new(CountingEntropy::default()));
        let disk = Arc::new(OsDisk::create(&root).unwrap());
        let delay = SyncDelay::Instead(std::time::Duration::from_millis(100));
        let disk = Arc::new(SlowSync::new(disk, delay, clock.clone()));
        let platform = Platform { disk, clock: clock.clone(), entropy: entropy.clone() };
        let store = kind.open_on(platform, root).await;
        let service = Service::new(store, clock, entropy);
        let owner = Scope::owner();
        for session in ["slow", "other"] {
            let request = json!({"session_id": session});
            service.call(&owner, "session::ensure", request).await.unwrap();
        }
        let request = json!({"session_id": "slow", "message": user("a")});
        let append = service.call(&owner, "session::append", request);
        let get = service.call(&owner, "session::get", json!({"session_id": "other"}));
        tokio::select! {
            biased;
            _ = append => panic!("{kind:?}: the thread was held until the disk was done"),
            got = get => assert_eq!(got.unwrap()["meta"]["session_id"], json!("other")),
        }
    }
}

/// 2,000 steps of six bytes: the original writes 13 MB for these 12 kB.
async fn w08_a_streamed_reply_costs_what_it_says(bed: TestService) {
    let id = bed.create(json!({})).await;
    let entry = bed.append(&id, json!({"message": assistant("")})).await["entry_id"].clone();
    let before = bed.factory.directory().map(bytes_in);
    let mut reply = String::new();
    for _ in 0..2000 {
        reply.push_str("token ");
        bed.update(&id, entry.as_str().unwrap(), &reply).await;
    }
    bed.say(&id, "next").await;
    assert_eq!(bed.texts(&id).await, [reply.clone(), "next".to_owned()]);
    assert_eq!(bed.entry(&id, entry.as_str().unwrap()).await["revision"], json!(2000));
    if let (Some(before), Some(directory)) = (before, bed.factory.directory()) {
        let cost = bytes_in(directory) - before;
        let final_size = reply.len() as u64;
        assert!(cost <= 3 * final_size, "{cost} bytes for a reply of {final_size}");
    }
}

async fn w11_no_id_breaks_a_file_name_and_no_error_shows_a_path(mut bed: TestService) {
    let longest = "é".repeat(256);
    let ids = [
        longest.as_str(),
        "A",
        "a",
        ".",
        "..",
        "con",
        "nul.jsonl",
        "a/../../b",
        "%41",
        "a\\b",
        "x:y",
        "a\u{0}b",
        "a\nb",
    ];
    for id in ids {
        bed.ok("session::ensure", json!({"session_id": id, "title": id})).await;
        bed.say(id, id).await;
    }
    bed.reopen().await;
    for id in ids {
        assert_eq!(bed.texts(id).await, [id]);
    }
    assert_eq!(bed.pages("session::list", json!({"limit": 100})).await.len(), ids.len());
    let place = bed.factory.directory().map(|path| path.to_string_lossy().into_owned());
    for id in ["", &"x".repeat(513)] {
        let (code, text) = bed.err("session::ensure", json!({"session_id": id})).await;
        assert!(
            ["session/invalid_request", "session/too_large"].contains(&code.as_str()),
            "{code}"
        );
        assert!(place.as_ref().is_none_or(|place| !text.contains(place)), "{text}");
    }
    for id in ids {
        assert_eq!(
            bed.ok("session::delete", json!({"session_id": id})).await,
            json!({"deleted": true}),
            "{id}"
        );
    }
}

/// The original panics, and its callers wait until they give up.
#[tokio::test]
async fn w09_a_page_limit_of_zero_still_gives_a_page() {
    let bed = TestService::on(&stores::memory()).await;
    let id = bed.create(json!({})).await;
    bed.say(&id, "a").await;
    bed.say(&id, "b").await;
    let settings = Settings { default_list_limit: 0, max_list_limit: 0, ..Settings::default() };
    bed.service.set_settings(settings);
    for limit in [json!(null), json!(0), json!(500)] {
        let request = json!({"session_id": id, "limit": limit});
        let page = bed.ok("session::messages", request).await;
        assert_eq!(page["messages"].as_array().unwrap().len(), 1, "{limit}");
        assert!(page.get("next_cursor").is_some(), "and the next one is to be had");
        let page = bed.ok("session::list", json!({"limit": limit})).await;
        assert_eq!(page["sessions"].as_array().unwrap().len(), 1, "{limit}");
    }
}

/// The original knows no owners, and its store protocol goes past every rule.
#[tokio::test]
async fn w12_what_is_not_yours_is_not_there_and_the_store_protocol_needs_a_right() {
    let bed = TestService::on(&stores::memory()).await;
    let theirs = bed.create(json!({"metadata": {"owner": "u_2"}})).await;
    let scope = Scope::new("u_1", [Right::Read, Right::Write])
        .only_sessions_with(common::object(json!({"owner": "u_1"})));
    let mine = bed.with_scope(scope);
    let missing = mine.err("session::messages", json!({"session_id": "nowhere"})).await;
    let hidden = mine.err("session::messages", json!({"session_id": theirs})).await;
    assert_eq!(hidden.0, missing.0);
    assert_eq!(hidden.1.replace(&theirs, "nowhere"), missing.1, "word for word");
    assert_eq!(mine.pages("session::list", json!({})).await, Vec::<String>::new());
    let (code, _) = mine.err("session::store::get-meta", json!({"session_id": theirs})).await;
    assert_eq!(code, "session/forbidden");
}

#[tokio::test]
async fn w13_two_writers_of_one_directory_are_distinguished() {
    let factory = stores::fs();
    let (first, second) = (TestService::on(&factory).await, TestService::on(&factory).await);
    let id = first.create(json!({})).await;
    first.say(&id, "a").await;
    // The second reads, and its refused write names the writer.
    assert_eq!(second.texts(&id).await, ["a"]);
    let (code, text) =
        second.err("session::append", json!({"session_id": id, "message": user("b")})).await;
    assert_eq!(code, "session/locked");
    assert!(text.contains("process"), "{text}");
    first.say(&id, "c").await;
    assert_eq!(second.texts(&id).await, ["a", "c"]);
    first.service.store().close().await.unwrap();
    second.say(&id, "d").await;
    assert_eq!(first.texts(&id).await, ["a", "c", "d"]);
}

async fn w15_a_consumer_that_was_away_goes_on_where_it_stopped(mut bed: TestService) {
    let id = bed.create(json!({})).await;
    bed.say(&id, "heard").await;
    let heard = bed.ok("session::watch", json!({"session_id": id, "after": "start"})).await;
    assert_eq!(heard["events"].as_array().unwrap().len(), 2);
    bed.say(&id, "missed").await;
    bed.reopen().await;
    bed.say(&id, "after").await;
    let rest = bed.ok("session::watch", json!({"session_id": id, "after": heard["next"]})).await;
    let texts: Vec<_> = rest["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| common::text(&event["payload"]["message"]))
        .collect();
    assert_eq!(texts, ["missed", "after"]);
    assert_eq!(rest["gap"], json!(false));
}
