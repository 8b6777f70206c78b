"""The floor over stdio: a bare loop that answers what one read brings in one write."""

import os

from tests.checks.benchmarks.floor_answers import answer_to

CHUNK = 65_536


def main() -> None:
    """Answers until the input ends."""
    rest = b""
    while chunk := os.read(0, CHUNK):
        *lines, rest = (rest + chunk).split(b"\n")
        answers = [answer for answer in map(answer_to, lines) if answer is not None]
        if answers:
            os.write(1, b"\n".join(answers) + b"\n")


if __name__ == "__main__":
    main()
