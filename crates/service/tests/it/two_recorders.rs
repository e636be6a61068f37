//! Two recorders of one session, in one process and in two.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bough_platform::{OsEntropy, Platform, SystemClock};
use bough_recorder::{
    AgentEvent, DurableError, DurableOptions, DurableRecorder, LoopStatus, RecordSink as _,
    RecordedSession, fold_records,
};
use bough_service::{RecordingSink, Scope, Service, ServiceError};
use bough_session::{MetaChange, Record, SessionId};
use bough_store::{MemoryStore, NativeOptions, NativeStore, Store, StoreExt};

fn start(number: u32) -> AgentEvent {
    let text = format!(
        r#"{{"type":"AgentStart","agent_id":"a","session_id":"s","loop_id":"s.c.{number}",
            "parent_loop_id":null,"timestamp":"2026-01-01T00:00:0{number}Z","metadata":null}}"#
    );
    AgentEvent::from_json(&text).unwrap()
}

fn end(number: u32) -> AgentEvent {
    let text = format!(
        r#"{{"type":"AgentEnd","loop_id":"s.c.{number}","messages":[],
            "usage":{{"input":1,"output":1}},"timestamp":"2026-01-01T00:00:0{number}Z"}}"#
    );
    AgentEvent::from_json(&text).unwrap()
}

fn service(store: &Arc<dyn Store>) -> Service {
    Service::new(Arc::clone(store), Arc::new(SystemClock::new()), Arc::new(OsEntropy))
}

fn sink(service: &Service) -> RecordingSink {
    RecordingSink::new(service, &Scope::owner())
}

fn recorder(service: &Service) -> DurableRecorder<RecordingSink> {
    DurableRecorder::start(Arc::new(sink(service)), DurableOptions::default())
}

async fn says(recorder: &DurableRecorder<RecordingSink>, event: AgentEvent) {
    recorder.record(event).await.unwrap();
    recorder.sync().await.unwrap();
}

async fn stored(service: &Service) -> RecordedSession {
    let records = sink(service).load("s").await.unwrap();
    fold_records("s", &records).unwrap()
}

/// A store of a directory that closes sessions when they were idle for this long.
async fn native(dir: &Path, idle: Duration) -> Arc<dyn Store> {
    let platform = Platform::system(dir).unwrap();
    let options = NativeOptions { idle, ..NativeOptions::default() };
    Arc::new(NativeStore::open(platform, dir.to_owned(), options).await.unwrap())
}

async fn stores(dir: &Path) -> Vec<Arc<dyn Store>> {
    let platform = Platform::system(dir).unwrap();
    let memory = MemoryStore::new(Arc::clone(&platform.entropy)).unwrap();
    let native = NativeStore::open(platform, dir.to_owned(), NativeOptions::default()).await;
    vec![Arc::new(memory), Arc::new(native.unwrap())]
}

#[tokio::test]
async fn a_session_with_an_open_loop_has_one_recorder() {
    let folder = tempfile::tempdir().unwrap();
    for store in stores(folder.path()).await {
        let service = service(&store);
        let (first, second) = (recorder(&service), recorder(&service));
        says(&first, start(1)).await;
        second.record(start(2)).await.unwrap();
        let refused = second.sync().await.unwrap_err();
        let DurableError::NotStored { source, .. } = refused else { panic!("{refused}") };
        assert!(matches!(*source, ServiceError::Locked { .. }), "{source}");
        assert_eq!(second.finish().await.unwrap().events_not_stored, 1);
        says(&first, end(1)).await;
        let session = stored(&service).await;
        let loops: Vec<_> = session.loops.iter().map(|one| (&*one.loop_id, one.status)).collect();
        assert_eq!(loops, [("s.c.1", LoopStatus::Completed)]);
        store.close().await.unwrap();
    }
}

#[tokio::test]
async fn recorders_take_turns_between_loops() {
    let folder = tempfile::tempdir().unwrap();
    for store in stores(folder.path()).await {
        let service = service(&store);
        let (first, second) = (recorder(&service), recorder(&service));
        for (number, recorder) in
            [(1, &first), (2, &second), (3, &first), (4, &first), (5, &second)]
        {
            says(recorder, start(number)).await;
            says(recorder, end(number)).await;
        }
        let session = stored(&service).await;
        assert_eq!(session.loops.len(), 5);
        assert!(session.loops.iter().all(|one| one.status == LoopStatus::Completed));
        for recorder in [first, second] {
            let recording = recorder.finish().await.unwrap();
            assert!(recording.failures.is_empty(), "{:?}", recording.failures);
        }
        store.close().await.unwrap();
    }
}

#[tokio::test]
async fn what_is_not_recorded_stops_no_recorder() {
    let folder = tempfile::tempdir().unwrap();
    for store in stores(folder.path()).await {
        let service = service(&store);
        let id = SessionId::parse("s").unwrap();
        let recorder = recorder(&service);
        says(&recorder, start(1)).await;
        for event in [end(1), start(2)] {
            let head = store.state(&id).await.unwrap().unwrap().head;
            let title = MetaChange { title: Some("mine".to_owned()), ..MetaChange::default() };
            store.append(&id, &head, vec![Record::Meta(title).at(1)].into()).await.unwrap();
            says(&recorder, event).await;
        }
        assert!(recorder.finish().await.unwrap().failures.is_empty());
        assert_eq!(stored(&service).await.loops.len(), 2);
        store.close().await.unwrap();
    }
}

/// Another recorder writes the log of an agent's loop while this recorder believes that it owns it.
#[tokio::test]
async fn a_recorder_that_was_overtaken_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let platform = Platform::system(folder.path()).unwrap();
    let memory = MemoryStore::new(Arc::clone(&platform.entropy)).unwrap();
    let store: Arc<dyn Store> = Arc::new(memory.clone());
    // Another handle of the same sessions, as another process has on a store without locks.
    let elsewhere: Arc<dyn Store> = Arc::new(memory);
    let (first, second) = (recorder(&service(&store)), recorder(&service(&elsewhere)));
    says(&first, start(1)).await;
    says(&second, start(2)).await;
    first.record(end(1)).await.unwrap();
    let refused = first.sync().await.unwrap_err();
    let DurableError::NotStored { source, .. } = refused else { panic!("{refused}") };
    assert!(matches!(*source, ServiceError::Locked { .. }), "{source}");
}

/// The stores stand for two processes. The first closes sessions as soon as they are idle.
#[tokio::test]
async fn a_session_with_an_open_loop_stays_locked_when_it_is_idle() {
    let folder = tempfile::tempdir().unwrap();
    let store = native(folder.path(), Duration::ZERO).await;
    let elsewhere = native(folder.path(), Duration::from_secs(600)).await;
    let title = |text: &str| {
        let title = MetaChange { title: Some(text.to_owned()), ..MetaChange::default() };
        vec![Record::Meta(title).at(1)]
    };
    let service_of_first = service(&store);
    let first = recorder(&service_of_first);
    says(&first, start(1)).await;

    // A session without a loop shows when idle sessions are closed.
    let idle = SessionId::parse("idle").unwrap();
    let head = store.create(&idle, title("a").into()).await.unwrap().head;
    let head = store.append(&idle, &head, title("b").into()).await.unwrap().head;
    let taken_up = async {
        while elsewhere.append(&idle, &head, title("c").into()).await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), taken_up).await.unwrap();

    let second = recorder(&service(&elsewhere));
    second.record(start(2)).await.unwrap();
    let refused = second.sync().await.unwrap_err();
    let DurableError::NotStored { source, .. } = refused else { panic!("{refused}") };
    assert!(matches!(*source, ServiceError::Locked { .. }), "{source}");
    assert_eq!(second.finish().await.unwrap().events_not_stored, 1);
    says(&first, end(1)).await;
    let session = stored(&service_of_first).await;
    let loops: Vec<_> = session.loops.iter().map(|one| (&*one.loop_id, one.status)).collect();
    assert_eq!(loops, [("s.c.1", LoopStatus::Completed)]);
}
