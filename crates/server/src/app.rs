//! Shared by all surfaces: the service, the guard, the bounds and the counts.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bough_platform::Clock;
use bough_service::{Answer, CallTerms, Function, Request, Scope, Service, ServiceError};

use crate::api::StreamBytes;
use crate::config::LimitsConfig;
use crate::engine::ConfigurationOffer;
use crate::guard::Guard;
use crate::inspection::Inspection;
use crate::metrics::Metrics;
use crate::net::Connections;
use crate::shutdown::Shutdown;

/// The state that all surfaces share. Cheap to clone.
#[derive(Clone)]
pub(crate) struct App(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) service: Service,
    pub(crate) guard: Guard,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) metrics: Metrics,
    pub(crate) shutdown: Shutdown,
    pub(crate) health: Health,
    pub(crate) inspection: Inspection,
    pub(crate) http_connections: Connections,
    pub(crate) bus_connections: Connections,
    /// Connections of the bus that only wait for the peer to close.
    pub(crate) bus_closing: Connections,
    pub(crate) requests: Permits,
    /// The bodies that are being read.
    pub(crate) bodies: Connections,
    pub(crate) streams: Permits,
    pub(crate) stream_bytes: StreamBytes,
    pub(crate) bindings: Permits,
    /// A random name of this process, so that an instance can recognise itself.
    pub(crate) instance: String,
    /// The host that `/mcp` offers instead of the sessions.
    pub(crate) mcp_host: Option<Arc<dyn bough_mcp::Host>>,
    limits: RwLock<LimitsConfig>,
    own_settings: RwLock<ConfigurationOffer>,
    requests_begun: AtomicU64,
}

/// Whether the server can work, and if not, why.
#[derive(Debug, Default)]
pub(crate) struct Health {
    trouble: RwLock<Option<String>>,
}

impl Health {
    pub(crate) fn set_trouble(&self, trouble: Option<String>) {
        *self.trouble.write().unwrap_or_else(PoisonError::into_inner) = trouble;
    }

    pub(crate) fn trouble(&self) -> Option<String> {
        self.trouble.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A counter of permits; each holder has one until it drops it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Permits(Arc<AtomicUsize>);

/// One permit.
#[derive(Debug)]
pub(crate) struct Permit(Permits);

impl Permits {
    /// Takes a permit, unless `most` are taken.
    pub(crate) fn take(&self, most: usize) -> Option<Permit> {
        let taken = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, |taken| {
            (taken < most).then_some(taken + 1)
        });
        taken.is_ok().then(|| Permit(self.clone()))
    }

    pub(crate) fn taken(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl App {
    pub(crate) fn new(
        service: Service,
        guard: Guard,
        clock: Arc<dyn Clock>,
        limits: LimitsConfig,
        shutdown: Shutdown,
        instance: String,
        mcp_host: Option<Arc<dyn bough_mcp::Host>>,
    ) -> Self {
        Self(Arc::new(Inner {
            service,
            guard,
            clock,
            metrics: Metrics::default(),
            shutdown,
            health: Health::default(),
            inspection: Inspection::default(),
            http_connections: Connections::default(),
            bus_connections: Connections::default(),
            bus_closing: Connections::default(),
            requests: Permits::default(),
            bodies: Connections::default(),
            streams: Permits::default(),
            stream_bytes: StreamBytes::default(),
            bindings: Permits::default(),
            instance,
            mcp_host,
            limits: RwLock::new(limits),
            own_settings: RwLock::default(),
            requests_begun: AtomicU64::new(0),
        }))
    }

    /// The part of the configuration that clients of the bus may read.
    pub(crate) fn own_settings(&self) -> ConfigurationOffer {
        self.0.own_settings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_own_settings(&self, settings: ConfigurationOffer) {
        *self.0.own_settings.write().unwrap_or_else(PoisonError::into_inner) = settings;
    }

    /// The bounds now.
    pub(crate) fn limits(&self) -> LimitsConfig {
        *self.0.limits.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_limits(&self, limits: LimitsConfig) {
        *self.0.limits.write().unwrap_or_else(PoisonError::into_inner) = limits;
    }

    /// Whether the store answers and the server is not about to end.
    pub(crate) fn is_ready(&self) -> bool {
        self.health.trouble().is_none() && !self.shutdown.has_begun()
    }

    /// An id for a request, unique over all servers with high probability.
    pub(crate) fn next_request_id(&self) -> String {
        let number = self.0.requests_begun.fetch_add(1, Ordering::Relaxed);
        let instance = self.instance.get(..12).unwrap_or_default();
        format!("{instance}-{number:x}")
    }

    /// Calls a function of the table, and counts it.
    pub(crate) async fn call(
        &self,
        scope: &Scope,
        function: &'static Function,
        request: Request,
    ) -> Result<Answer, ServiceError> {
        let begun = self.clock.monotonic();
        let answer = self.call_on_terms(scope, function, request, CallTerms::default()).await;
        self.count_call(function, begun, answer.is_ok());
        answer
    }

    /// Counts a call that began at `begun`.
    pub(crate) fn count_call(&self, function: &Function, begun: Duration, is_ok: bool) {
        let took = self.clock.monotonic().saturating_sub(begun);
        self.metrics.called(function, took, is_ok);
    }

    /// Calls a function with terms beside its request. The caller counts the call, because an answer here may be an
    /// error on its surface.
    pub(crate) async fn call_on_terms(
        &self,
        scope: &Scope,
        function: &'static Function,
        request: Request,
        terms: CallTerms,
    ) -> Result<Answer, ServiceError> {
        let begun = self.clock.monotonic();
        let answer = self.service.on_terms(terms).answer(scope, function, request).await;
        let took = self.clock.monotonic().saturating_sub(begun);
        log_call(function, scope, took, &answer);
        answer
    }
}

/// Logs one line a call: only our own names and numbers, nothing that callers send or receive.
fn log_call(
    function: &Function,
    scope: &Scope,
    took: Duration,
    answer: &Result<Answer, ServiceError>,
) {
    let (function, who) = (function.id, scope.who());
    let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    match answer {
        Ok(_) => tracing::debug!(function, who, us, "call"),
        Err(ServiceError::Storage { source, .. }) => {
            // The store's message may name paths, but never the content of a session.
            let cause = source.as_ref().map(ToString::to_string).unwrap_or_default();
            tracing::error!(function, who, us, cause, "call failed in the store");
        }
        Err(error) => tracing::debug!(function, who, us, code = error.code(), "call refused"),
    }
}

impl std::ops::Deref for App {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permits_are_given_back() {
        let permits = Permits::default();
        let first = permits.take(2).unwrap();
        let second = permits.take(2).unwrap();
        assert!(permits.take(2).is_none());
        drop(first);
        assert_eq!(permits.taken(), 1);
        assert!(permits.take(2).is_some());
        drop(second);
    }
}
