//! The programs of the session-manager readme, with an old and a new Rust SDK, against Bough's own bus.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may")]

use std::sync::Arc;
use std::time::Duration;

use bough_server::{ServeOptions, Server};
use serde_json::{Value, json};
use tokio::sync::mpsc;

async fn server(dir: &std::path::Path) -> Server {
    let options = ServeOptions {
        data_dir: Some(dir.to_owned()),
        listen: Some("127.0.0.1:0".to_owned()),
        bus: Some("127.0.0.1:0".to_owned()),
        environment: Some(Arc::new(|_| None)),
        ..ServeOptions::default()
    };
    Server::start(options).await.unwrap()
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1})
}

async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), future).await.expect("too slow")
}

/// The same program for each version: they differ in where things are, not in what they do.
macro_rules! program {
    ($name:ident, $sdk:ident, $request:path, $error:path, $binding:expr) => {
        #[tokio::test(flavor = "multi_thread")]
        #[allow(deprecated, reason = "triggers are what the readme shows")]
        async fn $name() {
            let dir = tempfile::tempdir().unwrap();
            let server = server(dir.path()).await;
            let url = format!("ws://{}", server.bus_address().unwrap());
            let iii = $sdk::register_worker(&url, $sdk::InitOptions::default());
            let call = async |function: &str, payload: Value| {
                use $request as Request;
                let request = Request {
                    function_id: function.to_owned(),
                    payload,
                    action: None,
                    timeout_ms: Some(10_000),
                };
                iii.trigger(request).await
            };
            let created = call("session::create", json!({"title": "t"})).await.unwrap();
            let session = created["session_id"].as_str().unwrap().to_owned();
            let (told, mut events) = mpsc::unbounded_channel();
            iii.register_function(
                "my-ui::on-message-added",
                $sdk::RegisterFunction::new_async(move |event: Value| {
                    let told = told.clone();
                    async move {
                        told.send(event).unwrap();
                        Ok::<_, $error>(json!({"ok": true}))
                    }
                }),
            );
            let bind: fn(&str) -> _ = $binding;
            iii.register_trigger(bind(&session)).unwrap();
            // Frames of one connection are taken in order: when this is answered, the binding is there.
            call("engine::functions::list", json!({})).await.unwrap();
            for n in 0..20 {
                let body = json!({"session_id": session, "message": user(&n.to_string())});
                call("session::append", body).await.unwrap();
                let event = soon(events.recv()).await.unwrap();
                assert_eq!(event["message"]["content"][0]["text"], n.to_string().as_str());
            }
            let page = call("session::messages", json!({"session_id": session})).await.unwrap();
            assert_eq!(page["messages"].as_array().unwrap().len(), 20);
            let refused = call("session::messages", json!({"session_id": "nope"})).await.unwrap_err();
            assert!(refused.to_string().contains("session/not_found"), "{refused}");
            let refused = call("session::nope", json!({})).await.unwrap_err();
            assert!(refused.to_string().contains("function_not_found"), "{refused}");
            iii.shutdown_async().await;
            server.stop().await;
        }
    };
}

program!(sdk_0_19, iii_sdk_0_19, iii_sdk_0_19::TriggerRequest, iii_sdk_0_19::IIIError, |session| {
    iii_sdk_0_19::RegisterTriggerInput {
        trigger_type: "session::message-added".to_owned(),
        function_id: "my-ui::on-message-added".to_owned(),
        config: json!({"session_id": session, "roles": ["user"]}),
        metadata: None,
    }
});

program!(sdk_0_25, iii_sdk, iii_sdk::protocol::TriggerRequest, iii_sdk::Error, |session| {
    iii_sdk::protocol::RegisterTriggerInput::new(
        "session::message-added",
        "my-ui::on-message-added",
        json!({"session_id": session, "roles": ["user"]}),
    )
});
