//! How long files and functions are. A report, not a rule: a long function may be right, but somebody
//! should know.

use std::fmt;

use serde::Serialize;

use super::rust_text;
use super::tree::Tree;

const FILE_LINES_AIM: usize = 500;
const FUNCTION_LINES_AIM: usize = 70;
const LONGEST_SHOWN: usize = 10;

/// The shape of the code, tests left out.
#[derive(Debug, Serialize)]
pub(super) struct Sizes {
    files: Spread,
    functions: Spread,
    code_lines: usize,
    test_lines: usize,
    long_files: Vec<Long>,
    long_functions: Vec<Long>,
}

/// Half, nine tenths and 99 hundredths are at most this long.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
struct Spread {
    count: usize,
    median: usize,
    p90: usize,
    p99: usize,
    max: usize,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Long {
    lines: usize,
    place: String,
}

pub(super) fn measure(tree: &Tree) -> Sizes {
    let (mut files, mut functions) = (Vec::new(), Vec::new());
    let (mut code_lines, mut all_lines) = (0, 0);
    for file in tree.rust() {
        let lines = file.text.lines().count();
        all_lines += lines;
        if file.is_test() {
            continue;
        }
        let code = rust_text::without_test_modules(&rust_text::masked(&file.text));
        let own = own_lines(&file.text);
        code_lines += own;
        files.push(Long { lines: own, place: file.path.clone() });
        functions.extend(rust_text::functions(&code).into_iter().map(|found| Long {
            lines: found.lines,
            place: format!("{}:{} {}", file.path, found.line, found.name),
        }));
    }
    Sizes {
        files: spread(&files),
        functions: spread(&functions),
        code_lines,
        test_lines: all_lines - code_lines,
        long_files: longest(files, FILE_LINES_AIM),
        long_functions: longest(functions, FUNCTION_LINES_AIM),
    }
}

/// The lines of a file before its test module, which by custom comes last.
fn own_lines(text: &str) -> usize {
    text.lines().take_while(|line| !line.starts_with("#[cfg(test)]")).count()
}

fn spread(sizes: &[Long]) -> Spread {
    let mut lines: Vec<usize> = sizes.iter().map(|long| long.lines).collect();
    lines.sort_unstable();
    let at = |hundredths: usize| {
        let place = (lines.len() * hundredths).div_ceil(100).saturating_sub(1);
        lines.get(place).copied().unwrap_or(0)
    };
    Spread { count: lines.len(), median: at(50), p90: at(90), p99: at(99), max: at(100) }
}

fn longest(mut sizes: Vec<Long>, aim: usize) -> Vec<Long> {
    sizes.retain(|long| long.lines > aim);
    sizes.sort_by(|a, b| b.lines.cmp(&a.lines).then(a.place.cmp(&b.place)));
    sizes.truncate(LONGEST_SHOWN);
    sizes
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "lines: {} of code, {} of tests", self.code_lines, self.test_lines)?;
        writeln!(f, "files: {}", self.files)?;
        writeln!(f, "functions: {}", self.functions)?;
        for (what, aim, long) in [
            ("file", FILE_LINES_AIM, &self.long_files),
            ("function", FUNCTION_LINES_AIM, &self.long_functions),
        ] {
            for Long { lines, place } in long {
                writeln!(f, "long {what} (aim {aim}): {lines} lines, {place}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}; lines: median {}, p90 {}, p99 {}, longest {}",
            self.count, self.median, self.p90, self.p99, self.max
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::planted;
    use super::*;

    #[test]
    fn a_long_function_is_reported_and_tests_are_counted_apart() {
        let body = "    x();\n".repeat(FUNCTION_LINES_AIM);
        let source =
            format!("fn long() {{\n{body}}}\n#[cfg(test)]\nmod tests {{\n fn t() {{}}\n}}\n");
        let sizes = measure(&planted(&[
            ("crates/log/src/a.rs", &source),
            ("crates/log/tests/b.rs", "fn b() {}\n"),
        ]));
        let expected =
            Long { lines: FUNCTION_LINES_AIM + 2, place: "crates/log/src/a.rs:1 long".to_owned() };
        assert_eq!(sizes.long_functions, [expected]);
        assert_eq!(sizes.code_lines, FUNCTION_LINES_AIM + 2);
        assert_eq!(sizes.test_lines, 5);
    }

    #[test]
    fn the_spread_of_sizes() {
        let sizes: Vec<Long> =
            (1..=100).map(|lines| Long { lines, place: String::new() }).collect();
        let expected = Spread { count: 100, median: 50, p90: 90, p99: 99, max: 100 };
        assert_eq!(spread(&sizes), expected);
        assert_eq!(spread(&[]), Spread::default());
    }
}
