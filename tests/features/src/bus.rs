//! A client of the bus that calls functions and hosts handlers.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

/// How long anything may take before a scenario fails.
const PATIENCE: Duration = Duration::from_secs(120);

/// Waits for something, but not for ever.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("nothing happened for too long")
}

/// One connection.
pub(crate) struct BusClient {
    socket: WebSocketStream<TcpStream>,
    /// Frames that arrived while another one was awaited.
    waiting: Vec<Value>,
    /// The ids of its bindings, by handler.
    bindings: BTreeMap<String, String>,
    next_id: u64,
}

impl BusClient {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        let url = format!("ws://{address}/");
        let (socket, _) = soon(tokio_tungstenite::client_async(url, stream)).await.unwrap();
        Self { socket, waiting: Vec::new(), bindings: BTreeMap::new(), next_id: 0 }
    }

    /// Closes the connection, and opens another one when the bus has noticed that.
    pub(crate) async fn connect_again(&mut self, address: SocketAddr) {
        soon(self.socket.close(None)).await.unwrap();
        *self = Self::connect(address).await;
        let is_alone =
            |listed: &Value| listed["workers"].as_array().is_some_and(|all| all.len() == 2);
        soon(async {
            while !is_alone(&self.call("engine::workers::list", json!({})).await.unwrap()) {}
        })
        .await;
    }

    /// Calls a function. An error is the message of the answer.
    pub(crate) async fn call(&mut self, function: &str, data: Value) -> Result<Value, String> {
        let id = self.new_id();
        self.send(json!({
            "type": "invokefunction", "invocation_id": id, "function_id": function, "data": data,
        }))
        .await;
        let answer = self
            .next(|frame| {
                frame["type"] == "invocationresult" && frame["invocation_id"] == id.as_str()
            })
            .await;
        match answer.get("error") {
            Some(error) => Err(error["message"].as_str().unwrap().to_owned()),
            None => Ok(answer["result"].clone()),
        }
    }

    /// Hosts a handler and binds it to a type of events. An error is the code of the refusal.
    pub(crate) async fn bind(
        &mut self,
        handler: &str,
        trigger_type: &str,
        config: &Value,
    ) -> Result<(), String> {
        self.send(json!({"type": "registerfunction", "id": handler})).await;
        let id = self.new_id();
        self.send(json!({
            "type": "registertrigger", "id": id, "trigger_type": trigger_type,
            "function_id": handler, "config": config,
        }))
        .await;
        self.bindings.insert(handler.to_owned(), id.clone());
        // The bus answers in order: a refusal comes before the answer to the next call.
        self.call("engine::workers::list", json!({})).await.unwrap();
        let refused = self
            .waiting
            .iter()
            .find(|frame| frame["type"] == "triggerregistrationresult" && frame["id"] == id);
        match refused.and_then(|frame| frame["error"]["code"].as_str()) {
            Some(code) => Err(code.to_owned()),
            None => Ok(()),
        }
    }

    /// Ends the binding of a handler.
    pub(crate) async fn unbind(&mut self, handler: &str) {
        let id = self.bindings.remove(handler).expect("a handler that was bound");
        self.send(json!({"type": "unregistertrigger", "id": id})).await;
        self.call("engine::workers::list", json!({})).await.unwrap();
    }

    /// The payload of the next call of a handler, which is answered.
    pub(crate) async fn heard(&mut self, handler: &str) -> Value {
        let call = self
            .next(|frame| frame["type"] == "invokefunction" && frame["function_id"] == handler)
            .await;
        self.send(json!({
            "type": "invocationresult", "invocation_id": call["invocation_id"],
            "function_id": handler, "result": {"ok": true},
        }))
        .await;
        call["data"].clone()
    }

    fn new_id(&mut self) -> String {
        self.next_id += 1;
        format!("00000000-0000-0000-0000-{:012}", self.next_id)
    }

    async fn send(&mut self, frame: Value) {
        soon(self.socket.send(Message::text(frame.to_string()))).await.unwrap();
    }

    /// The next frame that fits; others wait.
    async fn next(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        soon(self.find(fits)).await
    }

    async fn find(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.waiting.iter().position(&fits) {
            return self.waiting.remove(at);
        }
        loop {
            let message = self.socket.next().await.expect("the bus closed").unwrap();
            let Message::Text(text) = message else { continue };
            let frame: Value = serde_json::from_str(&text).unwrap();
            if fits(&frame) {
                return frame;
            }
            self.waiting.push(frame);
        }
    }
}
