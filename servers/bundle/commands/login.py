"""`python -m servers login URL`, `logout` and `accounts`: the user's accounts at servers with a URL."""

import sys
import time
from argparse import ArgumentTypeError, Namespace
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import anyio

from servers.gateway.proxy.accounts import Account, Accounts, server_key
from servers.gateway.proxy.remote import accounts_folder
from servers.gateway.proxy.urls import check_url, display_url
from shared.auth.web import Web
from shared.client.auth.grants import AuthorizationCode
from shared.client.auth.loopback import Loopback
from shared.client.auth.oauth import OAuth, OAuthOptions
from shared.client.auth.registration import ClientInformation, is_visible_ascii
from shared.client.auth.store import TokensUnavailable
from shared.client.auth.stored_login import read_login, registration_key
from shared.client.auth.token_endpoint import TokenEndpoint
from shared.client.connect import connect
from shared.errors import AuthError, McpError
from shared.program.messages import exit_with_error
from shared.text import plain

from ..terminal.command_parser import CommandParser
from ..terminal.exit_codes import DONE, REFUSED, UNREACHED
from ..terminal.output import console, print_json, table
from ..terminal.signal_wakeup import wake_on_signals


def main(argv: Sequence[str]) -> int:
    """Log the user in to a server; return the exit code."""
    parser = CommandParser(
        "login",
        "Log in to a server at a URL, in the browser. `connect`, `call` and the other commands then use the login, "
        "and renew its tokens. Exit codes: 0 logged in, 1 refused, 2 incorrect usage, 3 no connection.",
    )
    parser.add_argument("url", metavar="URL", help="URL of the server")
    parser.add_argument(
        "--scope",
        action="append",
        default=[],
        metavar="SCOPE",
        help="scope to request in addition to those that the server requires",
    )
    parser.add_argument("--client-id", metavar="ID", help="client id of this program at the issuer")
    text = "file with the client secret"
    parser.add_argument("--client-secret-file", type=Path, metavar="FILE", help=text)
    text = "URL of this program's client metadata document, used as its client id"
    parser.add_argument("--client-metadata-url", type=_metadata_url, metavar="URL", help=text)
    parser.add_argument(
        "--port", type=_port, default=0, help="port that the browser is redirected to (default: a free port)"
    )
    parser.add_argument(
        "--no-browser", action="store_true", help="print the URL of the login page instead of opening it"
    )
    args = parser.parse_args(argv)
    try:
        check_url(args.url)
        client = _client_of(args)
        return anyio.run(_log_in, args, client, Accounts(accounts_folder()))
    except (ValueError, AuthError) as error:
        exit_with_error(parser.prog, str(error))


def logout(argv: Sequence[str]) -> int:
    """Log the user out; return the exit code."""
    parser = CommandParser(
        "logout",
        "Forget a login, and revoke its tokens at the issuer. Exit codes: 0 forgotten, 1 no such login, "
        "2 incorrect usage.",
    )
    parser.add_argument("url", metavar="URL", nargs="?", help="URL of the server, as `accounts` lists it")
    parser.add_argument("--all", action="store_true", help="forget all logins")
    args = parser.parse_args(argv)
    if (args.url is None) is not args.all:
        parser.error("specify the URL of a server, or --all")
    try:
        return anyio.run(_log_out, Accounts(accounts_folder()), args.url)
    except (ValueError, AuthError) as error:
        exit_with_error(parser.prog, str(error))


def accounts(argv: Sequence[str]) -> int:
    """List the logins; return the exit code."""
    parser = CommandParser("accounts", "List the servers that you are logged in to. Tokens are not shown.")
    parser.add_json()
    args = parser.parse_args(argv)
    try:
        logins = Accounts(accounts_folder()).all()
    except (ValueError, AuthError) as error:
        exit_with_error(parser.prog, str(error))
    if args.json:
        print_json([login._asdict() for login in logins])
    else:
        ends = [
            "unknown"
            if login.expires is None
            else datetime.fromtimestamp(login.expires, UTC).isoformat(timespec="minutes")
            for login in logins
        ]
        rows = [
            (login.resource, login.issuer, " ".join(login.scopes), end)
            for login, end in zip(logins, ends, strict=True)
        ]
        console().print(table(("Server", "Issuer", "Scopes", "Token ends"), rows), soft_wrap=False)
    return DONE


def _metadata_url(text: str) -> str:
    try:
        parts = urlsplit(text)
        is_valid = parts.scheme == "https" and bool(parts.hostname) and parts.path not in ("", "/")
    except ValueError:
        is_valid = False
    if not is_valid or not is_visible_ascii(text):
        raise ArgumentTypeError("must be an https URL with a path")
    return text


def _port(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 5 or int(text) > 65_535:
        raise ArgumentTypeError("must be a port from 0 to 65535")
    return int(text)


def _client_of(args: Namespace) -> ClientInformation | None:
    """Return the client information in the options; None if they contain none. Raises ValueError if it is invalid."""
    if args.client_id is None:
        if args.client_secret_file is not None:
            raise ValueError("--client-secret-file needs --client-id")
        return None
    if not is_visible_ascii(args.client_id):
        raise ValueError("--client-id is empty, too long, or has characters that can't be sent")
    if args.client_secret_file is None:
        return ClientInformation(args.client_id, method="none")
    try:
        secret = args.client_secret_file.read_text().strip()
    except OSError as error:
        raise ValueError(f"--client-secret-file: {args.client_secret_file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"--client-secret-file: {args.client_secret_file} is not UTF-8") from None
    if not is_visible_ascii(secret):
        reason = "is empty, too long, or has characters a secret can't contain"
        raise ValueError(f"--client-secret-file: {args.client_secret_file} {reason}")
    return ClientInformation(args.client_id, secret=secret)


async def _log_in(args: Namespace, client: ClientInformation | None, accounts: Accounts) -> int:
    def say_url(url: str) -> None:
        _say(f"if your browser does not open, log in on this page:\n{url}")

    try:
        # For a client that was registered in advance, the redirect URI must be the registered one, so its path is
        # fixed.
        path = None if client is None and args.client_metadata_url is None else "/callback"
        loopback = Loopback(say_url, opens_browser=not args.no_browser, path=path, port=args.port)
        # While it waits for the browser, there may be no other event, so Ctrl+C itself must wake the event loop.
        with wake_on_signals(), loopback as redirect:
            grant = AuthorizationCode(redirect, client, args.client_metadata_url)
            # `ignores_stored`: otherwise an existing login would be used. It is replaced only when this one has
            # succeeded. `stores_client`: other commands need the client information to renew the tokens.
            options = OAuthOptions(scopes=args.scope, ignores_stored=True, stores_client=True)
            credentials = OAuth(args.url, grant, tokens=accounts.tokens, options=options)
            async with connect(args.url, auth=credentials):
                pass
        if not credentials.has_token:
            _say(f"{display_url(args.url)} needs no login")
            return DONE
    except AuthError as error:
        _say(str(error))
        return REFUSED
    except (McpError, OSError) as error:
        _say(f"no connection to {display_url(args.url)}: {error}")
        return UNREACHED
    _say(f"logged in to {display_url(args.url)}")
    return DONE


async def _log_out(accounts: Accounts, url: str | None) -> int:
    resource = None if url is None else server_key(url)[1]
    logins = [
        login
        for login in accounts.all()
        if resource is None or resource in [login.resource, *accounts.urls(login.resource)]
    ]
    if not logins and url is not None:
        _say(f"not logged in to {display_url(url)}")
        return REFUSED
    for login in logins:
        await _forget(accounts, login)
        _say(f"logged out of {display_url(login.resource)}")
    return DONE


async def _forget(accounts: Accounts, account: Account) -> None:
    tokens = accounts.tokens
    for url in accounts.urls(account.resource):
        try:
            stored = await read_login(tokens, url, None, time.time)
            issuer = stored and TokenEndpoint(Web(), stored.login.discovery.issuer, stored.login.client, time.time)
            if stored and issuer and not await issuer.revoke(stored.token):
                _say("the issuer did not revoke the tokens, which remain valid until they expire")
        except TokensUnavailable:
            raise  # the storage can't be used, so the login stays
        except AuthError as error:
            _say(f"the issuer did not revoke the tokens, which remain valid until they expire: {error}")
        await tokens.delete(server_key(url))
    await tokens.delete((account.issuer, account.resource))
    if all(other.issuer != account.issuer for other in accounts.all()):
        await tokens.delete(registration_key(account.issuer))


def _say(text: str) -> None:
    print("\n".join(map(plain, text.split("\n"))), file=sys.stderr, flush=True)  # noqa: T201 - for people
