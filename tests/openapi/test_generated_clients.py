"""Generators make clients with every operation and readable names."""

import re
import shutil

import pytest
from conftest import HERE, TOOLS, node_tool, python_tool, run

# Names that generators make up where the document has none.
MADE_UP = re.compile(r"\b(?:\w*(?:Body|Response|Responses|Type|Item|Model|AnyOf|OneOf|AllOf|Variant|Option|Field|Error)_?\d+\w*|\w*(?:AnyOf|OneOf|AllOf)\w*)\b")


def snake_case(name):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def assert_names_are_readable(text, declaration):
    names = set(re.findall(declaration, text, re.MULTILINE))
    assert len(names) > 20
    assert sorted(name for name in names if MADE_UP.fullmatch(name)) == []


@pytest.fixture(scope="session")
def python_client(document_file, tmp_path_factory):
    """The folder of the package that openapi-python-client makes."""
    folder = tmp_path_factory.mktemp("openapi_python_client") / "bough_client"
    options = ["--meta", "none", "--config", HERE / "python_client.yaml", "--fail-on-warning"]
    run(python_tool("openapi-python-client"), "generate", "--path", document_file, "--output-path", folder, *options)
    return folder


@pytest.fixture(scope="session")
def typescript_project(document_file, tmp_path_factory):
    """A folder with what openapi-typescript and hey-api make, which finds the packages of the tools."""
    folder = tmp_path_factory.mktemp("typescript")
    (folder / "node_modules").symlink_to(TOOLS / "node_modules")
    for name in ["package.json", "tsconfig.json", "use_client.ts"]:
        shutil.copy(HERE / "typescript" / name, folder)
    run(node_tool("openapi-typescript"), document_file, "--output", folder / "schema.ts", folder=folder)
    plugins = ["--plugins", "@hey-api/typescript", "@hey-api/sdk", "@hey-api/client-fetch"]
    run(node_tool("openapi-ts"), "--input", document_file, "--output", folder / "hey", *plugins, "--no-log-file", folder=folder)
    return folder


def test_openapi_python_client_has_every_operation(python_client, operations):
    for name, operation in operations.items():
        assert (python_client / "api" / operation["tags"][0] / f"{snake_case(name)}.py").exists(), name
    models = (python_client / "models" / "__init__.py").read_text()
    assert_names_are_readable(models, r"^from \.\w+ import (\w+)")


def test_datamodel_codegen_makes_models(document_file, tmp_path):
    made = tmp_path / "models.py"
    wanted = ["--input-file-type", "openapi", "--output-model-type", "pydantic_v2.BaseModel", "--target-python-version", "3.11"]
    run(python_tool("datamodel-codegen"), "--input", document_file, "--output", made, *wanted)
    text = made.read_text()
    compile(text, made, "exec")
    assert_names_are_readable(text, r"^class (\w+)")


def test_openapi_typescript_has_every_operation(typescript_project, operations):
    text = (typescript_project / "schema.ts").read_text()
    _, _, declared = text.partition("export interface operations")
    for name in operations:
        assert f"    {name}: {{" in declared, name


def test_hey_api_has_every_operation(typescript_project, operations):
    text = (typescript_project / "hey" / "sdk.gen.ts").read_text()
    for name in operations:
        assert f"export const {name} = " in text, name
    types = (typescript_project / "hey" / "types.gen.ts").read_text()
    assert_names_are_readable(types, r"^export (?:type|interface) (\w+)")


def test_the_python_client_works(python_client, server):
    run(python_tool("python"), HERE / "use_client.py", python_client.parent, server)


def test_the_typescript_clients_work(typescript_project, server):
    run(node_tool("tsc"), "--project", typescript_project)
    run("node", typescript_project / "out" / "use_client.js", server)
