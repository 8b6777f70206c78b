"""Chooses the servers to run, each with settings from a configuration, or with some useful defaults."""

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel

from servers.catalog import PACKAGE, Catalog, Entry
from shared import Implementation, Server
from shared.auth.policy import Rules
from shared.program.process import Options, set_limits
from shared.program.rules import rule_extensions
from shared.program.run import own_prefix
from shared.program.settings.options import FileValue, Words, read_options
from shared.program.settings.tables import TABLES
from shared.server.extension import Extension
from shared.server.server import NoSettings

from .configuration import Configuration
from .selection import Joining
from .third_party_server import foreign_server

DEFAULTS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    f"{PACKAGE}.filesystem": ("the current directory, read-only", {"roots": ["."]}),
    f"{PACKAGE}.sqlite": ("a sample database, deleted at exit", {"demo": True}),
    f"{PACKAGE}.fetch": ("the public web", {}),
    f"{PACKAGE}.prompts": ("the starter library", {}),
}
"""The settings of each server without a configuration, by module: a description, and the values."""


_DEFAULTS_HELP = "; ".join(f"{module.rpartition('.')[2]}: {words}" for module, (words, _) in DEFAULTS.items())
EPILOG = (
    f"Without --config: {_DEFAULTS_HELP}. Each option can also be set by the environment variable in brackets, and "
    "so can those of the servers; see their --help."
)
"""The last part of `--help` of the programs that run them."""
_SETTINGS_HELP = (
    "with this command, a server takes its directories and databases from variables, such as "
    "MCP_FILESYSTEM_ROOTS=DIR, or from the --config file"
)


class ChosenServer(NamedTuple):
    """A server to run."""

    name: str
    app: Server[Any]
    settings: BaseModel
    exposed: str | None
    """A secret in the configuration that others on this machine can read."""
    budget: Mapping[str, Any] = {}
    """The limits of one call that override the limits in the options."""
    rules: Rules = Rules()
    """The permissions by principal and scope."""
    is_foreign: bool = False
    """True for a third-party server."""
    defaults_note: str = ""
    """A note on its settings without a configuration, if they open anything on this machine."""

    def extensions(self, options: Options) -> list[Extension[Any]]:
        """Return the extensions that enforce its rules."""
        return rule_extensions(self.rules, self.name, tokens_have_scopes=options.tokens_have_scopes)

    def apply_limits(self, options: Options) -> None:
        """Apply the limits of the operator."""
        set_limits(self.app, options)
        self.app.budget = replace(self.app.budget, **self.budget)


class Choice(NamedTuple):
    """The servers that a program runs."""

    servers: Sequence[ChosenServer]
    joined: Sequence[str] = ()
    """The names of those that are joined as one."""
    prefix: Literal["auto", "always"] = "auto"


def choose(
    names: Sequence[str], catalog: Catalog, configuration: Configuration, *, is_local: bool = True
) -> list[ChosenServer]:
    """Return the servers called `names`, or all configured ones, or those that are useful without a configuration.

    A server that can't be loaded is included, and fails when it is started, so that the others can run.
    Without `is_local`, other machines can reach them, and the current directory is not a default. Raises ValueError
    with a one-line message for an invalid name or setting.
    """
    foreign = configuration.foreign()
    for name in foreign.keys() & {entry.name for entry in catalog.servers}:
        reason = "this is the name of a server in the catalog; a server with a command or a url needs another name"
        raise ValueError(f"{configuration.path}: servers.{name}: {reason}")
    names = _names(names, catalog, configuration)
    entries = {name: _entry(name, catalog, configuration) for name in names if name not in foreign}
    modules = [entry.module for entry in entries.values()]
    for module in modules:
        if modules.count(module) > 1:
            raise ValueError(f"{module} can be served only once, but has several names in the catalog")
    chosen: list[ChosenServer] = []
    for name in names:
        if name in entries:
            chosen.append(_choose_server(entries[name], configuration, is_local=is_local))
            continue
        server, settings = foreign[name], foreign[name].settings
        limits = {"result_bytes": settings.max_result, "seconds": settings.max_seconds}
        budget = {limit: value for limit, value in limits.items() if value is not None}
        rules = configuration.rules(name, server.file_values, None)
        app = foreign_server(server)
        chosen.append(ChosenServer(name, app, NoSettings(), server.exposed, budget, rules, is_foreign=True))
    return chosen


def choose_joined(
    names: Sequence[str], catalog: Catalog, configuration: Configuration, words: Words, *, is_local: bool = True
) -> Choice:
    """Return the servers of `choose`, and which of them are joined, according to the command line `words` or else the
    configuration. Raises ValueError with a one-line message for invalid input."""
    servers = choose(names, catalog, configuration, is_local=is_local)
    joining_words = {name: words[name] for name in Joining.model_fields if name in words}
    joining = read_options(Joining, joining_words, file=configuration.joining)
    served = [server.name for server in servers]
    return Choice(servers, joining.members(served, list(configuration.servers or served)), joining.prefix)


def foreign_names(servers: Sequence[ChosenServer]) -> list[str]:
    """Return the names of the third-party servers."""
    return [server.name for server in servers if server.is_foreign]


def _names(names: Sequence[str], catalog: Catalog, configuration: Configuration) -> list[str]:
    configured = configuration.servers
    if configured is None:
        useful = [entry.name for entry in catalog.servers if entry.module in DEFAULTS]
        return list(dict.fromkeys(names)) or useful or [entry.name for entry in catalog.servers]
    if not configured:
        raise ValueError(f"{configuration.path}: servers: name at least one")
    for name in names:
        if name not in configured:
            existing = ", ".join(configured)
            raise ValueError(f"{configuration.path}: there is no server {name!r} in it; available: {existing}")
    return [name for name in configured if name in names or not names]


def _entry(name: str, catalog: Catalog, configuration: Configuration) -> Entry:
    try:
        return catalog.entry(name)
    except ValueError as error:
        if configuration.servers is None:
            if "/" in name or os.sep in name or name in (".", "~"):
                reason = f"{name!r} is not the name of a server; {_SETTINGS_HELP}"
                raise ValueError(reason) from None
            raise
        reason = f"{error}; a third-party server needs a command or a url"
        raise ValueError(f"{configuration.path}: servers.{name}: {reason}") from None


def _choose_server(entry: Entry, configuration: Configuration, *, is_local: bool) -> ChosenServer:
    """Return the server of an entry, with its settings. One that can't be loaded is replaced by one that fails when
    it is started. Raises ValueError for an invalid setting, and if the module has no server."""
    # In a thread, because there any exception is returned as a value.
    with ThreadPoolExecutor(1) as thread:
        loading = thread.submit(import_module, f"{entry.module}.server")
        failure = loading.exception()
    if failure is not None:
        failing = Server[None](Implementation(name=entry.name, version=entry.version))

        @failing.lifespan
        async def fail(_opening: object) -> AsyncIterator[None]:
            if failure is not None:
                raise failure
            yield

        # Its settings can't be checked.
        return ChosenServer(entry.name, failing, NoSettings(), None)
    app = getattr(loading.result(), "app", None)
    if not isinstance(app, Server):
        raise ValueError(f"{entry.name}: {entry.module}.server has no server named app")
    fields = {**app.settings_model.model_fields, **TABLES}
    file_values = configuration.settings(entry.name, fields)
    defaults_note = ""
    if not configuration.servers:
        file_values, defaults_note = _defaults(entry, app, is_local=is_local)
    try:
        settings = read_options(app.settings_model, {}, os.environ, own_prefix(app), file_values)
        rules = configuration.rules(entry.name, file_values, settings)
    except ValueError as error:
        has_path = str(error).startswith(f"{configuration.path}: ")
        raise ValueError(str(error) if has_path else f"{entry.name}: {error}") from None
    exposed = configuration.exposed(file_values, fields)
    return ChosenServer(entry.name, app, settings, exposed, rules=rules, defaults_note=defaults_note)


def _defaults(entry: Entry, app: Server[Any], *, is_local: bool) -> tuple[dict[str, FileValue], str]:
    """Return the settings of a server without a configuration, and a note on them. Raises ValueError if the server
    would open the current directory to other machines, since that may be any directory."""
    words, values = DEFAULTS.get(entry.module, ("", {}))
    file_values = {name: FileValue(value, f"the default of {name}") for name, value in values.items()}
    variable = f"{own_prefix(app)}_ROOTS".upper()
    if "roots" not in values or os.environ.get(variable):
        return file_values, ""
    if not is_local:
        reason = f"specify its directories in {variable}, or in the --config file"
        raise ValueError(f"{entry.name}: other machines can reach it, and no directory was chosen: {reason}")
    return file_values, f"{entry.name} serves {words}: {Path.cwd()}; set {variable} to serve others"
