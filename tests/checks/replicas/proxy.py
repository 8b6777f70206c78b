"""nginx in front of several replicas: each request goes to the next of them, whatever session it is of."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.ports import free_port

__all__ = ["balanced", "find_nginx"]

_CONF = """
pid {folder}/pid;
error_log {folder}/errors warn;
worker_processes 1;
events {{ worker_connections 8192; }}
http {{
    access_log off;
    client_body_temp_path {folder}/bodies;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    client_max_body_size 4m;
    {upstreams}
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        proxy_http_version 1.1;
        proxy_set_header Host $http_host;
        proxy_set_header Connection "";
        proxy_buffering off;
        proxy_connect_timeout 1s;
        proxy_read_timeout 300s;
        add_header X-Served-By $upstream_addr always;
        {locations}
    }}
}}
"""
# Whoever can't be reached is left alone for a second, not for ten as by default: these come back at once.
_UPSTREAM = "upstream {name} {{ {servers} }}"
_SERVER = "server 127.0.0.1:{port} max_fails=1 fail_timeout=1s;"
_LOCATION = "location {path} {{ proxy_pass http://{name}/; }}"
_NOBODY = 65_534


def find_nginx() -> str:
    """The program; skips the test where there is none, and fails under CI=true."""
    found = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if found is None:
        reason = "nginx is not installed (Debian: apt install nginx-light)"
        pytest.fail(reason) if os.environ.get("CI") == "true" else pytest.skip(reason)
    return found


@contextmanager
def balanced(ports: Mapping[str, Sequence[int]]) -> Iterator[str]:
    """The base URL of an nginx that leads each path, as "/" or "/sqlite/", to the replicas on its ports, in turn."""
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        upstreams, locations = [], []
        for number, (path, behind) in enumerate(ports.items()):
            servers = " ".join(_SERVER.format(port=one) for one in behind)
            upstreams.append(_UPSTREAM.format(name=f"replicas{number}", servers=servers))
            locations.append(_LOCATION.format(path=path, name=f"replicas{number}"))
        text = {"upstreams": "\n".join(upstreams), "locations": "\n".join(locations)}
        conf = Path(folder, "nginx.conf")
        conf.write_text(_CONF.format(folder=folder, port=port, **text))
        if os.geteuid() == 0:
            shutil.chown(folder, _NOBODY, _NOBODY)
        # It returns when its sockets are open, and goes on in the background.
        command = [find_nginx(), "-e", f"{folder}/errors", "-p", folder, "-c", str(conf)]
        _run(command)
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            _run([*command, "-s", "stop"])


def _run(command: list[str]) -> None:
    user = {"user": _NOBODY, "group": _NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    with tempfile.TemporaryFile() as said:
        done = subprocess.run(command, stdout=said, stderr=said, timeout=60, check=False, **user)
        said.seek(0)
        assert done.returncode == 0, said.read().decode()
