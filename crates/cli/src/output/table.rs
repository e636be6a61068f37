use super::WIDE_ENOUGH;
use super::line::{Line, Style};
use crate::text::{clean_line, fit, fit_end, width};

/// Rows of cells in columns. One column may be cut so that the rest fits the window, and others may be left out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    /// The column that is cut to fit, if there is one.
    flexible: Option<usize>,
    /// Columns that a narrow window leaves out, the least important first.
    optional: &'static [usize],
    rows: Vec<Vec<Cell>>,
}

/// One cell.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    style: Style,
    text: String,
    right: bool,
    keeps_end: bool,
}

impl Cell {
    pub(crate) fn new(text: impl AsRef<str>) -> Self {
        Self::of(Style::Plain, text)
    }

    pub(crate) fn of(style: Style, text: impl AsRef<str>) -> Self {
        Self { style, text: clean_line(text.as_ref()).into_owned(), right: false, keeps_end: false }
    }

    /// Cut at its beginning, as paths are.
    pub(crate) fn keeping_end(mut self) -> Self {
        self.keeps_end = true;
        self
    }

    /// At the right of its column, as numbers are.
    pub(crate) fn right(mut self) -> Self {
        self.right = true;
        self
    }
}

/// Columns between two cells.
const GAP: usize = 2;
/// The least width of the flexible column.
const FLEXIBLE_MIN: usize = 8;
/// Below this width of the flexible column, an optional column is left out first.
const FLEXIBLE_WANTED: usize = 24;
/// The most that the flexible column is padded to: one long text pushes the rest of its own row to the right, not that
/// of every row.
const FILLED_MAX: usize = 60;

impl Table {
    pub(crate) fn new(headings: &[&str], flexible: Option<usize>) -> Self {
        let heading = headings.iter().map(|text| Cell::of(Style::Dim, text)).collect();
        Self { flexible, optional: &[], rows: vec![heading] }
    }

    /// The same with columns that a narrow window leaves out, the least wanted first.
    pub(crate) const fn with_optional(mut self, columns: &'static [usize]) -> Self {
        self.optional = columns;
        self
    }

    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        if let [heading] = self.rows.as_mut_slice() {
            // A heading is aligned like its column.
            heading.iter_mut().zip(&cells).for_each(|(heading, cell)| heading.right = cell.right);
        }
        self.rows.push(cells);
    }

    pub(super) fn lines(&self, columns: usize) -> Vec<Line> {
        let widest = self.widest();
        let shown = self.shown(&widest, columns);
        let widths = self.widths(&widest, &shown, columns);
        let cells = |row: &[Cell]| shown.iter().filter_map(|at| row.get(*at).cloned()).collect();
        let rows = self.rows.iter().map(|row| -> Vec<Cell> { cells(row) });
        rows.map(|row| lay_out(&row, &widths)).collect()
    }

    /// The width of each column without cutting.
    fn widest(&self) -> Vec<usize> {
        let count = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widest = |at: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(at));
            cells.map(|cell| width(&cell.text)).max().unwrap_or(0)
        };
        (0..count).map(widest).collect()
    }

    /// The columns that are shown: all, or without as many optional ones as do not fit the window.
    fn shown(&self, widest: &[usize], columns: usize) -> Vec<usize> {
        let mut shown: Vec<usize> = (0..widest.len()).collect();
        let wide = |at: &usize| match widest.get(*at).copied().unwrap_or(0) {
            needed if self.flexible == Some(*at) => needed.min(FLEXIBLE_WANTED),
            needed => needed,
        };
        for left_out in self.optional {
            let needed: usize = shown.iter().map(wide).sum();
            if needed + GAP * shown.len().saturating_sub(1) <= columns {
                break;
            }
            shown.retain(|at| at != left_out);
        }
        shown
    }

    fn widths(&self, widest: &[usize], shown: &[usize], columns: usize) -> Vec<Width> {
        let whole = |at: &usize| widest.get(*at).copied().unwrap_or(0);
        let total: usize =
            shown.iter().map(whole).sum::<usize>() + GAP * shown.len().saturating_sub(1);
        let width_of = |at: &usize| {
            let whole = whole(at);
            if self.flexible != Some(*at) {
                return Width { cut: whole, filled: whole };
            }
            let others = total - whole;
            let cut = whole.min(columns.saturating_sub(others).max(FLEXIBLE_MIN));
            let filled = if columns == WIDE_ENOUGH { FILLED_MAX } else { cut };
            Width { cut, filled: cut.min(filled) }
        };
        shown.iter().map(width_of).collect()
    }
}

/// How wide a column is.
#[derive(Clone, Copy, Debug)]
struct Width {
    /// A longer text is cut.
    cut: usize,
    /// A shorter text is padded.
    filled: usize,
}

fn lay_out(row: &[Cell], widths: &[Width]) -> Line {
    let mut line = Line::default();
    for (at, (cell, columns)) in row.iter().zip(widths).enumerate() {
        let cut = if cell.keeps_end { fit_end } else { fit };
        let text = cut(&cell.text, columns.cut);
        let space = " ".repeat(columns.filled.saturating_sub(width(&text)));
        let is_last = at + 1 == row.len();
        line = match cell.right {
            // Nothing follows the last cell, so it is not padded.
            _ if is_last && text.is_empty() => line,
            true => line.plain(space).add(cell.style, text),
            false if is_last => line.add(cell.style, text),
            false => line.add(cell.style, text).plain(space),
        };
        if !is_last {
            line = line.plain(" ".repeat(GAP));
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flexible_column_gives_way() {
        let mut table = Table::new(&["ID", "TITLE", "N"], Some(1));
        table.row(vec![Cell::new("s_1"), Cell::new("a rather long title"), Cell::new("7").right()]);
        table.row(vec![Cell::new("s_22"), Cell::new("世界"), Cell::new("12").right()]);
        let lines = |columns| -> Vec<String> {
            table.lines(columns).iter().map(|line| line.render(false)).collect()
        };
        assert_eq!(
            lines(80),
            [
                "ID    TITLE                 N",
                "s_1   a rather long title   7",
                "s_22  世界                 12",
            ]
        );
        assert_eq!(
            lines(20),
            ["ID    TITLE        N", "s_1   a rather …   7", "s_22  世界        12"]
        );
    }

    #[test]
    fn a_narrow_window_leaves_out_what_is_wanted_least() {
        let mut table = Table::new(&["TITLE", "MODEL", "N"], Some(0)).with_optional(&[1, 2]);
        table.row(vec![
            Cell::new("a title of thirty-one characters"),
            Cell::new("a-model-with-a-long-name"),
            Cell::new("7").right(),
        ]);
        let line = |columns: usize| {
            let lines = table.lines(columns);
            let line = lines.get(1).unwrap().render(false);
            assert!(width(&line) <= columns, "{line:?} in {columns}");
            line
        };
        assert_eq!(line(53), "a title of thirty-one c…  a-model-with-a-long-name  7");
        assert_eq!(line(52), "a title of thirty-one characters  7");
        assert_eq!(line(30), "a title of thirty-one char…  7");
        assert_eq!(line(26), "a title of thirty-one cha…");
    }

    #[test]
    fn of_a_path_the_end_is_shown() {
        let mut table = Table::new(&["FILE", "N"], Some(0));
        table.row(vec![Cell::new("/home/me/sessions/世界.jsonl").keeping_end(), Cell::new("7")]);
        let line = |columns| table.lines(columns).get(1).unwrap().render(false);
        assert_eq!(line(40), "/home/me/sessions/世界.jsonl  7");
        assert_eq!(line(15), "…/世界.jsonl  7");
        assert_eq!(line(13), "…界.jsonl   7");
    }

    #[test]
    fn where_nothing_is_cut_a_long_text_moves_its_own_row_only() {
        let mut table = Table::new(&["TITLE", "N"], Some(0));
        let long = "long".repeat(100);
        table.row(vec![Cell::new(&long), Cell::new("7")]);
        table.row(vec![Cell::new("short"), Cell::new("8")]);
        let lines: Vec<String> =
            table.lines(WIDE_ENOUGH).iter().map(|line| line.render(false)).collect();
        assert_eq!(lines[1], format!("{long}  7"));
        assert_eq!(lines[2], format!("{:FILLED_MAX$}  8", "short"));
    }
}
