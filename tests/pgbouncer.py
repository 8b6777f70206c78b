"""A real PgBouncer for tests, before a real PostgreSQL."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from tests.postgres_server import PATIENCE, SUPERUSER, PostgresServer, as_server_user, give, short_folder

__all__ = ["PgBouncer", "pooling", "require_pgbouncer"]

_PORT = 6432
_SETTINGS = """\
[databases]
* = host={server} port={server_port}
[pgbouncer]
listen_addr =
listen_port = {port}
unix_socket_dir = {folder}
auth_type = trust
auth_file = {folder}/users
admin_users = postgres
pool_mode = {mode}
default_pool_size = {size}
max_client_conn = 200
query_wait_timeout = 60
ignore_startup_parameters = extra_float_digits
"""


def require_pgbouncer() -> str:
    """Returns the program; without it, skips the test, and fails under CI=true."""
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin") or ""
    if not program:
        reason = "PgBouncer is not installed (Debian: apt install pgbouncer)"
        pytest.fail(reason) if os.environ.get("CI") == "true" else pytest.skip(reason)
    return program


class PgBouncer:
    """A pooler on a UNIX socket in its folder, with `size` connections to each database for each role."""

    def __init__(self, server: PostgresServer, folder: Path, mode: str, size: int) -> None:
        self._folder = folder
        settings = folder / "pgbouncer.ini"
        settings.write_text(
            _SETTINGS.format(
                server=server.folder, server_port=server.port or 5432, port=_PORT, folder=folder, mode=mode, size=size
            )
        )
        roles = [role for (role,) in server.run("SELECT rolname FROM pg_roles WHERE rolcanlogin")]
        (folder / "users").write_text("".join(f'"{role}" ""\n' for role in roles))
        for path in folder.iterdir():
            give(path)
        with (folder / "pgbouncer.log").open("wb") as log:
            words: list[str | Path] = [require_pgbouncer(), settings]
            self.process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder, **as_server_user()
            )
        ends = time.monotonic() + PATIENCE
        while not self._answers():
            assert self.process.poll() is None, (folder / "pgbouncer.log").read_text()
            assert time.monotonic() < ends, "PgBouncer did not start"
            time.sleep(0.01)

    def url(self, dbname: str = "postgres", user: str = SUPERUSER) -> str:
        """Returns the URI of a database behind it, for one role."""
        host = quote(str(self._folder), safe="/")
        return f"postgresql://{quote(user)}@/{quote(dbname)}?host={host}&port={_PORT}"

    def connect(self, dbname: str, user: str) -> psycopg.Connection[tuple[object, ...]]:
        """Returns a connection through it in autocommit mode; the caller closes it."""
        # A named prepared statement would be missing on the next server connection.
        return psycopg.connect(self.url(dbname, user), autocommit=True, prepare_threshold=None)

    def manage(self, command: str) -> None:
        """Runs a command of the admin console."""
        with psycopg.connect(self.url("pgbouncer"), autocommit=True, cursor_factory=psycopg.ClientCursor) as admin:
            admin.execute(command.encode())

    def stop(self) -> None:
        """Stops the pooler."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE)

    def _answers(self) -> bool:
        try:
            self.manage("SHOW VERSION")
        except psycopg.OperationalError:
            return False
        return True


@contextmanager
def pooling(server: PostgresServer, mode: str, size: int = 4) -> Iterator[PgBouncer]:
    """Runs a pooler in that mode during the block."""
    require_pgbouncer()
    with short_folder() as folder:
        pooler = PgBouncer(server, folder, mode, size)
        try:
            yield pooler
        finally:
            pooler.stop()
