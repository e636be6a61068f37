//! The sessions that are searched: a made-up language whose words are as frequent as those of a real one, identifiers, paths,
//! output of tools with numbers and hashes, and some Chinese. The same number always makes the same entry.
//!
//! An entry is about something: half of its words are of its topic, and the output of a tool is about a few files. Without that
//! nearly every word of an entry would be another one, which no text is like: a kilobyte of the documentation of Rust packages
//! has 150 words, 83 of them different, and one of their code 138 and 51.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::measure::as_f64;

/// Words of the language. The first is in every tenth place or so, as `the` is in English.
const WORDS: u64 = 60_000;
/// Identifiers that the sessions are about.
const IDENTIFIERS: u64 = 20_000;
/// Characters of the Chinese text, from the most frequent on.
const HAN: u64 = 2_500;
/// A rare word stands in every entry; this many different ones go round.
pub(crate) const RARE: usize = 100_000;
/// 2026-01-01T00:00:00Z, and how long the sessions go on from there.
const BEGIN_MS: u64 = 1_767_225_600_000;
const SPAN_MS: u64 = 300 * 24 * 60 * 60 * 1000;

/// A small generator of numbers; good enough to choose words.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x1234_5678_9abc_def1))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// A rank below `count`; the rank r is r times less likely than the first.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "ranks are small and not negative"
    )]
    fn rank(&mut self, count: u64) -> u64 {
        let unit = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        ((count as f64).powf(unit) as u64).saturating_sub(1).min(count - 1)
    }
}

/// The word of a rank: frequent ones are short.
pub(crate) fn word(rank: u64) -> String {
    const FIRST: &[u8] = b"bdfghklmnprstv";
    const VOWEL: &[u8] = b"aeiou";
    let mut text = String::new();
    let mut left = rank;
    loop {
        let digit = left % 70;
        text.push(letter(FIRST, digit / 5));
        text.push(letter(VOWEL, digit % 5));
        left /= 70;
        if left == 0 {
            break;
        }
        left -= 1;
    }
    if !rank.is_multiple_of(5) {
        text.push(letter(FIRST, rank / 3));
    }
    if rank >= 70 && rank.is_multiple_of(3) {
        text.push_str("ing");
    }
    text
}

fn letter(of: &[u8], at: u64) -> char {
    let place = usize::try_from(at).unwrap_or(0) % of.len();
    of.get(place).copied().map_or('x', char::from)
}

fn identifier(number: u64) -> String {
    let mut random = Random::new(number ^ 0xabcd);
    let [a, b, c] = [0; 3].map(|_| word(random.below(3_000)));
    let capital = |text: &str| {
        let mut letters = text.chars();
        letters
            .next()
            .map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
    };
    match number % 3 {
        0 => format!("{a}{}{}", capital(&b), capital(&c)),
        1 => format!("{a}_{b}_{c}"),
        _ => format!("{}{}", capital(&a), capital(&b)),
    }
}

fn path(random: &mut Random) -> String {
    let (a, b, c) = (random.rank(200), random.rank(2_000), random.rank(4_000));
    format!("crates/{}/src/{}/{}.rs", word(a), word(b), word(c))
}

/// What an entry is about.
struct Topic {
    words: Vec<String>,
    names: Vec<String>,
    paths: Vec<String>,
}

impl Topic {
    fn new(random: &mut Random) -> Self {
        Self {
            words: (0..20).map(|_| word(random.rank(WORDS))).collect(),
            names: (0..8).map(|_| identifier(random.rank(IDENTIFIERS))).collect(),
            paths: (0..3).map(|_| path(random)).collect(),
        }
    }

    fn one<'a>(of: &'a [String], random: &mut Random) -> &'a str {
        let place = usize::try_from(random.below(of.len() as u64)).unwrap_or(0);
        of.get(place).map_or("", String::as_str)
    }

    fn name(&self, random: &mut Random) -> &str {
        Self::one(&self.names, random)
    }

    fn path(&self, random: &mut Random) -> &str {
        Self::one(&self.paths, random)
    }

    fn prose(&self, random: &mut Random, words: u64, out: &mut String) {
        for place in 0..words {
            match random.below(2) {
                0 => out.push_str(Self::one(&self.words, random)),
                _ => out.push_str(&word(random.rank(WORDS))),
            }
            out.push_str(if place % 11 == 10 { ". " } else { " " });
        }
    }
}

/// What is said in one entry.
pub(crate) struct Said {
    /// The message, as the API has it.
    pub(crate) message: Value,
    /// What of it is text.
    pub(crate) text: String,
    pub(crate) at_ms: u64,
}

/// The rare word of an entry.
pub(crate) fn rare(number: usize) -> String {
    format!("zq{}", word(60_000 + (number % RARE) as u64))
}

/// The Chinese character of a rank.
fn han(rank: u64) -> char {
    u32::try_from(0x4e00 + rank * 7).ok().and_then(char::from_u32).unwrap_or('中')
}

fn chinese(random: &mut Random, characters: u64, out: &mut String) {
    for place in 0..characters {
        out.push(han(random.rank(HAN)));
        if place % 14 == 13 {
            out.push('，');
        }
    }
}

fn output(topic: &Topic, random: &mut Random, lines: u64, out: &mut String) {
    for _ in 0..lines {
        let line = random.below(2_000);
        // Writing to a String cannot fail.
        match random.below(5) {
            0 => write!(out, "{}:{line}: error[E{:04}]: ", topic.path(random), random.below(900)),
            1 => write!(
                out,
                "{line:>5}\t    let {} = {}(&{});",
                Topic::one(&topic.words, random),
                topic.name(random),
                topic.name(random)
            ),
            2 => write!(
                out,
                "2026-0{}-1{}T0{}:{:02}:{:02}Z INFO {} took {}ms",
                1 + random.below(9),
                random.below(9),
                random.below(9),
                random.below(60),
                random.below(60),
                topic.name(random),
                random.below(500)
            ),
            3 => write!(out, "{:07x} {}", random.next() >> 36, topic.path(random)),
            _ => Ok(()),
        }
        .ok();
        if matches!(line % 5, 0 | 1) {
            topic.prose(random, 8, out);
        }
        out.push('\n');
    }
}

/// Which kind of entry a number is, of a hundred.
fn kind_of(number: usize) -> u64 {
    Random::new(!(number as u64)).below(100)
}

/// The entry with this number, of so many.
pub(crate) fn entry(number: usize, of: usize) -> Said {
    let mut random = Random::new(number as u64);
    let at_ms = BEGIN_MS + SPAN_MS / of.max(1) as u64 * number as u64;
    let mut text = rare(number);
    text.push(' ');
    let topic = Topic::new(&mut random);
    let message = match kind_of(number) {
        0..=2 => {
            chinese(&mut random, 60, &mut text);
            json!({"role": "user", "content": [{"type": "text", "text": text}], "timestamp": at_ms})
        }
        3..=17 => {
            topic.prose(&mut random, 40, &mut text);
            json!({"role": "user", "content": [{"type": "text", "text": text}], "timestamp": at_ms})
        }
        18..=44 => {
            topic.prose(&mut random, 60, &mut text);
            for _ in 0..5 {
                text.push_str(topic.name(&mut random));
                text.push(' ');
                topic.prose(&mut random, 8, &mut text);
            }
            assistant(json!([{"type": "text", "text": text}]), at_ms)
        }
        45..=62 => {
            topic.prose(&mut random, 60, &mut text);
            let command =
                format!("cargo test -p {} {}", word(random.rank(200)), topic.name(&mut random));
            let file = topic.path(&mut random).to_owned();
            let call = json!({"type": "function_call", "id": format!("c{number}"), "function_id": "shell::bash",
                "arguments": {"command": command, "path": file}});
            let message = assistant(json!([{"type": "thinking", "text": text}, call]), at_ms);
            write!(text, " shell::bash {command} {file}").ok();
            message
        }
        _ => {
            let lines = 16 + random.below(50);
            output(&topic, &mut random, lines, &mut text);
            json!({"role": "function_result", "function_call_id": format!("c{number}"), "function_id": "shell::bash",
                "content": [{"type": "text", "text": text}], "is_error": false, "timestamp": at_ms})
        }
    };
    Said { message, text, at_ms }
}

fn assistant(content: Value, at_ms: u64) -> Value {
    json!({"role": "assistant", "content": content, "stop_reason": "end", "model": "claude-opus-4", "provider": "anthropic",
        "timestamp": at_ms})
}

/// Questions of one kind.
pub(crate) struct Questions {
    pub(crate) kind: &'static str,
    /// In Bough's query language.
    pub(crate) queries: Vec<String>,
    /// What ripgrep is given, where it can ask the same.
    pub(crate) patterns: Option<Vec<String>>,
}

/// How many questions of each kind are asked.
const ASKED: u64 = 40;

/// Questions of every kind. The words of a phrase are taken from an entry, so that it is there.
pub(crate) fn questions(entries: usize) -> Vec<Questions> {
    let each = |make: &dyn Fn(u64) -> String| -> Vec<String> { (0..ASKED).map(make).collect() };
    let common = each(&|n| word(n % 20));
    let rare = each(&|n| rare(usize::try_from(n * 7_919).unwrap_or(0) % entries.max(1)));
    let two = each(&|n| format!("{} {}", word(n % 20), word(900 + n * 13)));
    let phrases = each(&|n| phrase(entries, n));
    let frequent = each(&|n| format!("{} {}", word(n % 7), word(1 + n % 5)));
    let identifiers = each(&|n| identifier(5 + n * 5));
    let parts = each(&|n| {
        let mut random = Random::new((5 + n * 5) ^ 0xabcd);
        word(random.below(3_000))
    });
    // Frequent enough that each pair stands somewhere.
    let chinese = each(&|n| [han(n % 25), han(3 + n % 17)].iter().collect());
    let filtered = each(&|n| format!("{} role:user after:2026-0{}-01", word(n % 20), 1 + n % 9));
    let by_tool = each(&|n| format!("{} tool:bash is:call", word(900 + n * 13)));
    let quoted = |texts: &[String]| -> Vec<String> {
        texts.iter().map(|text| format!("\"{text}\"")).collect()
    };
    vec![
        Questions { kind: "a common word", patterns: Some(common.clone()), queries: common },
        Questions { kind: "a rare word", patterns: Some(rare.clone()), queries: rare },
        Questions { kind: "a common and a less common word", queries: two, patterns: None },
        Questions { kind: "a phrase", queries: quoted(&phrases), patterns: Some(phrases) },
        Questions {
            kind: "a phrase of common words",
            queries: quoted(&frequent),
            patterns: Some(frequent),
        },
        Questions {
            kind: "an identifier",
            patterns: Some(identifiers.clone()),
            queries: identifiers,
        },
        Questions { kind: "a part of an identifier", queries: parts, patterns: None },
        Questions {
            kind: "two Chinese characters",
            patterns: Some(chinese.clone()),
            queries: chinese,
        },
        Questions { kind: "a common word, role and date", queries: filtered, patterns: None },
        Questions { kind: "a word in calls of a tool", queries: by_tool, patterns: None },
    ]
}

fn phrase(entries: usize, n: u64) -> String {
    let number = usize::try_from(Random::new(n).below(entries as u64)).unwrap_or(0);
    let is_prose = |number: &usize| (3..=17).contains(&kind_of(*number));
    let number = (number..entries).chain(0..number).find(is_prose).unwrap_or(0);
    let said = entry(number, entries);
    said.text
        .split_whitespace()
        .skip(5)
        .take(3)
        .map(|word| word.trim_end_matches('.'))
        .collect::<Vec<_>>()
        .join(" ")
}

/// Words in a kilobyte of text, and how many of those in one entry are different, on average of the first entries.
pub(crate) fn density() -> (f64, f64) {
    const SAMPLE: usize = 2_000;
    let (mut bytes, mut all, mut different) = (0, 0, 0);
    for number in 0..SAMPLE {
        let said = entry(number, SAMPLE);
        let terms = bough_search::parts(&said.text);
        bytes += said.text.len();
        all += terms.len();
        different += terms.into_iter().collect::<std::collections::HashSet<_>>().len();
    }
    let of_kilobyte = |count: usize| as_f64(count) / as_f64(bytes) * 1000.0;
    (of_kilobyte(all), of_kilobyte(different))
}
