"""The Redis of compose.replicas.yaml, started with its command: authentication and persistence."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.checks.docker.images import REPLICAS
from tests.ports import free_port
from tests.wire import PATIENCE

REDIS: dict[str, Any] = REPLICAS["services"]["redis"]
PASSWORD = "a password with 'quotes' and $pecial characters"


def moved(words: list[str], folder: Path, port: int) -> list[str]:
    """`words` as Compose passes them on, with their places in `folder` and their port."""
    there = [word.replace("$$", "$").replace("/run/secrets/", f"{folder}/") for word in words]
    there = [word.replace("/tmp/password", f"{folder}/password").replace("/data", str(folder)) for word in there]
    return [word.replace("redis-cli", f"redis-cli -p {port}") for word in there]


@contextmanager
def started(folder: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    (folder / "store_password").write_text(PASSWORD + "\n")
    command = [*moved(REDIS["command"], folder, port), "--bind 127.0.0.1", f"--port {port}"]
    with (folder / "log").open("ab") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            until_healthy(folder, port, process)
            yield process
        finally:
            process.kill()


def until_healthy(folder: Path, port: int, process: subprocess.Popen[bytes]) -> None:
    """Asks as the health check does."""
    kind, *words = moved(REDIS["healthcheck"]["test"], folder, port)
    assert kind == "CMD"
    deadline = time.monotonic() + PATIENCE
    while subprocess.run(words, capture_output=True, timeout=PATIENCE, check=False).returncode != 0:
        assert process.poll() is None, (folder / "log").read_text()
        assert time.monotonic() < deadline, "it does not get ready"


def test_redis_requires_the_password_and_keeps_its_data(redis_server: str, tmp_path: Path) -> None:
    port = free_port()
    with started(tmp_path, port), redis.Redis(port=port, password=PASSWORD) as client:
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        assert client.config_get("maxmemory") == {"maxmemory": str(512 * 2**20)}
        assert client.config_get("save") == {"save": ""}
        client.set("kept", "yes")
        with redis.Redis(port=port) as stranger, pytest.raises(redis.AuthenticationError):
            stranger.get("kept")
    # Killed, as if for want of memory.
    with started(tmp_path, port), redis.Redis(port=port, password=PASSWORD) as client:
        assert client.get("kept") == b"yes"
        assert (tmp_path / "password.conf").stat().st_mode & 0o077 == 0


def test_redis_shuts_down_in_order(redis_server: str, tmp_path: Path) -> None:
    with started(tmp_path, free_port()) as process:
        process.terminate()
        assert process.wait(PATIENCE) == 0
