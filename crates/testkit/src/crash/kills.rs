//! Real processes, killed with SIGKILL while an append is in flight.
//!
//! The child prints one line before each append and one after its acknowledgement. The parent kills it at a random
//! moment, and then compares the store with these lines. In the lossy kind the child keeps unsynced writes in its
//! memory, so that the kill loses them.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bough_log::{Envelope, Expected, LogError, LogStore, Options};
use bough_platform::{Clock, Disk, OsDisk, OsEntropy, Platform, SystemClock};

use super::report::{Report, Verdict};
use crate::{LossyDisk, Seeded};

/// The argument that makes the harness's own binary a child.
pub const CHILD: &str = "--child";

/// What a child does with unsynced writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Leaves them to the system: a kill loses nothing that was written.
    Plain,
    /// Keeps them in memory: a kill loses them, as a power cut would.
    Lossy,
}

/// The longest time that a child runs after the moment that the parent waited for.
const LEFT_ALONE: Duration = Duration::from_millis(12);
/// A child that happened to be between two appends does not count; this many are tried for each that does.
const TRIES_A_KILL: u64 = 10;
/// Kills on one directory, one process after the other, before a new directory is used.
const LIVES: usize = 10;

fn options() -> Options {
    Options { segment_bytes: 4096, checkpoint_every_bytes: 2048, ..Options::default() }
}

fn session(number: usize) -> String {
    format!("s{number}")
}

fn record(session: usize, number: u64) -> Envelope<'static> {
    let mut seeded = Seeded::new((session as u64) << 40 | number);
    let letters = seeded.below(900);
    let text: String = (0..letters).map(|_| if seeded.one_in(9) { ' ' } else { 'x' }).collect();
    let id = format!("e{number}");
    let parent = (number > 1).then(|| format!("e{}", number - 1));
    let payload = format!("{{\"n\":{number},\"text\":\"{text}\"}}");
    Envelope::entry(&id, parent.as_deref(), 0, payload)
}

/// What the child runs: appends to two sessions for ever. Returns only when something fails.
pub fn child(root: &Path, memory: Memory) -> Result<(), Box<dyn std::error::Error>> {
    let os = OsDisk::create(root)?;
    let disk: Arc<dyn Disk> = match memory {
        Memory::Plain => Arc::new(os),
        Memory::Lossy => Arc::new(LossyDisk::open(os)?),
    };
    let clock = Arc::new(SystemClock::new());
    let store: LogStore =
        LogStore::open(Platform { disk, clock, entropy: Arc::new(OsEntropy) }, options())?;
    let mut out = std::io::stdout();
    let mut say = |words: &str, session: usize, number: u64| {
        writeln!(out, "{words} {session} {number}")?;
        out.flush()
    };
    let mut next = [1_u64; 2];
    for (session_number, next) in next.iter_mut().enumerate() {
        *next = match store.open_for_writing(&session(session_number)) {
            Ok(_) => store.read(&session(session_number))?.head().seq + 1,
            Err(LogError::NotFound { .. }) => 1,
            Err(error) => return Err(error.into()),
        };
    }
    for turn in 0_usize.. {
        let at = turn % next.len();
        let Some(number) = next.get_mut(at) else { continue };
        let record = record(at, *number);
        say("begin", at, *number)?;
        if *number == 1 {
            store.create(&session(at), vec![record])?;
        } else {
            store.append(&session(at), Expected::Any, vec![record])?;
        }
        say("done", at, *number)?;
        *number += 1;
        if turn % 23 == 22 {
            store.close(&session(at))?;
        }
    }
    Ok(())
}

/// Kills this many children of one kind, each with an append in flight.
pub(crate) fn kill_many(program: &Path, memory: Memory, kills: u64, seed: u64) -> Report {
    let mut report = Report::default();
    let mut seeded = Seeded::new(seed);
    let mut tries = 0;
    while report.kills < kills && report.failed() == 0 && tries < kills * TRIES_A_KILL {
        let found = tempfile::tempdir()
            .map_err(|error| error.to_string())
            .and_then(|dir| lives(program, dir.path(), memory, &mut seeded, kills - report.kills));
        tries += LIVES as u64;
        match found {
            Ok(found) => report.add(found),
            Err(words) => report.fail(&Verdict::broken(words), &format!("{memory:?} kill")),
        }
    }
    if memory == Memory::Lossy {
        report.lossy_kills = report.kills;
    }
    report
}

/// One directory, one child after the other.
fn lives(
    program: &Path,
    root: &Path,
    memory: Memory,
    seeded: &mut Seeded,
    kills: u64,
) -> Result<Report, String> {
    let mut report = Report::default();
    let mut acknowledged = [0_u64; 2];
    for life in 0..LIVES {
        if report.kills >= kills {
            break;
        }
        let begun = run_and_kill(program, root, memory, seeded, &mut acknowledged)?;
        report.kills += u64::from(begun.is_some());
        for (session, acknowledged) in acknowledged.iter_mut().enumerate() {
            let in_flight = begun.filter(|(at, _)| *at == session).map(|(_, number)| number);
            match check(root, session, *acknowledged, in_flight) {
                Ok(there) => *acknowledged = there,
                Err(verdict) => {
                    let place = format!("{memory:?} kill, life {life} of {}", root.display());
                    report.fail(&verdict, &place);
                }
            }
        }
    }
    Ok(report)
}

/// Runs a child until a random moment, kills it, and reads its lines. Returns the append that was in flight.
fn run_and_kill(
    program: &Path,
    root: &Path,
    memory: Memory,
    seeded: &mut Seeded,
    acknowledged: &mut [u64; 2],
) -> Result<Option<(usize, u64)>, String> {
    let kind = format!("{memory:?}").to_lowercase();
    let mut child = Command::new(program)
        .args([CHILD, &kind])
        .arg(root)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("the child does not start: {error}"))?;
    let said = wait_and_kill(&mut child, seeded);
    let mut complaint = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        // The child is dead by now; output that cannot be read is not needed.
        drop(stderr.read_to_string(&mut complaint));
    }
    let said = said.map_err(|error| format!("the child's words are lost: {error}"))?;
    if !complaint.is_empty() {
        return Err(format!("the child failed by itself: {complaint}"));
    }
    let mut in_flight = None;
    for line in &said {
        let mut words = line.split(' ');
        let (word, session) = (words.next(), words.next().and_then(|w| w.parse::<usize>().ok()));
        let number = words.next().and_then(|w| w.parse::<u64>().ok());
        let (Some(word), Some(session), Some(number)) = (word, session, number) else {
            continue;
        };
        match word {
            "begin" => in_flight = Some((session, number)),
            _ => {
                in_flight = None;
                if let Some(newest) = acknowledged.get_mut(session) {
                    *newest = number;
                }
            }
        }
    }
    Ok(in_flight)
}

/// Waits for a random append to begin, then for a random time or not at all, then kills. Returns all lines until then.
fn wait_and_kill(child: &mut Child, seeded: &mut Seeded) -> std::io::Result<Vec<String>> {
    let Some(stdout) = child.stdout.take() else { return Ok(Vec::new()) };
    let mut lines = BufReader::new(stdout).lines();
    let mut said = Vec::new();
    for _ in 0..=seeded.below(20) {
        // An append has just begun.
        while let Some(line) = lines.next().transpose()? {
            let begun = line.starts_with("begin");
            said.push(line);
            if begun {
                break;
            }
        }
    }
    let at_once = seeded.one_in(2);
    let micros = seeded.below(usize::try_from(LEFT_ALONE.as_micros()).unwrap_or(1));
    if !at_once {
        SystemClock::new().sleep(Duration::from_micros(micros as u64));
    }
    child.kill()?;
    child.wait()?;
    // A line that the kill cut short does not count.
    for line in lines.map_while(Result::ok).filter(|line| line.split(' ').count() == 3) {
        said.push(line);
    }
    Ok(said)
}

/// Checks that everything acknowledged is there, and beyond that at most the append in flight. Returns how many are
/// there.
fn check(root: &Path, at: usize, acknowledged: u64, begun: Option<u64>) -> Result<u64, Verdict> {
    let wrong =
        |error: &dyn std::fmt::Display| Verdict::broken(format!("{}: {error}", session(at)));
    let platform = Platform::system(root).map_err(|error| wrong(&error))?;
    let store: LogStore = LogStore::open_to_look(platform, options());
    let reader = match store.read(&session(at)) {
        Ok(reader) => reader,
        Err(LogError::NotFound { .. }) if acknowledged == 0 => return Ok(0),
        Err(error) => return Err(Verdict::lost(format!("{}: {error}", session(at)))),
    };
    if let Some(damage) = reader.damage() {
        return Err(wrong(&damage));
    }
    let records = reader
        .records(0, u64::MAX / 2, |stored| stored.into_owned())
        .map_err(|error| wrong(&error))?;
    let there = records.len() as u64;
    if there < acknowledged {
        let words = format!("{}: {acknowledged} acknowledged, {there} there", session(at));
        return Err(Verdict::lost(words));
    }
    if there > acknowledged.max(begun.unwrap_or(0)) {
        return Err(Verdict::invented(format!("{}: {there} there, never begun", session(at))));
    }
    for (stored, number) in records.into_iter().zip(1..) {
        if stored.envelope != record(at, number) {
            return Err(Verdict::invented(format!("{}: record {number}", session(at))));
        }
    }
    Ok(there)
}
