"""Which lines of a page are its main content, where that is known as a text alone.

The words of the page are aligned with those of the truth. Words that match one by one say little, as they stand
anywhere; runs of three say that a line is content, and short lines are where lines beside them are.
"""

from collections import Counter
from collections.abc import Sequence

from rapidfuzz.distance import LCSseq

_RUN = 3
"""Words in a row that match: fewer may do so by accident."""
_SHORT = 2
_NEAR = 6
"""Words beside a short line, of which most match where it is content."""
_MOST_PAGE, _MOST_TRUTH = 40_000, 20_000
_ELSEWHERE = 0.9
"""The share of a line that the truth has in another place."""


def label(lines: Sequence[list[str]], truth: list[str]) -> list[float]:
    """The share of each line's words that is main content."""
    words = [word for line in lines for word in line]
    equal, runs = _aligned(words, truth)
    shares: list[float] = []
    at = 0
    for line in lines:
        end = at + len(line)
        right = sum(runs[at:end])
        if line and right < len(line) <= _SHORT and sum(equal[at:end]) == len(line):
            near = sum(runs[max(0, at - _NEAR) : end + _NEAR])
            right = len(line) if near > _RUN else 0
        shares.append(right / len(line) if line else 0.0)
        at = end
    _find_elsewhere(lines, truth, shares)
    return shares


def _aligned(words: list[str], truth: list[str]) -> tuple[bytearray, bytearray]:
    """For each word whether it matches, and whether it does in a run."""
    equal, runs = bytearray(len(words)), bytearray(len(words))
    if not truth:
        return equal, runs
    for one in LCSseq.opcodes(words[:_MOST_PAGE], truth[:_MOST_TRUTH]):
        if one.tag == "equal":
            size = one.src_end - one.src_start
            equal[one.src_start : one.src_end] = bytes([1]) * size
            if size >= _RUN:
                runs[one.src_start : one.src_end] = bytes([1]) * size
    return equal, runs


def _find_elsewhere(lines: Sequence[list[str]], truth: list[str], shares: list[float]) -> None:
    """Label lines that the truth has in another order than the page."""
    joined = f" {' '.join(truth)} "
    left = Counter(truth)
    for line, share in zip(lines, shares, strict=True):
        if share:
            left.subtract(line)
    for number, line in enumerate(lines):
        whole = len(line) > _RUN and f" {' '.join(line)} " in joined
        if shares[number] < 0.5 and whole and sum(left[word] > 0 for word in line) >= 0.8 * len(line):
            shares[number] = _ELSEWHERE
            left.subtract(line)
