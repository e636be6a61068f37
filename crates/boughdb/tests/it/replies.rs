//! Replies that are written piece by piece.

use boughdb::{
    AgentMessage, Bough, ContentBlock, EntryId, Error, FinishOptions, Session, StopReason,
    StreamOptions, Usage,
};

async fn session() -> Session {
    Bough::in_memory().unwrap().create("replies").await.unwrap()
}

async fn assistant_at(session: &Session, entry: &EntryId) -> boughdb::AssistantMessage {
    let message = session.messages_to(entry).await.unwrap().pop().unwrap();
    match message.message.as_ref() {
        AgentMessage::Assistant(message) => message.clone(),
        other => panic!("{other:?}"),
    }
}

/// Waits until the message says that it was aborted: a dropped reply is closed in the background.
async fn aborted(session: &Session, entry: &EntryId) -> boughdb::AssistantMessage {
    for _ in 0..10_000 {
        let message = assistant_at(session, entry).await;
        if message.stop_reason == StopReason::Aborted {
            return message;
        }
        tokio::task::yield_now().await;
    }
    panic!("the reply was not closed");
}

#[tokio::test]
async fn a_reply_has_text_thoughts_and_calls_in_blocks_of_their_own() {
    let session = session().await;
    let mut reply = session.stream(StreamOptions::model("m")).await.unwrap();
    reply.thinking("hm").await.unwrap();
    reply.thinking("m").await.unwrap();
    reply.text("Let me see. ").await.unwrap();
    reply.tool_call("c1", "weather", r#"{"city":"#).await.unwrap();
    reply.tool_arguments(r#""Porto"}"#).await.unwrap();
    reply.tool_call("c2", "weather", "{}").await.unwrap();
    reply.text("").await.unwrap();
    let entry = reply.entry_id().clone();
    let usage = Usage { output: Some(9), ..Usage::default() };
    let end = FinishOptions {
        stop_reason: Some(StopReason::FunctionCall),
        usage: Some(usage),
        ..FinishOptions::default()
    };
    reply.finish(end).await.unwrap();
    let message = assistant_at(&session, &entry).await;
    assert_eq!(message.content.len(), 4, "{:?}", message.content);
    assert!(matches!(&message.content[0], ContentBlock::Thinking(_)));
    assert_eq!(message.stop_reason, StopReason::FunctionCall);
    assert_eq!(session.usage().await.unwrap().session.total.output, 9);
}

#[tokio::test]
async fn a_dropped_reply_is_closed_as_aborted() {
    let session = session().await;
    let broken = async {
        let mut reply = session.stream(StreamOptions::default()).await?;
        reply.text("half a sent").await?;
        let entry = reply.entry_id().clone();
        // Somebody's `?` ends the function here.
        Ok::<EntryId, Error>(entry)
    };
    let entry = broken.await.unwrap();
    let message = aborted(&session, &entry).await;
    assert_eq!(message.content, vec![ContentBlock::text("half a sent")]);
}

#[tokio::test]
async fn a_reply_whose_writer_fails_says_why() {
    let session = session().await;
    let failed = session.stream_with(StreamOptions::default(), async |reply| {
        reply.text("half").await?;
        Err::<FinishOptions, Error>(std::io::Error::other("the provider hung up").into())
    });
    assert!(failed.await.unwrap_err().to_string().contains("hung up"));
    let entry = session.messages().await.unwrap().pop().unwrap().entry_id;
    let message = assistant_at(&session, &entry).await;
    assert_eq!(message.stop_reason, StopReason::Error);
    assert!(message.error_message.unwrap().contains("hung up"));
}

#[tokio::test]
async fn what_is_finished_does_not_grow() {
    let session = session().await;
    let mut reply = session.stream(StreamOptions::default()).await.unwrap();
    let entry = reply.entry_id().clone();
    reply.text("all").await.unwrap();
    // Another writer ends it.
    let request = boughdb::api::FinishMessageRequest {
        session_id: session.id().clone(),
        entry_id: entry,
        stop_reason: None,
        native_stop_reason: None,
        usage: None,
        model: None,
        provider: None,
        error: None,
        warnings: None,
    };
    let bough = session.bough();
    bough.service().finish_message(bough.scope(), request).await.unwrap();
    assert_eq!(reply.text("more").await.unwrap_err().code(), Some("session/not_streaming"));
    let late = reply.finish(FinishOptions::default()).await.unwrap_err();
    assert_eq!(late.code(), Some("session/not_streaming"));
}
