//! A worker on the bus: it calls functions, or hosts one that is called with events.

use std::net::SocketAddr;

use futures_util::{SinkExt, StreamExt};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use crate::Outcome;

/// One connection with one call in flight, or with a function that is called.
pub(crate) struct BusClient {
    socket: WebSocketStream<TcpStream>,
    calls: u64,
}

impl BusClient {
    pub(crate) async fn connect(address: SocketAddr) -> Outcome<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (socket, _) =
            tokio_tungstenite::client_async(format!("ws://{address}/"), stream).await?;
        Ok(Self { socket, calls: 0 })
    }

    /// Appends one message, durably. `body` is what an append over HTTP has.
    pub(crate) async fn append(&mut self, session: &str, body: &str) -> Outcome<()> {
        let fields = body.strip_prefix('{').ok_or("an append is an object")?;
        self.call("session::append", &format!(r#"{{"session_id":"{session}",{fields}"#)).await
    }

    /// Hosts a function and binds it to the messages of a session.
    pub(crate) async fn follow(&mut self, function: &str, session: &str) -> Outcome<()> {
        let host = format!(r#"{{"type":"registerfunction","id":"{function}"}}"#);
        self.socket.send(Message::text(host)).await?;
        let bind = format!(
            r#"{{"type":"registertrigger","id":"{function}","trigger_type":"session::message-added","function_id":"{function}","config":{{"session_id":"{session}"}}}}"#
        );
        self.socket.send(Message::text(bind)).await?;
        // Frames of one connection are taken in order: when this is answered, the binding is there.
        self.call("session::config-status", "{}").await
    }

    /// Waits until a function of this worker is called, and answers.
    pub(crate) async fn answer_call(&mut self) -> Outcome<()> {
        loop {
            let text = self.receive().await?;
            let call = text.split_once(r#""type":"invokefunction","invocation_id":""#);
            let Some((id, _)) = call.and_then(|(_, rest)| rest.split_once('"')) else { continue };
            let answer = format!(
                r#"{{"type":"invocationresult","invocation_id":"{id}","function_id":"f","result":{{}}}}"#
            );
            return Ok(self.socket.send(Message::text(answer)).await?);
        }
    }

    /// Calls a function, which must succeed.
    async fn call(&mut self, function: &str, data: &str) -> Outcome<()> {
        self.calls += 1;
        let id = format!("00000000-0000-4000-8000-{:012x}", self.calls);
        let frame = format!(
            r#"{{"type":"invokefunction","invocation_id":"{id}","function_id":"{function}","data":{data}}}"#
        );
        self.socket.send(Message::text(frame)).await?;
        loop {
            let text = self.receive().await?;
            if !text.contains("invocationresult") {
                continue;
            }
            if text.contains(r#""error":{"#) {
                return Err(text.into());
            }
            return Ok(());
        }
    }

    async fn receive(&mut self) -> Outcome<String> {
        loop {
            let message = self.socket.next().await.ok_or("the bus closed")??;
            if let Message::Text(text) = message {
                return Ok(text.to_string());
            }
        }
    }
}
