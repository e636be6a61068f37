//! A reply that streams: what it costs on the disk once it has settled, and how fast it goes.

use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::sides::{Safety, Side};
use crate::measure::as_f64;
use crate::report::Row;
use crate::{Options, Outcome};

/// The reply grows to about 12 kB, in this many steps.
const STEPS: usize = 2000;
/// What each step adds.
const TOKEN: &str = "token ";

/// How a step says what is new.
#[derive(Clone, Copy)]
enum Form {
    /// The whole content anew, as the original's clients do.
    Update,
    /// Only what is added.
    Delta,
}

struct Streamed {
    bytes: f64,
    rate: f64,
}

pub(super) fn rows(options: &Options) -> Outcome<Vec<Row>> {
    let native = stream(options, Side::Native, Form::Update)?;
    let delta = stream(options, Side::Native, Form::Delta)?;
    let fs = stream(options, Side::Fs, Form::Update)?;
    let size = as_f64(STEPS * TOKEN.len());
    let original = as_f64(bytes_of_original());
    let per_byte = "bytes on disk per byte of the reply";
    Ok(vec![
        Row::new("a reply in 2000 update-message calls, settled", per_byte, native.bytes / size)
            .beside("fs", fs.bytes / size)
            .beside("original_computed", original / size),
        Row::new("a reply in 2000 append-delta calls, settled", per_byte, delta.bytes / size),
        Row::new("update-message, durable", "calls/s", native.rate).beside("fs", fs.rate),
        Row::new("append-delta, durable", "calls/s", delta.rate),
    ])
}

fn stream(options: &Options, side: Side, form: Form) -> Outcome<Streamed> {
    eprintln!("streaming: {STEPS} steps, {}", side.name());
    let folder = tempfile::tempdir_in(&options.folder)?;
    let runtime = Runtime::new()?;
    runtime.block_on(async {
        let served = side.serve(folder.path(), Safety::Synced).await?;
        served.call("session::ensure", json!({"session_id": "s"})).await?;
        let request = json!({"session_id": "s", "entry_id": "e", "message": reply("")});
        served.call("session::append", request).await?;
        // Once, so that the folder holds everything that a session has beside the reply.
        served.close().await?;
        let before = size_of(folder.path())?;
        let mut text = String::new();
        let began = Instant::now();
        for _ in 0..STEPS {
            text.push_str(TOKEN);
            match form {
                Form::Update => {
                    let content = json!([{"type": "text", "text": text}]);
                    let request = json!({"session_id": "s", "entry_id": "e", "content": content});
                    served.call("session::update-message", request).await?;
                }
                Form::Delta => {
                    let request =
                        json!({"session_id": "s", "entry_id": "e", "block": 0, "text": TOKEN});
                    served.call("session::append-delta", request).await?;
                }
            }
        }
        let rate = as_f64(STEPS) / began.elapsed().as_secs_f64();
        served.close().await?;
        let bytes = as_f64(size_of(folder.path())?.saturating_sub(before));
        Ok(Streamed { bytes, rate })
    })
}

fn reply(text: &str) -> Value {
    json!({
        "role": "assistant", "content": [{"type": "text", "text": text}], "stop_reason": "end",
        "model": "m", "provider": "p", "timestamp": 1_795_000_000_000_i64,
    })
}

/// What the original writes for the same calls: the whole entry and the session's meta, each time.
fn bytes_of_original() -> usize {
    let meta = json!({"type": "meta", "meta": {
        "session_id": "s", "title": "", "description": "", "status": "idle",
        "created_at": 1_795_000_000_000_i64, "updated_at": 1_795_000_000_000_i64, "message_count": 1,
    }});
    let of_step = |step: usize| {
        let entry = json!({"type": "entry", "entry": {
            "kind": "message", "id": "e", "parent_id": null, "timestamp": 1_795_000_000_000_i64,
            "revision": step, "message": reply(&TOKEN.repeat(step)),
        }});
        entry.to_string().len() + meta.to_string().len() + 2
    };
    (1..=STEPS).map(of_step).sum()
}

/// The bytes of the sessions in a folder. The catalogue is derived, and shared by all of them.
fn size_of(folder: &Path) -> Outcome<usize> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if entry.file_type()?.is_dir() {
            bytes += size_of(&entry.path())?;
        } else if !name.to_string_lossy().starts_with("catalogue.sqlite") {
            bytes += usize::try_from(entry.metadata()?.len())?;
        }
    }
    Ok(bytes)
}
