"""The HEALTHCHECK of the images: finds the address of the server in arguments, environment and files."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ports import free_port
from tests.web_site import Reply, answered

spec = importlib.util.spec_from_file_location(
    "healthcheck", Path(__file__).resolve().parents[3] / "docker" / "healthcheck.py"
)
assert spec is not None
assert spec.loader is not None
healthcheck = importlib.util.module_from_spec(spec)
spec.loader.exec_module(healthcheck)


STATUSES = {"/healthz": 200}


@pytest.fixture
def port() -> Iterator[str]:
    with answered(lambda path, *_: Reply(b"", status=STATUSES.get(path, 404))) as url:
        yield url.rpartition(":")[2]


def test_a_running_stdio_server_is_healthy() -> None:
    assert healthcheck.check(["mcp-bundle-filesystem", "/data", ""], {"MCP_HOST": "0.0.0.0"}) is None
    assert healthcheck.check(["mcp-bundle-filesystem", "--transport=stdio"], {"MCP_TRANSPORT": "http"}) is None


def test_the_address_comes_from_arguments(port: str) -> None:
    for words in (["--transport", "http", "--port", port], ["--transport=http", f"--port={port}", "--host=0.0.0.0"]):
        assert healthcheck.check(["init", "--", "mcp-bundle-filesystem", *words, ""], {"MCP_PORT": "1"}) is None


def test_the_address_comes_from_the_environment(port: str) -> None:
    assert healthcheck.check([], {"MCP_TRANSPORT": "http", "MCP_PORT": port, "MCP_HOST": "127.0.0.1"}) is None


def test_the_address_comes_from_a_settings_file(port: str, tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(f'transport = "http"\nport = {port}\n')
    assert healthcheck.check(["--settings", str(file)], {"MCP_HOST": ""}) is None
    assert healthcheck.check(["--settings", str(file), "--port", str(free_port())], {}) is not None


def test_the_address_comes_from_a_configuration_file(port: str, tmp_path: Path) -> None:
    file = tmp_path / "bundle.yaml"
    file.write_text(f"port: {port}\nservers: {{fetch: }}\n")
    assert healthcheck.check(["serve", "--config", str(file)], {"MCP_TRANSPORT": "http"}) is None


def test_a_server_that_does_not_answer_is_unhealthy() -> None:
    fault = healthcheck.check([], {"MCP_TRANSPORT": "http", "MCP_PORT": str(free_port())})
    assert "no answer from 127.0.0.1 port" in fault


def test_a_server_with_status_503_is_unhealthy(port: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STATUSES, "/healthz", 503)
    assert healthcheck.check([], {"MCP_TRANSPORT": "http", "MCP_PORT": port}) == "/healthz answers with 503"
