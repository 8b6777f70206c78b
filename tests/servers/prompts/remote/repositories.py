"""Repositories of git with prompts, and a daemon that gives them out."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Event

from servers.prompts.remote.address import Address, parse_address
from servers.prompts.remote.cache import Checkout
from tests.servers.prompts.folders import write

SECONDS = 60.0


class Repository:
    """A repository with a work tree."""

    def __init__(self, root: Path, files: Mapping[str, str | bytes]) -> None:
        self.root = root
        root.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")
        self.commit(files)

    def git(self, *words: str, data: bytes = b"") -> str:
        """What git prints."""
        identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "core.hooksPath=/dev/null"]
        environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run(
            ["git", *identity, *words], cwd=self.root, check=True, capture_output=True, input=data, env=environment
        )
        return done.stdout.decode().strip()

    def commit(self, files: Mapping[str, str | bytes]) -> str:
        """Writes these files and commits all that there is."""
        write(self.root, files)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message=More")
        return self.git("rev-parse", "HEAD")

    def commit_tree(self, entries: str) -> str:
        """Has the branch be a commit with these entries, as `git mktree` takes them, whatever their names are."""
        tree = self.git("hash-object", "-t", "tree", "-w", "--literally", "--stdin", data=entries.encode("latin-1"))
        commit = self.git("commit-tree", tree, "-m", "Made by hand")
        self.git("update-ref", "refs/heads/main", commit)
        return commit

    def address(self, rest: str = "") -> Address:
        """Its address on this machine."""
        return parse_address(f"git+file://{self.root}{rest}")


def entry(mode: str, name: str, id_: str) -> str:
    """An entry of a tree in git's own form."""
    return f"{mode} {name}\0" + bytes.fromhex(id_).decode("latin-1")


def update(checkout: Checkout, seconds: float = SECONDS) -> bool:
    """Fetches what there is now."""
    return checkout.update(Event(), seconds)


def files(checkout: Checkout) -> dict[str, str]:
    """What the library has."""
    found = sorted(path for path in checkout.root.rglob("*") if not path.is_dir())
    return {path.relative_to(checkout.root).as_posix(): path.read_text() for path in found}


@contextmanager
def daemon(base: Path) -> Iterator[int]:
    """A daemon for all repositories in a directory; its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    words = ["--export-all", "--listen=127.0.0.1", f"--port={port}", f"--base-path={base}", "--reuseaddr"]
    with subprocess.Popen(["git", "daemon", *words], stderr=subprocess.DEVNULL) as process:
        try:
            until = time.monotonic() + SECONDS
            while time.monotonic() < until:
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    time.sleep(0.02)
            yield port
        finally:
            process.terminate()
