//! The fs adapter on a simulated disk: a power cut after every operation, and files cut off anywhere.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::support::{create, entry_id, id, push, says, step, text_of, titled};
use bough_platform::{Platform, RelPath};
use bough_session::Incarnation;
use bough_store::{FsStore, Head, Store, StoreExt};
use bough_testkit::{ImageRules, SimClock, SimDisk, SimEntropy};
use tokio::runtime::Runtime;

fn open(disk: SimDisk) -> FsStore {
    let platform = Platform {
        disk: Arc::new(disk),
        clock: Arc::new(SimClock::at(1)),
        entropy: Arc::new(SimEntropy::new(7)),
    };
    FsStore::open(platform, PathBuf::new()).unwrap()
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// What can be seen of the session.
#[derive(Clone, Debug, PartialEq)]
struct View {
    live: Option<(Head, u64, BTreeMap<String, String>)>,
    trash: Vec<Incarnation>,
}

async fn view(store: &FsStore) -> View {
    let session = id("s");
    let snapshot = store.state(&session).await.unwrap();
    let mut texts = BTreeMap::new();
    for name in ["a", "b", "c"] {
        if let Some(text) = text_of(store, &session, name).await {
            texts.insert(name.to_owned(), text);
        }
    }
    let trash = store.trash(None).await.unwrap();
    View {
        live: snapshot.map(|snapshot| (snapshot.head, snapshot.position.step, texts)),
        trash: trash.iter().map(|trashed| trashed.incarnation).collect(),
    }
}

/// All that can happen to a session. After each step: how many disk operations there were, and what can be seen.
async fn live(disk: &SimDisk) -> Vec<(usize, View)> {
    let store = open(disk.clone());
    let session = id("s");
    let mut seen = vec![(0, View { live: None, trash: Vec::new() })];
    let mut note = async || seen.push((disk.operations(), view(&store).await));
    create(&store, &session).await;
    note().await;
    push(
        &store,
        &session,
        vec![says("a", None, "", 2), titled("u", 2), says("b", Some("a"), "b", 2)],
    )
    .await;
    note().await;
    for revision in 1..=2 {
        store.append_delta(&session, step("a", revision, "x")).await.unwrap();
        note().await;
    }
    push(&store, &session, vec![says("c", Some("b"), "c", 3)]).await;
    note().await;
    store.append_delta(&session, step("c", 1, "y")).await.unwrap();
    note().await;
    let incarnation = store.delete(&session, 9).await.unwrap().unwrap().incarnation;
    note().await;
    store.undelete(&session, incarnation, 10).await.unwrap();
    note().await;
    store.delete(&session, 11).await.unwrap().unwrap();
    note().await;
    create(&store, &session).await;
    note().await;
    store.purge(&session, incarnation, None).await.unwrap();
    note().await;
    seen
}

/// After a power cut at any moment there is what was acknowledged, or that and the step that was on its
/// way, whole; and the session goes on.
#[test]
fn a_power_cut_leaves_what_was_acknowledged() {
    let runtime = runtime();
    let disk = SimDisk::new();
    disk.record();
    let seen = runtime.block_on(live(&disk));
    let rules = ImageRules::seeded(1).torn_at_every_byte().combinations_max(200);
    let mut images = 0;
    disk.recording().walk(|point| {
        let done = seen.iter().rposition(|(number, _)| *number <= point.number()).unwrap();
        let allowed: Vec<&View> = seen.iter().skip(done).take(2).map(|(_, view)| view).collect();
        let found = point.images(&rules, |image| {
            let disk = image.disk();
            runtime.block_on(async {
                let found = view(&open(disk.clone())).await;
                assert!(
                    allowed.contains(&&found),
                    "after operation {} ({:?}): {found:#?}\nnot one of {allowed:#?}",
                    point.number(),
                    point.step(),
                );
                if image.ordinal() % 8 == 0 {
                    goes_on(disk).await;
                }
            });
        });
        images += found.images;
    });
    assert!(images > 500, "only {images} images");
}

/// Writing works on what a crash has left, and what is written is there.
async fn goes_on(disk: SimDisk) {
    let session = id("s");
    let store = open(disk.clone());
    if store.state(&session).await.unwrap().is_none() {
        create(&store, &session).await;
    }
    push(&store, &session, vec![says("z", None, "z", 20)]).await;
    let head = store.state(&session).await.unwrap().unwrap().head;
    drop(store);
    let store = open(disk.platter());
    assert_eq!(store.state(&session).await.unwrap().unwrap().head, head);
    assert_eq!(text_of(&store, &session, "z").await.as_deref(), Some("z"));
}

/// A file cut off anywhere holds whole batches, and goes on.
#[test]
fn a_file_cut_anywhere_is_a_prefix_in_whole_batches() {
    let runtime = runtime();
    let (whole, heads) = runtime.block_on(async {
        let disk = SimDisk::new();
        let store = open(disk.clone());
        create(&store, &id("s")).await;
        let mut heads = vec![None, Some(store.state(&id("s")).await.unwrap().unwrap().head)];
        for n in 0..3 {
            let (one, two) = (format!("a{n}"), format!("b{n}"));
            let first = says(&one, None, "é\nx", n);
            let batch = vec![first, titled("u", n), says(&two, Some(&one), "y", n)];
            heads.push(Some(push(&store, &id("s"), batch).await));
        }
        let path = RelPath::parse("s.jsonl").unwrap();
        let files = disk.files().into_iter().find(|(found, _)| *found == path);
        (files.unwrap().1, heads)
    });
    let mut seen = vec![None];
    for cut in 0..=whole.len() {
        let disk = SimDisk::new();
        disk.plant(&RelPath::parse("s.jsonl").unwrap(), &whole[..cut]).unwrap();
        runtime.block_on(async {
            let head = open(disk.clone()).state(&id("s")).await.unwrap().map(|found| found.head);
            assert!(heads.contains(&head), "cut at {cut}");
            if head != *seen.last().unwrap() {
                seen.push(head);
            }
            if cut % 4 != 0 {
                return;
            }
            goes_on(disk.clone()).await;
            let again = open(disk).entry(&id("s"), &entry_id("z")).await.unwrap();
            assert!(again.is_some(), "cut at {cut}");
        });
    }
    assert_eq!(seen, heads, "every batch was seen, one after the other");
}

proptest::proptest! {
    /// Whatever a file holds, it opens, what can be read is read, and it goes on.
    #[test]
    fn any_file_opens_and_goes_on(parts in proptest::collection::vec(part(), 0..12)) {
        let disk = SimDisk::new();
        disk.plant(&RelPath::parse("s.jsonl").unwrap(), &parts.concat()).unwrap();
        runtime().block_on(async {
            let whole = parts.iter().any(|part| part == META);
            let found = open(disk.clone()).state(&id("s")).await.unwrap();
            // A meta on a line of its own makes a session, whatever stands around it.
            if parts.first().is_some_and(|part| part == META) {
                assert!(found.is_some());
            }
            if !whole {
                assert!(found.is_none());
            }
            goes_on(disk).await;
        });
    }
}

const META: &[u8] = b"{\"type\":\"meta\",\"meta\":{\"session_id\":\"s\",\"title\":\"t\",\"description\":\"\",\"status\":\"idle\",\"created_at\":1,\"updated_at\":1,\"message_count\":0}}\n";

fn part() -> impl proptest::strategy::Strategy<Value = Vec<u8>> {
    let parts: [&[u8]; 12] = [
        META,
        b"{\"type\":\"entry\",\"entry\":{\"kind\":\"message\",\"id\":\"e\",\"parent_id\":\"e\",\"timestamp\":2,\"revision\":0,\"message\":{\"role\":\"user\",\"content\":[],\"timestamp\":1}}}\n",
        b"{\"type\":\"entry\",\"entry\":{\"kind\":\"custom\",\"id\":\"e\",\"timestamp\":2,\"custom_type\":\"bough.record\",\"data\":{\"kind\":\"rev\",\"target\":\"e\",\"revision\":9,\"at\":1,\"payload\":{}}}}\n",
        b"{\"type\":\"leaf\",\"entry_id\":\"nobody\"}\n",
        b"{\"type\":\"leaf\",\"entry_id\":null}",
        b" {\"type\":\"leaf\",\"entry_id\":\"e\"}\n",
        b"\t{\"type\":\"leaf\",\"entry_id\":\"e\"}\n",
        b"{\"type\":\"entry\",\"entry\":{\"ki",
        b"\n",
        b"\xff\xfe\x00\n",
        b"\t",
        b" ",
    ];
    proptest::sample::select(parts.map(<[u8]>::to_vec).to_vec())
}
