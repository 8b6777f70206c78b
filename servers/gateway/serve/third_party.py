"""A third-party server in a configuration: a command to start or a URL, and the operator's rules for it.

    github:
      command: npx -y some-server
      env: {TOKEN: {env: GITHUB_TOKEN}}
      tools: {allow: ["get_*"], deny: [get_secret], rename: {get_file: read}}
      pin: true
    remote: {url: https://example.org/mcp, token-file: token, max-seconds: 60}

Any entry of `servers` with a `command` or a `url` is a third-party server; the catalog need not have it.
"""

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field

from servers.common.machine import Machine, state_folder, this_machine
from shared.client.client import Client
from shared.client.connect import connect, fixed_headers
from shared.client.group.names import check_server_name
from shared.client.options import ClientOptions
from shared.program.messages import missing_extra_message
from shared.program.settings.options import FileValue, option, read_options, secret
from shared.program.settings.settings_file import parse_settings
from shared.program.settings.tables import TABLES

from ..bridge.upstream import MAX_PROCESSES, Upstream
from ..proxy.remote import connect_as_user
from ..proxy.urls import check_url
from ..rules.names import Rules
from .selection import JOINED
from .values import Values, read_env_file, read_value

_COMMAND_SETTINGS = ("env", "env_file", "cwd")
_URL_SETTINGS = ("token", "token_file", "headers")


class ThirdPartySettings(BaseModel):
    """The settings of one third-party server."""

    # A command that is a single string is split as a shell would do it.
    command: (
        Annotated[
            list[str],
            Field(min_length=1),
            BeforeValidator(lambda command: shlex.split(command) if isinstance(command, str) else command),
        ]
        | None
    ) = None
    env: Values = {}
    env_file: Path | None = option(None, "lines of NAME=VALUE", "FILE")
    cwd: Path | None = option(None, "directory in which the command is started", "DIR")
    shared: bool = False
    url: Annotated[str, AfterValidator(check_url)] | None = None
    token: str | None = secret(None, "the token itself")
    token_file: Path | None = option(None, "file with the token", "FILE")
    headers: Values = {}
    tools: Any = None
    pin: bool = False
    max_result: int | None = Field(None, ge=1024)
    max_seconds: float | None = Field(None, gt=0, allow_inf_nan=False)


class _ToolRules(BaseModel):
    allow: list[str] | None = None
    deny: list[str] = []
    rename: dict[str, str] = {}
    describe: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class ThirdPartyServer:
    """A third-party server as configured."""

    name: str
    settings: ThirdPartySettings
    rules: Rules
    """The operator's rules for its tools and results."""
    path: Path
    """The configuration file. Paths in it are relative to its directory, which is also the default working directory
    of a command."""
    exposed: str | None
    """The location of a secret of this server that other users of the machine can read; None without one."""
    file_values: Mapping[str, FileValue]
    """All settings as in the file, by key, with their locations."""

    @property
    def directory(self) -> Path:
        """The directory of the configuration file."""
        return self.path.absolute().parent

    def connect(self, options: ClientOptions) -> AbstractAsyncContextManager[Client]:
        """Return a client of the server. Raises ValueError if a file or environment variable with a secret no longer
        exists, and the errors of `shared.client.connect`."""
        settings = self.settings
        if settings.command is not None:
            cwd = settings.cwd or self.directory
            return connect(settings.command, options, env=self._environment(), cwd=cwd)
        return connect_as_user(settings.url or "", options, self._headers())

    @property
    def upstream(self) -> Upstream:
        """The server as a bridge needs it."""
        processes = None if self.settings.command is None else MAX_PROCESSES
        return Upstream(self.name, self.connect, self.settings.shared, processes)

    def values(self) -> list[str]:
        """Return the values of all environment variables of the command, or of all headers: any of them may be a
        secret. Raises the same errors as `check`."""
        texts = self._headers() if self.settings.command is None else self._environment()
        return list(texts.values())

    def check(self) -> None:
        """Check the headers, or the environment and working directory of the command. Raises ValueError with a
        one-line message that contains no secret if one is invalid."""
        cwd = self.settings.cwd
        if self.settings.command is None:
            self._headers()
        elif cwd is not None and not cwd.is_dir():
            raise ValueError(f"cwd: {cwd} is not a directory")
        else:
            self._environment()

    def _environment(self) -> dict[str, str]:
        file = self.settings.env_file
        read = {} if file is None else read_env_file(file)[0]
        return {**read, **{name: value.current(self.directory) for name, value in self.settings.env.items()}}

    def _headers(self) -> dict[str, str]:
        settings = self.settings
        token = settings.token if settings.token_file is None else read_value(settings.token_file)[0]
        return fixed_headers(token, {name: value.current(self.directory) for name, value in settings.headers.items()})


def is_third_party(content: Mapping[str, Any]) -> bool:
    """Return True if `content`, an entry of `servers`, describes a third-party server."""
    return "command" in content or "url" in content


def read_third_party(
    name: str, content: Mapping[str, Any], path: Path, *, readable_by_others: bool
) -> ThirdPartyServer:
    """Read the server called `name` from its `content` in the configuration at `path`. `readable_by_others` is true
    if other users can read that file. Raises ValueError with a one-line message that contains no secret if settings
    are invalid."""
    where = f"{path}: servers.{name}"
    with _locate_errors(path, f"servers.{name}"):
        check_server_name(name)
    if name == JOINED:
        raise ValueError(f"{where}: this name is reserved for the joined servers; choose another")
    file_values = parse_settings(content, {**ThirdPartySettings.model_fields, **TABLES}, path, f"servers.{name}.")
    settings = read_options(ThirdPartySettings, {}, file=file_values)
    with _locate_errors(path, f"servers.{name}"):
        _check_combinations(settings, file_values)
        rules = _read_tool_rules(settings, path, name)
        exposed = _find_exposed(settings, where, path.absolute().parent, readable_by_others=readable_by_others)
        third_party = ThirdPartyServer(name, settings, rules, path, exposed, file_values)
        third_party.check()
    return third_party


@contextmanager
def _locate_errors(path: Path, location: str) -> Iterator[None]:
    """Add `path` and `location` to a ValueError raised in the block, unless its message begins with the path."""
    try:
        yield
    except ValueError as error:
        text = str(error)
        raise ValueError(text if text.startswith(f"{path}: ") else f"{path}: {location}: {text}") from None


def _check_combinations(settings: ThirdPartySettings, file_values: Mapping[str, FileValue]) -> None:
    """Check the settings that depend on each other. Raises ValueError for a wrong combination and for a missing
    library."""
    if (settings.command is None) is (settings.url is None):
        raise ValueError("specify either a command or a url")
    misplaced: Sequence[str] = _COMMAND_SETTINGS if settings.command is None else _URL_SETTINGS
    for name in misplaced:
        if name in file_values:
            kind = "command" if settings.command is None else "url"
            raise ValueError(f"{name.replace('_', '-')} is only for a {kind}")
    credentials = [name for name in ("token", "token_file") if getattr(settings, name) is not None]
    credentials += [name for name in settings.headers if name.lower() == "authorization"]
    if len(credentials) > 1:
        first, second = (name.replace("_", "-") for name in credentials[:2])
        raise ValueError(f"{first} and {second} set the same thing: use only one")
    library = "websockets" if (settings.url or "").startswith("ws") else "aiohttp"
    if settings.url is not None and find_spec(library) is None:
        raise ValueError(f"a server at a URL: {missing_extra_message('client')}")


def _read_tool_rules(settings: ThirdPartySettings, path: Path, name: str) -> Rules:
    location = f"servers.{name}.tools"
    if not isinstance(settings.tools, dict | None):
        raise ValueError(f"{path}: {location}: must be a mapping of allow, deny, rename and describe")
    file_values = parse_settings(settings.tools or {}, _ToolRules.model_fields, path, f"{location}.")
    tools = read_options(_ToolRules, {}, file=file_values)
    with _locate_errors(path, location):
        return Rules(
            allow=None if tools.allow is None else tuple(tools.allow),
            deny=tuple(tools.deny),
            rename=tools.rename,
            describe=tools.describe,
            result_bytes=settings.max_result,
            seconds=settings.max_seconds,
        )


def _find_exposed(
    settings: ThirdPartySettings, where: str, directory: Path, *, readable_by_others: bool
) -> str | None:
    """Return the location of a secret that other users can read; None if there is none."""
    if readable_by_others and settings.token is not None:
        return f"{where}.token"
    if settings.token_file is not None and read_value(settings.token_file)[1]:
        return str(settings.token_file)
    if settings.env_file is not None and read_env_file(settings.env_file)[1]:
        return str(settings.env_file)
    for kind, values in (("env", settings.env), ("headers", settings.headers)):
        for name, value in values.items():
            if value.is_exposed(name, directory, readable_by_others=readable_by_others):
                return f"{where}.{kind}.{name}"
    return None


def pins_path(configuration: Path, name: str, machine: Machine | None = None) -> Path:
    """Return the path of the file with the pins of the server called `name` in the file `configuration`. It is
    `NAME.pins.json` in the same directory, or, if no file can be created there, a file in the user's state directory.
    Raises ValueError if the home directory is unknown."""
    beside = configuration.absolute().parent / f"{name}.pins.json"
    if beside.exists() or os.access(beside.parent, os.W_OK):
        return beside
    # Servers in several configurations may have the same name.
    digest = sha256(os.fsencode(configuration.absolute())).hexdigest()[:12]
    return Path(state_folder(machine or this_machine())) / "pins" / f"{digest}-{name}.pins.json"
