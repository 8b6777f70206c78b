"""Names that are denied regardless of the permission of their directory: secrets, and names that the operator adds.

Globs work as in a search (see `globs`): without a slash they match names at any depth, with a slash paths from a
root. A denied directory is denied with everything in it. So each name on a path is checked, with links followed: a
harmless name that leads to a denied one is denied too. `--allow` allows single names from the list of secrets, and
nothing else; names from `--deny` stay denied.

Denying ignores case and how accents are composed, because some file systems do; allowing does not.

Most globs are a plain name with at most one star at its beginning or end. They cost a set lookup and a comparison of
both ends of the name, and the result is cached, because it is needed for every access. Only other globs are matched.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, reduce

from servers.common.files.names import compose
from servers.common.globs import Glob, States

SECRETS = (
    *(".env", ".env.*", ".netrc", "_netrc", ".git-credentials", ".npmrc", ".pypirc", ".pgpass", ".my.cnf"),
    *(".htpasswd", ".dockercfg", ".vault-token", "credentials.tfrc.json", "application_default_credentials.json"),
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube"),
    *("id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*"),
    *("*.pem", "*.key", "*.p8", "*.p12", "*.pfx", "*.ppk", "*.jks", "*.keystore", "*.kdbx", "*.kdb"),
)
"""Names that are denied unless the operator allows them, because well-known programs keep passwords and keys
there."""
HARMLESS = (".env.example", ".env.sample", ".env.template", ".env.dist", "*.pub")
"""Names that look like secrets but are not."""

DenylistState = tuple[States, States]
"""The matching states of globs with a slash: those that deny, and those that allow."""


class Denylist:
    """The denied names. Raises `PathError` with code `bad_pattern` for an invalid glob."""

    def __init__(self, deny: Iterable[str] = (), allow: Iterable[str] = ()) -> None:
        deny = tuple(deny)
        self._denied = _Globs(deny, _fold)
        self._secret = _Globs(SECRETS, _fold)
        self._allowed = _Globs((*HARMLESS, *allow), str)
        self._is_plain = self._denied.are_plain and self._allowed.are_plain
        self._any_listed = _Globs((*deny, *SECRETS), _fold)
        self._is_denied = lru_cache(_MAX_CACHED)(self._denies_plainly)
        """Returns True if a name is denied, where all globs are plain. Names repeat, so the results are cached."""

    def start(self, above: Sequence[Sequence[str]]) -> DenylistState:
        """Return the state at a root. `above` contains, for each root that contains this one (including itself), the
        names between them."""
        return self._denied.start(above), self._allowed.start(above)

    def step(self, state: DenylistState, name: str) -> DenylistState | None:
        """Return the state after one more name; None if the name is denied."""
        if self._is_plain:
            return None if self._is_denied(name) else state
        return self._step_all(state, name)

    def denies_any(self, state: DenylistState, names: Iterable[str]) -> bool:
        """Return True if one of the names that follow is denied."""
        if self._is_plain:
            return any(map(self._is_denied, names))
        for name in names:
            further = self._step_all(state, name)
            if further is None:
                return True
            state = further
        return False

    def _denies_plainly(self, name: str) -> bool:
        """Return True if a name is denied at every place, where all globs are plain."""
        # A search passes many thousands of names, of which nearly none is on a list.
        return self._any_listed.matches(_fold(name), _NOWHERE) and self._step_all((_NOWHERE, _NOWHERE), name) is None

    def _step_all(self, state: DenylistState, name: str) -> DenylistState | None:
        folded = _fold(name)
        denied, allowed = self._denied.step(state[0], folded), self._allowed.step(state[1], name)
        if self._denied.matches(folded, denied):
            return None
        if self._secret.matches(folded, _NOWHERE) and not self._allowed.matches(name, allowed):
            return None
        return denied, allowed


_MAX_CACHED = 4_096
"""Maximum number of names whose results are cached."""
_NOWHERE: States = frozenset()
_SPECIAL = frozenset("*?[]{}/\\")


def _fold(name: str) -> str:
    if name.isascii():
        return name.lower()
    # Composed again, because casefold decomposes some letters, such as U+0390.
    return compose(compose(name).casefold())


class _Globs:
    """Globs, grouped by how they are matched."""

    def __init__(self, patterns: Iterable[str], fold: Callable[[str], str]) -> None:
        self._fold = fold
        names, starts, ends, others = set(), [], [], []
        for pattern in (fold(pattern) for pattern in patterns):
            plain = pattern.rstrip("/").strip("*")
            if not plain or not _SPECIAL.isdisjoint(plain) or pattern.count("*") > 1:
                others.append(pattern)
            elif pattern.startswith("*"):
                ends.append(plain)
            elif "*" in pattern:
                starts.append(plain)
            else:
                names.add(plain)
        self._names, self._starts, self._ends = frozenset(names), tuple(starts), tuple(ends)
        self._glob = Glob(others) if others else None
        self.are_plain = self._glob is None

    def start(self, above: Sequence[Sequence[str]]) -> States:
        if self._glob is None:
            return _NOWHERE
        states = (reduce(self.step, map(self._fold, names), self._glob.start) for names in above)
        return frozenset().union(*states)

    def step(self, states: States, name: str) -> States:
        """Return the states after `name`, which is case-folded."""
        return states if self._glob is None else self._glob.step(states, name)

    def matches(self, name: str, states: States) -> bool:
        """Return True if one of the globs matches `name`, which is case-folded, or the states after it."""
        if name in self._names or name.endswith(self._ends) or name.startswith(self._starts):
            return True
        return self._glob is not None and self._glob.accepts(states)
