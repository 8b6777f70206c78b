"""Chooses the servers to run, with their settings from a configuration file, or else with useful defaults."""

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
from shared.program.run import variable_prefix
from shared.program.settings.options import FileValue, LineValues, read_options
from shared.program.settings.tables import TABLES
from shared.server.extension import Extension
from shared.server.server import NoSettings

from .bridge_server import make_bridge_server
from .configuration import Configuration
from .selection import JoinOptions

DEFAULTS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    f"{PACKAGE}.filesystem": ("the current directory, read-only", {"roots": ["."]}),
    f"{PACKAGE}.sqlite": ("a sample database, deleted at exit", {"demo": True}),
    f"{PACKAGE}.fetch": ("the public web", {}),
    f"{PACKAGE}.prompts": ("the starter library", {}),
}
"""The settings of each server without a configuration, by module: a description for `--help`, and the values."""


_DEFAULTS_HELP = "; ".join(f"{module.rpartition('.')[2]}: {words}" for module, (words, _) in DEFAULTS.items())
EPILOG = (
    f"Without --config: {_DEFAULTS_HELP}. Each option can also be set by the environment variable in brackets, and "
    "so can those of the servers; see their --help."
)
"""The end of `--help` of the programs that run these servers."""
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
    """The location of a secret in the configuration that other users of this machine can read, if any."""
    budget: Mapping[str, Any] = {}
    """Limits of one call, by field of `CallLimits`, that override those in the options."""
    rules: Rules = Rules()
    """The permissions by principal and scope."""
    is_third_party: bool = False
    """True for a third-party server."""
    defaults_note: str = ""
    """A note for the user if a default setting gives clients access to something on this machine."""

    def extensions(self, options: Options) -> list[Extension[Any]]:
        """Return the extensions that enforce its rules."""
        return rule_extensions(self.rules, self.name, tokens_have_scopes=options.tokens_have_scopes)

    def apply_limits(self, options: Options) -> None:
        """Set the limits of the server: those in `options`, overridden by `budget`."""
        set_limits(self.app, options)
        self.app.budget = replace(self.app.budget, **self.budget)


class Choice(NamedTuple):
    """The servers that a program runs."""

    servers: Sequence[ChosenServer]
    joined: Sequence[str] = ()
    """The names of the servers that are joined as one."""
    prefix: Literal["auto", "always"] = "auto"


def choose_servers(
    names: Sequence[str], catalog: Catalog, configuration: Configuration, *, is_local: bool = True
) -> list[ChosenServer]:
    """Return the servers called `names`. If that is empty, return all configured ones, or, without a configuration,
    those with defaults.

    A server that can't be loaded is included, and fails when it is started, so that the others can run. If `is_local`
    is false, other machines can reach the servers, so the current directory is not served by default. Raises
    ValueError with a one-line message for an invalid name or setting.
    """
    third_party = configuration.third_party_servers()
    for name in third_party.keys() & {entry.name for entry in catalog.servers}:
        reason = "this is the name of a server in the catalog; a server with a command or a url needs another name"
        raise ValueError(f"{configuration.path}: servers.{name}: {reason}")
    names = _names_to_run(names, catalog, configuration)
    entries = {name: _catalog_entry(name, catalog, configuration) for name in names if name not in third_party}
    modules = [entry.module for entry in entries.values()]
    for module in modules:
        if modules.count(module) > 1:
            raise ValueError(f"{module} can be served only once, but has several names in the catalog")
    chosen: list[ChosenServer] = []
    for name in names:
        if name in entries:
            chosen.append(_choose_server(entries[name], configuration, is_local=is_local))
            continue
        server, settings = third_party[name], third_party[name].settings
        limits = {"result_bytes": settings.max_result, "seconds": settings.max_seconds}
        budget = {limit: value for limit, value in limits.items() if value is not None}
        rules = configuration.rules(name, server.file_values, None)
        app = make_bridge_server(server)
        chosen.append(ChosenServer(name, app, NoSettings(), server.exposed, budget, rules, is_third_party=True))
    return chosen


def choose_joined(
    names: Sequence[str], catalog: Catalog, configuration: Configuration, words: LineValues, *, is_local: bool = True
) -> Choice:
    """Return the servers of `choose_servers`, and which of them are joined: according to `words` of the command line,
    else according to the configuration. Raises ValueError with a one-line message for invalid input."""
    servers = choose_servers(names, catalog, configuration, is_local=is_local)
    join_words = {name: words[name] for name in JoinOptions.model_fields if name in words}
    join_options = read_options(JoinOptions, join_words, file=configuration.join_options)
    served = [server.name for server in servers]
    return Choice(servers, join_options.members(served, list(configuration.servers or served)), join_options.prefix)


def third_party_names(servers: Sequence[ChosenServer]) -> list[str]:
    """Return the names of those that are third-party servers."""
    return [server.name for server in servers if server.is_third_party]


def _names_to_run(names: Sequence[str], catalog: Catalog, configuration: Configuration) -> list[str]:
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


def _catalog_entry(name: str, catalog: Catalog, configuration: Configuration) -> Entry:
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
    """Return the server of an entry of the catalog, with its settings. If its module can't be imported, return a
    server that fails when it is started. Raises ValueError for an invalid setting, and if the module has no
    server."""
    # A future catches any exception of the import, SystemExit included.
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

        # The settings of a server whose module is missing can't be checked.
        return ChosenServer(entry.name, failing, NoSettings(), None)
    app = getattr(loading.result(), "app", None)
    if not isinstance(app, Server):
        raise ValueError(f"{entry.name}: {entry.module}.server has no server named app")
    fields = {**app.settings_model.model_fields, **TABLES}
    file_values = configuration.settings(entry.name, fields)
    defaults_note = ""
    if not configuration.servers:
        file_values, defaults_note = _default_settings(entry, app, is_local=is_local)
    try:
        settings = read_options(app.settings_model, {}, os.environ, variable_prefix(app), file_values)
        rules = configuration.rules(entry.name, file_values, settings)
    except ValueError as error:
        has_path = str(error).startswith(f"{configuration.path}: ")
        raise ValueError(str(error) if has_path else f"{entry.name}: {error}") from None
    exposed = configuration.exposed(file_values, fields)
    return ChosenServer(entry.name, app, settings, exposed, rules=rules, defaults_note=defaults_note)


def _default_settings(entry: Entry, app: Server[Any], *, is_local: bool) -> tuple[dict[str, FileValue], str]:
    """Return the default settings of a server, and a note for the user if they give access to the current directory.
    Raises ValueError if other machines would get that access, since the current directory may be any directory."""
    words, values = DEFAULTS.get(entry.module, ("", {}))
    file_values = {name: FileValue(value, f"the default of {name}") for name, value in values.items()}
    variable = f"{variable_prefix(app)}_ROOTS".upper()
    if "roots" not in values or os.environ.get(variable):
        return file_values, ""
    if not is_local:
        reason = f"specify its directories in {variable}, or in the --config file"
        raise ValueError(f"{entry.name}: other machines can reach it, and no directory was chosen: {reason}")
    return file_values, f"{entry.name} serves {words}: {Path.cwd()}; set {variable} to serve others"
