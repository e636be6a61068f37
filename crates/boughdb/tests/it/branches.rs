//! The ends of all branches, however many there are.

use bough_session::limits::PAGE_MAX;
use boughdb::{Bough, user};

#[tokio::test]
async fn no_branch_is_left_out() {
    let session = Bough::in_memory().unwrap().create("many ways").await.unwrap();
    let root = session.append(user("root")).await.unwrap();
    let mut ends = Vec::new();
    for number in 0..=PAGE_MAX {
        ends.push(session.append_to(&root, user(&number.to_string())).await.unwrap());
    }
    ends.reverse();
    let branches = session.branches().await.unwrap();
    let found: Vec<_> = branches.into_iter().map(|branch| branch.entry_id).collect();
    assert_eq!(found, ends, "the newest first, each once");
}
