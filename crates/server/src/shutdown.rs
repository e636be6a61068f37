//! One signal for the whole server: it is about to end.

use std::sync::Arc;

use tokio::sync::watch;

/// Signals the end of the server. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Shutdown {
    receiver: watch::Receiver<bool>,
    // Keeps the channel open: without a sender, receivers would be woken.
    _sender: Arc<watch::Sender<bool>>,
}

/// Ends a server.
#[derive(Clone, Debug)]
pub struct ShutdownSwitch {
    sender: Arc<watch::Sender<bool>>,
}

/// A switch, and the signal that it triggers.
#[must_use]
pub fn shutdown_switch() -> (ShutdownSwitch, Shutdown) {
    let (sender, receiver) = watch::channel(false);
    let sender = Arc::new(sender);
    (ShutdownSwitch { sender: sender.clone() }, Shutdown { receiver, _sender: sender })
}

impl ShutdownSwitch {
    /// Asks the server to end: it finishes running requests and closes.
    pub fn begin(&self) {
        self.sender.send_replace(true);
    }
}

impl Shutdown {
    /// Waits until the server is about to end.
    pub async fn begun(&self) {
        let mut receiver = self.receiver.clone();
        // This handle holds the sender, so this cannot fail.
        let _ = receiver.wait_for(|begun| *begun).await.is_ok();
    }

    /// Whether the server is about to end.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        *self.receiver.borrow()
    }
}
