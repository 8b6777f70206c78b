"""nginx from Debian with the shipped file, in which nothing but ports and places is changed."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.ports import free_port

CONF = Path(__file__).resolve().parents[3] / "docker" / "nginx.conf"
UPSTREAMS = ("filesystem:8000", "sqlite:8000", "fetch:8000", "prompts:8000")
NOBODY = 65_532


@contextmanager
def proxied(nginx: str, ports: Mapping[str, str], changes: Mapping[str, str] | None = None) -> Iterator[int]:
    """The port on which nginx serves the servers that listen on `ports`, by name; `changes` are made as well."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        text = CONF.read_text().replace(" /tmp/", f" {folder}/")
        for old, new in {
            "listen 8080;": f"listen 127.0.0.1:{port};",
            "access_log /dev/stdout paths;": f"access_log {folder}/access paths;",
            "error_log stderr warn;": f"error_log {folder}/errors warn;",
            **{one: f"127.0.0.1:{ports.get(one.split(':')[0], '1')}" for one in UPSTREAMS},
            **(changes or {}),
        }.items():
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        conf = Path(folder, "nginx.conf")
        conf.write_text(text)
        if os.geteuid() == 0:
            shutil.chown(folder, NOBODY, NOBODY)
        # It returns when its sockets are open, and goes on in the background.
        command = [nginx, "-e", f"{folder}/errors", "-p", folder, "-c", str(conf)]
        _run(command)
        try:
            yield port
        finally:
            _run([*command, "-s", "quit"])


def _run(command: list[str]) -> None:
    """As the user that it has in a container."""
    user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    with tempfile.TemporaryFile() as said:
        done = subprocess.run(command, stdout=said, stderr=said, timeout=60, check=False, **user)
        said.seek(0)
        assert done.returncode == 0, said.read().decode()
