use super::WIDE_ENOUGH;
use super::line::{Line, Style};
use crate::text::{clean_line, fit, width};

/// Rows of cells in columns. One column may be cut so that the rest fits the window.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    /// The column that gives way, where one does.
    flexible: Option<usize>,
    rows: Vec<Vec<Cell>>,
}

/// One cell.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    style: Style,
    text: String,
    right: bool,
}

impl Cell {
    pub(crate) fn new(text: impl AsRef<str>) -> Self {
        Self::of(Style::Plain, text)
    }

    pub(crate) fn of(style: Style, text: impl AsRef<str>) -> Self {
        Self { style, text: clean_line(text.as_ref()).into_owned(), right: false }
    }

    /// At the right of its column, as numbers are.
    pub(crate) fn right(mut self) -> Self {
        self.right = true;
        self
    }
}

/// Columns between two cells.
const GAP: usize = 2;
/// The least that a cell which gives way keeps.
const FLEXIBLE_MIN: usize = 8;
/// The most that a cell which gives way is filled up to where nothing is cut: one long text pushes the rest of
/// its own row to the right, not that of every row.
const FILLED_MAX: usize = 60;

impl Table {
    pub(crate) fn new(headings: &[&str], flexible: Option<usize>) -> Self {
        let heading = headings.iter().map(|text| Cell::of(Style::Dim, text)).collect();
        Self { flexible, rows: vec![heading] }
    }

    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        if let [heading] = self.rows.as_mut_slice() {
            // A heading stands where what it heads stands.
            heading.iter_mut().zip(&cells).for_each(|(heading, cell)| heading.right = cell.right);
        }
        self.rows.push(cells);
    }

    pub(super) fn lines(&self, columns: usize) -> Vec<Line> {
        let widths = self.widths(columns);
        self.rows.iter().map(|row| lay_out(row, &widths)).collect()
    }

    fn widths(&self, columns: usize) -> Vec<Width> {
        let count = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widest = |at: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(at));
            cells.map(|cell| width(&cell.text)).max().unwrap_or(0)
        };
        let whole = |width| Width { cut: width, filled: width };
        let mut widths: Vec<Width> = (0..count).map(|at| whole(widest(at))).collect();
        let total: usize =
            widths.iter().map(|width| width.cut).sum::<usize>() + GAP * count.saturating_sub(1);
        if let Some(cell) = self.flexible.and_then(|at| widths.get_mut(at)) {
            let others = total - cell.cut;
            cell.cut = cell.cut.min(columns.saturating_sub(others).max(FLEXIBLE_MIN));
            let filled = if columns == WIDE_ENOUGH { FILLED_MAX } else { cell.cut };
            cell.filled = cell.cut.min(filled);
        }
        widths
    }
}

/// How wide a column is.
#[derive(Clone, Copy, Debug)]
struct Width {
    /// What is longer is cut.
    cut: usize,
    /// What is shorter is filled up.
    filled: usize,
}

fn lay_out(row: &[Cell], widths: &[Width]) -> Line {
    let mut line = Line::default();
    for (at, (cell, columns)) in row.iter().zip(widths).enumerate() {
        let text = fit(&cell.text, columns.cut);
        let space = " ".repeat(columns.filled.saturating_sub(width(&text)));
        let is_last = at + 1 == row.len();
        line = match cell.right {
            // Nothing follows the last cell, so nothing fills it.
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
