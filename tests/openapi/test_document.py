"""The document is valid for those who read such documents for a living."""

import json

from conftest import HERE, node_tool, run
from openapi_spec_validator import OpenAPIV31SpecValidator


def test_openapi_spec_validator_finds_no_error(document):
    assert document["openapi"].startswith("3.1.")
    problems = [f"{'/'.join(map(str, error.path))}: {error.message[:300]}" for error in OpenAPIV31SpecValidator(document).iter_errors()]
    assert problems == []


def test_redocly_finds_no_error_and_no_warning(document_file):
    config = HERE / "redocly.yaml"
    printed = run(node_tool("redocly"), "lint", document_file, "--config", config, "--format", "json", folder=document_file.parent)
    found = json.loads(printed[printed.index("{") : printed.rindex("}") + 1])
    problems = [f"{one['ruleId']}: {one['message'][:200]} {one['location'][0].get('pointer')}" for one in found["problems"]]
    assert problems == []


def test_spectral_finds_no_error_and_no_warning(document_file):
    rules = HERE / "spectral.yaml"
    run(node_tool("spectral"), "lint", document_file, "--ruleset", rules, "--fail-severity", "warn", "--quiet")


def test_every_operation_has_examples(operations):
    for name, operation in operations.items():
        good = [answer for status, answer in operation["responses"].items() if status.startswith("2")]
        assert len(good) == 1, name
        for part in [*good, operation.get("requestBody", {})]:
            for media in part.get("content", {}).values():
                assert "example" in media, name
