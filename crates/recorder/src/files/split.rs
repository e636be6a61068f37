//! Reading a long session file on several threads.
//!
//! A file in the usual layout can be cut between two of its loops without reading what is before: a line break in JSON
//! is never inside a text, so the line that ends a loop is found by its indentation. The cuts are a guess, which
//! reading proves: the beginning must be a session whose list of loops follows, each part must be a whole list, and
//! after the last part there must be only the end of the session. If any of that fails, the file is read from its
//! beginning to its end.

use crate::limits::{LOAD_PART_BYTES_MIN, LOAD_PARTS_MAX};
use crate::model::{LoopRecord, RecordedSession};

/// The line that begins the list of loops, and what follows its bracket.
const OPENING: &[u8] = b"\n  \"loops\": [";
/// Between two loops.
const BETWEEN: &[u8] = b"\n    },\n    {";
/// The place of the comma in it, which is followed by a line break.
const COMMA: usize = 6;
/// The longest search for the beginning of the loops, and for a cut inside a loop.
const SEARCH_BYTES: usize = 1 << 20;

/// The session in a text, read on several threads; `None` if the text is short, or has another layout. The text is
/// unchanged when this returns.
pub(super) fn read(text: &mut [u8]) -> Option<RecordedSession> {
    let parts = (text.len() / LOAD_PART_BYTES_MIN).min(threads());
    if parts < 2 {
        return None;
    }
    let open = find(text, 0, OPENING)? + OPENING.len() - 1;
    read_cut(text, open, &cuts(text, open, parts))
}

fn read_cut(text: &mut [u8], open: usize, cuts: &[usize]) -> Option<RecordedSession> {
    if cuts.is_empty() {
        return None;
    }
    let mut session = header(text.get(..=open)?)?;
    for cut in cuts {
        put(text, *cut, *b"][");
    }
    let loops = read_parts(text, open, cuts);
    for cut in cuts {
        put(text, *cut, *b",\n");
    }
    session.loops = loops?.into_iter().flatten().collect();
    Some(session)
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(LOAD_PARTS_MAX)
}

/// Where a text can probably be cut into this many parts.
fn cuts(text: &[u8], open: usize, parts: usize) -> Vec<usize> {
    let len = text.len() - open;
    let places = (1..parts).filter_map(|part| find(text, open + len / parts * part, BETWEEN));
    let mut cuts: Vec<usize> = places.map(|place| place + COMMA).collect();
    cuts.dedup();
    cuts
}

/// The next place of something that begins with a line break.
fn find(text: &[u8], from: usize, wanted: &[u8]) -> Option<usize> {
    let text = text.get(..text.len().min(from.saturating_add(SEARCH_BYTES)))?;
    let mut at = from;
    loop {
        at += text.get(at..)?.iter().position(|byte| *byte == b'\n')?;
        if text.get(at..)?.starts_with(wanted) {
            return Some(at);
        }
        at += 1;
    }
}

/// The session before its list of loops.
fn header(beginning: &[u8]) -> Option<RecordedSession> {
    let whole = [beginning, b"]}"].concat();
    serde_json::from_slice(&whole).ok()
}

/// Each part is a list of its own; the end of the session follows the last one.
fn read_parts(text: &[u8], open: usize, cuts: &[usize]) -> Option<Vec<Vec<LoopRecord>>> {
    let starts = std::iter::once(open).chain(cuts.iter().map(|cut| cut + 1));
    let ends = cuts.iter().map(|cut| cut + 1).chain([text.len()]);
    let parts: Vec<&[u8]> =
        starts.zip(ends).map(|(start, end)| text.get(start..end)).collect::<Option<_>>()?;
    let (last, others) = parts.split_last()?;
    std::thread::scope(|scope| {
        let mut running = Vec::new();
        for part in others.iter().copied() {
            let thread = std::thread::Builder::new().name("bough-load".to_owned());
            let read = move || serde_json::from_slice::<Vec<LoopRecord>>(part).ok();
            running.push(thread.spawn_scoped(scope, read).ok()?);
        }
        let last = read_last(last);
        let others = running.into_iter().map(|thread| thread.join().ok()?);
        others.chain([last]).collect()
    })
}

fn read_last(text: &[u8]) -> Option<Vec<LoopRecord>> {
    let mut values = serde_json::Deserializer::from_slice(text).into_iter();
    let loops = values.next()?.ok()?;
    let rest = text.get(values.byte_offset()..)?;
    (rest.trim_ascii() == b"}").then_some(loops)
}

fn put(text: &mut [u8], at: usize, bytes: [u8; 2]) {
    if let Some(place) = text.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(&bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::LoopStatus;
    use crate::time::Timestamp;

    /// A session of as many loops, each of which says the given words.
    fn session(loops: usize, words: &str) -> RecordedSession {
        let mut session = RecordedSession::explicit("s", "a", Timestamp::default());
        for at in 0..loops {
            let started = Timestamp::from_unix_ms(i64::try_from(at).unwrap());
            let id = format!("l{at}");
            let mut record = LoopRecord::new(id, "s", "a", LoopStatus::Completed, started);
            record.messages = vec![crate::message::RecordedMessage::user(words, 1)];
            session.loops.add(record).unwrap();
        }
        session
    }

    fn check(text: &str, expected: Option<&RecordedSession>) {
        let mut bytes = text.as_bytes().to_vec();
        let open = find(&bytes, 0, OPENING).map(|at| at + OPENING.len() - 1);
        for parts in 2..6 {
            let cuts = open.map(|open| cuts(&bytes, open, parts)).unwrap_or_default();
            let session = read_cut(&mut bytes, open.unwrap_or(0), &cuts);
            assert_eq!(session.as_ref(), expected, "{parts} parts");
            assert_eq!(bytes, text.as_bytes(), "the text is as it was");
        }
    }

    #[test]
    fn a_file_that_is_read_in_parts_is_the_session_that_was_written() {
        let session = session(30, "\n    },\n    {\n  \"loops\": [");
        let text = serde_json::to_string_pretty(&session).unwrap();
        check(&text, Some(&session));
        check(&format!("{text}\n"), Some(&session));
    }

    #[test]
    fn what_only_looks_like_the_layout_is_not_cut() {
        let session = session(30, "words");
        let text = serde_json::to_string_pretty(&session).unwrap();
        // Without line breaks there is nowhere to cut.
        check(&serde_json::to_string(&session).unwrap(), None);
        // What follows the loops would be lost.
        let more = text.replace("\n  ]\n}", "\n  ],\n  \"loops_more\": []\n}");
        check(&more, None);
        // A list that is not the list of loops, at the same depth.
        let other = text.replace("\n  \"loops\": [", "\n  \"others\": [");
        check(&other, None);
        // Lists and objects within a loop that stand where loops should.
        let nested = text.replacen(
            "\"metadata\": null",
            "\"metadata\": [[\n    {\n    },\n    {\n    }\n    ]]",
            30,
        );
        check(&nested, None);
        // A file that was cut off.
        check(text.trim_end_matches('}'), None);
        check(text.get(..text.len() / 2).unwrap(), None);
    }
}
