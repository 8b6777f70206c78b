"""`python -m servers token`: creates, lists and revokes tokens in the file that servers read with `--tokens-file`."""

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from servers.catalog import load_catalog
from servers.common.machine import state_folder, this_machine
from shared.auth.policy import OPERATOR, parse_scopes
from shared.program.line_parser import LineParser
from shared.program.messages import exit_with_error
from shared.text import nearest, plain

from ..terminal.command_parser import CommandParser
from ..terminal.output import console, print_json, table
from ..tokens import EditableTokens

VARIABLE = "MCP_TOKENS_FILE"
"""The environment variable for the option `--tokens-file` of every server."""
_MAX_DAYS = 36_500


def main(argv: Sequence[str]) -> int:
    """Create, list or revoke tokens; return the exit code."""
    parser = CommandParser(
        "token",
        "Create, list and revoke the tokens of people and programs. A token is shown once: the file stores only its "
        "digest. Servers notice changes to their tokens file within a second.",
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION", parser_class=LineParser)
    new = actions.add_parser("new", help="create a token and print it", description="Create a token and print it.")
    new.add_argument("name", metavar="NAME", help="name of the token's owner, for settings, limits and the audit log")
    text = "scope that the token grants, such as filesystem:read; may be repeated (default: everything)"
    new.add_argument("--scope", action="append", metavar="SCOPE", help=text)
    new.add_argument("--custom-scopes", action="store_true", help="accept scopes that no server in the catalog uses")
    new.add_argument("--expires", type=int, metavar="DAYS", help="days until the token expires (default: never)")
    text = "list the names of the tokens"
    shown = actions.add_parser("list", help=text, description="List the names, scopes and expiry of the tokens.")
    shown.add_argument("--json", action="store_true", help="print JSON")
    text = "revoke a token"
    revoked = actions.add_parser("revoke", help=text, description="Revoke a token.")
    revoked.add_argument("name", metavar="NAME", help="name of the token's owner")
    for action_parser in (new, shown, revoked):
        text = f"file with the digests (default: {VARIABLE}, or tokens.toml in your state directory)"
        action_parser.add_argument("--tokens-file", type=Path, metavar="FILE", help=text)
    args = parser.parse_args(argv)
    try:
        named = os.environ.get(VARIABLE)
        usual = Path(named) if named else Path(state_folder(this_machine())) / "tokens.toml"
        tokens = EditableTokens(args.tokens_file or usual)
        if args.action == "new":
            scopes = None if args.scope is None else sorted(parse_scopes(" ".join(args.scope)))
            if not args.custom_scopes:
                _check_scopes(scopes or ())
            if args.expires is not None and not 1 <= args.expires <= _MAX_DAYS:
                raise ValueError(f"--expires must be from 1 to {_MAX_DAYS} days")
            print(tokens.create(args.name, scopes, args.expires))  # noqa: T201 - it is the output
            grants = "it grants everything" if scopes is None else f"it grants {' '.join(scopes)}"
            lasts = "never expires" if args.expires is None else f"expires in {args.expires} days"
            note = f"{grants} and {lasts}; it is shown only once; servers accept it with --tokens-file {tokens.path}"
            print(plain(note), file=sys.stderr)  # noqa: T201 - for people
        elif args.action == "list":
            _list(tokens, as_json=args.json)
        else:
            tokens.revoke(args.name)
            note = f"revoked; servers that use {tokens.path} refuse the token within a second"
            print(plain(note), file=sys.stderr)  # noqa: T201 - for people
    except ValueError as error:
        exit_with_error(parser.prog, str(error))
    return 0


def _check_scopes(scopes: Iterable[str]) -> None:
    """Raise ValueError if one of the scopes is not used by any server of the catalog."""
    entries = load_catalog().servers
    names = [entry.name for entry in entries]
    valid = {f"{name}:{right}" for name in names for right in ("read", "write", "*")}
    valid |= {"*", OPERATOR, *(scope for entry in entries for scope in entry.scopes)}
    for scope in sorted(set(scopes) - valid):
        close = nearest(scope, valid)
        listed = f"use SERVER:read, SERVER:write or SERVER:*, for {', '.join(names)}, or {OPERATOR}"
        advice = listed if close is None else f"did you mean {close}?"
        raise ValueError(f"--scope: no server uses the scope {scope}; {advice} (--custom-scopes accepts any)")


def _list(tokens: EditableTokens, *, as_json: bool) -> None:
    rows = [
        (
            token.name,
            None if token.scopes is None else sorted(token.scopes),
            None if token.expires is None else token.expires.isoformat(),
        )
        for token in tokens.all().values()
    ]
    if as_json:
        print_json([{"name": name, "scopes": scopes, "expires": end} for name, scopes, end in rows])
        return
    texts = [
        (name, "everything" if scopes is None else " ".join(scopes), end or "never") for name, scopes, end in rows
    ]
    console().print(table(("Name", "Scopes", "Expires"), texts), soft_wrap=False)
