//! Files made at random, with every hazard.

use proptest::prelude::*;
use serde_json::json;

use super::header;

/// One line of a file, before it is text.
#[derive(Clone, Debug)]
pub(crate) enum Piece {
    /// An entry of some type; its parent is the `parent`-th id, whether or not that is earlier.
    Entry {
        kind: usize,
        id: usize,
        parent: Option<usize>,
        text: String,
    },
    /// Without an id.
    Nameless {
        text: String,
    },
    Raw(String),
    NotUtf8,
    Header,
    Blank,
}

const KINDS: [&str; 9] = [
    "message",
    "model_change",
    "thinking_level_change",
    "compaction",
    "branch_summary",
    "session_info",
    "label",
    "custom",
    "something_new",
];

pub(crate) fn piece() -> impl Strategy<Value = Piece> {
    let text = prop_oneof!["[a-z ]{0,20}", any::<String>()];
    prop_oneof![
        12 => (0..KINDS.len(), 0..12_usize, proptest::option::of(0..14_usize), text.clone())
            .prop_map(|(kind, id, parent, text)| Piece::Entry { kind, id, parent, text }),
        1 => text.clone().prop_map(|text| Piece::Nameless { text }),
        1 => "[ -~]{1,30}".prop_map(Piece::Raw),
        1 => Just(Piece::Raw("[1, 2.50]".to_owned())),
        1 => Just(Piece::NotUtf8),
        1 => Just(Piece::Header),
        1 => Just(Piece::Blank),
    ]
}

fn line(piece: &Piece) -> Vec<u8> {
    let at = "2024-12-03T14:00:01.000Z";
    let value = match piece {
        Piece::Entry { kind, id, parent, text } => {
            let parent = parent.map(|parent| format!("id{parent}"));
            let kind = KINDS[*kind];
            json!({"type":kind,"id":format!("id{id}"),"parentId":parent,"timestamp":at,
                "message":{"role":"user","content":text,"timestamp":1},"summary":text,"name":text,
                "targetId":"id0","label":text,"provider":"p","modelId":"m","thinkingLevel":"high",
                "customType":"x","data":{"n":1.0},"firstKeptEntryId":"id1"})
        }
        Piece::Nameless { text } => json!({"type":"custom","customType":"x","data":text}),
        Piece::Raw(text) => return text.clone().into_bytes(),
        Piece::NotUtf8 => return b"{\"x\":\"\xff\xfe\"}".to_vec(),
        Piece::Header => header("s"),
        Piece::Blank => return b" \t".to_vec(),
    };
    value.to_string().into_bytes()
}

pub(crate) fn text(pieces: &[Piece], version: u64, crlf: bool, ended: bool) -> Vec<u8> {
    let mut first = header("s");
    first["version"] = json!(version);
    let mut bytes = first.to_string().into_bytes();
    for piece in pieces {
        bytes.extend_from_slice(if crlf { b"\r\n" } else { b"\n" });
        bytes.extend(line(piece));
    }
    if ended {
        bytes.push(b'\n');
    }
    bytes
}
