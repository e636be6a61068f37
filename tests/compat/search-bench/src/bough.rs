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

/// Entries of a session. Each length has a quarter of all entries: a short session is read whole, a long one is not, and both
/// must be quick to search.
const LENGTHS: [usize; 4] = [20, 200, 2_000, 20_000];
/// As many entries as the longest session has are in sessions of one length; then comes the next length.
const BLOCK: usize = 20_000;
/// Records that are written at once.
const BATCH: usize = 500;

/// The sessions, each as the numbers of its entries.
pub(crate) fn sessions(count: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let lengths = LENGTHS.iter().cycle();
    let blocks = (0..count).step_by(BLOCK).zip(lengths);
    blocks.flat_map(move |(block, length)| {
        let end = count.min(block + BLOCK);
        (block..end).step_by(*length).map(move |first| first..end.min(first + length))
    })
}

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
    let mut reported = 0;
    for (number, entries) in sessions(count).enumerate() {
        if entries.start >= reported {
            eprintln!("{} entries are written", entries.start);
            reported += 50_000;
        }
        let session = SessionId::from_stored(format!("bench-{number:06}"));
        let title = MetaChange {
            title: Some(corpus::word(entries.start as u64 % 60_000)),
            ..MetaChange::default()
        };
        let begun = store.create(&session, vec![Record::Meta(title).at(1)].into()).await?;
        let mut head = begun.head;
        let mut parent: Option<EntryId> = None;
        let mut batch = Vec::new();
        for number in entries.clone() {
            let said = corpus::entry(number, count);
            bytes += said.text.len();
            batch.push(record(number, &said, &mut parent)?);
            if batch.len() == BATCH || number + 1 == entries.end {
                let records = std::mem::take(&mut batch);
                let appended = store.append(&session, &head, records.into()).await?;
                head = appended.head;
                appended.durable.await?;
            }
        }
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
