"""Denies access to names, whatever the permission of their directory: to secrets, and to names that the operator
adds.

Globs work as in a search (see `globs`): without a slash they match names at any depth, with a slash paths from a
root. Everything in a denied directory is denied too, so each name on a path is checked. Links are followed: a
harmless name that leads to a denied one is denied too. `--allow` allows some of the names in the list of secrets, and
nothing else: names from `--deny` stay denied.

Globs that deny ignore case and the composition of accents, because some file systems do. Globs that allow do not.

Most globs are plain: a name with at most one star, at its beginning or end. Matching these takes only a set lookup
and a comparison of both ends of the name. The result is cached, because every access needs it. Other globs need the
automaton of `Glob`.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, reduce

from ..globs import Glob, States
from .names import compose

SECRETS = (
    *(".env", ".env.*", ".netrc", "_netrc", ".git-credentials", ".npmrc", ".pypirc", ".pgpass", ".my.cnf"),
    *(".htpasswd", ".dockercfg", ".vault-token", "credentials.tfrc.json", "application_default_credentials.json"),
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube"),
    *("id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*"),
    *("*.pem", "*.key", "*.p8", "*.p12", "*.pfx", "*.ppk", "*.jks", "*.keystore", "*.kdbx", "*.kdb"),
)
"""Names that are denied unless the operator allows them: well-known programs keep passwords and keys there."""
HARMLESS = (".env.example", ".env.sample", ".env.template", ".env.dist", "*.pub")
"""Names that look like secrets but are not."""

DenylistState = tuple[States, States]
"""The states of the automata: of globs that deny, and of globs that allow. Plain globs have none."""


class Denylist:
    """Decides which names are denied. Raises `PathError` with code `bad_pattern` for an invalid glob."""

    def __init__(self, deny: Iterable[str] = (), allow: Iterable[str] = ()) -> None:
        deny = tuple(deny)
        self._denied = _Globs(deny, _fold)
        self._secret = _Globs(SECRETS, _fold)
        self._allowed = _Globs((*HARMLESS, *allow), str)
        self._all_plain = self._denied.are_plain and self._allowed.are_plain
        self._listed = _Globs((*deny, *SECRETS), _fold)
        self._is_denied = lru_cache(_MAX_CACHED)(self._denies_name)
        """Returns True if a name is denied. Only for use if all globs are plain. Names repeat, so results are
        cached."""

    def start(self, paths: Sequence[Sequence[str]]) -> DenylistState:
        """Return the state at a root. `paths` are the relative paths to this root from each root that contains it,
        including the empty path from itself."""
        return self._denied.start(paths), self._allowed.start(paths)

    def step(self, state: DenylistState, name: str) -> DenylistState | None:
        """Return the state after one more name; None if the name is denied."""
        if self._all_plain:
            return None if self._is_denied(name) else state
        return self._step_all(state, name)

    def denies_path(self, state: DenylistState, names: Iterable[str]) -> bool:
        """Return True if one of the next `names` of a path is denied, given the state before them."""
        if self._all_plain:
            return any(map(self._is_denied, names))
        for name in names:
            next_state = self._step_all(state, name)
            if next_state is None:
                return True
            state = next_state
        return False

    def _denies_name(self, name: str) -> bool:
        """Return True if a name is denied. All globs must be plain, so that only the name matters."""
        # A search checks thousands of names, and almost none match a glob that denies, so check this first.
        return (
            self._listed.matches(_fold(name), _NO_STATES) and self._step_all((_NO_STATES, _NO_STATES), name) is None
        )

    def _step_all(self, state: DenylistState, name: str) -> DenylistState | None:
        folded = _fold(name)
        denied, allowed = self._denied.step(state[0], folded), self._allowed.step(state[1], name)
        if self._denied.matches(folded, denied):
            return None
        if self._secret.matches(folded, _NO_STATES) and not self._allowed.matches(name, allowed):
            return None
        return denied, allowed


_MAX_CACHED = 4_096
"""Maximum number of names whose results are cached."""
_NO_STATES: States = frozenset()
"""The states of plain globs, which need none."""
_SPECIAL = frozenset("*?[]{}/\\")


def _fold(name: str) -> str:
    if name.isascii():
        return name.lower()
    # Compose it a second time, because casefold decomposes some letters, such as U+0390.
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

    def start(self, paths: Sequence[Sequence[str]]) -> States:
        if self._glob is None:
            return _NO_STATES
        states = (reduce(self.step, map(self._fold, names), self._glob.start) for names in paths)
        return frozenset().union(*states)

    def step(self, states: States, name: str) -> States:
        """Return the states after `name`, which is folded."""
        return states if self._glob is None else self._glob.step(states, name)

    def matches(self, name: str, states: States) -> bool:
        """Return True if a plain glob matches `name`, which is folded, or another glob accepts the states after
        it."""
        if name in self._names or name.endswith(self._ends) or name.startswith(self._starts):
            return True
        return self._glob is not None and self._glob.accepts(states)
