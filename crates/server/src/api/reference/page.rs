//! The page of the operations and of the shapes that they share.

use serde_json::Value;

use super::errors;
use super::html::Page;
use super::samples::Sample;
use crate::api::message_events::{DELTA, FINISHED, STARTED};
use crate::api::openapi::capitalised;

/// One operation of the document.
struct Operation<'a> {
    path: &'a str,
    method: String,
    body: &'a Value,
}

/// The page.
pub(super) fn build(document: &Value) -> String {
    let operations = operations(document);
    let tags = document["tags"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut page = Page::new();
    page.open("The HTTP API of Bough", text_at(document, "/info/version"));
    write_contents(&mut page, tags, &operations);
    page.raw("<main>");
    write_introduction(&mut page);
    for tag in tags {
        let name = text(&tag["name"]);
        page.heading(2, &format!("tag-{name}"), &capitalised(name));
        page.paragraph(text(&tag["description"]));
        for operation in operations.iter().filter(|one| one.tag() == name) {
            write_operation(&mut page, operation);
        }
    }
    write_schemas(&mut page, document.pointer("/components/schemas").unwrap_or(&Value::Null));
    errors::write_list(&mut page);
    page.raw("</main>");
    page.close()
}

fn operations(document: &Value) -> Vec<Operation<'_>> {
    let paths = document["paths"].as_object().into_iter().flatten();
    paths
        .flat_map(|(path, item)| {
            let methods = item.as_object().into_iter().flatten();
            methods.map(|(method, body)| Operation { path, method: method.to_uppercase(), body })
        })
        .collect()
}

impl Operation<'_> {
    fn tag(&self) -> &str {
        self.body.pointer("/tags/0").map_or("", text)
    }

    fn id(&self) -> &str {
        text(&self.body["operationId"])
    }
}

fn write_contents(page: &mut Page, tags: &[Value], operations: &[Operation<'_>]) {
    page.raw("<nav aria-label=\"Contents\">");
    for tag in tags {
        let name = text(&tag["name"]);
        page.raw("<details><summary>");
        page.text(&capitalised(name));
        page.raw("</summary><ul>");
        for operation in operations.iter().filter(|one| one.tag() == name) {
            page.raw("<li>");
            page.link(&format!("#{}", operation.id()), operation.id());
            page.raw("</li>");
        }
        page.raw("</ul></details>");
    }
    page.raw("<p>");
    page.link("#shapes", "Shapes");
    page.raw("</p><p>");
    page.link("#errors", "Errors");
    page.raw("</p></nav>");
}

fn write_introduction(page: &mut Page) {
    page.heading(1, "top", "The HTTP API of Bough");
    page.paragraph("Sessions of AI agents: durable, live, branching.");
    page.paragraph(
        "Bodies are JSON. A server on this machine that has no tokens asks for none; others want the header \
         `authorization: Bearer <token>` with a token that `bough token create` made. The examples leave it out; the client \
         libraries take it from `BOUGH_TOKEN`, and the server's address from `BOUGH_SERVER`.",
    );
    page.raw("<p>The same as a document for programs: ");
    page.link("/openapi.json", "/openapi.json");
    page.raw(".</p>");
}

fn write_operation(page: &mut Page, operation: &Operation<'_>) {
    let Operation { path, method, body } = operation;
    page.raw("<section>");
    page.heading(3, operation.id(), text(&body["summary"]));
    page.raw(&format!(
        "<p class=\"route\"><b class=\"{}\">{method}</b> <code>",
        method.to_lowercase()
    ));
    page.text(path);
    page.raw("</code></p>");
    let (summary, description) = (text(&body["summary"]), text(&body["description"]));
    if description.trim_end_matches('.') != summary {
        page.paragraph(description);
    }
    write_facts(page, body);
    write_parameters(page, &body["parameters"]);
    if let Some(schema) = body.pointer("/requestBody/content/application~1json/schema") {
        write_shape(page, "Body", schema);
    }
    write_answers(page, &body["responses"]);
    for (language, code) in Sample::of(path, method, body).in_every_language() {
        page.code(language, &code);
    }
    page.raw("</section>");
}

/// What a token needs for the operation, and what it is called on the bus.
fn write_facts(page: &mut Page, operation: &Value) {
    let right = operation["x-right"].as_str().map(|right| format!("Needs the right `{right}`."));
    let function = operation["x-function"].as_str();
    let function = function.map(|function| format!("On the iii bus: `{function}`."));
    let facts: Vec<String> = right.into_iter().chain(function).collect();
    if !facts.is_empty() {
        page.raw("<div class=\"facts\">");
        page.paragraph(&facts.join(" "));
        page.raw("</div>");
    }
}

fn write_parameters(page: &mut Page, parameters: &Value) {
    let rows = parameters.as_array().map(Vec::as_slice).unwrap_or_default();
    if rows.is_empty() {
        return;
    }
    page.open_table(&["Parameter", "In", "Meaning"]);
    for parameter in rows {
        let is_required = parameter["required"] == Value::Bool(true);
        let mark = if is_required { " (required)" } else { "" };
        let about = text(&parameter["description"]);
        let place = format!("{}{mark}", text(&parameter["in"]));
        page.row(&[&format!("`{}`", text(&parameter["name"])), &place, about]);
    }
    page.close_table();
}

fn write_answers(page: &mut Page, responses: &Value) {
    let good =
        responses.as_object().into_iter().flatten().find(|(status, _)| status.starts_with('2'));
    let Some((status, response)) = good else { return };
    if let Some(schema) = response.pointer("/content/application~1json/schema") {
        write_shape(page, &format!("Answer {status}"), schema);
    }
    if let Some(example) = response.pointer("/content/application~1json/example") {
        page.code("Answer", &pretty(example));
    }
    if let Some(line) = response.get("x-lines") {
        write_shape(page, "Each line", line);
    }
    write_events(page, &response["x-events"]);
}

fn write_events(page: &mut Page, events: &Value) {
    let Some(events) = events.as_object() else { return };
    page.open_table(&["Event", "Meaning", "Data"]);
    for (name, event) in events {
        page.open_row();
        page.cell(&format!("`{name}`"));
        page.cell(text(&event["description"]));
        page.open_cell();
        if let Some(shape) = shape_name(&event["schema"]) {
            page.link(&format!("#shape-{shape}"), shape);
        }
        page.close_cell();
        page.close_row();
    }
    page.close_table();
    for name in [STARTED, DELTA, FINISHED] {
        if let Some(example) = events.get(name).and_then(|event| event.get("example")) {
            page.code(name, &format!("event: {name}\nid: c_1\ndata: {example}"));
        }
    }
}

/// The name of a shape with a link to it, or its members where it has no name.
fn write_shape(page: &mut Page, label: &str, schema: &Value) {
    if let Some(name) = shape_name(schema) {
        page.raw("<p>");
        page.text(&format!("{label}: "));
        page.link(&format!("#shape-{name}"), name);
        page.raw("</p>");
    } else if schema["properties"].is_object() {
        page.paragraph(&format!("{label}:"));
        write_members(page, schema);
    }
}

fn write_schemas(page: &mut Page, schemas: &Value) {
    page.heading(2, "shapes", "Shapes");
    for (name, schema) in schemas.as_object().into_iter().flatten() {
        page.raw("<section>");
        page.heading(3, &format!("shape-{name}"), name);
        page.paragraph(text(&schema["description"]));
        let variants = schema["oneOf"].as_array().map(Vec::as_slice).unwrap_or_default();
        for variant in variants.iter().filter(|variant| shape_name(variant).is_some()) {
            write_shape(page, "One of", variant);
        }
        write_members(page, schema);
        page.raw("</section>");
    }
}

fn write_members(page: &mut Page, schema: &Value) {
    let Some(members) = schema["properties"].as_object().filter(|map| !map.is_empty()) else {
        return;
    };
    let required: Vec<&str> = strings(&schema["required"]);
    page.open_table(&["Member", "Type", "Meaning"]);
    for (name, member) in members {
        let mark = if required.contains(&name.as_str()) { " (required)" } else { "" };
        let kind = format!("{}{mark}", type_name(member));
        page.row(&[&format!("`{name}`"), &kind, text(&member["description"])]);
    }
    page.close_table();
}

fn type_name(schema: &Value) -> String {
    if let Some(name) = shape_name(schema) {
        return name.to_owned();
    }
    if let Some(constant) = schema.get("const") {
        return constant.to_string();
    }
    let choices = ["anyOf", "oneOf"].into_iter().find_map(|word| schema[word].as_array());
    if let Some(choices) = choices {
        return choices.iter().map(type_name).collect::<Vec<_>>().join(" or ");
    }
    match &schema["type"] {
        Value::String(name) if name == "array" => {
            format!("list of {}", type_name(&schema["items"]))
        }
        Value::String(name) => name.clone(),
        names @ Value::Array(_) => strings(names).join(" or "),
        _ => "any JSON".to_owned(),
    }
}

fn shape_name(schema: &Value) -> Option<&str> {
    text(&schema["$ref"]).strip_prefix("#/components/schemas/")
}

fn strings(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn text_at<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).map_or("", text)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::openapi::document;
    use crate::api::reference::page;

    #[test]
    fn every_operation_has_its_place_with_three_examples() {
        for operation in operations(document()) {
            let id = format!("id=\"{}\"", operation.id());
            let (_, after) = page().split_once(&id).unwrap_or_else(|| panic!("{id}"));
            let section = after.split("</section>").next().unwrap();
            for language in ["curl", "Python", "TypeScript"] {
                assert!(section.contains(&format!("<figcaption>{language}")), "{id} {language}");
            }
        }
    }

    #[test]
    fn every_link_within_the_page_leads_somewhere() {
        for part in page().split("href=\"#").skip(1) {
            let name = part.split('"').next().unwrap();
            assert!(page().contains(&format!("id=\"{name}\"")), "{name}");
        }
    }

    #[test]
    fn the_page_has_no_script_no_style_of_its_own_and_nothing_from_elsewhere() {
        for forbidden in ["<script", "<style", " style=", "src=", "href=\"http", " onclick"] {
            assert!(!page().contains(forbidden), "{forbidden}");
        }
    }
}
