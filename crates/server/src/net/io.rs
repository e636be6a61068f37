//! A socket with a time limit for stalled peers.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

use super::connections::Activity;

/// A connected socket of any kind.
pub(crate) trait Socket: AsyncRead + AsyncWrite + Send + Unpin + std::fmt::Debug {
    /// Acknowledges received data at once, where the system would delay that.
    fn acknowledge(&self) {}
}

impl Socket for TcpStream {
    #[cfg(target_os = "linux")]
    fn acknowledge(&self) {
        // This is an optimisation, so an error does not matter.
        let _ = self.set_quickack(true).is_ok();
    }
}

#[cfg(unix)]
impl Socket for tokio::net::UnixStream {}

/// A socket that fails if its peer takes nothing for too long, so that a stalled reader cannot hold our resources.
#[derive(Debug)]
pub(crate) struct PatientIo {
    stream: Box<dyn Socket>,
    patience: Duration,
    activity: Arc<Activity>,
    /// Runs while a write waits.
    deadline: Option<Pin<Box<Sleep>>>,
    /// Whether to acknowledge at once what arrives.
    acknowledge_at_once: bool,
}

impl PatientIo {
    pub(crate) fn new(
        stream: Box<dyn Socket>,
        patience: Duration,
        activity: Arc<Activity>,
    ) -> Self {
        Self { stream, patience, activity, deadline: None, acknowledge_at_once: false }
    }

    /// Acknowledges at once what arrives. Peers that send two small pieces in a row without TCP_NODELAY wait for the
    /// acknowledgement of the first, which the system would hold back for 40 ms.
    pub(crate) fn acknowledging_at_once(mut self) -> Self {
        self.acknowledge_at_once = true;
        self
    }

    fn wait_or_fail<T>(
        &mut self,
        context: &mut Context<'_>,
        polled: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        self.activity.sends(polled.is_pending());
        if polled.is_ready() {
            self.deadline = None;
            return polled;
        }
        let patience = self.patience;
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        match deadline.as_mut().poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => {
                let reason = "the peer takes nothing";
                Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, reason)))
            }
        }
    }
}

impl AsyncRead for PatientIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if self.acknowledge_at_once && polled.is_ready() {
            self.stream.acknowledge();
        }
        polled
    }
}

impl AsyncWrite for PatientIo {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.wait_or_fail(context, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.wait_or_fail(context, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
