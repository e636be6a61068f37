//! The Rust blocks of docs/clients.md, as one program. The stage `docs` compares them with these lines.

use boughdb::{Bough, Error, StartAt, assistant, user};

#[tokio::test]
async fn the_blocks_of_the_page_about_clients_run() -> Result<(), Error> {
    let bough = Bough::in_memory()?;

    let session = bough.create("Weather").await?;
    let chat = bough.ensure("chat-42").await?;
    let question = session.append(user("Will it rain?")).await?;

    for item in session.messages().await? {
        println!("{} {}", item.entry_id, item.text());
    }

    let first = session.append(assistant("local", "small", "No.")).await?;
    let second = session.append_to(&question, assistant("local", "small", "A little.")).await?;
    println!("{} branches", session.branches().await?.len());
    session.switch_to(&first).await?;
    let copy = session.fork(&second).await?;
    assert_eq!((session.branches().await?.len(), copy.messages().await?.len()), (2, 2));

    session.append_after(&first, user("And tomorrow?")).await?;
    let late = session.append_after(&first, user("And on Friday?")).await;
    assert_eq!(late.unwrap_err().code(), Some("session/leaf_conflict"));

    let mut events = session.watch_from(StartAt::Start).await?;
    let delivery = events.next().await?;
    println!("{} {}", delivery.event.payload.kind(), delivery.cursor);

    for meta in bough.list().await? {
        println!("{}", meta.title);
    }
    println!("{} hits", bough.search("rain").await?.hits.len());

    chat.delete().await?;
    bough.close().await?;
    Ok(())
}
