//! `bough token`: creating tokens, revoking them, and returning to access without them.

use crate::common::Place;

const GO_BACK: &str = "bough token allow-tokenless";

fn create(place: &Place) -> String {
    let made = place.json(&["token", "create"]);
    made["record"]["id"].as_str().unwrap().to_owned()
}

#[test]
fn the_first_token_says_that_access_without_tokens_ends() {
    let place = Place::new();
    let first = place.run(&["token", "create"]);
    assert!(first.err.contains("every caller"), "{}", first.err);
    assert!(first.err.contains(GO_BACK), "{}", first.err);
    let second = place.run(&["token", "create"]);
    assert!(!second.err.contains("every caller"), "{}", second.err);
    assert_eq!(place.json(&["token", "create"])["ends_tokenless_access"], false);
}

#[test]
fn tokens_are_removed_and_the_door_stays_shut() {
    let place = Place::new();
    let (first, second) = (create(&place), create(&place));
    let removed = place.run(&["token", "rm", &first, &second]);
    assert_eq!(removed.code, 0);
    assert!(removed.err.contains(GO_BACK), "{}", removed.err);
    assert_eq!(place.run(&["token", "rm", &first]).code, 3);
    let listed = place.run(&["token", "list"]);
    assert!(listed.err.contains("callers need one"), "{}", listed.err);
    place.ok(&["token", "allow-tokenless"]);
    let listed = place.run(&["token", "list"]);
    assert!(listed.err.contains("accepts every caller"), "{}", listed.err);
    assert_eq!(place.json(&["token", "create"])["ends_tokenless_access"], true);
}
