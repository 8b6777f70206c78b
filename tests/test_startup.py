"""A server on stdio loads nothing that only another transport, a search for plugins, or a test needs."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.postgres_server import any_database
from tests.wire import Wire

ROOT = Path(__file__).resolve().parents[1]
PUT_OFF = "from servers.start import put_off; put_off()"
OTHERS = {
    *("starlette", "uvicorn", "httptools", "uvloop", "websockets", "aiohttp", "httpx", "jsonschema", "yaml", "mcp"),
    *("watchfiles", "charset_normalizer"),  # loaded with the first use
    "prometheus_client",  # loaded with the first scrape
    *("opentelemetry", "requests", "google"),  # for --otlp
    "jinja2",  # loaded with the first prompt
    *("h2", "httpcore", "lxml", "trafilatura", "protego", "pypdf", "brotli"),  # loaded with the first page
    *("tomllib", "shared.program.settings_file"),  # for a file of settings
    *(f"shared.protocol.types.{what}" for what in ("elicitation", "results", "sampling")),  # for clients
}
DEAR = {
    *("importlib.metadata", "email", "csv"),  # pydantic's search for plugins
    *("_ssl", "_hashlib", "random"),  # OpenSSL, which a pipe does not need
    *("shutil", "zipfile", "bz2", "lzma", "tempfile"),  # the width of a terminal, among others
    *("argparse", "gettext"),  # for the help
    "difflib",  # for a name that is wrong, and for a difference that is shown
    *("multiprocessing", "concurrent.futures.process", "logging.config", "http", "urllib.request", "xml"),
    *("pydantic.v1", "pydantic.deprecated", "pydantic.networks", "pydantic.mypy", "pydantic_settings"),
}


# What import_csv reads with, and what finds the name of a table.
SERVERS = {
    "fetch": set(),
    "filesystem": set(),
    "postgres": {"csv", "difflib"},
    "prompts": set(),
    "sqlite": {"csv", "difflib"},
}
each_server = pytest.mark.parametrize("server", SERVERS)


def _needless(modules: set[str]) -> list[str]:
    """What should not be among them, leaving out what the interpreter loads by itself in this environment."""
    extra = modules - _loaded_by("pass")
    return sorted(name for name in extra if not {name, name.partition(".")[0]}.isdisjoint(OTHERS | DEAR))


def _loaded_by(statement: str) -> set[str]:
    script = f"import json, sys; {statement}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


def _loaded_by_library(server: str) -> set[str]:
    """What a library loads without which a server can't read its settings: psycopg looks for its own version."""
    return _loaded_by(f"{PUT_OFF}; import psycopg, psycopg.conninfo") if server == "postgres" else set()


@each_server
def test_importing_a_server_is_light(server: str) -> None:
    modules = _loaded_by(f"{PUT_OFF}; import servers.{server}.server")
    assert f"servers.{server}.server" in modules
    assert not _needless(modules - SERVERS[server] - _loaded_by_library(server))


@pytest.mark.slow
@each_server
async def test_serving_on_stdio_is_light(server: str, tmp_path: Path) -> None:
    (tmp_path / "data.db").touch()
    served = {"filesystem": [str(tmp_path)], "sqlite": [str(tmp_path / "data.db")], "fetch": [], "prompts": []}
    env = {**os.environ, "PYTHONPROFILEIMPORTTIME": "1", "PYTHONPATH": str(ROOT)}
    places = [any_database()] if server == "postgres" else served[server]
    async with Wire([sys.executable, "-m", f"servers.{server}", *places], env=env) as wire:
        assert (await wire.initialize())["serverInfo"]["name"]
        await wire.close_stdin()
        assert await wire.wait() == 0
    modules = set(re.findall(r"^import time:.*\| *(\S+)$", wire.stderr, re.MULTILINE))
    # The module `server` is loaded by its name, which takes no line.
    assert f"servers.{server}.settings" in modules, wire.stderr[:2000]
    # Libraries are read before clients come, who ask for a list at once, and are watched from then on.
    begun = {"yaml", "watchfiles", "multiprocessing"} if server == "prompts" else set()
    read = {name for name in modules if name.partition(".")[0] in begun}
    assert not _needless(modules - SERVERS[server] - read - _loaded_by_library(server))


def test_a_server_over_http_loads_websockets_with_the_first_of_them() -> None:
    modules = _loaded_by("import shared.transports.http.server")
    assert "uvicorn" in modules
    assert "websockets" not in modules


def test_a_program_that_sends_no_spans_loads_nothing_for_it() -> None:
    run = "import shared.program.run, shared.transports.http.server, shared.client.connect"
    modules = _loaded_by(f"{run}, shared.gateway.bridge.bridge")
    assert "shared.kit.spans" in modules
    assert not {name for name in modules if name.partition(".")[0] in ("opentelemetry", "requests", "google")}
    assert modules.isdisjoint({"shared.ops.otel"})


CALLED = """
import contextlib, io, servers.__main__
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
    servers.__main__.main({words!r})
"""


@pytest.mark.parametrize("words", [["--version"], ["run", "--help"], ["list"]], ids=" ".join)
def test_a_command_puts_modules_off_before_anything_loads_them(words: list[str]) -> None:
    modules = _loaded_by(f"exec({CALLED.format(words=words)!r})")
    assert "shared.kit.arguments" in modules
    assert modules.isdisjoint({"_ssl", "_hashlib", "importlib.metadata"})


@pytest.mark.slow
def test_a_call_from_a_terminal_loads_what_it_needs() -> None:
    modules = _loaded_by(f"{PUT_OFF}; import servers.bundle.commands.call")
    assert "shared.client.connect" in modules
    assert modules.isdisjoint(
        {"rich", "argcomplete", "aiohttp", "websockets", "jsonschema_rs", "tomllib", "tree_sitter"}
    )


def test_the_search_for_plugins_is_what_is_left_out() -> None:
    # Should pydantic come to search elsewhere, this says that `servers/start.py` has no effect any more.
    assert "importlib.metadata" in _loaded_by("import shared.program.run")
    assert "importlib.metadata" not in _loaded_by(f"{PUT_OFF}; import shared.program.run")


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("ssl", "SSLContext"),
        ("asyncio.sslproto", "SSLProtocol"),
        ("hashlib", "sha256"),
        ("hmac", "digest"),
        ("secrets", "token_hex"),
        ("pydantic.plugin._loader", "_plugins"),
    ],
)
def test_whoever_wants_something_of_a_stand_in_gets_the_real_one(name: str, wanted: str) -> None:
    load = f"{PUT_OFF}; import importlib; held = importlib.import_module({name!r}); before = sys.modules[{name!r}]"
    ask = f"got = held.{wanted}; real = sys.modules[{name!r}]"
    assert name in _loaded_by(f"{load}; {ask}; assert before is held is not real; assert got is real.{wanted}")
    assert name in _loaded_by(f"{load}; {ask}; assert vars(held)[{wanted!r}] is got, 'asked no more'")


def test_a_module_that_is_loaded_already_gets_no_stand_in() -> None:
    load = "import asyncio, hashlib, ssl; real = dict(sys.modules); protocol = asyncio.sslproto"
    kept = "all(sys.modules[name] is real[name] for name in ('asyncio.sslproto', 'hashlib', 'ssl'))"
    assert _loaded_by(f"{load}; {PUT_OFF}; assert {kept} and asyncio.sslproto is protocol and ssl.SSLContext")


ENCRYPTED = """
import asyncio, ssl
assert asyncio.sslproto is sys.modules["asyncio.sslproto"]
async def main():
    plain = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    host, port = plain.sockets[0].getsockname()
    try:
        await asyncio.open_connection(host, port, ssl=ssl.create_default_context())
    except OSError as error:
        return type(error)
found = asyncio.run(main())
assert found in (ssl.SSLError, ssl.SSLEOFError, ConnectionResetError), found
assert asyncio.sslproto.SSLProtocol
"""


def test_asyncio_still_encrypts() -> None:
    """The handshake is begun by the real protocol; that the other side has none is seen in it."""
    assert "_ssl" in _loaded_by(f"{PUT_OFF}{ENCRYPTED}pass")


def test_nobody_looks_for_garbage_while_a_program_loads() -> None:
    looked = "import gc, sys; sys.modules['a'] = sys; sys.modules['a.server'] = None"
    ask = "import servers.start\ntry: servers.start.start('a')\nexcept ModuleNotFoundError: assert not gc.isenabled()"
    assert _loaded_by(f"exec({looked!r}); exec({ask!r})")


@pytest.mark.parametrize("package", ["servers", "shared", "servers.start", "servers.filesystem.__main__"])
def test_importing_changes_nothing(package: str) -> None:
    """No module stands for another, and the collector is at work."""
    real = "import gc, asyncio, ssl, hashlib; real = dict(sys.modules)"
    same = "gc.isenabled() and all(sys.modules[name] is module for name, module in real.items())"
    assert _loaded_by(f"{real}; import {package}; assert {same}")
    assert "__getattr__" not in _loaded_by(
        f"import {package}; made = [vars(one) for one in sys.modules.values()]; "
        "assert not any(getattr(one.get('__getattr__'), '__module__', '') == 'servers.start' for one in made)"
    )


STANDARD = "import _thread, gc, importlib, threading, typing"


@pytest.mark.parametrize("package", ["servers", "shared", "servers.start", "shared.version"])
def test_importing_loads_nothing_else(package: str) -> None:
    loaded = _loaded_by(f"{STANDARD}; import {package}") - _loaded_by(STANDARD)
    assert loaded == {package.partition(".")[0], package}


@pytest.mark.parametrize("worker", ["servers.fetch.read.worker", "servers.sqlite.engine.worker"])
def test_a_process_for_a_page_or_a_statement_loads_no_server(worker: str) -> None:
    modules = _loaded_by(f"import {worker}")
    assert modules.isdisjoint({"asyncio", "anyio", "pydantic", "shared.names", "shared.protocol"})


def test_models_of_tools_wait_until_they_are_needed() -> None:
    script = "from servers.filesystem.server import app; made = [vars(one.function) for one in app.tools.all()]"
    assert _loaded_by(f"{script}; assert made and not any('_model' in one for one in made)")
