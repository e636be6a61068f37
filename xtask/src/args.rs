//! What was typed, turned once into what was meant.

use std::path::PathBuf;

use crate::package::Kind;

/// One task with its options.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Task {
    Help,
    Test(TestOptions),
    Tidy {
        json: bool,
    },
    Package(PackageOptions),
    /// Arguments for the crash harness, passed on as they are.
    Crash {
        rest: Vec<String>,
    },
    /// Arguments for the bench program, passed on as they are.
    Bench {
        rest: Vec<String>,
    },
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TestOptions {
    /// Run only these stages; the usual ones when empty.
    pub(crate) only: Vec<String>,
    /// Name the stages and run none.
    pub(crate) list: bool,
    pub(crate) json: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PackageOptions {
    pub(crate) kinds: Vec<Kind>,
    /// For which system; this machine's when it is not said.
    pub(crate) target: Option<String>,
    /// The program to pack; one is built when it is not said.
    pub(crate) program: Option<PathBuf>,
    /// The cargo profile to build with.
    pub(crate) profile: Option<String>,
    pub(crate) json: bool,
}

impl TestOptions {
    /// Whether a stage is to be run: one that was named, or a usual one when none was.
    pub(crate) fn wants(&self, stage: &str, is_usual: bool) -> bool {
        if self.only.is_empty() { is_usual } else { self.only.iter().any(|name| name == stage) }
    }
}

pub(crate) fn parse(arguments: &[String]) -> Result<Task, String> {
    let Some((name, rest)) = arguments.split_first() else {
        return Ok(Task::Help);
    };
    match name.as_str() {
        "help" | "--help" | "-h" => Ok(Task::Help),
        "test" => test_options(rest).map(Task::Test),
        "tidy" => Ok(Task::Tidy { json: only_json(rest)? }),
        "package" => package_options(rest).map(Task::Package),
        "crash" => Ok(Task::Crash { rest: rest.to_vec() }),
        "bench" if rest.is_empty() => Err("bench needs a name, or 'list'".to_owned()),
        "bench" => Ok(Task::Bench { rest: rest.to_vec() }),
        other => Err(format!("there is no task {other:?}")),
    }
}

fn test_options(arguments: &[String]) -> Result<TestOptions, String> {
    let mut options = TestOptions::default();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--json" => options.json = true,
            "--list" => options.list = true,
            "--stage" => {
                let name = rest.next().ok_or("--stage needs the name of a stage")?;
                options.only.push(name.clone());
            }
            other => return Err(format!("test does not know {other:?}")),
        }
    }
    Ok(options)
}

fn package_options(arguments: &[String]) -> Result<PackageOptions, String> {
    let mut options = PackageOptions::default();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let mut value = || rest.next().cloned().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--json" => options.json = true,
            "--target" => options.target = Some(value()?),
            "--profile" => options.profile = Some(value()?),
            "--program" => options.program = Some(value()?.into()),
            word => {
                let kinds = Kind::named(word);
                options.kinds.extend(kinds.ok_or(format!("package does not know {word:?}"))?);
            }
        }
    }
    if options.kinds.is_empty() {
        return Err("package needs a kind: archive, wheel, npm, deb, image or all".to_owned());
    }
    Ok(options)
}

fn only_json(arguments: &[String]) -> Result<bool, String> {
    match arguments {
        [] => Ok(false),
        [one] if one == "--json" => Ok(true),
        other => Err(format!("only --json is known here, not {other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Task, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        parse(&words)
    }

    #[test]
    fn stages_can_be_chosen() {
        let expected = TestOptions {
            only: vec!["fmt".to_owned(), "tidy".to_owned()],
            list: false,
            json: true,
        };
        assert_eq!(parsed("test --stage fmt --json --stage tidy"), Ok(Task::Test(expected)));
    }

    #[test]
    fn crash_and_bench_pass_their_arguments_on() {
        let rest = vec!["log".to_owned(), "--json".to_owned()];
        assert_eq!(parsed("bench log --json"), Ok(Task::Bench { rest }));
        let rest = vec!["--short".to_owned()];
        assert_eq!(parsed("crash --short"), Ok(Task::Crash { rest }));
    }

    #[test]
    fn packages_are_chosen_by_kind_and_target() {
        let expected = PackageOptions {
            kinds: vec![Kind::Archive, Kind::Wheel],
            target: Some("x86_64-unknown-linux-musl".to_owned()),
            program: Some("a/bough".into()),
            ..PackageOptions::default()
        };
        let line = "package archive --target x86_64-unknown-linux-musl wheel --program a/bough";
        assert_eq!(parsed(line), Ok(Task::Package(expected)));
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for line in [
            "tets",
            "test --stage",
            "test --quick",
            "tidy now",
            "bench",
            "package",
            "package rpm",
            "package deb --target",
        ] {
            assert!(parsed(line).is_err(), "{line}");
        }
        assert_eq!(parsed(""), Ok(Task::Help));
    }
}
