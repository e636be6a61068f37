//! Rates and times, measured in rounds so that a slow moment of the disk hits every side alike.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::Outcome;

/// How often every side of a row is measured; the median counts.
pub const ROUNDS: usize = 3;

/// How long one round lasts.
pub const ROUND: Duration = Duration::from_millis(1500);

/// One side of a row: its name, and how to measure its rate once.
pub struct Side<'a> {
    /// What the side is called in the row.
    pub name: &'static str,
    /// Measures once.
    pub measure: Box<dyn FnMut() -> Outcome<f64> + 'a>,
}

/// Measures every side in turn, several times over; the median of each, in the order given.
pub fn in_turns(what: &str, sides: Vec<Side<'_>>) -> Outcome<Vec<(&'static str, f64)>> {
    let mut sides: Vec<(Side<'_>, Vec<f64>)> =
        sides.into_iter().map(|side| (side, Vec::new())).collect();
    for round in 1..=ROUNDS {
        for (side, values) in &mut sides {
            eprintln!("{what}: round {round} of {ROUNDS}, {}", side.name);
            values.push((side.measure)()?);
        }
    }
    Ok(sides.into_iter().map(|(side, values)| (side.name, median(values))).collect())
}

/// How many operations a second `threads` workers reach together. `make` builds a worker before the
/// clock starts; a worker does one operation a call and gets the number of the call.
pub fn rate<'a>(
    threads: usize,
    mut make: impl FnMut(usize) -> Outcome<Box<dyn FnMut(usize) -> Outcome<()> + Send + 'a>>,
) -> Outcome<f64> {
    let workers = (0..threads).map(&mut make).collect::<Outcome<Vec<_>>>()?;
    let start = Barrier::new(threads + 1);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let running: Vec<_> =
            workers.into_iter().map(|worker| scope.spawn(|| work(worker, &start, &stop))).collect();
        start.wait();
        let began = Instant::now();
        std::thread::sleep(ROUND);
        stop.store(true, Ordering::Relaxed);
        let mut operations = 0;
        for worker in running {
            operations += worker.join().map_err(|_| "a worker panicked")??;
        }
        Ok(as_f64(operations) / began.elapsed().as_secs_f64())
    })
}

fn work(
    mut worker: Box<dyn FnMut(usize) -> Outcome<()> + Send + '_>,
    start: &Barrier,
    stop: &AtomicBool,
) -> Outcome<usize> {
    start.wait();
    let mut done = 0;
    while !stop.load(Ordering::Relaxed) {
        worker(done)?;
        done += 1;
    }
    Ok(done)
}

/// The median time of an operation, in milliseconds.
pub fn milliseconds(mut operation: impl FnMut() -> Outcome<()>) -> Outcome<f64> {
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let began = Instant::now();
        operation()?;
        times.push(began.elapsed().as_secs_f64() * 1000.0);
    }
    Ok(median(times))
}

/// The middle value; of two, the higher. 0 for none.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// Counts as figures. Exact up to 2^53, far above anything counted here.
#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
pub fn as_f64(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(vec![9.0, 1.0, 3.0]), 3.0);
        assert_eq!(median(vec![]), 0.0);
    }

    #[test]
    fn a_worker_that_fails_fails_the_rate() {
        let made = rate(2, |_| Ok(Box::new(|_| Err("no".into()))));
        assert_eq!(made.unwrap_err().to_string(), "no");
    }
}
