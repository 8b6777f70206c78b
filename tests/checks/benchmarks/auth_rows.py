"""One read at a time over HTTP, by what it comes with: a token of the operator's, one of an issuer, one with proofs.

The issuer is in this process, and has no more to say than two documents: the server asks for both with the first
token. Each kind of token has a server of its own, as an operator would have who takes no other.
"""

import asyncio
import json
import os
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from email.message import Message
from functools import partial
from pathlib import Path
from statistics import median
from unittest.mock import patch

from joserfc import jwt
from joserfc.jwk import ECKey

from shared.auth.dpop import make_proof, new_key
from shared.transports.http.limits.endpoint_limits import ClientLimits
from shared.transports.http.limits.rate_limits import ClientQuotas
from tests.checks.benchmarks import messages, targets
from tests.checks.benchmarks.machine import apart
from tests.checks.benchmarks.messages import Ask
from tests.checks.benchmarks.peers import Peer
from tests.checks.benchmarks.pipes import sample
from tests.checks.benchmarks.socket_rows import Line, post
from tests.checks.benchmarks.targets import Measure
from tests.checks.benchmarks.web import ALWAYS, HOST, PATH, Web, stateless
from tests.ports import free_port
from tests.web_site import Reply, answered

TURNS = 9
PRINCIPALS = 10_000
WIDE = ["--max-rate", "1e6", "--max-burst", "1e6"]
KEY = ECKey.generate_key("P-256", {"kid": "bench"}, private=True)
PROVING = new_key()
OWN = "a-token-of-the-operators-own"


def auth_rows(peer: Peer, folder: Path) -> Iterator[tuple[Measure, float]]:
    """The rates of `peer`, one connection each."""
    ask = messages.read_stateless(folder / messages.FILE)
    with ExitStack() as stack:
        issuer = stack.enter_context(issuing())
        with patch.dict(os.environ, {"MCP_TOKEN": OWN}):
            alone = stack.enter_context(_serving(peer, folder))
        trusting = stack.enter_context(_serving(peer, folder, "--auth-issuer", issuer))
        own = _asking(stack, alone, ask, {"Authorization": f"Bearer {OWN}"})
        seen = _asking(stack, trusting, ask, {"Authorization": f"Bearer {_token(issuer, trusting)}"})
        bound = _token(issuer, trusting, cnf={"jkt": PROVING.thumbprint()})
        proved = _asking(stack, trusting, ask, {"Authorization": f"DPoP {bound}"}, bound)
        turns = [(sample(own), sample(seen), sample(proved)) for _ in range(TURNS)]
    for measure, rate in zip(targets.AUTH[:3], zip(*turns, strict=True), strict=True):
        yield measure, median(rate)
    yield targets.SEEN_TIMES, median(own / seen for own, seen, _ in turns)
    yield targets.PROVED_TIMES, median(own / proved for own, _, proved in turns)
    yield targets.PRINCIPALS, asyncio.run(_limits_memory())


async def _limits_memory() -> float:
    """MiB that are taken by what is known of as many principals, of whom each has a call under way."""
    tracemalloc.start()
    quotas = ClientQuotas(ClientLimits())
    for number in range(PRINCIPALS):
        client = f"https://issuer.example#person-{number}@192.0.2.0/24"
        await quotas.check(client)
        quotas.spend(client, 1_000)
        quotas.begin(client)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return taken / 1_048_576


def _serving(peer: Peer, folder: Path, *options: str) -> Web:
    port = free_port()
    if peer.http is None:
        raise ValueError(f"{peer.name} has no HTTP")
    return Web([*peer.http(folder, port), *WIDE, *options], port)


def _asking(
    stack: ExitStack, web: Web, ask: Ask, headers: dict[str, str], bound: str | None = None
) -> Callable[[int], float]:
    """Measures so many requests with these headers, and a proof in each where the token is `bound`."""
    line = stack.enter_context(Line(web.port))
    head = {"Host": f"{HOST}:{web.port}", **ALWAYS, **stateless(ask), **headers}
    written = partial(post, head) if bound is None else partial(_proved, head, web, bound)

    def measure(count: int) -> float:
        with apart(web.pid):
            return line.one_at_a_time(ask, written, count)

    return measure


def _proved(head: dict[str, str], web: Web, bound: str, body: bytes) -> bytes:
    return post({**head, "DPoP": make_proof(PROVING, "POST", _url(web), time.time(), token=bound)}, body)


def _url(web: Web) -> str:
    return f"http://{HOST}:{web.port}{PATH}"


def _token(issuer: str, web: Web, **claims: object) -> str:
    now = int(time.time())
    whole = {"iss": issuer, "aud": _url(web), "sub": "alice", "scope": "*", "exp": now + 3_600, "iat": now, **claims}
    return jwt.encode({"alg": "ES256", "kid": "bench", "typ": "at+jwt"}, whole, KEY)


def issuing() -> AbstractContextManager[str]:
    """The URL of an issuer, as long as the block."""

    def answer(path: str, _body: bytes, headers: Message) -> Reply:
        url = f"http://{headers['Host']}"
        keys = {"keys": [KEY.as_dict(private=False)]}
        return Reply(json.dumps(keys if path == "/jwks" else {"issuer": url, "jwks_uri": f"{url}/jwks"}).encode())

    return answered(answer)
