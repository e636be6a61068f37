//! Counts for Prometheus. No text from outside is in them: labels are names of our own functions and constants.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bough_service::{Function, functions};

/// Upper bounds of the latency buckets, in microseconds.
const BUCKETS_US: [u64; 10] =
    [250, 500, 1_000, 2_500, 5_000, 10_000, 50_000, 250_000, 1_000_000, 10_000_000];

/// What the server counts.
#[derive(Debug)]
pub(crate) struct Metrics {
    calls: Vec<CallCounts>,
    /// Requests that the guard refused.
    pub(crate) refused: Counter,
    /// Requests that exceeded a bound (too many, too large, too slow).
    pub(crate) limited: Counter,
    /// Handlers that panicked.
    pub(crate) panics: Counter,
    /// Events that were sent over server-sent events.
    pub(crate) events_streamed: Counter,
    /// Events that were sent over the bus.
    pub(crate) events_delivered: Counter,
    /// Gaps that subscribers received.
    pub(crate) gaps: Counter,
}

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

#[derive(Debug, Default)]
struct CallCounts {
    ok: Counter,
    failed: Counter,
    microseconds: Counter,
    buckets: [Counter; BUCKETS_US.len()],
}

/// Current values, for the page of metrics.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gauges {
    pub(crate) http_connections: usize,
    pub(crate) bus_connections: usize,
    pub(crate) requests: usize,
    pub(crate) streams: usize,
    pub(crate) stream_bytes: usize,
    pub(crate) bus_bindings: usize,
    pub(crate) reopened_sessions: u64,
    pub(crate) rejected_reloads: u64,
    pub(crate) is_ready: bool,
    pub(crate) uptime: Duration,
}

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            calls: functions().iter().map(|_| CallCounts::default()).collect(),
            refused: Counter::default(),
            limited: Counter::default(),
            panics: Counter::default(),
            events_streamed: Counter::default(),
            events_delivered: Counter::default(),
            gaps: Counter::default(),
        }
    }
}

impl Metrics {
    /// Counts one call of a function.
    pub(crate) fn called(&self, function: &Function, took: Duration, is_ok: bool) {
        let index = functions().iter().position(|known| known.id == function.id);
        let Some(counts) = index.and_then(|index| self.calls.get(index)) else {
            return;
        };
        if is_ok { &counts.ok } else { &counts.failed }.add(1);
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        counts.microseconds.add(us);
        let bucket = BUCKETS_US.iter().position(|bound| us <= *bound);
        if let Some(bucket) = bucket.and_then(|at| counts.buckets.get(at)) {
            bucket.add(1);
        }
    }

    /// The page in Prometheus' text format.
    pub(crate) fn page(&self, now: &Gauges) -> String {
        let mut page = String::new();
        self.write_calls(&mut page);
        let counters = [
            (
                "bough_requests_refused_total",
                "Requests that the guard refused.",
                self.refused.get(),
            ),
            ("bough_requests_limited_total", "Requests that met a bound.", self.limited.get()),
            ("bough_panics_total", "Handlers that panicked.", self.panics.get()),
            ("bough_events_streamed_total", "Events sent to streams.", self.events_streamed.get()),
            (
                "bough_events_delivered_total",
                "Events sent over the bus.",
                self.events_delivered.get(),
            ),
            ("bough_gaps_total", "Gaps that were delivered to subscribers.", self.gaps.get()),
            (
                "bough_reopened_sessions_total",
                "Sessions reopened after a failed write.",
                now.reopened_sessions,
            ),
            (
                "bough_rejected_reloads_total",
                "Configurations that were refused.",
                now.rejected_reloads,
            ),
        ];
        for (name, help, value) in counters {
            write_metric(&mut page, name, help, "counter", &value.to_string());
        }
        let gauges = [
            ("bough_http_connections", "Open HTTP connections.", now.http_connections),
            ("bough_bus_connections", "Open bus connections.", now.bus_connections),
            ("bough_requests", "Requests being worked on.", now.requests),
            ("bough_streams", "Live streams.", now.streams),
            ("bough_stream_bytes", "Bytes held for slow readers.", now.stream_bytes),
            ("bough_bus_bindings", "Triggers bound on the bus.", now.bus_bindings),
            ("bough_ready", "Whether the server is ready.", usize::from(now.is_ready)),
        ];
        for (name, help, value) in gauges {
            write_metric(&mut page, name, help, "gauge", &value.to_string());
        }
        let uptime = format!("{:.3}", now.uptime.as_secs_f64());
        write_metric(&mut page, "bough_uptime_seconds", "Time since the start.", "gauge", &uptime);
        page
    }

    fn write_calls(&self, page: &mut String) {
        page.push_str(
            "# HELP bough_calls_total Calls of each function.\n# TYPE bough_calls_total counter\n",
        );
        for (function, counts) in functions().iter().zip(&self.calls) {
            let id = function.id;
            let (ok, failed) = (counts.ok.get(), counts.failed.get());
            if ok + failed > 0 {
                // Writing to a String cannot fail.
                let _ =
                    writeln!(page, "bough_calls_total{{function=\"{id}\",outcome=\"ok\"}} {ok}");
                let _ = writeln!(
                    page,
                    "bough_calls_total{{function=\"{id}\",outcome=\"error\"}} {failed}"
                );
            }
        }
        page.push_str(
            "# HELP bough_call_seconds How long calls took.\n# TYPE bough_call_seconds histogram\n",
        );
        for (function, counts) in functions().iter().zip(&self.calls) {
            counts.write_latency(function.id, page);
        }
    }
}

impl CallCounts {
    fn write_latency(&self, id: &str, page: &mut String) {
        let count = self.ok.get() + self.failed.get();
        if count == 0 {
            return;
        }
        let mut below = 0;
        for (bound, bucket) in BUCKETS_US.iter().zip(&self.buckets) {
            below += bucket.get();
            let seconds = Duration::from_micros(*bound).as_secs_f64();
            let labels = format!("function=\"{id}\",le=\"{seconds}\"");
            let _ = writeln!(page, "bough_call_seconds_bucket{{{labels}}} {below}");
        }
        let seconds = Duration::from_micros(self.microseconds.get()).as_secs_f64();
        let _ =
            writeln!(page, "bough_call_seconds_bucket{{function=\"{id}\",le=\"+Inf\"}} {count}");
        let _ = writeln!(page, "bough_call_seconds_sum{{function=\"{id}\"}} {seconds}");
        let _ = writeln!(page, "bough_call_seconds_count{{function=\"{id}\"}} {count}");
    }
}

fn write_metric(page: &mut String, name: &str, help: &str, kind: &str, value: &str) {
    let _ = writeln!(page, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_function_and_bucket() {
        let metrics = Metrics::default();
        let create = bough_service::function("session::create").unwrap();
        metrics.called(create, Duration::from_micros(300), true);
        metrics.called(create, Duration::from_secs(60), false);
        let page = metrics.page(&Gauges { streams: 3, is_ready: true, ..Gauges::default() });
        let has = |line: &str| assert!(page.lines().any(|found| found == line), "{line}\n{page}");
        has("bough_calls_total{function=\"session::create\",outcome=\"ok\"} 1");
        has("bough_calls_total{function=\"session::create\",outcome=\"error\"} 1");
        has("bough_call_seconds_bucket{function=\"session::create\",le=\"0.00025\"} 0");
        has("bough_call_seconds_bucket{function=\"session::create\",le=\"0.0005\"} 1");
        has("bough_call_seconds_bucket{function=\"session::create\",le=\"+Inf\"} 2");
        has("bough_streams 3");
        has("bough_ready 1");
        assert!(!page.contains("session::fork"), "functions without calls are left out");
    }
}
