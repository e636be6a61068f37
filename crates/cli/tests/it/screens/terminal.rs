//! A pseudo-terminal: tests send keys and read the screen.

use std::io::{Read, Write};
use std::sync::mpsc::{Receiver, channel};

use bough_platform::{Clock, SystemClock};
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use crate::common::{PATIENCE, Place};

/// A terminal with the program in it.
pub(crate) struct Terminal {
    screen: vt100::Parser,
    bytes: Receiver<Vec<u8>>,
    keys: Box<dyn Write + Send>,
    master: Box<dyn MasterPty + Send>,
    child: Box<dyn Child + Send + Sync>,
}

impl Terminal {
    pub(crate) fn start(
        place: &Place,
        rows: u16,
        cols: u16,
        args: &[&str],
        extra: &[(&str, &str)],
    ) -> Self {
        let size = PtySize { rows, cols, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).unwrap();
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_bough"));
        command.args(args);
        command.env_clear();
        for (name, value) in place.environment() {
            command.env(name, value);
        }
        for (name, value) in extra {
            command.env(name, value);
        }
        command.cwd(place.path());
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader().unwrap();
        let (sender, bytes) = channel();
        std::thread::spawn(move || {
            let mut chunk = [0; 8192];
            while let Ok(read @ 1..) = reader.read(&mut chunk) {
                if sender.send(chunk[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        let keys = pair.master.take_writer().unwrap();
        let screen = vt100::Parser::new(rows, cols, 0);
        Self { screen, bytes, keys, master: pair.master, child }
    }

    pub(crate) fn text(&self) -> String {
        self.screen.screen().contents()
    }

    /// Reads the screen until a text is on it.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, wanted: &str) -> String {
        self.wait_until(wanted, |text| text.contains(wanted))
    }

    #[track_caller]
    pub(crate) fn wait_until(&mut self, what: &str, is_there: impl Fn(&str) -> bool) -> String {
        let clock = SystemClock::new();
        loop {
            let text = self.text();
            if is_there(&text) {
                return text;
            }
            let patience = PATIENCE.saturating_sub(clock.monotonic());
            match self.bytes.recv_timeout(patience) {
                Ok(bytes) => self.screen.process(&bytes),
                Err(_) => panic!("{what:?} did not come; the screen is:\n{}", self.text()),
            }
        }
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    pub(crate) fn resize(&mut self, rows: u16, cols: u16) {
        self.screen.screen_mut().set_size(rows, cols);
        self.master.resize(PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }).unwrap();
    }

    /// Waits for the program to end; returns its exit code and what is left on the screen.
    pub(crate) fn end(mut self) -> (u32, String) {
        let clock = SystemClock::new();
        while let Ok(bytes) = self.bytes.recv_timeout(PATIENCE.saturating_sub(clock.monotonic())) {
            self.screen.process(&bytes);
        }
        let status = self.child.wait().unwrap();
        (status.exit_code(), self.text())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Already gone when the test went well.
        drop(self.child.kill());
    }
}

pub(crate) const ENTER: &str = "\r";
pub(crate) const ESC: &str = "\u{1b}";
pub(crate) const CTRL_D: &str = "\u{4}";
pub(crate) const CTRL_C: &str = "\u{3}";
pub(crate) const DOWN: &str = "\u{1b}[B";
pub(crate) const UP: &str = "\u{1b}[A";
pub(crate) const CTRL_LEFT: &str = "\u{1b}[1;5D";
pub(crate) const CTRL_RIGHT: &str = "\u{1b}[1;5C";
