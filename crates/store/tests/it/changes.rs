//! Wake-ups run together, cost nothing while they wait, and never lose the newest.

use crate::support::id;
use bough_session::Incarnation;
use bough_store::{CHANGES_KEPT, ChangeHub, Position};

const INCARNATION: Incarnation = Incarnation::new([1; 16]);

fn hub() -> ChangeHub {
    ChangeHub::new(Incarnation::new([9; 16]))
}

/// The range of one record.
fn up_to(seq: u64) -> std::ops::Range<Position> {
    Position::at(seq - 1)..Position::at(seq)
}

#[tokio::test]
async fn a_slow_watcher_finds_the_newest() {
    let hub = hub();
    let mut watch = hub.watch_session(&id("s"));
    let mut all = hub.watch();
    for seq in 1..=1000 {
        hub.publish(&id("s"), INCARNATION, up_to(seq), false);
    }
    let end = watch.changed().await.unwrap().end.unwrap();
    assert_eq!((end.incarnation, end.position), (INCARNATION, Position::at(1000)));
    assert!(all.changed().await);
    let start = bough_store::ChangeCursor { number: 0, ..hub.cursor() };
    let page = hub.changes(Some(&start), 9);
    assert_eq!(page.changes.len(), 9);
    for (number, change) in (1..).zip(&page.changes) {
        assert_eq!((change.number, change.after..change.position), (number, up_to(number)));
    }
    assert_eq!((page.next.number, page.gap), (9, false));
}

#[tokio::test]
async fn a_watcher_of_one_session_sleeps_through_the_others() {
    let hub = hub();
    let mut watch = hub.watch_session(&id("s"));
    hub.publish(&id("t"), INCARNATION, up_to(1), false);
    hub.publish(&id("s"), INCARNATION, up_to(7), false);
    assert_eq!(watch.changed().await.unwrap().count, 1);
}

#[tokio::test]
async fn the_same_position_in_another_incarnation_wakes_too() {
    let hub = hub();
    let mut watch = hub.watch_session(&id("s"));
    for deleted in [false, true, false] {
        hub.publish(&id("s"), INCARNATION, up_to(1), deleted);
        watch.changed().await.unwrap();
    }
}

/// Two of one incarnation may be announced in any order, and a deletion must not hide behind a late write.
#[tokio::test]
async fn wake_ups_that_run_together_lose_neither_the_newest_position_nor_a_deletion() {
    let hub = hub();
    let mut watch = hub.watch_session(&id("s"));
    hub.publish(&id("s"), INCARNATION, up_to(2), false);
    hub.publish(&id("s"), INCARNATION, up_to(1), false);
    let end = watch.changed().await.unwrap().end.unwrap();
    assert_eq!((end.position, end.deleted), (Position::at(2), false));
    hub.publish(&id("s"), INCARNATION, up_to(3), true);
    hub.publish(&id("s"), INCARNATION, up_to(2), false);
    assert!(watch.changed().await.unwrap().end.unwrap().deleted);
    let next = Incarnation::new([9; 16]);
    hub.publish(&id("s"), next, up_to(1), false);
    let end = watch.changed().await.unwrap().end.unwrap();
    assert_eq!((end.incarnation, end.position, end.deleted), (next, Position::at(1), false));
}

#[test]
fn what_was_forgotten_is_a_gap() {
    let hub = hub();
    let start = hub.cursor();
    for n in 0..=CHANGES_KEPT {
        hub.publish(&id(&n.to_string()), INCARNATION, up_to(1), false);
    }
    assert!(hub.changes(Some(&start), 1).gap);
    let kept = bough_store::ChangeCursor { number: 1, ..start };
    let page = hub.changes(Some(&kept), 10);
    assert!(!page.gap);
    assert_eq!((page.changes.len(), page.next.number), (10, 11));
    let future = bough_store::ChangeCursor { number: u64::MAX, ..kept };
    assert!(hub.changes(Some(&future), 10).gap);
}
