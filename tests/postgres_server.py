"""A real PostgreSQL for tests in a separate folder: started, stopped and killed like any other process.

PostgreSQL refuses to run as root. If the tests run as root, it runs as another user, who owns its folder.
"""

import atexit
import getpass
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

from tests.ports import free_port

__all__ = [
    "PATIENCE",
    "SUPERUSER",
    "PostgresServer",
    "any_database",
    "as_server_user",
    "give",
    "new_database",
    "require_postgres",
    "short_folder",
]

PATIENCE = 90.0
SUPERUSER = "postgres"
STILL_THERE = "shared memory block"
"""What it says where processes of one that was killed have not all ended."""

_NUMBERS = count(1)
_ACCESS = """\
local all guarded scram-sha-256
host all guarded all scram-sha-256
local all all trust
host all all all trust
"""
_SETTINGS = """
fsync = off
synchronous_commit = off
full_page_writes = off
autovacuum = off
shared_buffers = 16MB
max_connections = 40
lc_messages = 'C'
timezone = 'UTC'
log_timezone = 'UTC'
shared_preload_libraries = 'pg_stat_statements'
"""


def require_postgres() -> Path:
    """Returns the folder of its programs; without it, skips the test, and fails under CI=true."""
    on_path = shutil.which("initdb")
    folders = [Path(on_path).resolve().parent] if on_path else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: -float(folder.parent.name))
    whole = [folder for folder in folders if (folder / "initdb").exists() and (folder / "postgres").exists()]
    if not whole:
        reason = "PostgreSQL is not installed (Debian: apt install postgresql)"
        pytest.fail(reason) if os.environ.get("CI") == "true" else pytest.skip(reason)
    return whole[0]


@contextmanager
def short_folder() -> Iterator[Path]:
    """Makes a folder that the user of the server can reach (not every test folder is), with a path short enough for a
    socket. It is removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    give(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class PostgresServer:
    """One cluster. It listens only on a UNIX socket in its folder, or with `port` also on loopback.

    `options` are settings, as `name=value`. Everyone may log in as any role, except `guarded`, which needs a
    password. The superuser is `postgres`. `folder` is one of `short_folder`.
    """

    def __init__(self, folder: Path, *options: str, port: int = 0) -> None:
        self.folder = folder
        self.port = port
        self.options = options
        self.data = folder / "data"
        self.log = folder / "server.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts the server with its earlier data, and waits until it accepts connections."""
        if not self.data.exists():
            _copy(_template() / "data", self.data)
        self._run()
        ends = time.monotonic() + PATIENCE
        while not self._answers():
            if self._process is not None and self._process.poll() is not None:
                assert STILL_THERE in self.log.read_text(), self.log.read_text()
                self._run()
            assert time.monotonic() < ends, "PostgreSQL did not start"
            time.sleep(0.01)

    def _run(self) -> None:
        place = f"listen_addresses={'127.0.0.1' if self.port else ''}"
        options = [place, f"port={self.port or 5432}", f"unix_socket_directories={self.folder}", *self.options]
        words = [require_postgres() / "postgres", "-D", self.data, *(word for one in options for word in ("-c", one))]
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder, **as_server_user()
            )

    @property
    def is_running(self) -> bool:
        """Returns whether its process runs."""
        return self._process is not None

    def stop(self, *, kill: bool = False) -> None:
        """Shuts the server down in order, which closes all connections, or kills all its processes with -9."""
        if self._process is None:
            return
        if kill:
            self._kill()
        else:
            self._process.send_signal(signal.SIGINT)
        self._process.wait(PATIENCE)
        self._process = None

    def _kill(self) -> None:
        assert self._process is not None
        others = [pid for (pid,) in self.run("SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()")]
        self._process.send_signal(signal.SIGSTOP)  # else it would start recovery from the loss of the others
        for pid in others:
            os.kill(pid, signal.SIGKILL)
        self._process.send_signal(signal.SIGKILL)

    def restart(self, *, kill: bool = False) -> None:
        """Restarts the server with the same data."""
        self.stop(kill=kill)
        self.start()

    def url(self, dbname: str = "postgres", user: str = SUPERUSER, password: str = "") -> str:
        """Returns the URI of one database, for one role."""
        who = f"{quote(user, safe='')}:{quote(password, safe='')}" if password else quote(user, safe="")
        database = quote(dbname, safe="")
        if self.port:
            return f"postgresql://{who}@127.0.0.1:{self.port}/{database}"
        return f"postgresql://{who}@/{database}?host={quote(str(self.folder), safe='/')}"

    def run(
        self, sql: str, values: Sequence[Any] | None = None, *, dbname: str = "postgres", user: str = SUPERUSER
    ) -> list[tuple[Any, ...]]:
        """Runs statements (several only without values), each in its own transaction unless they say
        otherwise; returns the rows of the last one. Values replace %s."""
        with psycopg.connect(self.url(dbname, user), autocommit=True) as connection:
            cursor = connection.execute(sql, values)  # type: ignore[arg-type]
            while cursor.nextset():
                pass
            return cursor.fetchall() if cursor.description else []

    def connect(
        self, dbname: str = "postgres", user: str = SUPERUSER, password: str = ""
    ) -> psycopg.Connection[tuple[Any, ...]]:
        """Returns a connection in autocommit mode; the caller closes it."""
        return psycopg.connect(self.url(dbname, user, password), autocommit=True)

    def _answers(self) -> bool:
        try:
            self.run("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True


@cache
def any_database() -> str:
    """Returns the URL of an empty database for all tests of the process; its role owns it."""
    return new_database()


def new_database(*statements: str) -> str:
    """Returns the URL of a new database in which its role has run these statements. Its server ends with the
    process, and is reachable from a container."""
    server, name = _shared(), f"anything_{next(_NUMBERS)}"
    server.run(f"CREATE DATABASE {name} OWNER anyone")
    for statement in statements:
        server.run(statement, dbname=name, user="anyone")
    return server.url(name, "anyone")


@cache
def _shared() -> PostgresServer:
    stack = ExitStack()
    atexit.register(stack.close)
    server = PostgresServer(stack.enter_context(short_folder()), port=free_port())
    server.start()
    stack.callback(server.stop)
    server.run("CREATE ROLE anyone LOGIN")
    return server


@cache
def _template() -> Path:
    """Returns the folder of a cluster that was never started; copies of it are much faster than new clusters."""
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    give(folder)
    words = [require_postgres() / "initdb", "-D", folder / "data", "-U", SUPERUSER, "-A", "trust", "-E", "UTF8"]
    words += ["--locale=C.UTF-8", "--no-sync", "--no-instructions", "--wal-segsize=1"]
    done = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False, **as_server_user()
    )
    assert done.returncode == 0, done.stderr
    (folder / "data" / "pg_hba.conf").write_text(_ACCESS)
    with (folder / "data" / "postgresql.conf").open("a") as settings:
        settings.write(_SETTINGS)
    return folder


def _copy(source: Path, target: Path) -> None:
    shutil.copytree(source, target)
    for path in [target, *target.rglob("*")]:
        give(path)


def give(path: Path) -> None:
    """Changes the owner to the user of the server."""
    if os.getuid() == 0:
        owner = pwd.getpwnam(_user())
        os.chown(path, owner.pw_uid, owner.pw_gid)


def as_server_user() -> dict[str, Any]:
    """Returns the arguments of Popen that start it as a user other than root."""
    if os.getuid():
        return {}
    owner = pwd.getpwnam(_user())
    return {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": [], "umask": 0o077}


@cache
def _user() -> str:
    """Returns the user of the server: that of the tests, unless it is root."""
    if os.getuid():
        return getpass.getuser()
    names = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in names)
