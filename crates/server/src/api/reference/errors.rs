//! What each error code means: a list on the page of the operations, and a page of its own for each.

use super::html::Page;
use crate::error_codes::{ErrorCode, all, page_of};

/// Writes the section with all codes.
pub(super) fn write_list(page: &mut Page) {
    page.heading(2, "errors", "Errors");
    page.paragraph(
        "A request that fails is answered with `application/problem+json`. Programs go by its `code`; `detail` and `hint` are for \
         people, and `type` leads to the page of the code. The header `x-request-id` names the request in the server's log.",
    );
    page.open_table(&["Code", "Status", "Meaning"]);
    for known in all() {
        page.open_row();
        page.open_cell();
        page.link(&page_of(known.code), known.code);
        page.close_cell();
        page.cell(&statuses(known));
        page.cell(&known.text());
        page.close_row();
    }
    page.close_table();
}

/// The page of one code.
pub(super) fn build(known: &ErrorCode) -> String {
    let mut page = Page::new();
    page.open(known.code, env!("CARGO_PKG_VERSION"));
    page.raw("<main>");
    page.heading(1, "top", known.code);
    page.paragraph(&format!("Status {}.", statuses(known)));
    page.heading(2, "meaning", "What it means");
    page.paragraph(known.meaning);
    if !known.action.is_empty() {
        page.heading(2, "action", "What to do");
        page.paragraph(known.action);
    }
    let example = serde_json::to_string_pretty(&known.example()).unwrap_or_default();
    page.code("The answer of the server", &example);
    page.raw("<p>");
    page.link("/docs#errors", "All error codes");
    page.raw("</p></main>");
    page.close()
}

fn statuses(known: &ErrorCode) -> String {
    let statuses: Vec<String> = known.statuses.iter().map(u16::to_string).collect();
    statuses.join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_page_and_a_link_to_it() {
        let mut list = Page::new();
        write_list(&mut list);
        let list = list.close();
        for known in all() {
            assert!(list.contains(&format!("href=\"{}\"", page_of(known.code))), "{}", known.code);
            let page = build(known);
            assert!(page.contains("What it means") && page.contains(known.code), "{}", known.code);
        }
    }
}
