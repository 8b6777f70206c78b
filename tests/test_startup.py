"""Modules loaded at startup: a server on stdio needs none of other transports, plugins, or tests."""

import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.postgres_server import any_database
from tests.wire import Wire

ROOT = Path(__file__).resolve().parents[1]
PUT_OFF = "from servers.start import make_modules_lazy; make_modules_lazy()"
OTHERS = {
    *("starlette", "uvicorn", "httptools", "uvloop", "websockets", "aiohttp", "httpx", "jsonschema", "yaml", "mcp"),
    *("watchfiles", "chardet"),  # loaded with the first use
    "prometheus_client",  # loaded with the first scrape
    *("opentelemetry", "requests", "google"),  # for --otlp
    "jinja2",  # loaded with the first prompt
    *("h2", "httpcore", "lxml", "protego", "brotli"),  # loaded with the first page
    *("pypdf", "mammoth", "openpyxl"),  # loaded with the first document
    *("tomllib", "shared.program.settings.settings_file"),  # for a file of settings
    *(f"shared.protocol.types.{what}" for what in ("elicitation", "results", "sampling")),  # for clients
}
DEAR = {
    *("email", "csv"),  # pydantic's search for plugins, by importlib.metadata
    *("_ssl", "_hashlib", "random"),  # OpenSSL, which a pipe does not need
    *("shutil", "zipfile", "bz2", "lzma", "tempfile"),  # the width of a terminal, among others
    *("argparse", "gettext"),  # for the help
    "difflib",  # for suggestions of names, and for printed differences
    *("servers.filesystem.edit.text", "servers.filesystem.search.lines"),  # loaded with the first call
    *("multiprocessing", "concurrent.futures.process", "logging.config", "http", "urllib.request", "xml"),
    *("pydantic.v1", "pydantic.deprecated", "pydantic.networks", "pydantic.mypy", "pydantic_settings"),
}
READERS = {"csv", "difflib"}
"""What import_csv reads with, and what finds the name of a table."""
SERVERS: dict[str, set[str]] = {
    "fetch": set(), "filesystem": set(), "postgres": READERS, "prompts": set(), "sqlite": READERS,
}  # fmt: skip


def _needless(modules: set[str]) -> list[str]:
    """Returns the unneeded modules among them, without those that the interpreter loads in this environment."""
    extra = modules - _loaded_by("pass")
    return sorted(name for name in extra if not {name, name.partition(".")[0]}.isdisjoint(OTHERS | DEAR))


@cache
def _loaded_by(statement: str) -> set[str]:
    """Returns the modules of a process that runs this statement. Raises AssertionError if it fails."""
    script = f"import json, sys; {statement}\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


def _loaded_by_library(server: str) -> set[str]:
    """Returns the modules that psycopg, which a server needs to read its settings, loads to find its own version."""
    return _loaded_by(f"{PUT_OFF}; import psycopg, psycopg.conninfo") if server == "postgres" else set()


SLOW = [pytest.mark.slow]


@pytest.mark.parametrize("server", [pytest.param(one, marks=[] if one == "filesystem" else SLOW) for one in SERVERS])
def test_importing_a_server_loads_no_unneeded_modules(server: str) -> None:
    made = "made = [vars(one.function) for one in app.tools.all()]"
    modules = _loaded_by(
        f"{PUT_OFF}; from servers.{server}.server import app; {made}\n"
        "assert made and not any('_model' in one for one in made), 'models of tools wait until they are needed'"
    )
    assert f"servers.{server}.server" in modules
    assert not _needless(modules - SERVERS[server] - _loaded_by_library(server))


@pytest.mark.slow
@pytest.mark.parametrize("server", SERVERS)
async def test_serving_on_stdio_loads_no_unneeded_modules(server: str, tmp_path: Path) -> None:
    (tmp_path / "data.db").touch()
    served = {"filesystem": [str(tmp_path)], "sqlite": [str(tmp_path / "data.db")], "fetch": [], "prompts": []}
    env = {**os.environ, "PYTHONPROFILEIMPORTTIME": "1", "PYTHONPATH": str(ROOT)}
    places = [any_database()] if server == "postgres" else served[server]
    async with Wire([sys.executable, "-m", f"servers.{server}", *places], env=env) as wire:
        assert (await wire.initialize())["serverInfo"]["name"]
        await wire.close_stdin()
        assert await wire.wait() == 0
    modules = set(re.findall(r"^import time:.*\| *(\S+)$", wire.stderr, re.MULTILINE))
    # The module `server` is loaded by name, without an import line.
    assert f"servers.{server}.settings" in modules, wire.stderr[:2000]
    # Libraries are read and watched from the start, since clients request a list at once.
    begun = {"yaml", "watchfiles", "multiprocessing"} if server == "prompts" else set()
    read = {name for name in modules if name.partition(".")[0] in begun}
    assert not _needless(modules - SERVERS[server] - read - _loaded_by_library(server))


def test_a_listener_loads_websockets_and_spans_on_first_use() -> None:
    """Covers WebSockets and spans."""
    run = "import shared.program.run, shared.transports.http.server, shared.client.connect"
    modules = _loaded_by(f"{run}, servers.gateway.bridge.bridge")
    assert {"uvicorn", "shared.tracing.spans"} <= modules
    unused = ("opentelemetry", "requests", "google", "websockets")
    assert not {name for name in modules if name.partition(".")[0] in unused}
    assert "shared.telemetry.otel" not in modules


CALLED = """
import contextlib, io, servers.__main__
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
    for words in (["--version"], ["run", "--help"], ["list"]):
        servers.__main__.main(words)
"""


def test_a_command_defers_modules_before_anything_loads_them() -> None:
    modules = _loaded_by(CALLED)
    assert "shared.program.line_parser" in modules
    assert modules.isdisjoint({"_ssl", "_hashlib", "email"})


@pytest.mark.slow
def test_the_call_command_loads_no_unneeded_modules() -> None:
    modules = _loaded_by(f"{PUT_OFF}; import servers.bundle.commands.client.call")
    assert "shared.client.connect" in modules
    needless = {"rich", "argcomplete", "aiohttp", "websockets", "jsonschema_rs", "tomllib", "tree_sitter"}
    assert modules.isdisjoint(needless)


@pytest.mark.slow
def test_pydantic_searches_for_plugins_only_without_start() -> None:
    # If pydantic changes its search, this shows that `servers/start.py` has no effect any more.
    build = "import pydantic; pydantic.create_model('Second')"
    assert "email" in _loaded_by(build)
    assert "email" not in _loaded_by(f"{PUT_OFF}; {build}")
    search = "from importlib.metadata import entry_points; assert entry_points(group='console_scripts')"
    assert "email" in _loaded_by(f"{PUT_OFF}; {search}; {build}")


LATE = f"""
{PUT_OFF}
from importlib import import_module
from types import ModuleType
wanted = {{
    "ssl": "SSLContext", "asyncio.sslproto": "SSLProtocol", "hashlib": "sha256", "hmac": "digest",
    "secrets": "token_hex", "importlib.metadata": "entry_points", "locale": "getencoding",
    "platform": "system", "zoneinfo": "ZoneInfo",
}}
late = {{name: import_module(name) for name in wanted}}
assert not any(type(module) is ModuleType for module in late.values())
for name, attribute in wanted.items():
    assert getattr(late[name], attribute).__module__ in (name, "_hashlib", "_hmac", "_locale"), name
    assert sys.modules[name] is import_module(name) is late[name] and type(late[name]) is ModuleType
"""


def test_a_deferred_module_becomes_the_real_module_on_use() -> None:
    assert "_ssl" in _loaded_by(LATE)


def test_a_loaded_module_is_not_deferred() -> None:
    load = "import asyncio, hashlib, ssl; real = dict(sys.modules); protocol = asyncio.sslproto"
    unchanged = "all(sys.modules[name] is real[name] for name in ('asyncio.sslproto', 'hashlib', 'ssl'))"
    assert _loaded_by(f"{load}; {PUT_OFF}; assert {unchanged} and asyncio.sslproto is protocol and ssl.SSLContext")


ENCRYPTED = f"""
{PUT_OFF}
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


@pytest.mark.slow
def test_asyncio_encrypts_with_deferred_modules() -> None:
    """The real protocol starts the handshake, and detects that the other side has no TLS."""
    assert "_ssl" in _loaded_by(ENCRYPTED)


def test_garbage_collection_is_off_while_a_program_loads() -> None:
    looked = "import gc; sys.modules['a'] = sys; sys.modules['a.server'] = None; import servers.start"
    ask = "try: servers.start.start('a')\nexcept ModuleNotFoundError: assert not gc.isenabled()"
    assert _loaded_by(f"{looked}\n{ask}")


@pytest.mark.parametrize("module", ["servers", "servers.prompts", "servers.gateway"])
def test_a_foreign_package_of_the_same_name_is_reported_in_one_line(module: str, tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "__init__.py").write_text("raise SystemExit('it was imported')")
    env = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-m", module, "--version"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert f": Python finds {tmp_path / 'shared'} before {ROOT / 'shared'}, and both are named `shared`: " in line


STANDARD = "import _thread, gc, importlib, importlib.machinery, pathlib, threading, typing"


def test_importing_start_or_version_has_no_side_effects() -> None:
    """No module is deferred, and garbage collection is on."""
    before = _loaded_by(STANDARD)
    for package in ("servers.start", "shared.version"):
        assert _loaded_by(f"{STANDARD}; import {package}") - before == {package.partition(".")[0], package}
    none = "not any(type(finder).__module__.startswith('shared') for finder in sys.meta_path)"
    assert _loaded_by(f"import gc, shared, servers.filesystem.__main__; assert gc.isenabled() and {none}")


@pytest.mark.parametrize("worker", ["servers.fetch.read.worker", "servers.sqlite.engine.worker"])
def test_worker_processes_load_no_server_modules(worker: str) -> None:
    modules = _loaded_by(f"import {worker}")
    assert modules.isdisjoint({"asyncio", "anyio", "pydantic", "shared.names", "shared.protocol"})
