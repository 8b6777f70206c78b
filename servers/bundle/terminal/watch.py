"""Prints changes at a server as they happen, for the command `watch`."""

import json
import os
import shlex
import subprocess
from argparse import Namespace
from datetime import datetime

import anyio

from shared.client.client import Client
from shared.client.connection.changes import Change
from shared.text import is_unicode

from .display import write_text
from .exit_codes import DONE, REFUSED, Misuse
from .session import Session

_LISTS = ("tools", "prompts", "resources")


async def watch(client: Client, options: Namespace, session: Session) -> int:
    """Print each change of the resources `options.uris`, or of the lists if that is empty, until this is cancelled or
    the server ends the stream. Return the exit code. Raises Misuse if the server does not report such changes, and
    the same errors as a request."""
    uris: list[str] = options.uris
    capabilities = client.server.capabilities
    supported = {name: value for name, value in capabilities.items() if isinstance(value, dict)}
    if uris and supported.get("resources", {}).get("subscribe") is not True:
        raise Misuse("the server does not report changes to resources")
    if not uris and not any(supported.get(name, {}).get("listChanged") is True for name in _LISTS):
        raise Misuse("the server does not report changes to its lists: specify a URI")
    async with client.changes(uris, lists=not uris) as changes:
        for uri in changes.refused:
            session.say(f"the server does not report changes to {uri}")
        if uris and set(changes.refused) >= set(uris):
            return REFUSED
        what = f"{len(uris)} {'resource' if len(uris) == 1 else 'resources'}" if uris else "the lists"
        session.say(f"watching {what}; press Ctrl+C to stop")
        async for change in changes:
            now = datetime.now().astimezone().replace(microsecond=0)
            if options.json:
                record = {"time": now.isoformat(), "kind": change.kind, **({"uri": change.uri} if change.uri else {})}
                write_text(json.dumps(record) + "\n")
            else:
                write_text(f"{now:%H:%M:%S}  {describe(change)}\n")
            if options.exec is not None:
                await _run_command(options.exec, change, session)
    return DONE


def describe(change: Change) -> str:
    """Return the description of a change, as one line."""
    if change.kind == "missed":
        return "missed: the connection was lost, and anything may have changed"
    if change.kind == "resource":
        # A line break in a URI could forge another line of the output.
        return f"changed {' '.join(change.uri.split()) if change.uri else ''}"
    return f"changed: the list of {change.kind}"


async def _run_command(command: str, change: Change, session: Session) -> None:
    """Run the command of `--exec` for one change."""
    uri = change.uri or ""
    if not is_unicode(uri) or "\0" in uri:
        session.say("--exec: not run for a URI that an environment variable can't contain")
        return
    # Data of the server is only in environment variables, whose values sh does not execute. cmd.exe might, so no
    # shell is used on Windows.
    words = shlex.split(command, posix=False) if os.name == "nt" else ["/bin/sh", "-c", command]
    env = {**os.environ, "WATCH_KIND": change.kind, "WATCH_URI": uri}
    try:
        done = await anyio.run_process(
            words, stdin=subprocess.DEVNULL, stdout=None, stderr=None, env=env, check=False
        )
    except OSError as error:
        raise Misuse(f"--exec: {command}: {error.strerror}") from None
    if done.returncode:
        session.say(f"--exec: {command}: exit code {done.returncode}")
