"""What was measured: every figure of every round, and from them medians, spreads and ratios.

Rounds follow each other while the machine grows faster and slower, so a ratio is taken within each round, and what is
told is the median of these.
"""

import json
import statistics
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Results:
    """The samples by measure and server, in the order of the rounds; the reason where there are none."""

    date: str
    rounds: int
    machine: dict[str, Any]
    samples: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    not_measured: dict[str, dict[str, str]] = field(default_factory=dict)

    def add(self, measure: str, server: str, value: float) -> None:
        """One figure of the round that is under way."""
        self.samples.setdefault(measure, {}).setdefault(server, []).append(value)

    def excuse(self, measure: str, server: str, reason: str) -> None:
        """Why there is no figure."""
        self.not_measured.setdefault(measure, {})[server] = reason

    def median(self, measure: str, server: str) -> float | None:
        """The middle of all rounds, None where nothing was measured."""
        samples = self._of(measure, server)
        return statistics.median(samples) if samples else None

    def spread(self, measure: str, server: str) -> tuple[float, float] | None:
        """The least and the greatest figure, None where nothing was measured."""
        samples = self._of(measure, server)
        return (min(samples), max(samples)) if samples else None

    def ratio(self, measure: str, server: str, to: str) -> float | None:
        """`server` to the server `to`: the median of the ratios of each round. None where one was not measured."""
        pairs = list(zip(self._of(measure, server), self._of(measure, to), strict=False))
        return statistics.median(one / other for one, other in pairs) if pairs else None

    def _of(self, measure: str, server: str) -> list[float]:
        return self.samples.get(measure, {}).get(server, [])

    def save(self, file: Path) -> None:
        """Writes all of it as JSON."""
        file.write_text(json.dumps(asdict(self), indent=1) + "\n")
