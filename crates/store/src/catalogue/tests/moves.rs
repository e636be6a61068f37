//! Places that the feed has before the rows of their sessions are made.

use super::*;

const INCARNATION: Incarnation = Incarnation::new([7; 16]);

fn moved(catalogue: &Catalogue, name: &str, seq: u64) {
    catalogue.moved(SessionId::from_stored(name), INCARNATION, Position::at(seq));
}

#[test]
fn the_feed_goes_on_before_the_row_does_and_tells_nothing_twice() {
    let place = Place::new();
    let catalogue = place.open();
    let start = catalogue.newest().unwrap();
    catalogue.put(row("a", 2, 10));
    assert_eq!(ranges(&catalogue, &start), [change("a", 0, 2, false)]);
    moved(&catalogue, "a", 5);
    let known = [change("a", 0, 2, false), change("a", 2, 5, false)];
    assert_eq!(ranges(&catalogue, &start), known);
    let fingerprint = catalogue.fingerprint(&SessionId::from_stored("a")).unwrap().unwrap();
    assert_eq!((fingerprint.position, fingerprint.size), (Position::at(5), 200), "the old row");
    // The row of the same place is no news for the feed, and is listed.
    catalogue.put(owned_row("a", 5, 30, "somebody"));
    assert_eq!(ranges(&catalogue, &start), known);
    let listed = catalogue.list(&all(9)).unwrap().0.sessions.remove(0);
    assert_eq!(listed.meta.updated_at, 30);
    assert_eq!(listed.meta.metadata.unwrap()["owner"], "somebody");
}

#[test]
fn a_place_that_is_no_news_changes_nothing() {
    let place = Place::new();
    let catalogue = place.open();
    let start = catalogue.newest().unwrap();
    catalogue.put(row("a", 5, 10));
    catalogue.flush().unwrap();
    for seq in [3, 5] {
        moved(&catalogue, "a", seq);
        catalogue.flush().unwrap();
    }
    catalogue.moved(SessionId::from_stored("a"), Incarnation::new([8; 16]), Position::at(9));
    moved(&catalogue, "unlisted", 4);
    assert_eq!(ranges(&catalogue, &start), [change("a", 0, 5, false)]);
}

#[test]
fn a_place_that_waits_beside_a_row_or_an_end_is_told_with_it() {
    let place = Place::new();
    let catalogue = place.open();
    let start = catalogue.newest().unwrap();
    catalogue.put(row("a", 2, 10));
    moved(&catalogue, "a", 4);
    catalogue.put(row("b", 2, 10));
    catalogue.flush().unwrap();
    moved(&catalogue, "b", 6);
    catalogue.remove(&SessionId::from_stored("b"), INCARNATION, Position::at(7));
    moved(&catalogue, "b", 6);
    let expected = [change("a", 0, 4, false), change("b", 0, 2, false), change("b", 2, 7, true)];
    assert_eq!(ranges(&catalogue, &start), expected);
    assert_eq!(names(&catalogue, &all(9)), ["a"]);
}

/// Who reads on gets what was just written without looking it up: the same that who looks it up finds.
#[test]
fn what_was_just_written_is_what_can_be_looked_up() {
    let place = Place::new();
    let (here, elsewhere) = (place.open(), place.open());
    let mut cursors = vec![here.newest().unwrap()];
    let mut seq = 0;
    for turn in 0..6 {
        // Nothing, a few, and as many as a page has.
        for count in [0, 1, 3] {
            for (limit, catalogue) in
                [1, 3, 4, 99].into_iter().zip([&here, &here, &elsewhere, &here])
            {
                for cursor in cursors.iter().cloned().map(Some).chain([None]) {
                    seq += 1;
                    for name in ["a", "b", "c"].iter().take(count) {
                        here.put(row(name, seq, 10));
                        moved(&here, name, seq + 1);
                    }
                    if turn == 3 {
                        here.remove(
                            &SessionId::from_stored("a"),
                            INCARNATION,
                            Position::at(seq + 2),
                        );
                    }
                    catalogue.flush().unwrap();
                    let cursor = cursor.unwrap_or_else(|| catalogue.newest().unwrap());
                    moved(catalogue, "b", seq + 3);
                    let written = catalogue.changes_after(&cursor, limit).unwrap();
                    assert_eq!(written, catalogue.changes_after(&cursor, limit).unwrap());
                    here.flush().unwrap();
                    seq += 3;
                }
            }
        }
        cursors.push(here.newest().unwrap());
        let other = ChangeCursor { epoch: INCARNATION, ..here.newest().unwrap() };
        cursors.push(other);
    }
}

#[test]
fn who_is_at_the_end_gets_what_was_just_written() {
    let place = Place::new();
    let catalogue = place.open();
    catalogue.put(row("a", 1, 10));
    catalogue.flush().unwrap();
    for (limit, at_once) in [(3, true), (2, false), (1, false)] {
        let end = catalogue.newest().unwrap();
        let seq = end.number + 5;
        moved(&catalogue, "a", seq);
        catalogue.put(row("b", seq, 10));
        let written = catalogue.write().unwrap().unwrap();
        assert_eq!(written.count(), 2);
        assert_eq!(written.page_after(&end, limit).is_some(), at_once);
    }
}
