//! Fan-out: one writer, and few or many who hear it at once.

use std::sync::Arc;
use std::time::Instant;

use bough_service::{EventFilter, FeedItem, StartAt, Subscription};
use bough_session::SessionId;
use serde_json::json;
use stats_alloc::Region;
use tokio::runtime::Runtime;

use super::sides::{Safety, Side, message};
use crate::measure::as_f64;
use crate::report::Row;
use crate::{ALLOCATOR, Options, Outcome};

/// The numbers of subscribers that are compared.
const SUBSCRIBERS: [usize; 3] = [1, 100, 1000];
/// Messages that each of them hears.
const EVENTS: usize = 100;

/// What was measured with some number of subscribers.
struct Heard {
    subscribers: usize,
    /// From the writer's first call until the last subscriber has heard the last event.
    milliseconds_per_event: f64,
    /// What an append takes that nobody hears, because they are all stalled.
    milliseconds_per_stalled_append: f64,
    /// What a stalled subscriber costs in memory for each event.
    stalled_bytes_per_event: f64,
}

pub(super) fn rows(options: &Options) -> Outcome<Vec<Row>> {
    let mut heard = Vec::new();
    for subscribers in SUBSCRIBERS {
        heard.push(measure(options, subscribers)?);
    }
    let (most, fewer) = heard.split_last().ok_or("nothing was measured")?;
    let row = |what: &str, unit: &str, read: fn(&Heard) -> f64| {
        let row = Row::new(format!("{what}, {} subscribers", most.subscribers), unit, read(most));
        fewer
            .iter()
            .fold(row, |row, fewer| row.beside(&format!("with_{}", fewer.subscribers), read(fewer)))
    };
    Ok(vec![
        row("append until all have heard it", "ms/event", |heard| heard.milliseconds_per_event),
        row("each hearing", "us", |heard| {
            heard.milliseconds_per_event * 1000.0 / as_f64(heard.subscribers)
        }),
        row("append while all are stalled", "ms/event", |heard| {
            heard.milliseconds_per_stalled_append
        }),
        row("memory kept per event and stalled subscriber", "bytes", |heard| {
            heard.stalled_bytes_per_event
        }),
    ])
}

fn measure(options: &Options, subscribers: usize) -> Outcome<Heard> {
    eprintln!("fanout: {subscribers} subscribers");
    let folder = tempfile::tempdir_in(&options.folder)?;
    let runtime = Runtime::new()?;
    runtime.block_on(async {
        let served = Arc::new(Side::Native.serve(folder.path(), Safety::Synced).await?);
        served.call("session::ensure", json!({"session_id": "s"})).await?;
        let say = async |number: usize| {
            served
                .call("session::append", json!({"session_id": "s", "message": message(number)}))
                .await
        };
        let mut all = Vec::new();
        for _ in 0..subscribers {
            let filter = EventFilter::everything().in_session(SessionId::from_stored("s"));
            all.push(served.service.subscribe(&served.scope, filter, StartAt::Now).await?);
        }
        // Stalled: nobody reads. The ring is filled first; it is kept once, whoever reads it.
        for number in 0..2 * EVENTS {
            say(number).await?;
        }
        let region = Region::new(ALLOCATOR);
        let began = Instant::now();
        for number in 0..EVENTS {
            say(number).await?;
        }
        let stalled = began.elapsed().as_secs_f64() * 1000.0;
        let memory = region.change();
        let kept = memory.bytes_allocated.saturating_sub(memory.bytes_deallocated);
        for subscription in &mut all {
            while subscription.next_ready().await?.is_some() {}
        }
        let began = Instant::now();
        let hearing: Vec<_> = all.into_iter().map(|one| tokio::spawn(hear(one))).collect();
        for number in 0..EVENTS {
            say(number).await?;
        }
        for one in hearing {
            one.await??;
        }
        let live = began.elapsed().as_secs_f64() * 1000.0;
        served.close().await?;
        Ok(Heard {
            subscribers,
            milliseconds_per_event: live / as_f64(EVENTS),
            milliseconds_per_stalled_append: stalled / as_f64(EVENTS),
            stalled_bytes_per_event: as_f64(kept) / as_f64(EVENTS * subscribers),
        })
    })
}

async fn hear(mut subscription: Subscription) -> Outcome<()> {
    let mut heard = 0;
    while heard < EVENTS {
        match subscription.next().await? {
            FeedItem::Event(_) => heard += 1,
            other => return Err(format!("not an event: {other:?}").into()),
        }
    }
    Ok(())
}
