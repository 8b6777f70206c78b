"""Each check of a token keeps somebody out: without it, a token or a proof that is wrong gets in.

The source of a check is changed in memory, and what uses it runs with the changed one.
"""

import importlib
import inspect
from types import ModuleType
from typing import Any

import pytest

from shared.auth.authenticators import OAuthTokens
from shared.auth.dpop import BadProof, make_proof, new_key, token_hash
from shared.auth.jose import BadToken
from shared.auth.policy import Entitlement, Policy, Rules
from shared.extensions.access import access
from shared.protocol.identity import Principal
from shared.protocol.types.base import Implementation
from shared.server.server import Server
from tests.shared.auth.bad_tokens import bad_tokens
from tests.shared.auth.issuing import RESOURCE, Clock, FakeIssuer, bear, issuing, request, trusting
from tests.shared.server.peer import talking

KEY, OTHER = new_key(), new_key()

# The module of a check, its source, and what is put in its place; the name that is used of the changed module, and by
# which modules.
CLAIMS = ("claims", "check_claims", ["shared.auth.jwt"])
JWT = ("jwt", "JwtTokens", ["tests.shared.auth.issuing"])
JOSE = ("jose", "verify", ["shared.auth.jwt", "shared.auth.dpop"])
PROOF = ("dpop", "check_proof", ["shared.auth.possession"])
USE = ("possession", "Possession", ["tests.shared.auth.issuing"])
POLICY = ("policy", "Policy", ["tests.checks.auth.test_checks_matter"])
Place = tuple[str, str, list[str]]
MUTANTS: dict[str, tuple[Place, str, str]] = {
    "audience": (
        CLAIMS,
        "not any(isinstance(item, str) and canonical(item) in accepted for item in claimed)",
        "False",
    ),
    "audience compared": (CLAIMS, "canonical(item) in accepted", "True"),
    "issuer": (JWT, 'candidate.url == signed.claims.get("iss")', "True"),
    "expiry": (CLAIMS, "now >= expires + skew", "False"),
    "some expiry": (JWT, "if granted.principal.expires is None:", "if False:"),
    "not yet valid": (CLAIMS, "begins > now + skew", "False"),
    "scope": (CLAIMS, "Principal(key, name, frozenset(parts), client", "Principal(key, name, None, client"),
    "scopes of the token": (POLICY, "not grants(principal.scopes, needed)", "False"),
    "scopes of the operator": (POLICY, "all(grants(ceiling, needed) for ceiling in entitlement.ceilings)", "True"),
    "each of several scopes": (
        POLICY,
        "            return False\n    return True\n",
        "            continue\n        return True\n    return False\n",
    ),
    "names for logs": (CLAIMS, " or not value.isprintable()", ""),
    "type": (JWT, "kind.lower() not in _TYPES", "False"),
    "keys in the header": (JWT, "not _FORBIDDEN_PARAMETERS.isdisjoint(signed.header)", "False"),
    "critical headers": (JOSE, 'if "crit" in token.header:', "if False:"),
    "signature": (JWT, "                verify(signed, key, self.algorithms)\n", "                pass\n"),
    "result of the signature": (JOSE, "if not is_signed:", "if False:"),
    "binding to what is not known": (
        CLAIMS,
        'raise BadToken("it is bound in a way that this server can\'t check")',
        "return None",
    ),
    "binding": (CLAIMS, "Grant(principal, _read_thumbprint(claims))", "Grant(principal, None)"),
    "binding of bearers": (USE, "granted.thumbprint is None and not is_dpop", "not is_dpop"),
    "key of a proof": (USE, "not compare_digest(thumbprint.encode(), proof.thumbprint.encode())", "False"),
    "replay": (USE, "not self._seen.add(proof, granted.principal.key, now)", "False"),
    "signature of a proof": (PROOF, "        verify(signed, key, ALGORITHMS)\n", ""),
    "type of a proof": (PROOF, 'signed.header.get("typ") != _TYPE', "False"),
    "method of a proof": (PROOF, 'claims.get("htm") != method', "False"),
    "URL of a proof": (PROOF, 'not _is_same_url(claims["htu"], url)', "False"),
    "age of a proof": (PROOF, "not now - WINDOW_SECONDS <= issued <= now + WINDOW_SECONDS", "False"),
    "token of a proof": (PROOF, 'claims["ath"].encode("utf-8", "replace"), token_hash(token).encode()', 'b"", b""'),
}


def changed(place: Place, source: str, other: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts the module without its check in the place of the one with it."""
    name, used, users = place
    module = importlib.import_module(f"shared.auth.{name}")
    text = inspect.getsource(module)
    assert text.count(source) == 1, "the check is not there as it was"
    mutant = ModuleType(module.__name__)
    mutant.__dict__["__package__"] = module.__package__
    exec(compile(text.replace(source, other), f"<{name} without a check>", "exec"), mutant.__dict__)
    mutant.__dict__.update({"BadToken": BadToken, "BadProof": BadProof})
    for user in users:
        monkeypatch.setattr(f"{user}.{used}", getattr(mutant, used))


async def intruders(issuer: FakeIssuer) -> set[str]:
    """What gets in that should not."""
    clock = Clock()
    tokens = trusting(issuer, clock=clock)
    told = {name: await bear(tokens, token) for name, token in bad_tokens(issuer).items()}
    unbound = await bear(tokens, issuer.sign(scope=None))
    wrong = {name for name, one in told.items() if isinstance(one, Principal)}
    wrong |= {"a token without scopes"} if isinstance(unbound, Principal) and unbound.scopes is None else set()
    return wrong | await without_possession(issuer, tokens, clock) | await without_scopes()


async def without_possession(issuer: FakeIssuer, tokens: OAuthTokens, clock: Clock) -> set[str]:
    """The same of proofs."""
    token, now = issuer.sign(cnf={"jkt": KEY.thumbprint()}), clock.now
    good = make_proof(KEY, "POST", RESOURCE, now, token=token)
    said = {"jti": "x", "htm": "POST", "htu": RESOURCE, "iat": now, "ath": token_hash(token)}
    untyped = issuer.sign({"typ": "at+jwt", "jwk": KEY.as_dict(private=False)}, key=KEY, **said)
    proofs = {
        "a good proof": good,
        "the same again": good,
        "another key": make_proof(OTHER, "POST", RESOURCE, now, token=token),
        "another method": make_proof(KEY, "GET", RESOURCE, now, token=token),
        "another URL": make_proof(KEY, "POST", "https://rs.example/other", now, token=token),
        "another time": make_proof(KEY, "POST", RESOURCE, now - 1_000, token=token),
        "another token": make_proof(KEY, "POST", RESOURCE, now, token="other"),
        "no signature": f"{make_proof(KEY, 'POST', RESOURCE, now, token=token).rpartition('.')[0]}.{'A' * 86}",
        "another type": untyped,
    }
    told = {
        name: await tokens.authenticate(request(authorization=f"DPoP {token}", dpop=proof))
        for name, proof in proofs.items()
    }
    told["a bearer"] = await bear(tokens, token)
    return {name for name, one in told.items() if isinstance(one, Principal)} - {"a good proof"}


async def without_scopes() -> set[str]:
    """The same of requests that need more than their principal has, at a server."""
    app, done = Server[Any](Implementation(name="notes", version="1")), set[str]()

    @app.tool(scopes=["notes:write", "notes:more"])
    async def change(why: str) -> str:
        """Changes something."""
        done.add(why)
        return why

    rules = Rules({}, {"bob": Entitlement((frozenset({"notes:read"}),))})
    asked = {
        "no scope of the token": Principal("a", "alice", frozenset({"notes:read"})),
        "one scope of two": Principal("a", "alice", frozenset({"notes:write"})),
        "no scope of the operator": Principal("b", "bob"),
    }
    async with app.open(extensions=[access(Policy("notes", rules))]) as running:
        for why, principal in asked.items():
            async with talking(running, principal=principal) as peer:
                await peer.call("change", why=why)
    return done


async def test_all_checks_together_refuse_every_invalid_token() -> None:
    async with issuing() as issuer:
        assert not await intruders(issuer)


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS.keys())
async def test_a_missing_check_admits_an_invalid_token(
    mutant: tuple[Place, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    changed(*mutant, monkeypatch)
    async with issuing() as issuer:
        assert await intruders(issuer)
