//! A worker on the bus that calls functions.

use std::net::SocketAddr;

use futures_util::{SinkExt, StreamExt};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use crate::Outcome;

/// One connection with one call in flight.
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
        self.calls += 1;
        let id = format!("00000000-0000-4000-8000-{:012x}", self.calls);
        let fields = body.strip_prefix('{').ok_or("an append is an object")?;
        let frame = format!(
            r#"{{"type":"invokefunction","invocation_id":"{id}","function_id":"session::append","data":{{"session_id":"{session}",{fields}}}"#
        );
        self.socket.send(Message::text(frame)).await?;
        loop {
            let message = self.socket.next().await.ok_or("the bus closed")??;
            let Message::Text(text) = message else { continue };
            if !text.contains("invocationresult") {
                continue;
            }
            if text.contains(r#""error":{"#) {
                return Err(text.to_string().into());
            }
            return Ok(());
        }
    }
}
