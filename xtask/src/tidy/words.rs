//! Words that must not be in the tree: unfinished work, this machine's paths, private registries,
//! characters that cannot be told apart.

use std::path::Path;

use super::Finding;
use super::rust_text;
use super::tree::{TextFile, Tree};

/// Signs of unfinished work. Written in pieces, so that this file does not find itself.
const UNFINISHED: [&str; 6] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("X", "XX"),
    concat!("db", "g!("),
    concat!("#[ign", "ore"),
    concat!("unimpl", "emented!("),
];

/// The crate whose literals are pictures.
const DRAWING_ROOM: &str = "cli";

/// Folders that many things live in: their names tell nothing of one machine.
const SHARED_FOLDERS: [&str; 7] = ["/", "/tmp", "/home", "/usr", "/opt", "/var/tmp", "/root"];

/// Where a lock file may say that a package comes from.
const PUBLIC_SOURCES: [(&str, &str, &str); 2] = [
    ("Cargo.lock", "source = \"", "registry+https://github.com/rust-lang/crates.io-index"),
    ("package-lock.json", "\"resolved\": \"", "https://registry.npmjs.org/"),
];

/// Settings that point a package manager at some other server.
const REGISTRY_SETTINGS: [&str; 4] = [
    concat!("replace", "-with"),
    concat!("--index", "-url"),
    concat!("--extra-index", "-url"),
    concat!("[regis", "tries"),
];

pub(super) fn check(tree: &Tree, root: &Path) -> Vec<Finding> {
    let machine = machine_paths(root);
    let mut findings = Vec::new();
    for file in &tree.files {
        if is_lock(file) || !file.is_sample() {
            findings.extend(private_registries(file));
        }
        if !file.is_sample() {
            findings.extend(unfinished(file));
            findings.extend(outside_ascii(file));
            findings.extend(paths_of(file, &machine));
        }
    }
    findings
}

fn unfinished(file: &TextFile) -> Vec<Finding> {
    // A bundle holds the words of others: a highlighter knows what it has to mark.
    if is_lock(file) || file.path.starts_with("console/dist/") {
        return Vec::new();
    }
    let found = |line: &str| UNFINISHED.iter().find(|word| has_word(line, word));
    (1..)
        .zip(file.text.lines())
        .filter_map(|(number, line)| {
            let word = found(line)?;
            let text = format!("{word} is unfinished work: finish it or leave it out");
            Some(Finding::at("unfinished", &file.path, number, text))
        })
        .collect()
}

/// Names must read as they are: no look-alike letters, no invisible marks. The crate that draws on the
/// terminal may write what it draws, in literals, where everybody can see it.
fn outside_ascii(file: &TextFile) -> Vec<Finding> {
    if !file.path.ends_with(".rs") || file.is_test() {
        return Vec::new();
    }
    let in_tests_from = (1..)
        .zip(file.text.lines())
        .find(|(_, line)| line.starts_with("#[cfg(test)]"))
        .map_or(usize::MAX, |(number, _)| number);
    let code = rust_text::masked(&file.text);
    let draws = file.crate_name() == Some(DRAWING_ROOM);
    (1..in_tests_from)
        .zip(file.text.lines().zip(code.lines()))
        .filter_map(|(number, (line, code))| {
            let odd = if draws {
                code.chars()
                    .find(|c| !c.is_ascii())
                    .or_else(|| line.chars().find(|c| is_invisible(*c)))?
            } else {
                line.chars().find(|c| !c.is_ascii())?
            };
            let text = format!("{odd:?} is not ASCII: write {}", odd.escape_unicode());
            Some(Finding::at("ascii", &file.path, number, text))
        })
        .collect()
}

/// Spaces and marks that a reader cannot see, or that turn the direction of the text.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{a0}' | '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202f}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// The paths that only this machine has: the checkout and the folder it lies in.
fn machine_paths(root: &Path) -> Vec<String> {
    let parent = root.parent().map(|folder| folder.display().to_string());
    let parent = parent.filter(|folder| !SHARED_FOLDERS.contains(&folder.as_str()));
    let checkout = root.display().to_string();
    let checkout = Some(checkout).filter(|folder| !SHARED_FOLDERS.contains(&folder.as_str()));
    let folders = checkout.into_iter().chain(parent);
    folders.map(|folder| format!("{folder}/")).collect()
}

fn paths_of(file: &TextFile, machine: &[String]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        if let Some(path) = machine.iter().find(|path| names_path(line, path)) {
            let text = format!("{path} exists on this machine only");
            findings.push(Finding::at("machine", &file.path, number, text));
        }
    }
    findings
}

/// Whether an absolute path begins here, not the tail of a longer one (`../x/work/`).
fn names_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line.get(..at).unwrap_or_default();
        !before.ends_with(|c: char| {
            c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | '}' | '~')
        })
    })
}

fn private_registries(file: &TextFile) -> Vec<Finding> {
    let name = file.path.rsplit('/').next().unwrap_or_default();
    let lock = PUBLIC_SOURCES.iter().find(|(lock, _, _)| *lock == name);
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        let private = match lock {
            Some((_, key, public)) => {
                line.split_once(key).is_some_and(|(_, source)| !source.starts_with(public))
            }
            None => REGISTRY_SETTINGS.iter().any(|word| line.contains(word)),
        };
        if private {
            let text = "a registry of somebody's own: packages come from the public ones";
            findings.push(Finding::at("registry", &file.path, number, text));
        }
    }
    findings
}

fn is_lock(file: &TextFile) -> bool {
    file.path.ends_with("Cargo.lock") || file.path.ends_with("package-lock.json")
}

/// Whether the word stands by itself; words that end in a bracket only need a free beginning.
fn has_word(line: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, found)| {
        let before = line.get(..at).unwrap_or_default();
        let after = line.get(at + found.len()..).unwrap_or_default();
        let open_end = word.ends_with('(') || word.starts_with('#');
        !before.ends_with(part) && (open_end || !after.starts_with(part))
    })
}

#[cfg(test)]
mod tests {
    use super::super::tree::planted;
    use super::*;

    fn check_text(path: &str, text: &str, expected: &[(&str, usize)]) {
        let findings = check(&planted(&[(path, text)]), Path::new("/srv/checkout"));
        let found: Vec<(&str, usize)> =
            findings.iter().map(|finding| (finding.rule, finding.line)).collect();
        assert_eq!(found, expected, "{path}: {text}");
    }

    #[test]
    fn unfinished_work_is_found() {
        for word in UNFINISHED {
            let line = format!("a\n    {word} later");
            check_text("crates/log/src/a.rs", &line, &[("unfinished", 2)]);
            check_text("docs/a.md", &line, &[("unfinished", 2)]);
        }
        check_text("console/dist/app.js", UNFINISHED[0], &[]);
        check_text("docs/a.md", concat!("the word MASTO", "DON is long"), &[]);
    }

    #[test]
    fn letters_outside_ascii_are_found_in_code_and_allowed_in_tests() {
        check_text("crates/log/src/a.rs", "let x = \"\u{2014}\";", &[("ascii", 1)]);
        check_text("crates/log/tests/a.rs", "let x = \"\u{2014}\";", &[]);
        let in_tests = "fn a() {}\n#[cfg(test)]\nmod tests { const X: &str = \"\u{2014}\"; }";
        check_text("crates/log/src/a.rs", in_tests, &[]);
        check_text("README.md", "caf\u{e9}", &[]);
    }

    #[test]
    fn pictures_are_allowed_in_literals_of_the_terminal_and_invisible_marks_are_not() {
        check_text("crates/cli/src/a.rs", "let x = \"\u{2502}\";", &[]);
        check_text("crates/cli/src/a.rs", "let \u{430} = 1;", &[("ascii", 1)]);
        check_text("crates/cli/src/a.rs", "let x = \"a\u{202e}b\";", &[("ascii", 1)]);
    }

    #[test]
    fn paths_of_this_machine_are_found() {
        check_text("README.md", "see /srv/checkout/x", &[("machine", 1)]);
        check_text("a.sh", "cd /srv/other", &[("machine", 1)]);
        check_text("a.sh", "cd ../srv/other; cd ~/srv/", &[]);
        check_text("crates/log/tests/data/x.jsonl", "/srv/checkout/x", &[]);
        let shared = machine_paths(Path::new("/tmp/checkout"));
        assert_eq!(shared, ["/tmp/checkout/"]);
        assert!(machine_paths(Path::new("/")).is_empty());
    }

    #[test]
    fn lock_files_name_public_registries_only() {
        let public = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";
        check_text("Cargo.lock", public, &[]);
        check_text("Cargo.lock", "source = \"sparse+https://mirror/\"", &[("registry", 1)]);
        let npm = "\"resolved\": \"https://npm.example/x.tgz\",";
        check_text("tests/pi/package-lock.json", npm, &[("registry", 1)]);
        let setting = format!("{} = \"mirror\"", REGISTRY_SETTINGS[0]);
        check_text(".cargo/config.toml", &setting, &[("registry", 1)]);
    }
}
