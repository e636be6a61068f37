//! How many tests passed, read from what a test runner printed.

/// Tests that passed and tests that did not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    /// The failed tests by name, where the runner named them.
    pub(crate) failures: Vec<String>,
}

impl Counts {
    pub(crate) const ONE_PASSED: Self = Self::of(1, 0);
    pub(crate) const ONE_FAILED: Self = Self::of(0, 1);

    pub(crate) const fn of(passed: u64, failed: u64) -> Self {
        Self { passed, failed, failures: Vec::new() }
    }

    pub(crate) fn plus(mut self, other: Self) -> Self {
        self.failures.extend(other.failures);
        Self { passed: self.passed + other.passed, failed: self.failed + other.failed, ..self }
    }
}

/// What a runner that ended with `success` counts for. A failed runner counts at least one failure, even
/// when it died before it could print a summary; a successful one without tests counts as one check.
pub(crate) fn of_run(success: bool, output: &str) -> Counts {
    let mut counted = of_output(output);
    if !success {
        counted.failures = failures(output);
    }
    if !success && counted.failed == 0 {
        return counted.plus(Counts::ONE_FAILED);
    }
    if counted == Counts::default() {
        return Counts::ONE_PASSED;
    }
    counted
}

/// Nextest repeats what each failed program printed, with that program's own summary: where nextest has
/// one, no other counts.
fn of_output(output: &str) -> Counts {
    let is_nextest = output.lines().any(is_nextest_summary);
    let counted = output.lines().filter(|line| !is_nextest || is_nextest_summary(line));
    counted.filter_map(summary).fold(Counts::default(), Counts::plus)
}

/// The names of failed tests, as nextest, cargo test, pytest and node's runner print them, each once.
fn failures(output: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in output.lines().filter_map(failure) {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

fn failure(line: &str) -> Option<&str> {
    let line = line.trim();
    let nextest = ["FAIL [", "TIMEOUT [", "ABORT [", "SIGABRT [", "SIGSEGV [", "SIGKILL ["];
    if nextest.iter().any(|word| line.starts_with(word)) {
        return line.split_once(']').map(|(_, name)| name.trim());
    }
    if let Some(name) = line.strip_prefix("test ") {
        return name.strip_suffix(" ... FAILED");
    }
    let pytest = line.strip_prefix("FAILED ").or_else(|| line.strip_prefix("ERROR "));
    let pytest = pytest.filter(|name| name.contains("::"));
    pytest.or_else(|| line.strip_prefix("not ok ")).or_else(|| line.strip_prefix("\u{2716} "))
}

fn is_nextest_summary(line: &str) -> bool {
    line.trim().starts_with("Summary [")
}

/// The counts of one line, if it is a summary of cargo test, nextest, pytest or node's runner.
fn summary(line: &str) -> Option<Counts> {
    let line = line.trim();
    if let Some(count) = node_count(line) {
        return Some(count);
    }
    let is_pytest =
        line.contains(" in ") && line.trim_matches(['=', ' ']).starts_with(char::is_numeric);
    let is_summary = line.starts_with("test result: ") || is_nextest_summary(line) || is_pytest;
    let count = |words: &[&str]| words.iter().map(|word| number_before(line, word)).sum();
    is_summary
        .then(|| Counts::of(count(&["passed"]), count(&["failed", "error", "errors", "timed"])))
}

/// Node prints one line a number: `# pass 3`, `# fail 0`.
fn node_count(line: &str) -> Option<Counts> {
    let mut words = line.split_whitespace().skip(1);
    let (kind, number) = (words.next()?, words.next()?.parse().ok()?);
    let starts = line.starts_with('#') || line.starts_with('\u{2139}');
    match kind {
        "pass" if starts => Some(Counts::of(number, 0)),
        "fail" | "cancelled" if starts => Some(Counts::of(0, number)),
        _ => None,
    }
}

/// The number in front of a word, as in `12 passed`; 0 when the word is not there.
fn number_before(line: &str, word: &str) -> u64 {
    let words: Vec<&str> = line.split([' ', ',', ';', '=']).collect();
    let pairs = words.iter().zip(words.iter().skip(1));
    pairs
        .filter(|(_, second)| **second == word)
        .find_map(|(first, _)| first.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(output: &str, passed: u64, failed: u64) {
        assert_eq!(of_output(output), Counts::of(passed, failed), "{output}");
    }

    #[test]
    fn cargo_test_is_summed_over_its_programs() {
        check(
            "running 2 tests\ntest result: ok. 2 passed; 0 failed; 0 ignored; finished in 0.1s\n\
             test result: FAILED. 1 passed; 3 failed; 0 ignored; finished in 0.1s\n",
            3,
            3,
        );
    }

    #[test]
    fn the_other_runners_are_understood() {
        check(
            "     Summary [   0.1s] 12 tests run: 10 passed, 1 failed, 1 timed out, 0 skipped",
            10,
            2,
        );
        check("==== 1 failed, 3 passed, 2 errors in 0.12s ====", 3, 3);
        check("5 passed in 0.01s", 5, 0);
        check("# tests 3\n# pass 2\n# fail 1\n# cancelled 0", 2, 1);
    }

    #[test]
    fn a_test_that_nextest_shows_failing_counts_once() {
        check(
            "    test result: FAILED. 0 passed; 1 failed; 0 ignored; finished in 0.1s\n\
                 Summary [   0.1s] 12 tests run: 11 passed, 1 failed, 0 skipped",
            11,
            1,
        );
    }

    #[test]
    fn ordinary_lines_count_for_nothing() {
        check("all 7 passed the gate\nfailed to be 3 passed\n# note 3", 0, 0);
    }

    #[test]
    fn a_runner_that_dies_is_a_failure_and_a_check_without_tests_is_one() {
        assert_eq!(of_run(false, "error: could not compile"), Counts::ONE_FAILED);
        assert_eq!(of_run(true, "Finished"), Counts::ONE_PASSED);
        let failed = of_run(false, "test result: FAILED. 1 passed; 2 failed; 0 ignored");
        assert_eq!((failed.passed, failed.failed), (1, 2));
    }

    #[test]
    fn failed_tests_are_named_once_whatever_the_runner() {
        let output = "\
            \x20       FAIL [   0.1s] (3/9) bough-log::it trash::undo\n\
            \x20    TIMEOUT [ 300.0s] (─────) bough-service::it cuts::all\n\
            test fold::tests::one ... FAILED\n\
            test fold::tests::two ... ok\n\
            FAILED tests/test_local.py::test_kill - AssertionError\n\
            not ok 3 - a row is renamed\n\
            \x20       FAIL [   0.1s] (3/9) bough-log::it trash::undo\n\
            FAILED to say anything\n";
        let names = of_run(false, output).failures;
        assert_eq!(
            names,
            [
                "(3/9) bough-log::it trash::undo",
                "(─────) bough-service::it cuts::all",
                "fold::tests::one",
                "tests/test_local.py::test_kill - AssertionError",
                "3 - a row is renamed",
            ]
        );
        assert!(of_run(true, output).failures.is_empty());
    }
}
