//! Sessions in Bough's store, and the index that follows it.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use bough_platform::{OsEntropy, Platform, SystemClock};
use bough_search::NativeIndex;
use bough_service::{Scope, Service};
use bough_session::{
    AgentMessage, Entry, EntryBody, EntryId, MetaChange, NewRecord, Record, SessionId,
};
use bough_store::{Durability, NativeOptions, NativeStore, StoreExt};
use serde_json::{Value, json};

use crate::measure::as_f64;
use crate::report::Row;
use crate::{Made, Options, Outcome, corpus, entries, place, processor_seconds};

/// Entries of one session.
pub(crate) const SESSION: usize = 100;

/// A service on a folder.
pub(crate) struct Served {
    pub(crate) service: Service,
    scope: Scope,
}

impl Served {
    pub(crate) async fn open(
        folder: &Path,
        durability: Durability,
        is_indexed: bool,
    ) -> Outcome<Self> {
        let platform = Platform::system(folder)?;
        let options = NativeOptions { durability, ..NativeOptions::default() };
        let store = NativeStore::open(platform.clone(), folder.to_owned(), options).await?;
        let service =
            Service::new(Arc::new(store), Arc::new(SystemClock::new()), Arc::new(OsEntropy));
        if is_indexed {
            let index = NativeIndex::in_folder(platform.disk, folder, platform.clock)?;
            service.set_search_index(Some(Arc::new(index)));
        }
        Ok(Self { service, scope: Scope::owner() })
    }

    pub(crate) async fn call(&self, function: &str, request: Value) -> Outcome<Value> {
        Ok(self.service.call(&self.scope, function, request).await?)
    }

    pub(crate) async fn close(&self) -> Outcome<()> {
        Ok(self.service.store().close().await?)
    }
}

/// Makes the sessions and their index, each unless it is there, and says what the index cost.
pub(crate) fn rows(options: &Options) -> Outcome<Vec<Row>> {
    let made = made(options)?;
    let millions = as_f64(entries()?) / 1e6;
    let (words, different) = corpus::density();
    Ok(vec![
        Row::new("words of the text", "per kB", words),
        Row::new("different words of an entry", "per kB", different),
        Row::new(format!("text, {millions} million entries"), "MB", made.text_bytes / 1e6),
        Row::new("index over text", "times", made.size()),
        Row::new("processor time of indexing", "s/MB", made.processor()),
        Row::new("indexing from the beginning", "MB/s", made.rate()),
    ])
}

pub(crate) fn made(options: &Options) -> Outcome<Made> {
    let folder = place(options)?;
    let store = folder.join("bough");
    std::fs::create_dir_all(&store)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let text = folder.join("text.json");
        let text_bytes: f64 = match std::fs::read_to_string(&text) {
            Ok(known) => known.trim().parse()?,
            Err(_) => {
                let bytes = fill(&store, entries()?).await?;
                std::fs::write(&text, bytes.to_string())?;
                bytes
            }
        };
        if let Some(made) = Made::kept(&folder, "bough") {
            return Ok(made);
        }
        let served = Served::open(&store, Durability::Synced, true).await?;
        let (began, before) = (Instant::now(), processor_seconds()?);
        let mut asked = 0;
        while served.call("session::search-status", json!({})).await?["is_complete"] != json!(true)
        {
            asked += 1;
            if asked % 30 == 0 {
                eprintln!("indexing for {:.0?}", began.elapsed());
            }
        }
        let seconds = began.elapsed().as_secs_f64();
        let processor = processor_seconds()? - before;
        served.close().await?;
        // The last connection takes the write-ahead log into the file.
        drop(served);
        let index_bytes = crate::bytes_of(&store, "search.sqlite")?;
        let made = Made { text_bytes, index_bytes, processor_seconds: processor, seconds };
        made.keep(&folder, "bough")?;
        Ok(made)
    })
}

/// Writes the sessions past the rules, in large batches: how they came to be is not what is measured.
async fn fill(folder: &Path, count: usize) -> Outcome<f64> {
    let served = Served::open(folder, Durability::MayLoseNewestOnPowerCut, false).await?;
    let store = served.service.store();
    let mut bytes = 0;
    for first in (0..count).step_by(SESSION) {
        if first % 50_000 == 0 {
            eprintln!("{first} entries are written");
        }
        let session = SessionId::from_stored(format!("bench-{:06}", first / SESSION));
        let title = MetaChange {
            title: Some(corpus::word(first as u64 % 60_000)),
            ..MetaChange::default()
        };
        let mut records = vec![Record::Meta(title).at(1)];
        let mut parent: Option<EntryId> = None;
        for number in first..count.min(first + SESSION) {
            let said = corpus::entry(number, count);
            bytes += said.text.len();
            records.push(record(number, &said, &mut parent)?);
        }
        store.create(&session, records.into()).await?.durable.await?;
    }
    served.close().await?;
    Ok(as_f64(bytes))
}

fn record(number: usize, said: &corpus::Said, parent: &mut Option<EntryId>) -> Outcome<NewRecord> {
    let id = EntryId::from_stored(format!("e_{number:032x}"));
    let above = parent.replace(id.clone());
    let at = i64::try_from(said.at_ms)?;
    let message: AgentMessage = serde_json::from_value(said.message.clone())?;
    let entry = Entry::new(id, above, at, EntryBody::Message(message.into()));
    Ok(Record::Entry(entry).at(at))
}
