//! A thousand subscribers that do not read: they cost no memory as things happen, and slow nobody.

use std::sync::Arc;

use crate::ALLOCATOR;
use crate::common::{CountingEntropy, HandClock, Listener, TestService, stores, text, user};
use bough_service::limits::SESSION_RING_EVENTS_MAX;
use bough_service::{EventFilter, FeedItem, Scope, Service, StartAt};
use bough_session::SessionId;
use bough_store::MemoryStore;
use serde_json::json;
use stats_alloc::Region;

/// More than any ring of one session holds.
const EVENTS: usize = SESSION_RING_EVENTS_MAX + 50;

struct Stalled {
    bed: TestService,
    id: String,
    listeners: Vec<Listener>,
    live: Listener,
}

/// What was allocated while [`EVENTS`] messages were appended and heard.
#[derive(Debug)]
struct Growth {
    /// Bytes that are still held.
    kept: usize,
    allocations: usize,
}

impl Stalled {
    /// Half of them watch one session, half all of them; one more reads.
    async fn with(stalled: usize) -> Self {
        let bed = TestService::on(&stores::memory()).await;
        let id = bed.create(json!({})).await;
        let mut listeners = Vec::new();
        for number in 0..stalled {
            let filter = match number % 2 {
                0 => EventFilter::everything().in_session(SessionId::from_stored(id.as_str())),
                _ => EventFilter::everything(),
            };
            listeners.push(bed.subscribe(filter, StartAt::Now).await);
        }
        let live = bed.listen().await;
        Self { bed, id, listeners, live }
    }

    async fn say_and_hear(&mut self) -> Growth {
        let region = Region::new(ALLOCATOR);
        for number in 0..EVENTS {
            self.bed.say(&self.id, &number.to_string()).await;
            let (_, event) = self.live.event().await;
            assert_eq!(text(&event["message"]), number.to_string());
        }
        let change = region.change();
        Growth {
            kept: change.bytes_allocated - change.bytes_deallocated,
            allocations: change.allocations,
        }
    }
}

#[tokio::test]
async fn a_thousand_stalled_subscribers_cost_no_memory_as_events_happen_and_slow_nobody() {
    let mut none = Stalled::with(0).await;
    none.say_and_hear().await;
    let alone = none.say_and_hear().await;
    let mut many = Stalled::with(1000).await;
    many.say_and_hear().await;
    let beside = many.say_and_hear().await;
    // A byte for each event and subscriber would be 300,000.
    assert!(beside.kept < alone.kept + 30_000, "{beside:?} beside {alone:?}");
    // So would an allocation for each: the writer and the reader do the same work as without them.
    assert!(beside.allocations < alone.allocations + 10_000, "{beside:?} beside {alone:?}");
    for listener in &mut many.listeners[..4] {
        let mut heard = 0;
        while let Some(item) = listener.subscription.next_ready().await.unwrap() {
            assert!(matches!(item, FeedItem::Event(_)), "{item:?}");
            heard += 1;
        }
        assert_eq!(heard, 2 * EVENTS, "it misses nothing when it comes back");
    }
}

#[tokio::test]
async fn a_subscriber_that_falls_behind_what_is_kept_gets_a_gap() {
    const KEPT: usize = 20;
    let (clock, entropy) = (HandClock::at(1), Arc::new(CountingEntropy::default()));
    let store = MemoryStore::keeping(entropy.clone(), KEPT).unwrap();
    let service = Service::new(Arc::new(store), clock, entropy);
    let owner = Scope::owner();
    let say = async |text: &str| {
        let request = json!({"session_id": "s", "message": user(text)});
        service.call(&owner, "session::append", request).await.unwrap();
    };
    service.call(&owner, "session::ensure", json!({"session_id": "s"})).await.unwrap();
    let listen = async || {
        let filter = EventFilter::everything();
        let subscription = service.subscribe(&owner, filter, StartAt::Now).await.unwrap();
        Listener { subscription }
    };
    let (mut in_time, mut late) = (listen().await, listen().await);
    for number in 0..KEPT {
        say(&number.to_string()).await;
    }
    assert_eq!(in_time.ready().await.len(), KEPT, "at the bound nothing is missing");
    // Its place is older than what the ring and the store keep.
    let cursor = late.subscription.cursor().unwrap();
    drop((in_time, late));
    say("one more").await;
    late = listen().await;
    late.subscription =
        service.subscribe(&owner, EventFilter::everything(), StartAt::After(cursor)).await.unwrap();
    assert!(matches!(late.item().await, FeedItem::Gap(_)));
    let rest = late.ready().await;
    assert_eq!(rest.len(), KEPT, "and goes on with what is kept");
    assert_eq!(text(&rest[KEPT - 1].1["message"]), "one more");
}
