//! Documents that are made from the program's own tables.

/// Where the page is; `BOUGH_WRITE_DOCUMENTS=1` writes it anew.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/INTEGRATION.md");
const MANIFEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/iii.worker.yaml");

#[test]
fn the_integration_page_is_what_the_program_serves() {
    let page = crate::integration_page::integration_page();
    if std::env::var_os("BOUGH_WRITE_DOCUMENTS").is_some() {
        std::fs::write(PAGE, &page).unwrap();
    }
    let stored = std::fs::read_to_string(PAGE).unwrap();
    assert!(
        stored == page,
        "docs/INTEGRATION.md is stale: run this test with BOUGH_WRITE_DOCUMENTS=1"
    );
}

#[test]
fn the_worker_manifest_for_the_engine_says_the_same_as_the_program() {
    let text = std::fs::read_to_string(MANIFEST).unwrap();
    let manifest = bough_server::worker_manifest();
    for key in ["name", "type", "version", "description"] {
        let value = manifest[key].as_str().unwrap();
        assert!(text.lines().any(|line| line == format!("{key}: {value}")), "{key}: {value}");
    }
    let targets = manifest["supported_targets"].as_array().unwrap();
    assert!(targets.iter().all(|target| text.contains(&format!("- {}", target.as_str().unwrap()))));
}
