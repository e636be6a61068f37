//! Files of the fs adapter that cannot be read: skipped, and named in the log.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use bough_platform::Platform;
use bough_store::{FsStore, ListQuery, Store};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Keeps the field `path` of every event.
#[derive(Clone, Default)]
struct Paths(Arc<Mutex<Vec<String>>>);

impl Visit for Paths {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "path" {
            self.0.lock().unwrap().push(format!("{value:?}").replace('"', ""));
        }
    }
}

impl Subscriber for Paths {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[tokio::test]
async fn a_file_that_cannot_be_read_is_named_once_and_hides_no_other() {
    let paths = Paths::default();
    tracing::subscriber::set_global_default(paths.clone()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let meta = r#"{"type":"meta","meta":{"session_id":"good","title":"t","description":"","status":"idle","created_at":1,"updated_at":1,"message_count":0}}"#;
    let write = |name: &str, bytes: &[u8]| std::fs::write(dir.path().join(name), bytes).unwrap();
    write("good.jsonl", format!("{meta}\n").as_bytes());
    write("binary.jsonl", &[0xff, 0xfe, b'\n', 0x80, b'\n']);
    write("half.jsonl", format!("{}\nnot json\n", meta.replace("good", "half")).as_bytes());
    write("not%zzname.jsonl", b"{}\n");
    write("notes.txt", b"nobody's business\n");
    std::fs::create_dir(dir.path().join("folder.jsonl")).unwrap();
    std::fs::create_dir(dir.path().join("folder")).unwrap();
    let store =
        FsStore::open(Platform::system(dir.path()).unwrap(), dir.path().to_owned()).unwrap();
    for _ in 0..2 {
        let page = store.list(&ListQuery { limit: 9, ..ListQuery::default() }).await.unwrap();
        let mut ids: Vec<String> =
            page.sessions.iter().map(|listed| listed.meta.session_id.to_string()).collect();
        ids.sort();
        assert_eq!(ids, ["good", "half"]);
    }
    let mut named = paths.0.lock().unwrap().clone();
    named.sort();
    let skipped = ["binary.jsonl", "folder.jsonl", "half.jsonl", "not%zzname.jsonl"];
    assert_eq!(named, skipped.map(|name| dir.path().join(name).display().to_string()));
}
