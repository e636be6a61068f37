//! What `bough search` and the search screen show in narrow and wide windows.

use unicode_width::UnicodeWidthStr;

use super::terminal::{CTRL_C, Terminal};
use crate::common::{Changed, Place, user};

const CTRL_F: &str = "\u{6}";
const CTRL_U: &str = "\u{15}";

#[test]
fn a_title_is_cut_to_the_window_and_an_id_is_on_one_line() {
    let place = Place::new();
    let title = format!("{}and its end", "長い title ".repeat(7));
    let (session, entry) = place.with(async |sessions| {
        let session = sessions.create(&title).await;
        let root = sessions.append(&session, user("first")).await;
        let entry = sessions.append(&session, user("a needle")).await;
        sessions.set_leaf(&session, &root).await;
        (session, entry)
    });
    let facts = "  user · now · other branch";
    for columns in [60, 200] {
        let (code, text) = Terminal::start(&place, 24, columns, &["search", "needle"], &[]).end();
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        // A line that the terminal had to break is read as one.
        let widest = lines.iter().map(|line| line.width()).max();
        assert!(code == 0 && widest <= Some(columns.into()), "{text}");
        let heading = lines[0];
        assert!(heading.starts_with("長い title") && heading.ends_with(facts), "{text}");
        let (session, entry) = (session.as_str(), entry.as_str());
        let narrow = [
            format!("  {session}"),
            format!("  {entry}"),
            "  a needle".to_owned(),
            String::new(),
            "read the first:".to_owned(),
            format!("  bough show {session} \\"),
            format!("    --leaf {entry}"),
        ];
        let wide = [
            format!("  {session} {entry}"),
            "  a needle".to_owned(),
            String::new(),
            format!("read the first: bough show {session} --leaf {entry}"),
        ];
        if columns == 60 {
            assert!(heading.contains('…') && heading.width() >= 58, "{text}");
            assert_eq!(lines[1..], narrow, "{text}");
        } else {
            assert_eq!(heading, format!("{title}{facts}"), "{text}");
            assert_eq!(lines[1..], wide, "{text}");
        }
    }
    let piped = place.ok(&["search", "needle"]);
    assert!(piped.starts_with(&format!("{title}{facts}\n  {session} {entry}\n")), "{piped}");
}

/// What the heading of a hit ends with, if it is not of what the session shows.
const MARKS: [&str; 2] = [OLD_REVISION, OTHER_BRANCH];
const OLD_REVISION: &str = " · old revision";
const OTHER_BRANCH: &str = " · other branch";
const NO_MARK: &str = "";

/// Searches in an open search screen until it shows one hit with this mark, or that nothing fits.
#[track_caller]
fn search(terminal: &mut Terminal, query: &str, mark: Option<&str>) {
    terminal.press(CTRL_U);
    terminal.wait_for("Type what you remember");
    terminal.press(query);
    let word = query.split(' ').next().unwrap();
    terminal.wait_until(query, |text| {
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        let at = |line: usize| lines.get(line).copied().unwrap_or_default();
        let is_shown = match mark {
            Some(mark) => {
                let has_mark = MARKS.iter().all(|one| at(3).ends_with(one) == (*one == mark));
                at(0).ends_with(" 1 hit") && at(4).contains(word) && has_mark
            }
            None => at(0).ends_with(" 0 hits") && at(3).starts_with("Nothing fits"),
        };
        is_shown && at(1) == format!("/ {query}")
    });
}

#[test]
fn a_revision_a_switched_branch_and_a_deleted_session_are_searched_in_narrow_and_wide_windows() {
    let place = Place::new();
    let Changed { session, left, right, .. } =
        place.with(async |sessions| sessions.changed().await);
    let id = session.as_str();
    for columns in [60, 200] {
        let mut picker = Terminal::start(&place, 24, columns, &["resume"], &[]);
        picker.wait_for("Changed");
        picker.press(CTRL_F);
        picker.wait_for("Search all sessions");
        let mut tree = Terminal::start(&place, 24, columns, &["tree", id], &[]);
        tree.wait_for("← active");
        tree.press("/");
        tree.wait_for("Search this session");
        for (leaf, active, other) in
            [(&left, "leftword", "rightword"), (&right, "rightword", "leftword")]
        {
            place.with(async |sessions| sessions.set_leaf(&session, leaf).await);
            for terminal in [&mut picker, &mut tree] {
                search(terminal, "revisedword", Some(NO_MARK));
                search(terminal, "outdatedword", None);
                search(terminal, "outdatedword is:old", Some(OLD_REVISION));
                search(terminal, "revisedword is:old", None);
                search(terminal, active, Some(NO_MARK));
                search(terminal, other, Some(OTHER_BRANCH));
            }
        }
        place.ok(&["rm", id, "--yes"]);
        search(&mut picker, "revisedword", None);
        search(&mut picker, "outdatedword is:old", None);
        place.ok(&["restore", id]);
        search(&mut picker, "revisedword", Some(NO_MARK));
        search(&mut picker, "outdatedword is:old", Some(OLD_REVISION));
        for mut terminal in [picker, tree] {
            terminal.press(CTRL_C);
            terminal.end();
        }
    }
}
