//! The terminal: taken over while a screen is shown, restored whatever happens.

use std::io::{Stderr, stderr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, DisableBracketedPaste, EnableBracketedPaste, KeyEventKind};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use tokio::sync::mpsc::UnboundedSender;

use super::event::{Event, Size};
use crate::command_error::{CommandError, CommandResult};

/// Screens are drawn on standard error, so that standard output is free for an answer.
pub(crate) type Canvas = Terminal<CrosstermBackend<Stderr>>;

/// The terminal while a screen is shown. Dropping it restores the terminal.
pub(crate) struct TerminalGuard {
    pub(crate) canvas: Canvas,
}

impl TerminalGuard {
    pub(crate) fn take() -> CommandResult<Self> {
        give_back_on_panic();
        take_over()?;
        let canvas = new_canvas().inspect_err(|_| drop(give_back()))?;
        Ok(Self { canvas })
    }

    /// Lets another program use the terminal for a while.
    pub(crate) fn lend<T>(&mut self, work: impl FnOnce() -> T) -> CommandResult<T> {
        give_back()?;
        let done = work();
        take_over()?;
        // A new canvas has no previous frame, so the next frame is drawn whole.
        self.canvas = new_canvas()?;
        Ok(done)
    }
}

impl Drop for TerminalGuard {
    fn drop(&mut self) {
        // The program ends, so the error cannot be reported.
        drop(give_back());
    }
}

fn new_canvas() -> CommandResult<Canvas> {
    Terminal::new(CrosstermBackend::new(stderr())).map_err(CommandError::from)
}

fn take_over() -> std::io::Result<()> {
    enable_raw_mode()?;
    execute!(stderr(), EnterAlternateScreen, EnableBracketedPaste)
}

fn give_back() -> std::io::Result<()> {
    execute!(
        stderr(),
        DisableBracketedPaste,
        LeaveAlternateScreen,
        ratatui::crossterm::cursor::Show
    )?;
    disable_raw_mode()
}

fn give_back_on_panic() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            drop(give_back());
            usual(panic);
        }));
    });
}

/// Reads keys on a thread of its own, until it is stopped.
pub(crate) struct Keys {
    wanted: Arc<AtomicU8>,
    is_resting: Arc<AtomicU8>,
}

const READ: u8 = 0;
const REST: u8 = 1;
const STOP: u8 = 2;
/// How long a pause may take to be noticed.
const LOOK_EVERY: Duration = Duration::from_millis(40);

impl Keys {
    pub(crate) fn start(events: UnboundedSender<Event>) -> Self {
        let keys = Self { wanted: Arc::default(), is_resting: Arc::default() };
        let (wanted, is_resting) = (keys.wanted.clone(), keys.is_resting.clone());
        std::thread::spawn(move || {
            read_keys(&events, &wanted, &is_resting);
            // Nobody must wait for a thread that has ended, or for keys that cannot arrive.
            is_resting.store(REST, Ordering::Release);
            drop(events.send(Event::Closed));
        });
        keys
    }

    /// Leaves the keys to another program while `work` runs.
    pub(crate) fn pause<T>(&self, work: impl FnOnce() -> T) -> T {
        self.wanted.store(REST, Ordering::Release);
        while self.is_resting.load(Ordering::Acquire) != REST {
            std::thread::park_timeout(LOOK_EVERY);
        }
        let done = work();
        self.wanted.store(READ, Ordering::Release);
        done
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.wanted.store(STOP, Ordering::Release);
    }
}

fn read_keys(events: &UnboundedSender<Event>, wanted: &AtomicU8, is_resting: &AtomicU8) {
    loop {
        let now = wanted.load(Ordering::Acquire);
        is_resting.store(now, Ordering::Release);
        match now {
            STOP => return,
            REST => {
                std::thread::park_timeout(LOOK_EVERY);
                continue;
            }
            _ => {}
        }
        match event::poll(LOOK_EVERY) {
            Ok(true) => {}
            Ok(false) => continue,
            Err(_) => return,
        }
        let Ok(read) = event::read() else { return };
        let sent = match read {
            event::Event::Key(key) if key.kind != KeyEventKind::Release => {
                events.send(Event::Key(key.into()))
            }
            event::Event::Paste(text) => events.send(Event::Paste(text)),
            event::Event::Resize(columns, rows) => {
                events.send(Event::Resize(Size { columns, rows }))
            }
            _ => Ok(()),
        };
        if sent.is_err() {
            return;
        }
    }
}
