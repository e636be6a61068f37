//! Finding the sessions of one agent among many.

use std::path::Path;

use super::events::{Script, Shape};
use super::{PHI_CORE, SLOW_ROUNDS, in_turns, milliseconds, our_session, ours, phi_session};
use crate::report::Row;
use crate::{Options, Outcome};

const SESSIONS: usize = 1_000;
const AGENTS: usize = 10;
const LOOPS: usize = 2;

pub(super) fn rows(options: &Options) -> Outcome<Vec<Row>> {
    eprintln!("listing: {SESSIONS} sessions");
    let (ours, phi) = (folder(options)?, folder(options)?);
    for number in 0..SESSIONS {
        let agent = format!("agent-{}", number % AGENTS);
        let script = Script::new(format!("session-{number}"), &agent, Shape::Chained);
        let lines = script.lines(LOOPS);
        ours::save_session(&our_session(&lines)?, ours.path())?;
        phi_core::session::save_session(&phi_session(&lines)?, phi.path())?;
    }
    let name = format!("sessions of one of {AGENTS} agents among {SESSIONS}");
    let (bough, peer) = in_turns(
        &name,
        SLOW_ROUNDS,
        || milliseconds(|| find_ours(ours.path())),
        || milliseconds(|| find_in_phi_core(phi.path())),
    )?;
    Ok(vec![Row::new(name, "ms", bough).beside(PHI_CORE, peer)])
}

fn folder(options: &Options) -> Outcome<tempfile::TempDir> {
    Ok(tempfile::tempdir_in(&options.folder)?)
}

fn find_ours(dir: &Path) -> Outcome<()> {
    let found = ours::load_sessions_for_agent("agent-3", dir)?;
    check(found.sessions.len())
}

fn find_in_phi_core(dir: &Path) -> Outcome<()> {
    check(phi_core::session::load_sessions_for_agent("agent-3", dir)?.len())
}

fn check(found: usize) -> Outcome<()> {
    if found == SESSIONS / AGENTS {
        return Ok(());
    }
    Err(format!("{found} sessions were found").into())
}
