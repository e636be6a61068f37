//! The server that is measured.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::Outcome;
use crate::program;

/// A server that runs.
pub(crate) struct Place {
    child: Child,
    folder: PathBuf,
    pub(crate) http: SocketAddr,
    pub(crate) bus: SocketAddr,
}

impl Place {
    /// Starts a server on a fresh folder.
    pub(crate) fn start(parent: &Path) -> Outcome<Self> {
        let folder = tempfile::Builder::new().prefix("server-").tempdir_in(parent)?.keep();
        let (child, [http, bus]) = launch(&folder, "127.0.0.1:0", "127.0.0.1:0")?;
        Ok(Self { child, folder, http, bus })
    }

    /// Ends it as a power cut would, and starts it again where it was.
    pub(crate) fn kill_and_restart(&mut self) -> Outcome<()> {
        self.child.kill()?;
        self.child.wait()?;
        let (child, _) = launch(&self.folder, &self.http.to_string(), &self.bus.to_string())?;
        self.child = child;
        Ok(())
    }

    /// The memory that it holds, in MiB.
    pub(crate) fn memory(&self) -> Outcome<f64> {
        self.memory_of("VmRSS:")
    }

    /// The most memory that it has held since its start, in MiB.
    pub(crate) fn most_memory(&self) -> Outcome<f64> {
        self.memory_of("VmHWM:")
    }

    fn memory_of(&self, name: &str) -> Outcome<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        Ok(kib.ok_or("the system does not say how much memory a process holds")? / 1024.0)
    }

    /// The processor time that it has used so far, in seconds.
    pub(crate) fn processor_time(&self) -> Outcome<f64> {
        /// The system counts in hundredths of a second.
        const TICK: f64 = 0.01;
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let (_, after_name) = stat.rsplit_once(')').ok_or("an unknown kind of /proc")?;
        let ticks = after_name.split_whitespace().skip(11).take(2);
        let ticks: Vec<f64> = ticks.filter_map(|word| word.parse().ok()).collect();
        Ok(ticks.iter().sum::<f64>() * TICK)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // One that has ended cannot be killed again; what is left of its folder harms nobody.
        self.child.kill().ok();
        self.child.wait().ok();
        std::fs::remove_dir_all(&self.folder).ok();
    }
}

fn launch(folder: &Path, http: &str, bus: &str) -> Outcome<(Child, [SocketAddr; 2])> {
    let mut command = Command::new(program::bough()?);
    command.arg("serve").arg("--data-dir").arg(folder).args(["--listen", http, "--bus", bus]);
    command.env("BOUGH_LOG_LEVEL", "error");
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let output = child.stdout.take().ok_or("the server has no output")?;
    match addresses(output) {
        Some(addresses) => Ok((child, addresses)),
        None => {
            child.kill()?;
            Err("the server did not start".into())
        }
    }
}

/// Where the server says that it listens, for HTTP and for the bus.
fn addresses(output: impl std::io::Read) -> Option<[SocketAddr; 2]> {
    let mut http = None;
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        match line.split_whitespace().collect::<Vec<_>>().as_slice() {
            ["HTTP", url] => http = url.strip_prefix("http://").and_then(|at| at.parse().ok()),
            ["bus", url] => {
                return Some([http?, url.strip_prefix("ws://").and_then(|at| at.parse().ok())?]);
            }
            _ => {}
        }
    }
    None
}
