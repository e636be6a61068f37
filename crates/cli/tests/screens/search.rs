//! What `bough search` and the search screen show in narrow and wide windows.

use unicode_width::UnicodeWidthStr;

use crate::common::{Place, user};
use crate::terminal::Terminal;

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
