//! Real processes on one data directory: one writer a session, readers always served, locks that outlive
//! nobody.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use bough_log::{Envelope, Expected, Head, LogError, LogStore, Options};
use bough_platform::{Clock, Platform, SystemClock};

use crate::support::*;

/// Names the directory that this program, started again by itself, works on as a child.
const CHILD_DIR: &str = "BOUGH_LOG_TEST_CHILD_DIR";
/// What a child says begins so; the rest is the test harness's.
const ANSWER: &str = "answer: ";

fn options() -> Options {
    Options { segment_bytes: 4096, checkpoint_every_bytes: 2048, ..Options::default() }
}

fn open(dir: &Path) -> LogStore {
    <LogStore>::open(Platform::system(dir).unwrap(), options()).unwrap()
}

/// Another process with the directory open; does what it is asked.
struct Child {
    process: std::process::Child,
    asks: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Child {
    fn start(dir: &Path) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "processes::a_child_does_what_it_is_asked", "--nocapture"])
            .env(CHILD_DIR, dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let asks = process.stdin.take().unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, asks, answers }
    }

    fn pid(&self) -> u32 {
        self.process.id()
    }

    fn answer(&mut self) -> Option<String> {
        for line in self.answers.by_ref() {
            if let Some((_, answer)) = line.unwrap().split_once(ANSWER) {
                return Some(answer.to_owned());
            }
        }
        None
    }

    fn ask(&mut self, words: &str) -> String {
        writeln!(self.asks, "{words}").unwrap();
        self.answer().unwrap_or_else(|| panic!("no answer to {words:?}"))
    }

    /// SIGKILL; returns its last lines.
    fn kill(mut self) -> Vec<String> {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        std::iter::from_fn(|| self.answer()).collect()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// What a child keeps between questions.
struct Asked {
    store: LogStore,
    /// The head that the last reading showed.
    head: Option<Head>,
}

impl Asked {
    fn answer(&mut self, words: &str) -> Result<String, LogError> {
        let words: Vec<&str> = words.split(' ').collect();
        let number = |text: &str| text.parse::<u64>().unwrap();
        let store = &self.store;
        match words[..] {
            ["create", id, n] => store.create(id, vec![free(number(n))]).map(|_| ok()),
            ["append", id, n] => {
                store.append(id, Expected::Any, vec![free(number(n))]).map(|_| ok())
            }
            ["append-where-read", id, n] => {
                let expected = Expected::Head(self.head.unwrap());
                store.append(id, expected, vec![free(number(n))]).map(|_| ok())
            }
            ["read", id] => {
                self.head = Some(store.read(id)?.head());
                let shown: Vec<String> = numbers(store, id).iter().map(u64::to_string).collect();
                Ok(shown.join(","))
            }
            ["delete", id] => store.delete(id, 5, "{}").map(|()| ok()),
            ["release-idle"] => Ok(store.release_idle(Duration::ZERO)?.to_string()),
            ["append-for-ever", id] => self.append_for_ever(id),
            _ => Err(LogError::Invalid { reason: format!("unknown: {words:?}") }),
        }
    }

    fn append_for_ever(&self, id: &str) -> Result<String, LogError> {
        let mut next = self.store.read(id)?.head().seq + 1;
        loop {
            self.store.append(id, Expected::Any, vec![free(next)])?;
            say(&next.to_string());
            next += 1;
        }
    }
}

fn say(answer: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{ANSWER}{answer}").unwrap();
}

fn ok() -> String {
    "ok".to_owned()
}

/// An entry that hangs from nothing: processes number theirs as they like.
fn free(n: u64) -> Envelope<'static> {
    Envelope::entry(&format!("e{n}"), None, 1, n.to_string())
}

fn in_a_word(error: &LogError) -> String {
    match error {
        LogError::Locked { holder } => format!("locked {holder}"),
        LogError::NotFound { .. } => "not found".to_owned(),
        LogError::Exists { .. } => "exists".to_owned(),
        LogError::Conflict { .. } => "conflict".to_owned(),
        other => format!("error {other}"),
    }
}

/// Whether an answer is a refusal that names the process that holds the lock.
fn is_locked_by(answer: &str, pid: u32) -> bool {
    answer.starts_with("locked") && answer.contains(&format!("\"pid\":{pid},"))
}

/// In a child: works until nobody asks any more. Otherwise: what nobody can mean is refused.
#[test]
fn a_child_does_what_it_is_asked() {
    let Some(dir) = std::env::var_os(CHILD_DIR) else {
        let dir = tempfile::tempdir().unwrap();
        let mut asked = Asked { store: open(dir.path()), head: None };
        assert!(asked.answer("dance").is_err());
        assert_eq!(asked.answer("create s 1").unwrap(), "ok");
        return;
    };
    let mut asked = Asked { store: open(Path::new(&dir)), head: None };
    for line in std::io::stdin().lines() {
        let answer = asked.answer(&line.unwrap()).unwrap_or_else(|error| in_a_word(&error));
        say(&answer);
    }
}

#[test]
fn of_two_processes_one_writes_and_the_other_is_served() {
    let dir = tempfile::tempdir().unwrap();
    let (mut first, mut second) = (Child::start(dir.path()), Child::start(dir.path()));
    assert_eq!(first.ask("create s 1"), "ok");
    assert_eq!(second.ask("create s 9"), "exists");
    assert_eq!(first.ask("append s 2"), "ok");
    let refused = second.ask("append s 3");
    assert!(is_locked_by(&refused, first.pid()), "{refused}");
    assert_eq!(second.ask("read s"), "1,2");
    assert_eq!(first.ask("append s 3"), "ok", "the refused one disturbed no other");
    assert_eq!(second.ask("read s"), "1,2,3");
    // The lock of a process that was killed is taken over at once.
    assert!(first.kill().is_empty());
    assert_eq!(second.ask("append s 4"), "ok");
    assert_eq!(second.ask("read s"), "1,2,3,4");
}

#[test]
fn five_processes_share_a_directory_each_with_a_session_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let mut children: Vec<Child> = (0..5).map(|_| Child::start(dir.path())).collect();
    for (n, child) in children.iter_mut().enumerate() {
        assert_eq!(child.ask(&format!("create s{n} 1")), "ok");
        assert_eq!(child.ask(&format!("append s{n} 2")), "ok");
    }
    let pids: Vec<u32> = children.iter().map(Child::pid).collect();
    for (n, child) in children.iter_mut().enumerate() {
        for (other, pid) in pids.iter().enumerate() {
            assert_eq!(child.ask(&format!("read s{other}")), "1,2");
            let answer = child.ask(&format!("append s{other} 3"));
            if n == other {
                assert_eq!(answer, "ok");
            } else {
                assert!(is_locked_by(&answer, *pid), "{answer}");
            }
        }
        // From here on this one's session has three.
        assert_eq!(child.ask(&format!("read s{n}")), "1,2,3");
        assert_eq!(child.ask(&format!("append s{n} 4")), "ok");
        let undone = <LogStore>::open_to_look(Platform::system(dir.path()).unwrap(), options());
        assert_eq!(numbers(&undone, &format!("s{n}")), [1, 2, 3, 4]);
        // The others expect two: start them all over with a session of the same length.
        assert_eq!(child.ask(&format!("delete s{n}")), "ok");
        assert_eq!(child.ask(&format!("create s{n} 1")), "ok");
        assert_eq!(child.ask(&format!("append s{n} 2")), "ok");
    }
    let mut last = children.pop().unwrap();
    children.into_iter().for_each(|child| drop(child.kill()));
    for n in 0..5 {
        assert_eq!(last.ask(&format!("append s{n} 3")), "ok", "taken over from the dead");
        assert_eq!(last.ask(&format!("read s{n}")), "1,2,3");
    }
}

#[test]
fn an_idle_process_gives_its_lock_up_for_another() {
    let dir = tempfile::tempdir().unwrap();
    let (mut first, mut second) = (Child::start(dir.path()), Child::start(dir.path()));
    assert_eq!(first.ask("create s 1"), "ok");
    assert_eq!(first.ask("append s 2"), "ok");
    assert!(second.ask("append s 3").starts_with("locked"));
    assert_eq!(first.ask("release-idle"), "1");
    assert_eq!(second.ask("append s 3"), "ok");
    let refused = first.ask("append s 4");
    assert!(is_locked_by(&refused, second.pid()), "{refused}");
    assert_eq!(second.ask("release-idle"), "1");
    assert_eq!(first.ask("append s 4"), "ok");
    assert_eq!(first.ask("read s"), "1,2,3,4");
}

#[test]
fn another_process_deletes_an_id_and_makes_it_again() {
    let dir = tempfile::tempdir().unwrap();
    let (mut first, mut second) = (Child::start(dir.path()), Child::start(dir.path()));
    assert_eq!(first.ask("create s 1"), "ok");
    assert_eq!(first.ask("append s 2"), "ok");
    assert!(second.ask("delete s").starts_with("locked"), "not while another process writes it");
    assert_eq!(first.ask("read s"), "1,2");
    assert_eq!(first.ask("release-idle"), "1");
    assert_eq!(second.ask("delete s"), "ok");
    assert_eq!(first.ask("read s"), "not found");
    assert_eq!(first.ask("append s 3"), "not found");
    assert_eq!(second.ask("create s 7"), "ok");
    assert_eq!(second.ask("append s 8"), "ok");
    assert_eq!(first.ask("read s"), "7,8", "the new incarnation");
    assert_eq!(second.ask("release-idle"), "1");
    assert_eq!(first.ask("append-where-read s 9"), "ok");
    assert_eq!(first.ask("read s"), "7,8,9");
    assert_eq!(second.ask("read s"), "7,8,9");
    let store = <LogStore>::open_to_look(Platform::system(dir.path()).unwrap(), options());
    assert_eq!(store.trash().unwrap().len(), 1, "the first incarnation is in the trash");
}

#[test]
fn a_head_of_a_life_that_another_process_ended_is_a_conflict() {
    let dir = tempfile::tempdir().unwrap();
    let (mut first, mut second) = (Child::start(dir.path()), Child::start(dir.path()));
    assert_eq!(first.ask("create s 1"), "ok");
    assert_eq!(first.ask("read s"), "1");
    assert_eq!(second.ask("delete s"), "ok");
    assert_eq!(second.ask("create s 1"), "ok");
    assert_eq!(first.ask("append-where-read s 2"), "conflict", "one record each, two incarnations");
    assert_eq!(second.ask("read s"), "1");
}

#[test]
fn a_reader_follows_a_writer_that_is_killed_and_misses_nothing_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    open(dir.path()).create("s", vec![free(1)]).unwrap();
    let clock = SystemClock::new();
    let reader = <LogStore>::open_to_look(Platform::system(dir.path()).unwrap(), options());
    let mut seen = 1;
    for run in 0..4 {
        let mut writer = Child::start(dir.path());
        writeln!(writer.asks, "append-for-ever s").unwrap();
        let mut acknowledged: u64 = writer.answer().unwrap().parse().unwrap();
        let deadline = clock.monotonic() + Duration::from_secs(120);
        let goal = acknowledged + 25 + run;
        while seen < goal {
            assert!(clock.monotonic() < deadline, "the reader sees {seen} of {goal}");
            let shown = numbers(&reader, "s");
            assert_eq!(shown, (1..=shown.len() as u64).collect::<Vec<_>>());
            assert!(shown.len() as u64 >= seen, "what was shown stays");
            seen = shown.len() as u64;
        }
        for line in writer.kill() {
            acknowledged = line.parse().unwrap_or(acknowledged);
        }
        let after = numbers(&reader, "s");
        let there = after.len() as u64;
        assert!(there >= acknowledged.max(seen), "{there} of {acknowledged}, {seen} seen");
        assert_eq!(after, (1..=there).collect::<Vec<_>>());
        assert_eq!(reader.read("s").unwrap().damage(), None);
    }
}
