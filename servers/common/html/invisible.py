"""Removes invisible characters: zero-width characters, tags, and those that change the text direction or control a
terminal.

Characters that text needs stay: joiners between letters of joining scripts and within emoji, and variation selectors.
Soft hyphens are removed, but not counted.
"""

import re

_JOINING = "\u0590-\u08ff\u0900-\u109f\u1780-\u17ff\u1800-\u18af\u1a20-\u1aaf\ufb1d-\ufdff\ufe70-\ufefc"
"""Scripts in which a joiner or non-joiner changes the appearance: Hebrew to Myanmar, Khmer, Mongolian, Tai Tham."""
_EMOJI = "\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
_SUSPECT = re.compile(
    "[\x00-\x08\x0b\x0e-\x1f\x7f-\x84\x86-\x9f"
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_NEEDED = re.compile(
    f"(?<=[{_JOINING}])[\u200c\u200d]"
    f"|(?<=[{_EMOJI}\ufe0f])\u200d(?=[{_EMOJI}])"
    f"|(?<=[{_EMOJI}0-9#*\u00a9\u00ae\u203c\u2049\u2122\u2139])[\ufe0e\ufe0f]"
    "|(?<=[\u1800-\u18af])[\u180b-\u180e]"
    "|(?<=[\u3400-\u9fff])[\ufe00-\ufe02]"
    "|(?<=\U0001f3f4)[\U000e0061-\U000e007a\U000e0030-\U000e0039]{3,6}\U000e007f"
)
_SOFT_HYPHEN = "\u00ad"


def strip_invisible(text: str) -> tuple[str, int]:
    """Return text without invisible characters, and the number of those that were removed."""
    if not _SUSPECT.search(text):
        return text, 0
    parts: list[str] = []
    removed = position = 0
    for needed in _NEEDED.finditer(text):
        part, count = _strip(text[position : needed.start()])
        parts += part, needed[0]
        removed += count
        position = needed.end()
    part, count = _strip(text[position:])
    return "".join([*parts, part]), removed + count


def _strip(text: str) -> tuple[str, int]:
    text = text.replace(_SOFT_HYPHEN, "")
    return _SUSPECT.subn("", text)
