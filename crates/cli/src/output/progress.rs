use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bough_platform::Clock;

use crate::text::{clean_line, fit, fit_end, width};

type Err = Arc<Mutex<Box<dyn Write + Send>>>;

/// A progress bar on standard error. It is removed when it is dropped.
pub(crate) struct Progress {
    what: String,
    err: Option<Err>,
    clock: Arc<dyn Clock>,
    columns: usize,
    drawn_at: Option<Duration>,
}

/// How often the bar is drawn at most.
const DRAW_EVERY: Duration = Duration::from_millis(100);
const BAR_COLUMNS: u64 = 24;

impl Progress {
    pub(super) fn new(what: &str, err: Option<Err>, clock: Arc<dyn Clock>, columns: usize) -> Self {
        Self { what: clean_line(what).into_owned(), err, clock, columns, drawn_at: None }
    }

    /// Shows that `done` of `total` is done, and that `label` is in progress.
    pub(crate) fn set(&mut self, done: u64, total: u64, label: &str) {
        let Some(err) = &self.err else { return };
        let now = self.clock.monotonic();
        let soon = self.drawn_at.is_some_and(|then| now.saturating_sub(then) < DRAW_EVERY);
        if soon && done < total {
            return;
        }
        self.drawn_at = Some(now);
        let line = bar(&self.what, done, total, label, self.columns);
        let mut err = err.lock().unwrap_or_else(PoisonError::into_inner);
        drop(write!(err, "\r\x1b[K{line}").and_then(|()| err.flush()));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let (Some(err), Some(_)) = (&self.err, self.drawn_at) {
            let mut err = err.lock().unwrap_or_else(PoisonError::into_inner);
            drop(write!(err, "\r\x1b[K").and_then(|()| err.flush()));
        }
    }
}

/// One line: a longer one would wrap, and only its last part would be removed. The last column stays free, because some
/// terminals wrap when it is written.
fn bar(what: &str, done: u64, total: u64, label: &str, columns: usize) -> String {
    let columns = columns.saturating_sub(1);
    let start = start(what, done, total);
    let left = columns.saturating_sub(width(&start) + 1);
    let label = fit_end(&clean_line(label), left);
    fit(&format!("{start} {label}"), columns)
}

fn start(what: &str, done: u64, total: u64) -> String {
    if total == 0 {
        return format!("{what} {done}");
    }
    let filled = (done.min(total).saturating_mul(BAR_COLUMNS) / total).min(BAR_COLUMNS);
    let full = "█".repeat(usize::try_from(filled).unwrap_or(0));
    let empty = "░".repeat(usize::try_from(BAR_COLUMNS - filled).unwrap_or(0));
    format!("{what} {full}{empty} {done}/{total}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_fills_up() {
        assert_eq!(bar("Checking", 1, 4, "s_1", 80), "Checking ██████░░░░░░░░░░░░░░░░░░ 1/4 s_1");
        assert_eq!(bar("Checking", 9, 4, "", 80), "Checking ████████████████████████ 9/4 ");
        assert_eq!(bar("Reading", 12, 0, "x\u{1b}", 80), "Reading 12 x␛");
    }

    #[test]
    fn a_bar_is_never_wider_than_the_window() {
        let file = format!("/home/me/{}/session.jsonl", "folder/".repeat(30));
        for columns in [20, 60, 80, 200] {
            let line = bar("Migrating", 1_234_567, 9_876_543, &file, columns);
            assert!(width(&line) < columns, "{line:?} in {columns}");
            assert_eq!(line.ends_with(".jsonl"), columns > 20, "{line:?} in {columns}");
        }
    }
}
