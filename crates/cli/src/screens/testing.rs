//! Helpers for tests of screens: sample sessions and entries, keys by name, frames as text.
#![expect(clippy::disallowed_methods, reason = "snapshots are files beside the tests")]

use bough_service::api::MessageItem;
use bough_session::{
    EntryId, ModelName, Role, SessionDetails, SessionId, SessionMeta, SessionStatus,
};
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::KeyCode;
use ratatui::{Frame, Terminal};
use serde_json::json;

use super::event::{Key, Size};
use super::theme::Theme;
use crate::backend::{Outline, Summary};

/// The time in all tests.
pub(crate) const NOW: i64 = 1_770_472_800_000;
const HOUR: i64 = 3_600_000;

/// A session that changed some hours ago.
pub(crate) fn summary(id: &str, title: &str, hours_ago: i64) -> Summary {
    let at = NOW - hours_ago * HOUR;
    let mut details = SessionDetails {
        model: Some(ModelName { provider: "p".into(), model: "sonnet-4".into() }),
        preview: Some(format!("How do I {id}?")),
        entry_count: 12,
        ..SessionDetails::default()
    };
    details.usage.total.cost_usd = 0.42;
    details.usage.total.messages = 3;
    details.usage.total.input = 52_000;
    details.usage.total.output = 3_100;
    Summary {
        meta: SessionMeta {
            session_id: SessionId::from_stored(id),
            title: title.to_owned(),
            description: String::new(),
            status: SessionStatus::Idle,
            status_reason: None,
            metadata: json!({"cwd": "/home/u/project"}).as_object().cloned(),
            forked_from: None,
            created_at: at,
            updated_at: at,
            message_count: 12,
        },
        details,
        active_leaf: None,
        file: None,
    }
}

/// An entry of a tree.
pub(crate) fn entry(id: &str, parent: Option<&str>, role: Role, text: &str) -> Outline {
    Outline {
        id: EntryId::from_stored(id),
        parent_id: parent.map(EntryId::from_stored),
        timestamp: NOW,
        role: Some(role),
        custom_type: None,
        preview: text.to_owned(),
        calls: Vec::new(),
        label_target: None,
        label: None,
    }
}

/// A user message of a path.
pub(crate) fn user(id: &str, text: &str) -> MessageItem {
    item(id, json!({"role": "user", "timestamp": 0, "content": [{"type": "text", "text": text}]}))
}

/// An answer of a path: a thought, a text and a call.
pub(crate) fn answer(id: &str, text: &str) -> MessageItem {
    item(
        id,
        json!({"role": "assistant", "timestamp": 0, "model": "sonnet-4", "provider": "p",
            "stop_reason": "end", "content": [
                {"type": "thinking", "text": "Let me think.\nStep by step."},
                {"type": "text", "text": text},
                {"type": "function_call", "id": "c", "function_id": "bash", "arguments": {"command": "ls"}}]}),
    )
}

/// The result of a call.
pub(crate) fn result(id: &str, text: &str) -> MessageItem {
    item(
        id,
        json!({"role": "function_result", "timestamp": 0, "function_call_id": "c",
            "function_id": "bash", "content": [{"type": "text", "text": text}]}),
    )
}

fn item(id: &str, message: serde_json::Value) -> MessageItem {
    serde_json::from_value(json!({"entry_id": id, "message": message})).unwrap()
}

/// Keys by name: `a`, `Enter`, `Ctrl+d`, `Alt+Left`.
pub(crate) fn key(name: &str) -> Key {
    let (ctrl, rest) = match name.strip_prefix("Ctrl+") {
        Some(rest) => (true, rest),
        None => (false, name),
    };
    let (alt, rest) = match rest.strip_prefix("Alt+") {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    let code = match rest {
        "Enter" => KeyCode::Enter,
        "Esc" => KeyCode::Esc,
        "Tab" => KeyCode::Tab,
        "Up" => KeyCode::Up,
        "Down" => KeyCode::Down,
        "Left" => KeyCode::Left,
        "Right" => KeyCode::Right,
        "PageUp" => KeyCode::PageUp,
        "PageDown" => KeyCode::PageDown,
        "Home" => KeyCode::Home,
        "End" => KeyCode::End,
        "Backspace" => KeyCode::Backspace,
        "F1" => KeyCode::F(1),
        letter => KeyCode::Char(letter.chars().next().expect("a letter")),
    };
    Key { code, ctrl, alt }
}

pub(crate) const SMALL: Size = Size { columns: 80, rows: 24 };
pub(crate) const LARGE: Size = Size { columns: 160, rows: 50 };
/// Windows that are too small to work in, and that must not break anything.
pub(crate) const TINY: [Size; 6] = [
    Size { columns: 1, rows: 1 },
    Size { columns: 3, rows: 2 },
    Size { columns: 10, rows: 4 },
    Size { columns: 19, rows: 5 },
    Size { columns: 30, rows: 6 },
    Size { columns: 200, rows: 3 },
];

/// A frame as text, without spaces at the ends of lines.
pub(crate) fn draw(size: Size, view: impl FnOnce(&mut Frame, Theme)) -> String {
    let mut terminal = Terminal::new(TestBackend::new(size.columns, size.rows)).unwrap();
    terminal.draw(|frame| view(frame, Theme { color: true })).unwrap();
    let buffer = terminal.backend().buffer().clone();
    let mut text = String::new();
    for y in 0..size.rows {
        let mut line = String::new();
        let mut skip = 0;
        for x in 0..size.columns {
            if skip > 0 {
                skip -= 1;
                continue;
            }
            let symbol = buffer[(x, y)].symbol();
            skip = crate::text::width(symbol).saturating_sub(1);
            line.push_str(symbol);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Compares a frame with the file of that name; `BOUGH_UPDATE_SNAPSHOTS=1` writes the file instead.
#[track_caller]
pub(crate) fn check_snapshot(name: &str, frame: &str) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/screens/snapshots");
    let path = format!("{folder}/{name}.txt");
    if std::env::var_os("BOUGH_UPDATE_SNAPSHOTS").is_some() {
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(&path, frame).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(expected == frame, "{name} has changed; expected:\n{expected}\nfound:\n{frame}");
}
