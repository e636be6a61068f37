//! One signal that everything listens to: the server is about to end.

use std::sync::Arc;

use tokio::sync::watch;

/// Says when the server is about to end. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Shutdown {
    receiver: watch::Receiver<bool>,
    // Without the sender nobody could say that it is time; then it never is.
    _sender: Arc<watch::Sender<bool>>,
}

/// Ends a server.
#[derive(Clone, Debug)]
pub struct ShutdownSwitch {
    sender: Arc<watch::Sender<bool>>,
}

/// A switch, and what listens to it.
#[must_use]
pub fn shutdown_switch() -> (ShutdownSwitch, Shutdown) {
    let (sender, receiver) = watch::channel(false);
    let sender = Arc::new(sender);
    (ShutdownSwitch { sender: sender.clone() }, Shutdown { receiver, _sender: sender })
}

impl ShutdownSwitch {
    /// Asks the server to end: it finishes what it is doing and closes.
    pub fn begin(&self) {
        self.sender.send_replace(true);
    }
}

impl Shutdown {
    /// Waits until the server is about to end.
    pub async fn begun(&self) {
        let mut receiver = self.receiver.clone();
        // The sender lives as long as this handle, so this cannot fail.
        let _ = receiver.wait_for(|begun| *begun).await.is_ok();
    }

    /// Whether the server is about to end.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        *self.receiver.borrow()
    }
}
