//! The real program in a pseudo-terminal: keys go in, the screen is read.

mod search;
mod terminal;

use crate::common::{Place, Server, answer, user};
use bough_session::{EntryId, MetaChange, Record, SessionId};
use bough_store::{NativeStore, StoreExt};
use serde_json::{Value, json};
use terminal::{CTRL_C, CTRL_D, CTRL_LEFT, CTRL_RIGHT, DOWN, ENTER, ESC, Terminal, UP};
use unicode_width::UnicodeWidthStr;

#[test]
fn an_empty_store_says_so_and_is_left() {
    let place = Place::new();
    let mut terminal = Terminal::start(&place, 24, 80, &["resume"], &[]);
    terminal.wait_for("No sessions yet");
    terminal.press(ESC);
    assert_eq!(terminal.end().0, 0);
}

#[test]
fn a_session_is_picked_for_a_script() {
    let place = Place::new();
    let session = place.with(async |sessions| {
        sessions.conversation("Something else").await;
        sessions.create("Benchmarks of the parser").await
    });
    let mut terminal = Terminal::start(&place, 24, 80, &["resume", "--print-id"], &[]);
    terminal.wait_for("Something else");
    terminal.press("bnchprs");
    terminal
        .wait_until("one row", |text| text.contains("1 of 2") && !text.contains("Something else"));
    terminal.press(ENTER);
    let (code, left) = terminal.end();
    assert_eq!(code, 0);
    assert_eq!(left.trim(), session.as_str(), "the screen is given back, the id is printed");
}

#[test]
fn leaving_the_picker_without_a_choice_is_told_to_scripts() {
    let place = Place::new();
    let mut terminal = Terminal::start(&place, 24, 80, &["resume", "--print-id"], &[]);
    terminal.wait_for("No sessions yet");
    terminal.press(CTRL_C);
    assert_eq!(terminal.end().0, 130);
}

#[test]
fn a_session_is_deleted_from_the_picker_and_brought_back() {
    let place = Place::new();
    place.with(async |sessions| sessions.conversation("Date parser").await);
    let mut terminal = Terminal::start(&place, 24, 80, &["-r"], &[]);
    terminal.wait_for("Date parser");
    terminal.press(CTRL_D);
    terminal.wait_for("Delete session?");
    terminal.press("y");
    terminal.wait_for("Ctrl+Z restores it");
    terminal.press("\u{1a}");
    terminal.wait_for("Restored");
    terminal.wait_for("Date parser");
    terminal.press(ESC);
    terminal.end();
}

#[test]
fn a_session_is_read_live_and_escapes_do_nothing() {
    let place = Place::new();
    let session = place.with(async |sessions| sessions.conversation("Date parser").await.0);
    let mut terminal = Terminal::start(&place, 24, 80, &["resume"], &[]);
    terminal.wait_for("Date parser");
    terminal.press(ENTER);
    let text = terminal.wait_for("one for 世界");
    assert!(text.contains("␛[31m"), "shown, not obeyed:\n{text}");
    terminal.wait_for("6 messages");
    place
        .with(async |sessions| sessions.append(&session, user("Written by another process")).await);
    terminal.wait_for("Written by another process");
    terminal.press("q");
    terminal.wait_for("Resume Session");
    terminal.press(ESC);
    assert_eq!(terminal.end().0, 0);
}

#[test]
fn a_window_made_tiny_and_large_again() {
    let place = Place::new();
    place.with(async |sessions| sessions.conversation("Date parser").await);
    let mut terminal = Terminal::start(&place, 24, 80, &["resume"], &[]);
    terminal.wait_for("Date parser");
    terminal.resize(3, 12);
    terminal.wait_until("the title", |text| text.contains("Date"));
    terminal.resize(50, 160);
    terminal.wait_until("the wide picker", |text| {
        text.contains("Resume Session (All)") && text.contains("^V preview")
    });
    terminal.press(ESC);
    assert_eq!(terminal.end().0, 0);
}

#[test]
fn another_branch_is_chosen_in_the_tree() {
    let place = Place::new();
    let (session, entries) =
        place.with(async |sessions| sessions.conversation("Date parser").await);
    let mut terminal = Terminal::start(&place, 24, 100, &["tree", session.as_str()], &[]);
    terminal.wait_for("← active");
    // Up to the answer before the last question.
    terminal.press(UP);
    terminal.press(UP);
    terminal.press(ENTER);
    terminal.wait_for("messages are left behind");
    terminal.press(DOWN);
    terminal.press(ENTER);
    let (code, left) = terminal.end();
    assert_eq!(code, 0);
    assert!(left.contains("the session goes on from"), "{left}");
    let shown = place.json(&["show", session.as_str()]);
    let messages = shown["messages"].as_array().unwrap();
    assert_eq!(messages[3]["entry_id"], entries[3].as_str());
    assert_eq!(messages[4]["custom"]["custom_type"], "bough.branch_summary");
    assert_eq!(messages[4]["custom"]["data"]["from_id"], entries[5].as_str());
}

#[test]
fn a_question_is_asked_differently_in_the_editor() {
    let place = Place::new();
    let (session, entries) =
        place.with(async |sessions| sessions.conversation("Date parser").await);
    let editor = ("EDITOR", "sed -i s/test/benchmark/");
    let mut terminal = Terminal::start(&place, 24, 100, &["tree", session.as_str()], &[editor]);
    terminal.wait_for("← active");
    terminal.press(UP);
    terminal.press(ENTER);
    terminal.wait_for("messages are left behind");
    terminal.press(ENTER);
    let (code, left) = terminal.end();
    assert_eq!(code, 0, "{left}");
    let shown = place.json(&["show", session.as_str()]);
    let messages = shown["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 5);
    assert_eq!(messages[3]["entry_id"], entries[3].as_str());
    assert_eq!(messages[4]["message"]["content"][0]["text"], "Add a benchmark");
    let tree = place.ok(&["tree", session.as_str(), "--print"]);
    assert!(
        tree.contains("├─ user: Add a benchmark") && tree.contains("└─ user: Add a test"),
        "{tree}"
    );
}

#[test]
fn an_editor_that_is_left_without_saving_changes_nothing() {
    let place = Place::new();
    let (session, entries) =
        place.with(async |sessions| sessions.conversation("Date parser").await);
    let editor = ("EDITOR", "true");
    let mut terminal = Terminal::start(&place, 24, 100, &["tree", session.as_str()], &[editor]);
    terminal.wait_for("← active");
    terminal.press(UP);
    terminal.press("f");
    terminal.wait_for("cancelled");
    terminal.press(ENTER);
    terminal.wait_for("messages are left behind");
    terminal.press(ENTER);
    terminal.wait_for("cancelled");
    terminal.press("q");
    assert_eq!(terminal.end().0, 0);
    assert_eq!(place.json(&["ls"])["sessions"].as_array().unwrap().len(), 1);
    assert_eq!(place.json(&["tree", session.as_str()])["active_leaf"], entries[5].as_str());
}

#[test]
fn the_first_question_is_asked_differently_here_and_through_a_server() {
    for through_a_server in [false, true] {
        let place = Place::new();
        let (session, _) = place.with(async |sessions| sessions.conversation("Date parser").await);
        let server = through_a_server.then(|| Server::start(&place));
        let mut args = vec!["tree", session.as_str()];
        if let Some(server) = &server {
            args.extend(["--server", &server.address]);
        }
        let editor = ("EDITOR", "sed -i s/date/time/");
        let mut terminal = Terminal::start(&place, 24, 100, &args, &[editor]);
        terminal.wait_for("\u{2190} active");
        terminal.press("\u{1b}[H");
        terminal.press(ENTER);
        terminal.wait_for("messages are left behind");
        terminal.press(ENTER);
        let (code, left) = terminal.end();
        assert_eq!(code, 0, "{left}");
        assert!(left.contains("with a new message"), "{left}");
        let shown = place.json(&["show", session.as_str()]);
        let messages = shown["messages"].as_array().unwrap();
        assert_eq!(messages.len(), 1, "it begins a tree of its own");
        assert_eq!(messages[0]["message"]["content"][0]["text"], "Fix the time parser");
        assert_eq!(place.json(&["tree", session.as_str()])["entries"].as_array().unwrap().len(), 7);
    }
}

#[test]
fn the_picker_of_a_server_says_as_much_as_that_of_a_directory() {
    let place = Place::new();
    place.with(async |sessions| sessions.conversation("Date parser").await);
    let server = Server::start(&place);
    let args = ["resume", "--server", &server.address];
    let mut terminal = Terminal::start(&place, 24, 100, &args, &[]);
    // The whole row: a frame may come in pieces.
    terminal.wait_until("count, model and cost", |text| {
        let mut rows = text.lines().filter(|line| line.contains("Date parser"));
        rows.any(|row| row.contains(" 6 ") && row.contains("sonnet-4") && row.contains("$0.03"))
    });
    terminal.press(ENTER);
    terminal.wait_for("6 messages");
    terminal.wait_for("$0.03");
    terminal.press("q");
    terminal.wait_for("Resume Session");
    terminal.press(ESC);
    assert_eq!(terminal.end().0, 0);
}

#[test]
fn entries_are_labelled_and_forked_in_the_tree() {
    let place = Place::new();
    let (session, _) = place.with(async |sessions| sessions.conversation("Date parser").await);
    let mut terminal = Terminal::start(&place, 24, 100, &["tree", session.as_str()], &[]);
    terminal.wait_for("← active");
    terminal.press("l");
    terminal.wait_for("Enter sets the label");
    terminal.press("good");
    terminal.press(ENTER);
    terminal.wait_for("[good]");
    terminal.press("f");
    terminal.wait_for("Forked as");
    terminal.press("q");
    assert_eq!(terminal.end().0, 0);
    assert_eq!(place.json(&["ls"])["sessions"].as_array().unwrap().len(), 2);
}

#[test]
fn a_session_is_renamed_archived_and_previewed_in_the_picker() {
    let place = Place::new();
    place.with(async |sessions| sessions.conversation("Date parser").await);
    let mut terminal = Terminal::start(&place, 24, 80, &["resume"], &[]);
    // The preview under the list shows how the session ends.
    terminal.wait_for("Add a test");
    terminal.press("\u{12}");
    terminal.wait_for("Rename session");
    terminal.press("\u{15}Time parser");
    terminal.press(ENTER);
    terminal.wait_until("the new title", |text| {
        text.contains("Time parser") && !text.contains("Rename session")
    });
    terminal.press("\u{1}");
    terminal.wait_until("an empty list", |text| !text.contains("  6  "));
    terminal.press("\u{14}");
    terminal.wait_for("archived too");
    terminal.wait_for("Time parser");
    terminal.press(ESC);
    assert_eq!(terminal.end().0, 0);
    assert_eq!(place.json(&["ls", "--archived"])["sessions"][0]["title"], "Time parser");
}

#[test]
fn forks_are_shown_below_what_they_were_forked_from() {
    let place = Place::new();
    let session = place.with(async |sessions| sessions.conversation("The first").await.0);
    place.ok(&["fork", session.as_str(), "--title", "Its fork"]);
    place.with(async |sessions| sessions.create("Another").await);
    let mut terminal = Terminal::start(&place, 24, 80, &["resume"], &[]);
    terminal.wait_for("The first");
    terminal.press("\u{13}");
    terminal.wait_for("threaded");
    let text = terminal.wait_for("\u{2514} Its fork");
    let row = |title: &str| text.lines().position(|line| line.contains(title)).unwrap();
    assert_eq!(row("Its fork"), row("The first") + 1, "{text}");
    terminal.press(ESC);
    assert_eq!(terminal.end().0, 0);
}

#[test]
fn the_tree_is_folded_filtered_and_searched() {
    let place = Place::new();
    let session = place.with(async |sessions| {
        let (session, entries) = sessions.conversation("Date parser").await;
        sessions.set_leaf(&session, &entries[3]).await;
        sessions.append(&session, user("A branch of its own")).await;
        session
    });
    let mut terminal = Terminal::start(&place, 24, 100, &["tree", session.as_str()], &[]);
    terminal.wait_for("A branch of its own");
    terminal.wait_for("7 of 7");
    terminal.press("\u{15}");
    terminal.wait_until("user messages only", |text| {
        text.contains("3 of 7") && text.contains("user only") && !text.contains("Fixed it.")
    });
    terminal.press("\u{4}");
    terminal.wait_for("7 of 7");
    terminal.press("/");
    terminal.wait_for("Search this session");
    terminal.press("nowhere");
    terminal.wait_for("Nothing fits");
    terminal.press(ESC);
    terminal.wait_for("7 of 7");
    // From the end up to where the last branch begins, and fold there.
    terminal.press("G");
    terminal.press(CTRL_LEFT);
    terminal.press(CTRL_LEFT);
    terminal.wait_until("the folded branch", |text| !text.contains("one for"));
    terminal.press(CTRL_RIGHT);
    terminal.wait_for("one for");
    terminal.press("q");
    assert_eq!(terminal.end().0, 0);
}

/// Words that no title has are searched in messages, and a hit opens at its message; in narrow and in wide windows.
#[test]
fn what_was_said_is_found_from_the_picker_and_opened_at_its_entry() {
    let place = Place::new();
    place.with(async |sessions| {
        let (session, entries) = sessions.conversation("Date parser").await;
        sessions.set_leaf(&session, &entries[1]).await;
        sessions.append(&session, user("Elsewhere now")).await;
        sessions.create("Another").await;
    });
    for columns in [60, 200] {
        let mut terminal = Terminal::start(&place, 24, columns, &["resume"], &[]);
        terminal.wait_for("Another");
        terminal.press("\"one for\"");
        terminal.wait_for("Enter searches messages");
        terminal.press(ENTER);
        terminal.wait_for("Search all sessions");
        terminal.wait_for("1 hit");
        terminal.wait_until("the branch is named", |text| text.contains("other branch"));
        terminal.press(ENTER);
        terminal.wait_until("the path to the entry", |text| {
            text.contains("one for") && !text.contains("Elsewhere now")
        });
        // Within the session: back to the branch that is active.
        terminal.press("/");
        terminal.wait_for("Search this session");
        terminal.press("elsewhere");
        terminal.wait_for("1 hit");
        terminal.press(ENTER);
        terminal.wait_for("Elsewhere now");
        terminal.press(CTRL_C);
        terminal.end();
    }
}

#[test]
fn one_session_and_a_project_at_home_are_searched_in_narrow_and_wide_windows() {
    let place = Place::new();
    place.with(async |sessions| drop(sessions.alike(&place.file("my work")).await));
    for columns in [60, 200] {
        let mut terminal = Terminal::start(&place, 24, columns, &["resume"], &[]);
        terminal.wait_for("a needle");
        terminal.press("\u{6}");
        terminal.wait_for("Search all sessions");
        terminal.press("needle project:\"~/my work\"");
        terminal.wait_for("3 hits");
        terminal.press(CTRL_C);
        terminal.end();
        let mut terminal = Terminal::start(&place, 24, columns, &["tree", "id:plan"], &[]);
        terminal.wait_for("← active");
        terminal.press("/");
        terminal.wait_for("Search this session");
        terminal.press("needle");
        terminal.wait_for("1 hit");
        terminal.press(CTRL_C);
        terminal.end();
    }
}

#[test]
fn a_list_of_tokens_fits_narrow_and_wide_windows() {
    let place = Place::new();
    let long = ["--name", "a name that says what the token is for", "--expires", "30d"];
    place.ok(&[&["token", "create", "--scope", "project=/home/u/project"], &long[..]].concat());
    place.ok(&["token", "create", "--name", "ann"]);
    for (columns, has_scope) in [(60, false), (200, true)] {
        let (code, text) = Terminal::start(&place, 24, columns, &["token", "list"], &[]).end();
        let rows: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        assert_eq!((code, rows.len()), (0, 3), "a row is a line:\n{text}");
        assert!(rows[1].contains("a name") && rows[1].contains("until"), "{text}");
        assert_eq!(text.contains("/home/u/project"), has_scope, "{text}");
    }
}

#[test]
fn a_list_of_tokens_names_the_functions_that_one_may_call() {
    let place = Place::new();
    place.ok(&["token", "create", "--name", "ann"]);
    let functions = ["--function", "session::get", "--function", "session::list"];
    let long = ["--name", "a name that says what the token is for", "--expires", "30d"];
    let made = place.json(&[&["token", "create"], &functions[..], &long[..]].concat());
    let id = made["record"]["id"].as_str().unwrap();
    for is_revoked in [false, true] {
        if is_revoked {
            place.ok(&["token", "revoke", id]);
        }
        for (columns, calls) in [(60, "  some  "), (200, "  session::get,session::list  ")] {
            let (code, text) = Terminal::start(&place, 24, columns, &["token", "list"], &[]).end();
            let rows: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
            assert_eq!((code, rows.len()), (0, 3), "a row is a line:\n{text}");
            assert!(rows.iter().all(|row| row.width() <= usize::from(columns)), "{text}");
            let row = rows.iter().find(|row| row.starts_with(id)).unwrap();
            assert!(row.contains(calls) && row.ends_with("UTC"), "{text}");
            assert!(rows.iter().any(|row| row.contains("  all    ")), "{text}");
        }
    }
    assert!(place.ok(&["token", "list"]).contains("  session::get,session::list  "));
}

#[test]
fn what_a_search_found_is_wrapped_between_words() {
    let place = Place::new();
    place.with(async |sessions| {
        let session = sessions.create("Long").await;
        let words = "alphabet ".repeat(30);
        sessions.append(&session, user(&format!("{words}needle {words}"))).await;
    });
    let (code, text) = Terminal::start(&place, 24, 60, &["search", "needle"], &[]).end();
    assert_eq!(code, 0, "{text}");
    let found: Vec<&str> = text.lines().filter(|line| line.contains("alphabet")).collect();
    assert!(found.len() > 1 && found.iter().any(|line| line.contains("needle")), "{text}");
    for line in found {
        assert!(line.starts_with("  "), "{text}");
        // The end of a snippet is cut wherever its bound is.
        let is_whole = |word: &str| matches!(word, "alphabet" | "needle") || word.ends_with('…');
        assert!(line.split_whitespace().all(is_whole), "{line:?}:\n{text}");
    }
}

/// A word in every kind of content, found in the screen as the command finds it.
#[test]
fn planted_words_are_found_in_narrow_and_wide_windows() {
    let place = Place::new();
    let (_, planted) = place.with(async |sessions| sessions.planted().await);
    for columns in [60, 200] {
        let mut terminal = Terminal::start(&place, 24, columns, &["resume"], &[]);
        terminal.wait_for("plantedtitle");
        terminal.press("\u{6}");
        terminal.wait_for("Search all sessions");
        for (query, entry) in &planted {
            terminal.press(query);
            // A narrow window shows the beginning of a title.
            let kind = if entry.is_some() { "planted" } else { "title" };
            terminal.wait_until(query, |text| {
                text.lines().nth(1).is_some_and(|line| line.contains(query))
                    && text.contains("1 hit")
                    && text.lines().skip(2).any(|line| line.contains(kind))
            });
            // All that was typed goes away at once.
            terminal.press("\u{15}");
            terminal.wait_for("Type what you remember");
        }
        terminal.press(CTRL_C);
        terminal.end();
    }
}

#[test]
fn a_transcript_is_unfolded_and_its_loops_are_an_outline() {
    let place = Place::new();
    let session = place.with(async |sessions| sessions.conversation("Date parser").await.0);
    let mut terminal = Terminal::start(&place, 50, 160, &["resume"], &[]);
    terminal.wait_for("Date parser");
    terminal.press(ENTER);
    let text = terminal.wait_for("6 messages");
    assert!(!text.contains("fn parse() {}"), "results of tools are folded:\n{text}");
    terminal.press("\u{f}");
    terminal.wait_for("fn parse() {}");
    assert!(terminal.text().contains("$0.03"), "the usage line");
    terminal.press("o");
    terminal.wait_for("no loops");
    terminal.press("\u{1b}OP");
    terminal.wait_for("any key closes this");
    terminal.press("x");
    terminal.wait_until("the keys away", |text| !text.contains("any key closes this"));
    terminal.press("t");
    terminal.wait_for("Session Tree");
    terminal.press(ESC);
    // Escape and a letter that come together are another key.
    terminal.wait_until("the session again", |text| {
        text.contains("6 messages") && !text.contains("Session Tree")
    });
    terminal.press("q");
    terminal.wait_for("Resume Session");
    terminal.press(ESC);
    assert_eq!(terminal.end().0, 0);
    assert_eq!(place.json(&["show", session.as_str()])["messages"].as_array().unwrap().len(), 6);
}

/// Ten thousand sessions: the first screen comes from one page, a search goes through all. All but one are only in the
/// catalogue: a list that read them would find nothing.
#[test]
fn ten_thousand_sessions() {
    let place = Place::new();
    place.with_catalogue(|catalogue| {
        for number in 0..10_000 {
            let id = SessionId::from_stored(format!("s_{number:05}"));
            catalogue.put(crate::common::row(&id, &format!("Session number {number}")));
        }
    });
    place.with(async |sessions| sessions.create("The one to be found").await);
    let mut terminal = Terminal::start(&place, 24, 80, &["resume", "--print-id"], &[]);
    terminal.wait_for("100+");
    terminal.press("\"number 4321\"");
    terminal.wait_for("1 of 10001");
    terminal.press("\u{15}");
    terminal.press("fnd one");
    terminal.wait_for("The one to be found");
    terminal.wait_until("the best match first", |text| {
        text.lines().nth(3).is_some_and(|line| line.starts_with("The one to be found"))
    });
    terminal.press(ENTER);
    let (code, left) = terminal.end();
    assert_eq!(code, 0);
    let found = place.json(&["show", left.trim()]);
    assert_eq!(found["session"]["title"], "The one to be found");
}

/// A hundred thousand entries in five hundred branches.
#[test]
fn a_very_large_session() {
    let place = Place::new();
    let session = place.with_store(async |store| large_session(store).await);
    place.json(&["reindex"]);
    let mut terminal = Terminal::start(&place, 30, 100, &["tree", session.as_str()], &[]);
    terminal.wait_for("100000 of 100000");
    terminal.wait_for("← active");
    terminal.press("/");
    terminal.press("\"question 77-50\"");
    terminal.wait_for("1 hit");
    terminal.press(ENTER);
    terminal.press(ESC);
    terminal.press("q");
    assert_eq!(terminal.end().0, 0);
    let tail = place.json(&["show", session.as_str(), "-n", "2"]);
    assert_eq!(tail["messages"].as_array().unwrap().len(), 2);
}

/// Written into the store as it is: the rules of the service are tested elsewhere, and cost.
async fn large_session(store: &NativeStore) -> SessionId {
    let session = SessionId::from_stored("s_large");
    let title = MetaChange { title: Some("Very large".to_owned()), ..MetaChange::default() };
    let created = store.create(&session, vec![Record::Meta(title).at(1)].into()).await.unwrap();
    created.durable.await.unwrap();
    let (mut head, mut fork_at) = (created.head, None);
    for branch in 0..500 {
        let mut parent: Option<EntryId> = fork_at.take();
        let mut records = Vec::new();
        for step in 0..200 {
            let message = match step % 2 {
                0 => user(&format!("question {branch}-{step}")),
                _ => answer(&format!("answer {branch}-{step}")),
            };
            let entry = crate::common::entry(&format!("e{branch}-{step}"), parent, message);
            parent = Some(entry.id.clone());
            if step == 100 {
                fork_at.clone_from(&parent);
            }
            records.push(Record::Entry(entry).at(1));
        }
        let appended = store.append(&session, &head, records.into()).await.unwrap();
        appended.durable.await.unwrap();
        head = appended.head;
    }
    session
}

/// What comes in small pieces is read as lines, and what a reply ends with is not missed.
#[test]
fn a_reply_is_followed_as_it_streams() {
    let place = Place::new();
    let (session, entry) = place.with(async |sessions| {
        let session = sessions.create("Live").await;
        let entry = sessions.append(&session, answer("")).await;
        (session, entry)
    });
    let mut terminal = Terminal::start(&place, 24, 80, &["tail", "-f", session.as_str()], &[]);
    terminal.wait_for("assistant");
    place.with(async |sessions| {
        let call = async |function: &str, mut request: Value| {
            request["session_id"] = json!(session);
            request["entry_id"] = json!(entry);
            let owner = bough_service::Scope::owner();
            sessions.service.call(&owner, function, request).await.unwrap();
        };
        for piece in ["One ", "li", "ne.\nAno", "ther ", "line."] {
            call("session::append-delta", json!({"block": 0, "text": piece})).await;
        }
        let content = json!([
            {"type": "text", "text": "One line.\nAnother line."},
            {"type": "function_call", "id": "c", "function_id": "read", "arguments": {"path": "a"}},
        ]);
        call("session::update-message", json!({"content": content})).await;
        sessions.append(&session, user("Thanks")).await;
    });
    let text = terminal.wait_for("Thanks");
    let reply = "  One line.\n  Another line.\n  → read {\"path\":\"a\"}\n\n● user";
    assert!(text.contains(reply), "{text}");
    assert!(!text.contains("(changed)"), "{text}");
    terminal.press(CTRL_C);
    assert_eq!(terminal.end().0, 0);
}
