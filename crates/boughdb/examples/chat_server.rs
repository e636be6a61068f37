//! A chat server whose replies are seen while they are written. It keeps the chats in a folder and needs no other server.
//!
//! `cargo run -p boughdb --example chat_server -- FOLDER [PORT]`, then
//!
//! ```text
//! curl -N localhost:8000/chats/one/events &
//! curl localhost:8000/chats/one -d 'Will it rain tomorrow?'
//! ```
//!
//! A browser would read `/chats/one/events` with `EventSource`, which goes on by itself after a broken connection.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::convert::Infallible;
use std::env;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use axum::response::sse::{Event, Sse};
use axum::routing::{get, post};
use boughdb::{Bough, Error, FinishOptions, StartAt, StreamOptions, Subscription, user};
use futures_util::{Stream, stream};
use tokio::net::TcpListener;

type Refused = (StatusCode, String);

#[tokio::main]
async fn main() -> Result<(), Error> {
    let folder = env::args().nth(1).unwrap_or_else(|| "chats".to_owned());
    let port = env::args().nth(2).unwrap_or_else(|| "8000".to_owned());
    let chats = Router::new()
        .route("/chats/{id}", post(ask))
        .route("/chats/{id}/events", get(follow))
        .with_state(Bough::open(folder).await?);
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    println!("http://{}", listener.local_addr()?);
    Ok(axum::serve(listener, chats).await?)
}

/// Stands for a model that streams its answer.
fn model(question: &str) -> [&str; 3] {
    ["You ", "asked: ", question]
}

/// Stores the question, and the answer while it comes.
async fn ask(
    State(bough): State<Bough>,
    Path(id): Path<String>,
    question: String,
) -> Result<StatusCode, Refused> {
    answer(&bough, &id, &question).await.map_err(refused)?;
    Ok(StatusCode::NO_CONTENT)
}

async fn answer(bough: &Bough, id: &str, question: &str) -> Result<(), Error> {
    let chat = bough.ensure(id).await?;
    chat.append(user(question)).await?;
    let mut reply = chat.stream(StreamOptions::model("example")).await?;
    for piece in model(question) {
        reply.text(piece).await?;
    }
    reply.finish(FinishOptions::default()).await?;
    Ok(())
}

/// Passes the events of a chat on, from the beginning or after the last one that the browser saw.
async fn follow(
    State(bough): State<Bough>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, Refused> {
    let seen = headers.get("last-event-id").and_then(|seen| seen.to_str().ok()?.parse().ok());
    let start = seen.map_or(StartAt::Start, StartAt::After);
    let chat = bough.ensure(&id).await.map_err(refused)?;
    let events = chat.watch_from(start).await.map_err(refused)?;
    Ok(Sse::new(server_sent(events)))
}

fn server_sent(events: Subscription) -> impl Stream<Item = Result<Event, Infallible>> {
    stream::unfold(events, |mut events| async {
        let delivery = events.next().await.ok()?;
        let payload = &delivery.event.payload;
        let event =
            Event::default().id(delivery.cursor.to_string()).event(payload.kind().to_string());
        Some((Ok(event.data(serde_json::to_string(payload).ok()?)), events))
    })
}

fn refused(error: Error) -> Refused {
    (StatusCode::BAD_GATEWAY, error.to_string())
}
