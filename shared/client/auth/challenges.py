"""The challenges of a refusal, from the `WWW-Authenticate` header (RFC 9110, section 11.6.1)."""

import re
from collections.abc import Mapping

from ...protocol.records import record

MAX_HEADER = 16_384
_WORD = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_PARAMETER = re.compile(rf'({_WORD})[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|({_WORD}))(?=[ \t]*(?:,|$))')
_SCHEME = re.compile(rf"({_WORD})(?:[ \t]+|(?=[ \t]*(?:,|$)))")
_TOKEN68 = re.compile(r"[A-Za-z0-9._~+/-]+=*(?=[ \t]*(?:,|$))")
_SEPARATOR = re.compile(r"[ \t,]*")
_SCHEMES = ("dpop", "bearer")


@record
class Challenge:
    """One challenge of a server: a scheme and its parameters. The scheme and the parameter names are in lower
    case."""

    scheme: str
    parameters: Mapping[str, str]

    @property
    def scopes(self) -> tuple[str, ...]:
        """The scopes that the server requires; empty if the challenge names none."""
        return tuple(self.parameters.get("scope", "").split())


def parse_challenges(header: str | None) -> tuple[Challenge, ...]:
    """Parse the challenges in one or several headers joined by commas. Parsing stops at the first text that is not a
    challenge; the challenges before it are returned."""
    text, position = (header or "")[:MAX_HEADER], 0
    challenges: list[Challenge] = []
    while True:
        position = _after(_SEPARATOR, text, position)
        parameter = _PARAMETER.match(text, position)
        if parameter and challenges:
            name, quoted, plain = parameter.groups()
            value = plain if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
            challenge = challenges[-1]
            if isinstance(challenge.parameters, dict):
                # The first of two counts: a parameter may occur once in a challenge (RFC 9110, section 11.2).
                challenge.parameters.setdefault(name.lower(), value)
            position = parameter.end()
        elif scheme := _SCHEME.match(text, position):
            challenges.append(Challenge(scheme[1].lower(), {}))
            position = scheme.end()
            # Other schemes may have one value without a name, which is not used here.
            if not _PARAMETER.match(text, position):
                position = (
                    _after(_TOKEN68, text, position) if text[position : position + 1] not in ("", ",") else position
                )
        else:
            return tuple(challenges)


def _after(pattern: re.Pattern[str], text: str, position: int) -> int:
    matched = pattern.match(text, position)
    return matched.end() if matched else position


def pick_challenge(header: str | None) -> Challenge | None:
    """Return the challenge that OAuth answers, preferably with the stronger proof, or None."""
    challenges = parse_challenges(header)
    for scheme in _SCHEMES:
        for challenge in challenges:
            if challenge.scheme == scheme:
                return challenge
    return None
