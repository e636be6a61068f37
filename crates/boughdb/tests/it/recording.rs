//! Recording through the library.

use boughdb::recording::{AgentEnd, AgentStart, Timestamp};
use boughdb::{Bough, Error, Right, Scope};

#[tokio::test]
async fn only_the_owner_records() {
    let bough = Bough::in_memory().unwrap();
    let theirs = bough.scoped(Scope::new("u", [Right::Read, Right::Write]));
    for refused in [
        theirs.recorder().map(drop),
        theirs.recorded("s").await.map(drop),
        theirs.replay("s").await.map(drop),
    ] {
        assert_eq!(refused.unwrap_err().code(), Some("session/forbidden"));
    }
    assert!(bough.recorded("s").await.unwrap().is_none());
}

#[tokio::test]
async fn a_session_has_one_recorder_at_a_time() {
    let bough = Bough::in_memory().unwrap();
    let (one, two) = (bough.recorder().unwrap(), bough.recorder().unwrap());
    let now = Timestamp::now();
    one.record(AgentStart::new("a", "s", "s.c.1", now)).await.unwrap();
    one.sync().await.unwrap();
    two.record(AgentStart::new("a", "s", "s.c.2", now)).await.unwrap();
    assert!(matches!(two.sync().await.unwrap_err(), Error::Recording(_)));
    one.record(AgentEnd::without_messages("s.c.1", now)).await.unwrap();
    one.finish().await.unwrap();
    assert_eq!(bough.recorded("s").await.unwrap().unwrap().loops.len(), 1);
}
