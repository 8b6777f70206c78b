"""Formulas without a stored value."""

import io

import pytest

from servers.common.documents import uncomputed
from servers.common.documents.uncomputed import count_uncomputed

CELLS = [
    ('<c r="A1"><f>1+1</f><v></v></c>', 1),
    ('<c r="A1"><f>1+1</f><v/></c>', 1),
    ('<c r="A1" s="2"><f>A1&lt;2</f></c>', 1),
    ('<c r="A2"><f t="shared" si="0"/><v /></c>', 1),
    ('<x:c r="A1"><x:f>1+1</x:f></x:c>', 1),
    ('<c r="A1"><f>1+1</f><v>2</v></c>', 0),
    ('<c r="A1" t="str"><f>IF(TRUE,"","x")</f><v></v></c>', 0),
    ('<c r="A1"/><c r="A2"><v></v></c><c r="A3" t="inlineStr"><is><t>&lt;f></t></is></c>', 0),
]


@pytest.mark.parametrize(("cells", "count"), CELLS)
def test_formulas_without_a_value_are_counted(cells: str, count: int) -> None:
    assert count_uncomputed(io.BytesIO(f"<row>{cells}</row>".encode())) == count


def test_cells_are_counted_across_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uncomputed, "_BLOCK_BYTES", 7)
    assert count_uncomputed(io.BytesIO(b'<c r="A1"><f>1+1</f><v></v></c>' * 3)) == 3


@pytest.mark.timeout(10)
def test_cells_without_an_end_are_skipped_in_linear_time() -> None:
    assert count_uncomputed(io.BytesIO(b"<!--" + b"<c " * 100_000)) == 0
