"""`python -m servers config`: prints the snippet for a client's configuration. Also contains the options that all
commands share which add a server to a client."""

import codecs
import re
import sys
from argparse import Namespace
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from servers.catalog import CATALOG, Argument, Entry, load_catalog
from servers.common.machine import this_machine
from servers.gateway.proxy.urls import check_url
from shared.program.messages import exit_with_error
from shared.program.run import Options
from shared.program.settings.command_line import Spelling, read_command_line
from shared.program.settings.options import is_secret, variable_of

from ..host_entries import BUNDLE, JOINED, RemoteServer, joined_entry, name_of, remote_entry
from ..hosts.checking import check
from ..hosts.clients import CLIENTS, SCOPES, Client, get_client
from ..hosts.configured import ConfiguredServer, write_snippet
from ..hosts.launching import launch_command, launch_environment
from ..terminal.command_parser import VARIABLE_NAME, CommandParser

# Claude Code accepts no other characters. Models accept tool names of up to 64 characters. Clients call tools
# `mcp__NAME__TOOL`, and the longest name of a tool in the bundle has 25, except in the test server `everything`.
_NAME = re.compile(r"[A-Za-z0-9_-]{1,32}")


def main(argv: Sequence[str]) -> int:
    """Print the snippet to stdout, and the file where it belongs to stderr; return the exit code."""
    parser = HostParser("config", "Print the entry to paste into a client's configuration.")
    parser.add_entry()
    parser.add_server()
    options, arguments = parser.read(argv)
    try:
        choice = choose_entry(options, arguments)
        # The files of all clients are UTF-8. If stdout has another encoding, print ASCII, which is valid in both.
        ascii_only = codecs.lookup(sys.stdout.encoding).name != "utf-8"
        text = write_snippet(choice.client, [choice.server], ascii_only)
        path = choice.client.file(this_machine(), "user", Path.cwd())
    except ValueError as error:
        exit_with_error(parser.prog, str(error))
    print(text)  # noqa: T201 - it is the output
    print(f"add this to {path}; then {choice.client.reload_action}", file=sys.stderr)  # noqa: T201 - for people
    return 0


class EntryChoice(NamedTuple):
    """The entry that the user has described, and its client."""

    client: Client
    entry: Entry
    server: ConfiguredServer
    words: tuple[str, ...]
    """The arguments of the server itself, without the arguments of the command that starts it."""
    secrets: frozenset[str]
    """The values that must not be displayed."""


class HostParser(CommandParser):
    """The parser of a command about one entry of one client. Arguments that are not options of the command are
    arguments of the server."""

    def __init__(self, name: str, description: str) -> None:
        super().__init__(name, description)
        self.add_argument(
            "servers", metavar="NAME", nargs="*", help="server, by its name in the catalog, or your own FILE.py"
        )
        names = [client.name for client in CLIENTS]
        self.add_argument("--client", choices=names, required=True, metavar="CLIENT", help=f"{', '.join(names)}")
        self.add_catalog()

    def add_entry(self) -> None:
        """Add `--name`, the name of the entry in the client."""
        self.add_argument("--name", metavar="ENTRY", help="name of the entry in the client (default: NAME)")

    def add_scope(self) -> None:
        """Add `--scope`."""
        self.add_argument(
            "--scope",
            choices=SCOPES,
            default="user",
            help="the user's configuration, or that of the project in this directory",
        )

    def add_server(self) -> None:
        """Add the options that describe an entry."""
        self.usage = (
            f"{self.prog} NAME [ARGUMENT ...] --client CLIENT\n       [OPTION ...] [-- ARGUMENT ...]\n"
            f"       {self.prog} --url URL --client CLIENT [OPTION ...]\n"
            f"       {self.prog} --join NAME ... --client CLIENT [OPTION ...]"
        )
        self.epilog = (
            "Arguments after `--` go to the server, even if this command has an option of that name. Without "
            "NAME, --url adds any server; a client that accepts no URLs starts `connect` instead, which sends the "
            "token from --token-file FILE."
        )
        text = "environment variable that the client sets for the server"
        self.add_argument("--env", metavar="NAME=VALUE", help=text, action="append", default=[])
        self.add_argument("--url", metavar="URL", help="URL of a server that is already running")
        text = "environment variable of the client that contains the token for --url"
        self.add_argument("--token-variable", metavar="NAME", help=text)
        text = "make the client start `connect`, even if it accepts URLs, for a protocol version it does not support"
        self.add_argument("--connect", action="store_true", help=text)
        self.add_argument("--join", action="store_true", help="add all the named servers as one entry")
        text = "settings file for --join, as for `serve`"
        self.add_argument("--config", type=Path, metavar="FILE", help=text)
        self.set_defaults(token_file=None)

    def add_switch(self, option: str, text: str) -> None:
        """Add an option without a value."""
        self.add_argument(option, action="store_true", help=text)

    def read(self, argv: Sequence[str]) -> tuple[Namespace, list[str]]:
        """Return the options of the command, and the arguments of the server in order."""
        end = argv.index("--") if "--" in argv else len(argv)
        spellings = {
            spelling: Spelling(action.dest, "1" if action.nargs == 0 else None)
            for action in self._actions
            for spelling in action.option_strings
        }
        line = read_command_line(argv[:end], spellings)
        if any(item.name == "url" for item in line.values):
            # With --url, `--token-file` is an option of this command; without, an option of the server. It may also
            # be the value of an option that the command does not know.
            with_token = read_command_line(argv[:end], {**spellings, "--token-file": Spelling("token_file")})
            if all(item.name is not None for item in with_token.values):
                self.add_argument("--token-file", type=Path)
                line = with_token
        is_joined = any(item.name == "join" for item in line.values)
        names = [item.word for item in line.values if item.name is None][: None if is_joined else 1]
        named = [
            number for item in line.values if item.name is not None for number in range(item.first, item.word + 1)
        ]
        own_words = {*named, *(fault.word for fault in line.errors if fault.reason)}
        server_words = [
            word for number, word in enumerate(argv) if number not in {*own_words, *names} and number != end
        ]
        options = self.parse_args([argv[number] for number in (*names, *sorted(own_words))])
        if not names and getattr(options, "url", None) is None and not is_joined:
            self.error("the following arguments are required: NAME")
        return options, server_words


def choose_entry(options: Namespace, arguments: Sequence[str]) -> EntryChoice:
    """Return the entry that the options describe. Raises ValueError with a one-line message for options that can't
    work together."""
    is_bundle_entry = options.join or not options.servers
    if is_bundle_entry and not options.join:
        check_url(options.url)
    is_file = not is_bundle_entry and options.servers[0].endswith(".py")
    default = (JOINED if options.join else name_of(options.url)) if is_bundle_entry else options.servers[0]
    if is_file:
        default = Path(options.servers[0]).stem
    name = options.name or default
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"the name {name!r} must consist of 1 to 32 letters, digits, hyphens or underscores, so that every "
            "client accepts it: choose another with --name"
        )
    if not is_file:
        return (_bundle_choice if is_bundle_entry else _catalog_choice)(options, arguments, name)
    # A user's own server in one Python file, which this Python starts.
    file, environment = Path(options.servers[0]).absolute(), dict(map(_variable, options.env))
    if not file.is_file():
        raise ValueError(f"there is no file {file}")
    if options.url is not None or options.config is not None or options.connect or options.token_variable is not None:
        raise ValueError("--url, --config, --connect and --token-variable can't be used with FILE.py")
    server = ConfiguredServer(name, sys.executable, (str(file), *arguments), environment)
    return EntryChoice(get_client(options.client), BUNDLE, server, (), frozenset(environment.values()))


def _bundle_choice(options: Namespace, arguments: Sequence[str], name: str) -> EntryChoice:
    """Return the entry of a remote server, or of several joined servers."""
    client, environment = get_client(options.client), dict(map(_variable, options.env))
    if arguments:
        raise ValueError(f"{arguments[0]!r} is not allowed: --join, and --url without NAME, take no arguments")
    if options.join and options.url is not None:
        raise ValueError("--join is for servers that the client starts, --url for one that is already running")
    hidden = {value for variable, value in environment.items() if variable not in _known_variables(())}
    if options.join:
        server = joined_entry(name, options.servers, options.config, load_catalog(options.catalog), environment)
        return EntryChoice(client, BUNDLE, server, (), frozenset(hidden))
    remote = RemoteServer(options.url, options.token_file, _token_variable(options), options.connect)
    server = remote_entry(client, name, remote, environment)
    return EntryChoice(client, BUNDLE, server, (), _secrets_of(options.url) | hidden)


def _catalog_choice(options: Namespace, arguments: Sequence[str], name: str) -> EntryChoice:
    client, entry = get_client(options.client), load_catalog(options.catalog).entry(options.servers[0])
    if options.connect or options.config is not None:
        raise ValueError("--connect needs --url without NAME, and --config needs --join")
    if options.url is not None:
        if "http" not in entry.transports:
            raise ValueError(f"{entry.name} can't be reached over HTTP: omit --url")
        if arguments or options.env:
            raise ValueError("a server with a --url is started elsewhere: set its arguments and variables there")
        parts = urlsplit(options.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("--url takes the URL of an endpoint, such as http://127.0.0.1:8000/mcp")
        remote = ConfiguredServer(name, url=options.url, token_variable=_token_variable(options))
        return EntryChoice(client, entry, remote, (), _secrets_of(options.url))
    if options.token_variable is not None:
        raise ValueError("--token-variable needs --url: a server that the client starts needs no token")
    if "stdio" not in entry.transports:
        raise ValueError(f"{entry.name} can be reached only over HTTP: pass its --url")
    environment = dict(_variable(text) for text in options.env)
    checked = check(entry, arguments, environment, bundled=options.catalog == CATALOG)
    command, *words = launch_command(entry, checked.words)
    try:
        "".join((command, *words, *environment.values())).encode()
    except UnicodeEncodeError:
        raise ValueError("a path that is not UTF-8 can't be written to a client's file") from None
    server = ConfiguredServer(name, command, tuple(words), {**launch_environment(), **environment})
    public = _known_variables(entry.arguments)
    return EntryChoice(
        client,
        entry,
        server,
        checked.words,
        checked.secrets | frozenset(value for name, value in environment.items() if name not in public),
    )


def _secrets_of(url: str) -> frozenset[str]:
    """Return `url` as a secret if it contains credentials or a query, which may be a key; else nothing."""
    parts = urlsplit(url)
    return frozenset([url] if parts.query or parts.username or parts.password else [])


def _known_variables(arguments: Iterable[Argument]) -> set[str | None]:
    common = {variable_of(name, "MCP") for name, field in Options.model_fields.items() if not is_secret(field)}
    return {*common, *(argument.environment for argument in arguments if not argument.secret)}


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not VARIABLE_NAME.fullmatch(name):
        raise ValueError("--env takes NAME=VALUE")
    return name, value


def _token_variable(options: Namespace) -> str | None:
    variable: str | None = options.token_variable
    if variable is not None and not VARIABLE_NAME.fullmatch(variable):
        raise ValueError("--token-variable takes the name of a variable, not the token")
    return variable
