//! A reader that stops anywhere and goes on later, again and again, against what was written.
//!
//! Random acts on a few sessions: messages that are added, replaced and streamed side by side, statuses, titles, metadata,
//! a store that is closed and opened. Between them readers with a cursor each read a page of one to three events, from one session
//! or from all, and let go of everything but the cursor.

use std::collections::BTreeMap;

use crate::common::{Listener, TestService, assistant, object, text};
use bough_service::limits::GLOBAL_RING_EVENTS_MAX;
use bough_service::{EventFilter, EventKind, FeedEvent, FeedItem, Position, StartAt};
use bough_session::SessionId;
use serde_json::{Value, json};

on_every_store!(
    readers_that_stop_anywhere_hear_everything_once,
    they_do_so_with_other_luck,
    any_cursor_is_followed_by_the_rest,
    many_streams_at_once_are_delivered_once,
    a_reader_that_meets_the_ring_inside_a_stream_hears_each_event_once,
    a_revision_that_is_a_record_is_delivered_as_it_was,
    what_a_session_was_is_delivered_however_long_it_is,
);

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % sides
    }
}

/// What was written.
#[derive(Default)]
struct Written {
    sessions: BTreeMap<String, Session>,
    /// Where the feed of all sessions was before.
    start: String,
}

#[derive(Default)]
struct Session {
    /// What each revision of each message says, and whose it is.
    messages: BTreeMap<String, Vec<(String, Value)>>,
    /// Everything that is not a revision, in order.
    others: Vec<(EventKind, Value)>,
    status: String,
    title: String,
    metadata: Value,
}

const SESSIONS: [&str; 2] = ["one", "two"];

impl Written {
    async fn begin(bed: &TestService) -> Self {
        let start = bed.listen().await.subscription.cursor().unwrap().to_string();
        let mut written = Self { start, ..Self::default() };
        for id in SESSIONS {
            bed.ok("session::ensure", json!({"session_id": id, "metadata": {"n": 0}})).await;
            let session = Session {
                status: "idle".to_owned(),
                metadata: json!({"n": 0}),
                others: vec![(EventKind::Created, json!(id))],
                ..Session::default()
            };
            written.sessions.insert(id.to_owned(), session);
        }
        written
    }

    /// Does something.
    async fn act(&mut self, bed: &TestService, dice: &mut Dice, number: usize) {
        let id = SESSIONS[dice.roll(SESSIONS.len())];
        let session = self.sessions.get_mut(id).unwrap();
        let names: Vec<String> = session.messages.keys().rev().take(3).cloned().collect();
        match dice.roll(12) {
            0 => session.status(bed, id, ["working", "done", "idle"][dice.roll(3)]).await,
            1 => session.call_it(bed, id, &format!("t{number}")).await,
            2 => session.mark(bed, id, number).await,
            3 | 4 => session.add(bed, id, &format!("m{number:04}")).await,
            _ if names.is_empty() => session.add(bed, id, &format!("m{number:04}")).await,
            5 | 6 => session.replace(bed, id, &names[dice.roll(names.len())], number).await,
            _ => session.stream(bed, id, &names[dice.roll(names.len())], number).await,
        }
    }
}

impl Session {
    async fn add(&mut self, bed: &TestService, id: &str, name: &str) {
        bed.append(id, json!({"entry_id": name, "message": assistant("")})).await;
        self.messages.insert(name.to_owned(), vec![(String::new(), Value::Null)]);
        self.others.push((EventKind::MessageAdded, json!(name)));
    }

    async fn replace(&mut self, bed: &TestService, id: &str, name: &str, number: usize) {
        let said = format!("{number}");
        let content = json!([{"type": "text", "text": said}]);
        let request = json!({
            "session_id": id, "entry_id": name, "content": content, "origin": {"act": number},
        });
        bed.ok("session::update-message", request).await;
        let revisions = self.messages.get_mut(name).unwrap();
        revisions.push((said, json!({"act": number})));
    }

    async fn stream(&mut self, bed: &TestService, id: &str, name: &str, number: usize) {
        let more = format!("+{number}");
        let request = json!({"session_id": id, "entry_id": name, "block": 0, "text": more});
        bed.ok("session::append-delta", request).await;
        let revisions = self.messages.get_mut(name).unwrap();
        let said = format!("{}{more}", revisions.last().unwrap().0);
        revisions.push((said, Value::Null));
    }

    async fn status(&mut self, bed: &TestService, id: &str, status: &str) {
        bed.ok("session::set-status", json!({"session_id": id, "status": status})).await;
        if self.status != status {
            let told = json!([self.status, status, self.metadata]);
            self.others.push((EventKind::StatusChanged, told));
            status.clone_into(&mut self.status);
        }
    }

    async fn call_it(&mut self, bed: &TestService, id: &str, title: &str) {
        bed.ok("session::set-meta", json!({"session_id": id, "title": title})).await;
        title.clone_into(&mut self.title);
        self.others.push((EventKind::MetaUpdated, json!([title, self.metadata])));
    }

    async fn mark(&mut self, bed: &TestService, id: &str, number: usize) {
        self.metadata = json!({"n": number});
        let request = json!({"session_id": id, "metadata": self.metadata});
        bed.ok("session::set-meta", request).await;
        self.others.push((EventKind::MetaUpdated, json!([self.title, self.metadata])));
    }

    /// Compares the events since the session's beginning with what was written.
    fn check(&self, told: &Delivered, who: &str) {
        assert_eq!(told.others, self.others, "{who}");
        for (name, revisions) in &self.messages {
            let newest = revisions.len() as u64 - 1;
            let last = told.revisions.get(name).copied().unwrap_or(0);
            assert_eq!(last, newest, "{who}: the last revision of {name}");
        }
    }
}

/// What a reader received of one session.
#[derive(Clone, Default)]
struct Delivered {
    /// The last revision of each message.
    revisions: BTreeMap<String, u64>,
    others: Vec<(EventKind, Value)>,
    /// What the reader knows.
    known: Position,
}

impl Delivered {
    fn hear(&mut self, event: &FeedEvent, written: &Session, who: &str) {
        let is_known = event.steps.is_known_at(event.seq, self.known);
        assert!(!is_known, "{who}: {:?} at {:?}", event.position(), self.known);
        self.known = self.known.join(event.position());
        let (kind, value) = (event.kind(), event.value());
        let metadata = json!(event.metadata.as_deref());
        let other = match kind {
            EventKind::MessageUpdated => return self.hear_revision(&value, written, who),
            EventKind::Created => value["session_id"].clone(),
            EventKind::MessageAdded => value["entry_id"].clone(),
            EventKind::StatusChanged => {
                json!([value["previous_status"], value["status"], metadata])
            }
            _ => json!([value["title"], value["metadata"]]),
        };
        self.others.push((kind, other));
    }

    fn hear_revision(&mut self, value: &Value, written: &Session, who: &str) {
        let name = value["entry_id"].as_str().unwrap();
        let revision = value["revision"].as_u64().unwrap();
        let before = self.revisions.insert(name.to_owned(), revision).unwrap_or(0);
        assert!(revision > before, "{who}: revision {revision} of {name} after {before}");
        let (said, origin) = &written.messages[name][revision as usize];
        assert_eq!(text(&value["message"]), *said, "{who}: revision {revision} of {name}");
        assert_eq!(value["origin"], *origin, "{who}: revision {revision} of {name}");
    }
}

/// Somebody who has a cursor and nothing else.
struct Reader {
    name: String,
    filter: EventFilter,
    cursor: Option<String>,
    page: usize,
    told: BTreeMap<String, Delivered>,
}

impl Reader {
    fn new(session: Option<&str>, page: usize) -> Self {
        let filter = EventFilter::of(EventKind::PUBLIC);
        let filter = match session {
            Some(id) => filter.in_session(SessionId::from_stored(id)),
            None => filter,
        };
        let name = format!("{} by {page}", session.unwrap_or("all"));
        Self { name, filter, cursor: None, page, told: BTreeMap::new() }
    }

    /// Reads a page; says whether there was something.
    async fn read(&mut self, bed: &TestService, written: &Written) -> bool {
        let start = match (&self.cursor, &self.filter.session_id) {
            (Some(cursor), _) => StartAt::After(cursor.parse().unwrap()),
            (None, Some(_)) => StartAt::Start,
            (None, None) => StartAt::After(written.start.parse().unwrap()),
        };
        let Listener { mut subscription } = bed.subscribe(self.filter.clone(), start).await;
        let mut found = 0;
        while found < self.page {
            match subscription.next_ready().await.unwrap() {
                Some(FeedItem::Event(delivery)) => {
                    let id = delivery.event.session_id.to_string();
                    let told = self.told.entry(id.clone()).or_default();
                    told.hear(&delivery.event, &written.sessions[&id], &self.name);
                    found += 1;
                }
                Some(other) => panic!("{}: {other:?}", self.name),
                None => break,
            }
        }
        self.cursor = subscription.cursor().map(|cursor| cursor.to_string());
        found > 0
    }

    fn check(&self, written: &Written) {
        for (id, session) in &written.sessions {
            let wanted = self.filter.session_id.as_ref().is_none_or(|of| of.as_str() == id);
            if wanted {
                session.check(&self.told[id], &self.name);
            }
        }
    }
}

fn readers() -> Vec<Reader> {
    let sessions = [None, Some(SESSIONS[0]), Some(SESSIONS[1])];
    let pages = |session| (1..=3).map(move |page| Reader::new(session, page));
    sessions.into_iter().flat_map(pages).collect()
}

async fn readers_that_stop_anywhere_hear_everything_once(bed: TestService) {
    read_between_acts(bed, Dice(0x9e37_79b9_7f4a_7c15)).await;
}

/// Here somebody reads the record of one stream, breaks off, and others were told the step of another that lies before it.
async fn they_do_so_with_other_luck(bed: TestService) {
    read_between_acts(bed, Dice(10_781_548_708)).await;
}

async fn read_between_acts(mut bed: TestService, mut dice: Dice) {
    let resumes = bed.service.store().capabilities().keeps_change_cursor;
    let mut written = Written::begin(&bed).await;
    let mut readers = readers();
    // A subscriber that stays keeps the newest events in memory for the others. Here it comes and goes.
    let mut follower = None;
    for number in 0..300 {
        written.act(&bed, &mut dice, number).await;
        for _ in 0..dice.roll(3) {
            let reader = dice.roll(readers.len());
            readers[reader].read(&bed, &written).await;
        }
        match dice.roll(60) {
            0 => follower = Some((bed.listen().await, readers[5].follow(&bed).await)),
            1 => follower = None,
            2 if resumes => {
                follower = None;
                bed.reopen().await;
            }
            _ => {}
        }
        if let Some((all, one)) = &mut follower {
            all.ready().await;
            one.ready().await;
        }
    }
    for reader in &mut readers {
        while reader.read(&bed, &written).await {}
        reader.check(&written);
    }
}

impl Reader {
    /// Somebody else who wants the same, from now on.
    async fn follow(&self, bed: &TestService) -> Listener {
        bed.subscribe(self.filter.clone(), StartAt::Now).await
    }
}

/// From every cursor that a subscriber had while it happened, and from every cursor of a reading of the whole, the rest is
/// delivered, in pages of any size.
async fn any_cursor_is_followed_by_the_rest(bed: TestService) {
    let mut dice = Dice(0x0123_4567_89ab_cdef);
    let mut written = Written::begin(&bed).await;
    let mut live = readers();
    live.retain(|reader| reader.page == 1);
    let mut places = Vec::new();
    for number in 0..40 {
        written.act(&bed, &mut dice, number).await;
        for reader in &mut live {
            while reader.read(&bed, &written).await {
                places.push(reader.copy(1));
            }
        }
    }
    for session in [None, Some(SESSIONS[0]), Some(SESSIONS[1])] {
        let mut whole = Reader::new(session, 1);
        while whole.read(&bed, &written).await {
            places.push(whole.copy(1));
        }
    }
    for place in places {
        for page in 1..=3 {
            let mut reader = place.copy(page);
            while reader.read(&bed, &written).await {}
            reader.check(&written);
        }
    }
}

impl Reader {
    /// Another reader at the same cursor, with the same events.
    fn copy(&self, page: usize) -> Self {
        let name = format!("{}, then by {page} from {:?}", self.name, self.cursor);
        let (filter, cursor) = (self.filter.clone(), self.cursor.clone());
        Self { name, filter, cursor, page, told: self.told.clone() }
    }
}

async fn a_revision_that_is_a_record_is_delivered_as_it_was(bed: TestService) {
    let id = bed.create(json!({})).await;
    bed.append(&id, json!({"entry_id": "a", "message": assistant("")})).await;
    for (turn, status) in (1..).zip(["working", "done", "idle"]) {
        let content = json!([{"type": "text", "text": turn.to_string()}]);
        let request = json!({
            "session_id": id, "entry_id": "a", "content": content, "origin": {"turn": turn},
        });
        bed.ok("session::update-message", request).await;
        bed.ok("session::set-status", json!({"session_id": id, "status": status})).await;
    }
    let (mut after, mut told) = (json!("start"), Vec::new());
    loop {
        let request = json!({"session_id": id, "after": after, "limit": 1});
        let page = bed.ok("session::watch", request).await;
        let Some(event) = page["events"].as_array().unwrap().first() else { break };
        let said = &event["payload"];
        if event["type"] == "session::message-updated" {
            let what = (said["revision"].clone(), said["origin"]["turn"].clone());
            told.push((what, text(&said["message"])));
        }
        after = page["next"].clone();
    }
    let turns = [1, 2, 3].map(|turn| ((json!(turn), json!(turn)), turn.to_string()));
    assert_eq!(told, turns);
}

async fn what_a_session_was_is_delivered_however_long_it_is(bed: TestService) {
    let id = bed.create(json!({"title": "first", "metadata": {"team": "red"}})).await;
    bed.ok("session::set-status", json!({"session_id": id, "status": "working"})).await;
    let many = async |times: usize| {
        for _ in 0..times {
            let messages = vec![crate::common::user("x"); 150];
            bed.ok("session::append-many", json!({"session_id": id, "messages": messages})).await;
        }
    };
    many(14).await;
    let cursor = bed.ok("session::watch", json!({"session_id": id})).await["next"].clone();
    bed.ok("session::set-status", json!({"session_id": id, "status": "done"})).await;
    bed.ok("session::set-meta", json!({"session_id": id, "metadata": {"team": "blue"}})).await;
    bed.ok("session::set-meta", json!({"session_id": id, "title": "last"})).await;
    bed.ok("session::set-status", json!({"session_id": id, "status": "error"})).await;
    let types = ["session::status-changed", "session::meta-updated"];
    // Once with what was said before far away, once with much between it and now.
    for further in [0, 2] {
        many(further).await;
        let request = json!({"session_id": id, "after": cursor, "types": types, "limit": 500});
        let page = bed.ok("session::watch", request.clone()).await;
        let told: Vec<Value> = page["events"]
            .as_array()
            .unwrap()
            .iter()
            .map(|event| &event["payload"])
            .map(|said| json!([said["previous_status"], said["status"], said["title"]]))
            .collect();
        let expected = [
            json!(["working", "done", null]),
            json!([null, null, "first"]),
            json!([null, null, "last"]),
            json!(["done", "error", null]),
        ];
        assert_eq!(told, expected);
        let mut of_red = object(request);
        of_red.insert("metadata".to_owned(), json!({"team": "red"}));
        let page = bed.ok("session::watch", Value::Object(of_red)).await;
        let first = &page["events"][0]["payload"];
        assert_eq!(page["events"].as_array().unwrap().len(), 1, "{page}");
        assert_eq!(first["status"], json!("done"));
    }
}

/// More streams side by side than a reader reads records at a time.
async fn many_streams_at_once_are_delivered_once(bed: TestService) {
    const STREAMS: usize = 300;
    let id = bed.create(json!({})).await;
    let of_one = EventFilter::everything().in_session(SessionId::from_stored(id.as_str()));
    for filter in [of_one, EventFilter::everything()] {
        let begun = bed.texts(&id).await.len();
        let names: Vec<String> = (0..STREAMS).map(|number| format!("{begun}.{number}")).collect();
        for name in &names {
            bed.append(&id, json!({"entry_id": name, "message": assistant("")})).await;
        }
        let mut listener = bed.subscribe(filter.clone(), StartAt::Now).await;
        let mut stopped_at = None;
        for (number, name) in names.iter().enumerate() {
            let request = json!({"session_id": id, "entry_id": name, "block": 0, "text": "x"});
            bed.ok("session::append-delta", request).await;
            if number < STREAMS - 2 {
                stopped_at = Some(listener.delivery().await.cursor);
            }
        }
        drop(listener);
        bed.ok("session::set-meta", json!({"session_id": id, "title": begun.to_string()})).await;
        let start = StartAt::After(stopped_at.unwrap().to_string().parse().unwrap());
        let rest = bed.subscribe(filter, start).await.ready().await;
        let told: Vec<_> = rest.iter().map(|(_, event)| event["entry_id"].clone()).collect();
        assert_eq!(told[..2], [json!(names[STREAMS - 2]), json!(names[STREAMS - 1])]);
        assert_eq!(rest.last().unwrap().0, EventKind::MetaUpdated);
        assert_eq!(told.len(), 3);
    }
}

/// A reader of the log receives the record of one stream. The events in memory begin right there, with the step of another
/// stream, which lies before that record.
async fn a_reader_that_meets_the_ring_inside_a_stream_hears_each_event_once(bed: TestService) {
    for id in ["s", "x"] {
        bed.ok("session::ensure", json!({"session_id": id})).await;
    }
    for name in ["a", "b"] {
        bed.append("s", json!({"entry_id": name, "message": assistant("")})).await;
    }
    let mut follower = bed.listen().await;
    let start = StartAt::After(follower.subscription.cursor().unwrap());
    let mut late = bed.subscribe(EventFilter::everything(), start).await;
    // This one is delivered, and no longer in memory in the end.
    bed.say("x", "first").await;
    assert_eq!(follower.ready().await.len(), 1);
    for name in ["a", "b"] {
        let request = json!({"session_id": "s", "entry_id": name, "block": 0, "text": "x"});
        bed.ok("session::append-delta", request).await;
        assert_eq!(follower.ready().await.len(), 1);
    }
    // The two, these and the status fill the memory.
    let mut left = GLOBAL_RING_EVENTS_MAX - 3;
    while left > 0 {
        let messages = vec![crate::common::user("x"); left.min(400)];
        left -= messages.len();
        bed.ok("session::append-many", json!({"session_id": "x", "messages": messages})).await;
        follower.ready().await;
    }
    bed.ok("session::set-status", json!({"session_id": "s", "status": "done"})).await;
    follower.ready().await;
    let told = late.deliveries().await;
    let of_s = told.iter().filter(|told| told.event.session_id.as_str() == "s");
    let events: Vec<_> = of_s.map(|told| &told.event).collect();
    assert_eq!(events.len(), 3);
    let mut known = Position::default();
    for event in events {
        assert!(!event.steps.is_known_at(event.seq, known), "{:?} at {known:?}", event.position());
        known = known.join(event.position());
    }
}
