//! Watch a reply while it streams, go away, and go on from where you stopped.
//!
//! `cargo run -p boughdb --example live_subscribe`

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use boughdb::{Bough, Error, EventPayload, FinishOptions, Session, StartAt, StreamOptions, user};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let temporary = tempfile::tempdir()?;
    let bough = Bough::open(temporary.path()).await?;
    let session = bough.create("Streaming").await?;

    let mut live = session.watch().await?;
    let speaker = tokio::spawn(speak(session.clone()));
    let mut cursor = None;
    for _ in 0..4 {
        let delivery = live.next().await?;
        show(&delivery.event.payload);
        cursor = Some(delivery.cursor);
    }
    drop(live);
    println!("(went away)");
    speaker.await.map_err(std::io::Error::other)??;

    if let Some(cursor) = cursor {
        let mut rest = session.watch_from(StartAt::After(cursor)).await?;
        loop {
            let delivery = rest.next().await?;
            show(&delivery.event.payload);
            if matches!(delivery.event.payload, EventPayload::StatusChanged(_)) {
                break;
            }
        }
    }
    bough.close().await
}

async fn speak(session: Session) -> Result<(), Error> {
    session.append(user("Tell me about boughs.")).await?;
    let mut reply = session.stream(StreamOptions::model("small")).await?;
    for token in ["A bough ", "is a ", "main branch ", "of a tree."] {
        reply.text(token).await?;
    }
    reply.finish(FinishOptions::default()).await?;
    session.set_status(boughdb::SessionStatus::Done, None).await
}

fn show(payload: &EventPayload) {
    match payload {
        EventPayload::MessageAdded(event) => {
            let text = event.message.as_ref().map(|message| message.text());
            println!("added    {:?}", text.unwrap_or_default());
        }
        EventPayload::MessageUpdated(event) => {
            println!("revision {} {:?}", event.revision, event.message.text());
        }
        other => println!("{}", other.kind()),
    }
}
