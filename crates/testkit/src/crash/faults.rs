//! Fails every disk call in turn: disk full, broken, interrupted, half written, or a sync whose pages are clean
//! afterwards. Nothing acknowledged is lost, nothing more is acknowledged until the session is reopened, reading goes
//! on, and after reopening so does writing.

use bough_log::{Envelope, Expected, LogError};

use super::driver::{DiskFault, Driver, is_refusal};
use super::history::Place;
use super::judge::{Ending, judge};
use super::report::{Report, Verdict};
use super::workload::{Action, Workload};
use crate::{Fault, FaultPlan};

/// How the calls of a history fail.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trouble {
    pub(crate) plan: FaultPlan,
    /// Whether pages that are clean and not on the disk are dropped before the reopening.
    pub(crate) evict: bool,
}

/// Fails the calls of a history in turn, in every way that applies to them: the calls whose number modulo `step` is
/// `which`.
pub(crate) fn fail_every_call(
    workload: &Workload,
    disk_fault: DiskFault,
    step: u64,
    which: u64,
) -> Report {
    let calls = Driver::run(workload, disk_fault).disk.calls();
    let mut report = Report::default();
    for fault in Fault::ALL {
        for at in (1..=calls.that_can_be_hit_by(fault)).filter(|at| at % step == which % step) {
            for trouble in troubles(fault, at) {
                report.io_faults += 1;
                for verdict in run_with(workload, disk_fault, trouble) {
                    let place = format!("{} with {trouble:?}", workload.name);
                    report.fail(&verdict, &place);
                }
            }
        }
    }
    report
}

fn troubles(fault: Fault, at: u64) -> Vec<Trouble> {
    let once = FaultPlan::once(fault, at);
    match fault {
        Fault::Full => {
            let lasting = FaultPlan::from(fault, at);
            [once, lasting].map(|plan| Trouble { plan, evict: false }).to_vec()
        }
        Fault::LostPages => [true, false].map(|evict| Trouble { plan: once, evict }).to_vec(),
        _ => vec![Trouble { plan: once, evict: false }],
    }
}

/// Runs a history with one failing call; returns what went wrong beyond that.
fn run_with(workload: &Workload, disk_fault: DiskFault, trouble: Trouble) -> Vec<Verdict> {
    let mut driver = Driver::new(workload.scale, disk_fault);
    driver.disk.inject(trouble.plan);
    for action in &workload.actions {
        if let Err(error) = driver.act(*action) {
            // After a failure later steps may have nothing to act on.
            let is_excused = !driver.disk.fired().is_empty();
            if !is_excused {
                let words = format!("{action:?} failed without a fault: {error}");
                driver.verdicts.push(Verdict::broken(words));
                break;
            }
            if let Err(verdict) = recover(&mut driver, *action, &error, trouble) {
                driver.verdicts.push(verdict);
                break;
            }
        }
    }
    driver.disk.heal();
    driver.next_process();
    if driver.verdicts.is_empty() {
        let verdict = after_everything(&driver, workload).err();
        driver.verdicts.extend(verdict);
    }
    driver.verdicts
}

/// What must hold right after a failure, and after reopening.
fn recover(
    driver: &mut Driver,
    action: Action,
    error: &LogError,
    trouble: Trouble,
) -> Result<(), Verdict> {
    if !trouble.plan.lasting {
        reading_goes_on(driver)?;
    }
    if matches!(error, LogError::Latched { .. }) {
        stays_latched(driver, action)?;
    }
    driver.disk.heal();
    if trouble.evict {
        driver.disk.evict_clean_pages();
        driver.forgive_the_unsynced();
    }
    let failed =
        |error: LogError| Verdict::broken(format!("no reopening after {action:?}: {error}"));
    let store = driver.store().map_err(failed)?;
    for id in driver.ids() {
        store.reopen(&id).map_err(failed)?;
    }
    driver.resolve_all().map_err(failed)?;
    driver.retry(action).map_err(failed)
}

/// Everything acknowledged is still shown.
fn reading_goes_on(driver: &mut Driver) -> Result<(), Verdict> {
    let Ok(store) = driver.store() else { return Ok(()) };
    for life in driver.history.now().lives.clone() {
        if life.place != Place::Live || life.moving.is_some() {
            continue;
        }
        let wrong =
            |words: String| Verdict::broken(format!("{} after a failure: {words}", life.id));
        let reader = store.read(&life.id).map_err(|error| wrong(error.to_string()))?;
        let shown = reader
            .records(0, u64::MAX / 2, |stored| stored.into_owned())
            .map_err(|error| wrong(error.to_string()))?;
        let must = life.must().count();
        if shown.iter().map(|stored| &stored.envelope).take(must).ne(life.must()) {
            return Err(wrong("reading does not show what was acknowledged".to_owned()));
        }
    }
    Ok(())
}

/// Nothing more is acknowledged until reopened.
fn stays_latched(driver: &mut Driver, action: Action) -> Result<(), Verdict> {
    let Ok(store) = driver.store() else { return Ok(()) };
    let Some(id) = action.session().and_then(|session| driver.id_of(session)) else {
        return Ok(());
    };
    let record = Envelope::plain("note", 0, "\"too late\"");
    match store.append(&id, Expected::Any, vec![record]) {
        Err(error) if !is_refusal(&error) => Ok(()),
        Err(error) => Err(Verdict::broken(format!("a latched log answers {error}"))),
        Ok(_) => Err(Verdict::broken("acknowledged after a failed write, before reopening")),
    }
}

/// Checks that a new process finds everything and can write, and that the disk alone has it all.
fn after_everything(driver: &Driver, workload: &Workload) -> Result<(), Verdict> {
    let platter = driver.disk.platter();
    judge(&platter, driver.history.now(), workload.scale, Ending::Close)?;
    let cache = driver.disk.copy();
    let expectation = driver.history.now().without_power_cut();
    judge(&cache, &expectation, workload.scale, Ending::Kill)
}
