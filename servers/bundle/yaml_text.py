"""YAML as it stands in files of ours: data and nothing else."""

from typing import Any

import yaml

__all__ = ["MAX_VALUES", "parse_yaml"]

MAX_VALUES = 20_000
"""Values and keys of a text; an alias counts as all that it names."""


def parse_yaml(text: str | bytes) -> Any:
    """The value that stands in `text`. Raises ValueError, in one line, for what is no YAML."""
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - it is a safe one
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"is not YAML: {' '.join(str(error).split())}") from None


class _Loader(yaml.SafeLoader):
    """Refuses what YAML forbids and its library lets pass, or fails of, and what would take it long."""

    def __init__(self, text: str | bytes) -> None:
        super().__init__(text)
        self._count = 0
        self._counts: dict[yaml.Node, int] = {}

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Refuses a text as soon as it has too many values."""
        event = self.peek_event()  # type: ignore[no-untyped-call]
        before = self._count
        self._count += 1
        node = super().compose_node(parent, index)
        if node is not None and isinstance(event, yaml.AliasEvent):
            self._count = before + self._counts.get(node, 1)
        elif node is not None:
            self._counts[node] = self._count - before
        if self._count > MAX_VALUES:
            raise yaml.composer.ComposerError(None, None, f"it has more than {MAX_VALUES} values", event.start_mark)
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Refuses two values under one key."""
        mapping = super().construct_mapping(node, deep)
        seen = set()
        # Keys that are no scalars have been refused by now.
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{key.value!r} is given twice", node.start_mark)
            seen.add(key.value)
        return mapping

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Takes no merge keys: a few lines of them can stand for more than any memory holds."""
        if any(key.tag == "tag:yaml.org,2002:merge" for key, _ in node.value):
            raise yaml.constructor.ConstructorError(None, None, "there may be no merge keys (<<)", node.start_mark)
        super().flatten_mapping(node)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Refuses a value that is not what its tag or its form says, such as the 45th of May."""
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, AttributeError):
            kind = node.tag.rpartition(":")[2]
            raise yaml.constructor.ConstructorError(None, None, f"this is no {kind}", node.start_mark) from None
