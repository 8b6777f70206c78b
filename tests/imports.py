"""The import graph of the code: `python -m tests.imports` prints it for CONTRIBUTING.md.

A part is a module or a folder just below `shared`, a folder of `protocol`, and each folder of `servers`. Only
those arrows are drawn that no longer way says already.
"""

from graphlib import TopologicalSorter

from tests.architecture import SOURCES, UPWARDS

__all__ = ["drawing", "imports_of_parts"]

Graph = dict[str, set[str]]
_OPENED = ("shared.protocol",)
"""Folders that are drawn as what is in them."""


def drawing() -> str:
    """Returns the parts and their imports as a Mermaid flowchart, which draws each part above its imports."""
    graph = imports_of_parts()
    order = list(TopologicalSorter({part: sorted(used) for part, used in sorted(graph.items())}).static_order())
    arrows = [f"  {part} --> {used}" for part in reversed(order) for used in sorted(_drawn(part, graph))]
    return "\n".join(["```mermaid", "flowchart TD", *arrows, "```"])


def imports_of_parts() -> Graph:
    """Returns the imports of each part, also late ones and those for types, without the listed exceptions."""
    graph: Graph = {_part(source.module): set() for source in SOURCES.values()}
    for source in SOURCES.values():
        mine = _part(source.module)
        targets = (one.target for one in source.imports if one.target.split(".")[0] in ("shared", "servers"))
        targets = (target for target in targets if (source.path, target) not in UPWARDS)
        graph[mine] |= {_part(target) for target in targets} - {mine}
    return {part: used for part, used in graph.items() if used or any(part in others for others in graph.values())}


def _part(module: str) -> str:
    depth = 3 if module.startswith(_OPENED) else 2
    return "/".join(module.split(".")[:depth])


def _drawn(part: str, graph: Graph) -> set[str]:
    """Returns the imports of `part` that no other import implies."""
    return graph[part].difference(*(_reached(other, graph) for other in graph[part]))


def _reached(part: str, graph: Graph) -> set[str]:
    """Returns the imports of `part`, direct and indirect."""
    found: set[str] = set()
    new = graph[part]
    while new:
        found |= new
        new = set().union(*(graph[one] for one in new)) - found
    return found


if __name__ == "__main__":
    print(drawing())
