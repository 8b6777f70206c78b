"""`python -m servers config`: what is pasted into the configuration of a client; and how all commands that tell a
client of a server are told themselves.
"""

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
from shared.program.settings.command_line import CommandLine, Spelling, read_command_line
from shared.program.settings.options import is_secret, variable_of

from ..host_entries import BUNDLE, JOINED, Elsewhere, joined, name_of, reached
from ..hosts.checking import check
from ..hosts.clients import CLIENTS, SCOPES, Client, client_named
from ..hosts.configured import Configured, write_snippet
from ..hosts.launching import launch_command, launch_environment
from ..terminal.command_parser import CommandParser

_VARIABLE = re.compile(r"[A-Za-z_]\w*")
# Claude Code refuses any other.
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def main(argv: Sequence[str]) -> int:
    """Prints the snippet, and on stderr where it belongs; the exit code."""
    parser = HostParser("config", "Print what is pasted into the configuration of a client.")
    parser.add_entry()
    parser.add_server()
    options, arguments = parser.read(argv)
    try:
        found = find_wanted(options, arguments)
        # The files of all clients are UTF-8, so a pipe that is not gets ASCII.
        ascii_only = codecs.lookup(sys.stdout.encoding).name != "utf-8"
        text = write_snippet(found.client, [found.server], ascii_only)
        place = found.client.file(this_machine(), "user", Path.cwd())
    except ValueError as error:
        exit_with_error(parser.prog, str(error))
    print(text)  # noqa: T201 - it is the output
    print(f"goes into {place}; then {found.client.renewal}", file=sys.stderr)  # noqa: T201 - for people
    return 0


class Wanted(NamedTuple):
    """A server, and the client that shall know it."""

    client: Client
    entry: Entry
    server: Configured
    words: tuple[str, ...]
    """The arguments of the server itself, without those of what starts it."""
    secrets: frozenset[str]
    """What of it nobody should see."""


class HostParser(CommandParser):
    """The parser of a command about one entry of one client; what is no option of the command is the server's."""

    def __init__(self, name: str, description: str) -> None:
        super().__init__(name, description)
        self.add_argument(
            "servers", metavar="NAME", nargs="*", help="server, by its name in the catalog, or your own FILE.py"
        )
        names = [client.name for client in CLIENTS]
        self.add_argument("--client", choices=names, required=True, metavar="CLIENT", help=f"{', '.join(names)}")
        self.add_catalog()

    def add_entry(self) -> None:
        """Takes `--name`, under which the server stands in the client."""
        self.add_argument("--name", metavar="ENTRY", help="name the client knows it by (default: NAME)")

    def add_scope(self) -> None:
        """Takes `--scope`."""
        self.add_argument(
            "--scope", choices=SCOPES, default="user", help="for the user, or for the project in this directory"
        )

    def add_server(self) -> None:
        """Takes what an entry consists of."""
        self.usage = (
            f"{self.prog} NAME [ARGUMENT ...] --client CLIENT\n       [OPTION ...] [-- ARGUMENT ...]\n"
            f"       {self.prog} --url URL --client CLIENT [OPTION ...]\n"
            f"       {self.prog} --join NAME ... --client CLIENT [OPTION ...]"
        )
        self.epilog = (
            "What stands after `--` goes to the server, also where this command has an option of that name. Without "
            "NAME, --url is that of any server, and a client that takes no URLs starts `connect`, which reaches it; "
            "--token-file FILE has a token sent."
        )
        text = "variable the client sets for the server"
        self.add_argument("--env", metavar="NAME=VALUE", help=text, action="append", default=[])
        self.add_argument("--url", metavar="URL", help="the server runs already, and is reached there over HTTP")
        text = "variable of the client's environment with the token for --url"
        self.add_argument("--token-variable", metavar="NAME", help=text)
        text = "have the client start `connect`, even if it takes URLs: for servers whose version it does not speak"
        self.add_argument("--connect", action="store_true", help=text)
        self.add_argument("--join", action="store_true", help="have all servers that are named in one entry, as one")
        text = "file of settings for --join, as `serve` reads it"
        self.add_argument("--config", type=Path, metavar="FILE", help=text)
        self.set_defaults(token_file=None)

    def add_switch(self, option: str, text: str) -> None:
        """Takes an option without a value."""
        self.add_argument(option, action="store_true", help=text)

    def read(self, argv: Sequence[str]) -> tuple[Namespace, list[str]]:
        """The options of the command, and the arguments of the server, in their order."""
        end = argv.index("--") if "--" in argv else len(argv)
        line = self._line(argv[:end])
        is_joined = any(one.name == "join" for one in line.given)
        names = [one.word for one in line.given if one.name is None][: None if is_joined else 1]
        named = [number for one in line.given if one.name is not None for number in range(one.first, one.word + 1)]
        ours = {*named, *(fault.word for fault in line.faults if fault.reason)}
        theirs = [word for number, word in enumerate(argv) if number not in {*ours, *names} and number != end]
        options = self.parse_args([argv[number] for number in (*names, *sorted(ours))])
        if not names and getattr(options, "url", None) is None and not is_joined:
            self.error("the following arguments are required: NAME")
        return options, theirs

    def _line(self, words: Sequence[str]) -> CommandLine:
        """The words, where an option that is not ours may have the next one as its value."""
        line = read_command_line(words, self._spellings())
        if not any(one.name == "url" for one in line.given):
            return line
        # An option of servers, which with a NAME is that one's.
        own = Spelling("token_file")
        elsewhere = read_command_line(words, {**self._spellings(), "--token-file": own})
        if any(one.name is None for one in elsewhere.given):
            return line
        self.add_argument("--token-file", type=Path)
        return elsewhere

    def _spellings(self) -> dict[str, Spelling]:
        return {
            spelling: Spelling(action.dest, "1" if action.nargs == 0 else None)
            for action in self._actions
            for spelling in action.option_strings
        }


def find_wanted(options: Namespace, arguments: Sequence[str]) -> Wanted:
    """What shall stand in the client, checked. Raises ValueError, in one line, for what can't work."""
    is_bundled = options.join or not options.servers
    if is_bundled and not options.join:
        check_url(options.url)
    is_file = not is_bundled and options.servers[0].endswith(".py")
    default = (JOINED if options.join else name_of(options.url)) if is_bundled else options.servers[0]
    if is_file:
        default = Path(options.servers[0]).stem
    name = options.name or default
    if not _NAME.fullmatch(name):
        raise ValueError("--name takes letters, digits, - and _ (64 at most), as all clients do")
    return (_of_bundle if is_bundled else _of_file if is_file else _of_catalog)(options, arguments, name)


def _of_bundle(options: Namespace, arguments: Sequence[str], name: str) -> Wanted:
    """An entry that is no server of the catalog."""
    client, environment = client_named(options.client), dict(map(_variable, options.env))
    if arguments:
        raise ValueError(f"it takes no {arguments[0]!r}: arguments need a server that is named")
    if options.join and options.url is not None:
        raise ValueError("--join is for servers that are started, and --url for one that runs already")
    hidden = {value for variable, value in environment.items() if variable not in _known_variables(())}
    if options.join:
        server = joined(name, options.servers, options.config, load_catalog(options.catalog), environment)
        return Wanted(client, BUNDLE, server, (), frozenset(hidden))
    there = Elsewhere(options.url, options.token_file, _token_variable(options), options.connect)
    server = reached(client, name, there, environment)
    return Wanted(client, BUNDLE, server, (), _secrets_of(options.url) | hidden)


def _of_file(options: Namespace, arguments: Sequence[str], name: str) -> Wanted:
    """A server of one's own in one Python file, which this Python starts."""
    file, environment = Path(options.servers[0]).absolute(), dict(map(_variable, options.env))
    if not file.is_file():
        raise ValueError(f"there is no file {file}")
    if options.url is not None or options.config is not None or options.connect or options.token_variable is not None:
        raise ValueError("a file is started: give it without --url, --config, --connect and --token-variable")
    server = Configured(name, sys.executable, (str(file), *arguments), environment)
    return Wanted(client_named(options.client), BUNDLE, server, (), frozenset(environment.values()))


def _of_catalog(options: Namespace, arguments: Sequence[str], name: str) -> Wanted:
    client, entry = client_named(options.client), load_catalog(options.catalog).entry(options.servers[0])
    if options.connect or options.config is not None:
        raise ValueError("--connect goes with a --url without NAME, and --config with --join")
    if options.url is not None:
        if "http" not in entry.transports:
            raise ValueError(f"{entry.name} is not reached over HTTP: leave out --url")
        if arguments or options.env:
            raise ValueError("a server with a --url is started elsewhere: give its arguments and variables there")
        parts = urlsplit(options.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("--url takes the URL of an endpoint, such as http://127.0.0.1:8000/mcp")
        there = Configured(name, url=options.url, token_variable=_token_variable(options))
        return Wanted(client, entry, there, (), _secrets_of(options.url))
    if options.token_variable is not None:
        raise ValueError("--token-variable goes with --url: a server that is started needs no token")
    if "stdio" not in entry.transports:
        raise ValueError(f"{entry.name} is reached over HTTP only: give its --url")
    environment = dict(_variable(text) for text in options.env)
    checked = check(entry, arguments, environment, bundled=options.catalog == CATALOG)
    command, *words = launch_command(entry, checked.words)
    try:
        "".join((command, *words, *environment.values())).encode()
    except UnicodeEncodeError:
        raise ValueError("a path that is not UTF-8 can't be written into the file of a client") from None
    server = Configured(name, command, tuple(words), {**launch_environment(), **environment})
    known = _known_variables(entry.arguments)
    return Wanted(
        client,
        entry,
        server,
        checked.words,
        checked.secrets | frozenset(value for name, value in environment.items() if name not in known),
    )


def _secrets_of(url: str) -> frozenset[str]:
    """The URL itself where it has a password or a key in it."""
    parts = urlsplit(url)
    return frozenset([url] if parts.query or parts.username or parts.password else [])


def _known_variables(arguments: Iterable[Argument]) -> set[str | None]:
    known = {variable_of(name, "MCP") for name, field in Options.model_fields.items() if not is_secret(field)}
    return {*known, *(argument.environment for argument in arguments if not argument.secret)}


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not _VARIABLE.fullmatch(name):
        raise ValueError("--env takes NAME=VALUE")
    return name, value


def _token_variable(options: Namespace) -> str | None:
    variable: str | None = options.token_variable
    if variable is not None and not _VARIABLE.fullmatch(variable):
        raise ValueError("--token-variable takes the name of a variable, not the token")
    return variable
