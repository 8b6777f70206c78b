"""Kills changes to a client's file at every stage, and goes on from there: for a process of its own.

A stage ends where the file system is asked to open, rename, remove or make something. Says what was wrong, and
whether there were stages.
"""

import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

from servers.bundle.hosts.clients import get_client
from servers.bundle.hosts.configured import ConfiguredServer, read_bytes
from servers.bundle.hosts.installing import Target, install, uninstall
from servers.common.machine import Machine

HOME = Path(sys.argv[1])
FILES = {"cursor": HOME / ".cursor" / "mcp.json", "codex": HOME / ".codex" / "config.toml"}
ASKED = {"open", "os.rename", "os.remove", "os.mkdir", "os.chmod", "os.rmdir", "os.scandir"}


def change(client: str, word: str | None) -> None:
    """Installs a server with the argument `word`, or removes it."""
    target = Target.of(get_client(client), Machine("linux", HOME, {}), "user", HOME)
    with target.lock():
        new = ConfiguredServer("a", "/opt/mcp", (word,)) if word else None
        (install(target, new, replace=False) if new else uninstall(target, "a", [])).apply()


def is_killed(client: str, word: str | None, stage: int) -> bool:
    """Makes a change in a process that is killed at a stage; returns whether the stage exists."""
    child = os.fork()
    if child == 0:
        left = stage

        def count(event: str, _: tuple[Any, ...]) -> None:
            nonlocal left
            left -= event in ASKED
            if left == 0 and event in ASKED:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        try:
            change(client, word)
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def reset(client: str, text: bytes | None, word: str | None) -> None:
    shutil.rmtree(HOME)
    HOME.mkdir()
    if text is not None:
        FILES[client].parent.mkdir()
        FILES[client].write_bytes(text)
    if word:
        change(client, word)


def walk(client: str, text: bytes | None, first: str | None, second: str | None) -> None:
    """Kills the change from the first word to the second in a file with `text` at every stage."""
    file = FILES[client]
    reset(client, text, first)
    old = read_bytes(file)
    change(client, second)
    whole = (old, read_bytes(file))
    stage = 1
    reset(client, text, first)
    while is_killed(client, second, stage):
        if read_bytes(file) not in whole:
            say(f"stage {stage}: the file is not whole")
        change(client, "third")
        change(client, None)
        left = [path for path in HOME.rglob("*") if path.name == "lock" or path.suffix == ".tmp"]
        if read_bytes(file) != text or left or file.parent.exists() != (text is not None):
            say(f"stage {stage}: {read_bytes(file)!r} and {left} are left")
        stage += 1
        reset(client, text, first)
    say(f"{client}, from {first} to {second}: more than ten stages" if stage > 10 else f"{stage} stages")


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


walk("cursor", None, None, "second")
walk("cursor", b'{\n  // mine\n  "mcpServers": {}\n}\n', "first", "second")
walk("codex", b'# mine\nmodel = "x"', "first", None)
