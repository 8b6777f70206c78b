"""HEALTHCHECK of the images: exit code 0 where the server of this container is well, 1 where it is not.

Over HTTP it is asked at `/healthz`. A server on stdio can be asked by nobody but the client that started it: it is
well as long as it runs, which is as long as the container does. How the server was started stands where it reads that
itself: in its arguments, else in the environment, else in a file.
"""

import os
import sys
import tomllib
from collections.abc import Mapping, Sequence
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

SECONDS = 4
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - binds nothing


def read_option(name: str, words: Sequence[str], environment: Mapping[str, str]) -> str | None:
    """What the arguments say of an option, the last time they do, else the environment."""
    value = environment.get(f"MCP_{name}".upper()) or None
    for word, following in zip(words, [*words, ""][1:], strict=True):
        if word == f"--{name}":
            value = following
        elif word.startswith(f"--{name}="):
            value = word.partition("=")[2]
    return value


def check(words: Sequence[str], environment: Mapping[str, str]) -> str | None:
    """What is wrong with the server that was started with these arguments, in this environment."""
    options = {"transport": "stdio", "host": "127.0.0.1", "port": "8000", **_read_file(words, environment)}
    for name in ("transport", "host", "port"):
        options[name] = read_option(name, words, environment) or options[name]
    if options["transport"] == "stdio":
        return None
    return _ask(EVERYWHERE.get(options["host"], options["host"]), int(options["port"]))


def _read_file(words: Sequence[str], environment: Mapping[str, str]) -> dict[str, Any]:
    """The file of settings of a server, or of several, as far as there is one."""
    settings, config = (read_option(name, words, environment) for name in ("settings", "config"))
    if settings is not None:
        return tomllib.loads(Path(settings).read_text(encoding="utf-8"))
    if config is None:
        return {}
    import yaml  # noqa: PLC0415 - only the image of several servers has it

    content: dict[str, Any] = yaml.safe_load(Path(config).read_text(encoding="utf-8"))
    return content


def _ask(host: str, port: int) -> str | None:
    # Not `urlopen`, which would use the proxy that a server may have for its own requests.
    connection = HTTPConnection(host, port, timeout=SECONDS)
    try:
        connection.request("GET", "/healthz")
        status = connection.getresponse().status
    except (OSError, HTTPException) as error:
        return f"no answer from {host} port {port}: {error}"
    finally:
        connection.close()
    return None if status == 200 else f"/healthz answers with {status}"


if __name__ == "__main__":
    # Process 1 is the server, or an init whose arguments are the server's command.
    fault = check(Path("/proc/1/cmdline").read_text(encoding="utf-8").split("\0"), os.environ)
    sys.exit(fault)
