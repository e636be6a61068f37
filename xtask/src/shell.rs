//! Starting programs: their output is shown while they run and kept for counting.

use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

/// What a finished program left behind.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) success: bool,
    /// Standard output and standard error, line by line in the order of arrival.
    pub(crate) output: String,
}

/// The cargo that runs us, in the workspace.
pub(crate) fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    command
}

/// Where cargo builds: shared by all workspaces of the project, so that what they have in common is built once.
pub(crate) fn target_dir(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

/// Runs a program, copying all it says to standard error as it comes.
pub(crate) fn run(command: &mut Command) -> Result<Ran, String> {
    eprintln!("      $ {}", describe(command));
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| not_started(command, &error))?;
    let output = Mutex::new(String::new());
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    std::thread::scope(|scope| {
        scope.spawn(|| stdout.map(|pipe| copy_lines(pipe, &output)));
        scope.spawn(|| stderr.map(|pipe| copy_lines(pipe, &output)));
    });
    let status = child.wait().map_err(|error| not_started(command, &error))?;
    Ok(Ran { success: status.success(), output: output.into_inner().unwrap_or_default() })
}

/// Runs a program in silence; its standard output if it succeeded.
pub(crate) fn answer(command: &mut Command) -> Option<String> {
    let done = command.stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    done.status.success().then_some(text)
}

/// The command as a person would type it.
pub(crate) fn describe(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

fn not_started(command: &Command, error: &io::Error) -> String {
    format!("{} did not run: {error}", describe(command))
}

fn copy_lines(pipe: impl Read, output: &Mutex<String>) {
    let mut reader = BufReader::new(pipe);
    let mut line = Vec::new();
    // A line that is not UTF-8 must not end the copying: the program would block on a full pipe.
    while reader.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        let text = String::from_utf8_lossy(&line);
        eprintln!("      {}", text.trim_end());
        if let Ok(mut all) = output.lock() {
            all.push_str(text.trim_end());
            all.push('\n');
        }
        line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_streams_and_the_status_are_kept() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo out; echo err >&2; exit 3"]);
        let ran = run(&mut command).unwrap();
        assert!(!ran.success);
        let mut lines: Vec<&str> = ran.output.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["err", "out"]);
    }

    #[test]
    fn a_program_that_is_missing_is_named() {
        let problem = run(&mut Command::new("no-such-program-here")).unwrap_err();
        assert!(problem.contains("no-such-program-here"), "{problem}");
    }
}
