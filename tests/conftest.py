"""Options and hooks of the whole test run."""

import gc
import os
import signal
import tempfile
from collections.abc import Generator, Iterator
from importlib import import_module
from typing import Any

import pytest
from filelock import FileLock
from hypothesis import HealthCheck, settings

from tests.npm import Unavailable
from tests.records import names_recorded
from tests.redis_server import RedisServer

# The duration of an example depends on the machine and its load. All examples of a test share its folder on purpose.
CHECKS = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
settings.register_profile("any machine", deadline=None, suppress_health_check=CHECKS)
settings.load_profile("any machine")

TABLES = {
    "interop": "tests.checks.interop.conftest",
    "our client": "tests.checks.interop.servers.conftest",
    "gateway": "tests.checks.interop.gateway.conftest",
    "authorization": "tests.checks.interop.authorization.conftest",
    "compared": "tests.checks.comparison.conftest",
    "leg of the conformance suite": "tests.checks.conformance.conftest",
    "image": "tests.checks.docker.conftest",
    "received by a model": "tests.checks.host_views.conftest",
    "README": "tests.checks.readme_commands",
    "way of installing": "tests.checks.bundle.conftest",
    "example of a document": "tests.document_examples",
    "hammered": "tests.checks.filesystem.test_hammering",
    "figures of replicas": "tests.checks.replicas.conftest",
}
"""What tests record, and the module whose `print_tables` prints it."""


def _skip_unavailable() -> Generator[None, Any, Any]:
    """Skips a test whose requirement is missing; under CI=true, the test fails."""
    try:
        return (yield)
    except Unavailable as reason:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(reason))


pytest_fixture_setup = pytest_runtest_call = pytest.hookimpl(wrapper=True)(_skip_unavailable)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--peers", action="store_true", help="compare with the servers of others as well")
    parser.addoption(
        "--update-transcripts",
        action="store_true",
        help="write what the server answers now into tests/transcripts, instead of comparing",
    )
    parser.addoption(
        "--update-catalog",
        action="store_true",
        help="write the settings of the servers as they are now into catalog.yaml, instead of comparing",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Makes Ctrl+C end tests and their programs, although background jobs of a shell ignore it, and
    sets the state directory of servers."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # State of servers, such as the journal of changes, must not reach the home of the user who runs the tests.
    folder = tempfile.TemporaryDirectory(prefix="state-", ignore_cleanup_errors=True)
    config.add_cleanup(folder.cleanup)
    os.environ["XDG_STATE_HOME"] = folder.name


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Runs heavy tests one at a time across all processes; the wait does not count as their time."""
    if item.get_closest_marker("heavy") is None:
        return (yield)
    with FileLock(item.config.cache.mkdir("heavy") / "lock"):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Excludes permanent objects from garbage collection: thousands of tests and all their imports. The
    collector would examine all of them repeatedly, which takes a third of the collection."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Prints the tables, here since the process that prints may not run the tests of their folders."""
    found = names_recorded(terminalreporter)
    for name, module in TABLES.items():
        if name in found:
            import_module(module).print_tables(terminalreporter)


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """Starts a Redis without persistence, for all tests of one process."""
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    server.start()
    yield server
    server.stop()
