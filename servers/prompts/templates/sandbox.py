"""Restricts Jinja's immutable sandbox to the part of the language whose time and memory can be limited.

A template can have outputs, filters, tests, comparisons, arithmetic, `if`, `for`, `set`, `with` and includes of
constant names. It can't have macros, inheritance, imports, attributes except those of `loop`, or calls except
`range(...)`. Everything that could recurse, access objects or escape the counting is refused when the template is
parsed. For the rest, sizes are limited where values grow (arithmetic, `~`, filters), and steps are counted where they
repeat (loops, filters, includes). Jinja's sandbox is a second barrier, which should never be reached.
"""

import math
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, NoReturn

from jinja2 import StrictUndefined, Template, nodes, pass_context
from jinja2.exceptions import TemplateSyntaxError
from jinja2.meta import find_undeclared_variables
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from shared.text import is_unicode

from .budget import MAX_ITEMS, current_budget
from .filters import (
    COMPARED,
    FILTERS,
    INDEXED,
    ITERATED,
    JOINED,
    count_created,
    format_value,
    require_size,
)

_ALLOWED: tuple[type[nodes.Node], ...] = (
    nodes.Template,
    nodes.Output,
    nodes.TemplateData,
    nodes.For,
    nodes.If,
    nodes.Assign,
    nodes.With,
    nodes.Include,
    nodes.Name,
    nodes.Const,
    nodes.List,
    nodes.Tuple,
    nodes.CondExpr,
    nodes.Filter,
    nodes.Test,
    nodes.Compare,
    nodes.Operand,
    nodes.Not,
    nodes.And,
    nodes.Or,
    nodes.Neg,
    nodes.Pos,
    nodes.Add,
    nodes.Sub,
    nodes.Mul,
    nodes.Div,
    nodes.FloorDiv,
    nodes.Mod,
    nodes.Concat,
    nodes.Getattr,
    nodes.Getitem,
    nodes.Slice,
    nodes.Call,
    nodes.Keyword,
)
_LOOP_ATTRIBUTES = {"index", "index0", "revindex", "revindex0", "first", "last", "length", "previtem", "nextitem"}
_TESTS = "defined undefined none string number boolean true false in eq ne lt le gt ge even odd".split()  # noqa: SIM905
_RESERVED_NAMES = {"loop", "range"}
_MAX_BITS = 256
_INSERTING_FILTERS = {"default", "fence", "trim", JOINED}
"""Filters that insert a value as it is, unless it is empty. The argument `language` of `fence` is not just
inserted."""


class Use(NamedTuple):
    """The use of a name in a template."""

    name: str
    line: int | None
    """The line; None in an included template."""
    how: Literal["written", "tested", "judged"]
    """`written`: inserted into the text. `tested`: only tested whether it is empty. `judged`: used in another way."""


class Sandbox(ImmutableSandboxedEnvironment):
    """The environment that all prompts share. Rendering does not change it."""

    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "%", "**"})

    def __init__(self) -> None:
        super().__init__(
            undefined=StrictUndefined,
            # Because of `pass_context`, Jinja does not call this while it compiles a template.
            finalize=pass_context(lambda _, value: format_value(value)),
            trim_blocks=True,
            lstrip_blocks=True,
            # With optimization, Jinja would compute constant parts while it compiles a template, without counting.
            optimized=False,
            autoescape=False,
        )
        self.filters = dict(FILTERS)
        self.tests = {name: self.tests[name] for name in _TESTS}
        self.globals = {"range": _range}

    def template(self, source: str, name: str) -> Template:
        """Compile text to a template. Raises TemplateSyntaxError, or an error of Python for code that is nested too
        deeply."""
        return Template.from_code(self, self.compile(source, name, filename=name), {"range": _range})

    def find_includes(self, source: str) -> tuple[tuple[str, ...], int]:
        """Return the names that a template includes, and the number of its parts, which are nodes of the syntax tree.
        The time for compiling is proportional to this number."""
        parts = list(_walk(self.parse(source)))
        names = (part.template for part in parts if isinstance(part, nodes.Include))
        return tuple(name.value for name in names if isinstance(name, nodes.Const)), len(parts)

    def names(self, source: str) -> tuple[set[str], set[str]]:
        """Return the names that a template takes from its context, and those that it sets."""
        tree = self.parse(source)
        assigned = {node.name for node in _walk(tree) if isinstance(node, nodes.Name) and node.ctx != "load"}
        return find_undeclared_variables(tree) - {"range"}, assigned

    def uses(self, source: str) -> Iterator[Use]:
        """Yield each use of a name that a template takes from its context."""
        tree = self.parse(source)
        outside = find_undeclared_variables(tree)
        return (use for use in _find_uses(tree, "judged") if use.name in outside)

    def get_template(self, name: Any, parent: str | None = None, globals: Any = None) -> Template:
        """Return the template for an include. It was already read and compiled with the prompt."""
        budget = current_budget.get()
        budget.count_step()
        return budget.partials[name]  # type: ignore[no-any-return] # these are templates

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Return an item of a list or a string. Jinja's own method would also try attributes."""
        try:
            return obj[argument]
        except (LookupError, TypeError):
            return self.undefined(obj=obj, name=argument)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Compute an operation if the size of its result is within the limits. Raises OverflowError for a number that
        is too large, and TypeError for types that the operator does not support in templates."""
        current_budget.get().count_step()
        if isinstance(left, int | float) and isinstance(right, int | float):
            if any(isinstance(number, int) and number.bit_length() > _MAX_BITS for number in (left, right)):
                raise OverflowError("a number in the template is too large")
        elif operator == "+" and isinstance(left, str) and isinstance(right, str):
            require_size(len(left) + len(right))
        elif operator == "+" and isinstance(left, list) and isinstance(right, list):
            require_size(len(left) + len(right), MAX_ITEMS)
        elif operator == "*" and isinstance(left, str) and isinstance(right, int):
            require_size(len(left) * right)
        else:
            raise TypeError(f"{operator} is for numbers; join a text and a number with ~")
        return count_created(super().call_binop(context, operator, left, right))

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        for node in _walk(tree):
            _check(node)
            _check_form(node)
        # Insert filters that count work which Jinja would do without counting.
        for node in list(_walk(tree)):
            match node:
                case nodes.For():
                    node.iter = _apply_filter(node.iter, ITERATED)
                case nodes.Compare():
                    node.expr = _apply_filter(node.expr, COMPARED)
                case nodes.Getitem():
                    node.node = _apply_filter(node.node, INDEXED)
        joined: nodes.Template = _ConcatReplacer().visit(tree)
        joined.set_environment(self)
        return joined


def _range(*bounds: int) -> list[int]:
    numbers = range(*bounds)
    # Check the ends first, since len() fails for a very large range.
    if numbers and (abs(numbers[0]) > MAX_ITEMS or abs(numbers[-1]) > MAX_ITEMS or len(numbers) > MAX_ITEMS):
        require_size(MAX_ITEMS + 1, MAX_ITEMS)
    return list(numbers)


def _walk(tree: nodes.Node) -> Iterator[nodes.Node]:
    pending = [tree]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(reversed(list(node.iter_child_nodes())))


def _find_uses(node: nodes.Node, how: Literal["written", "tested", "judged"]) -> Iterator[Use]:
    """Yield the uses of names in a node. `how` says how the value of the node itself is used."""
    match node:
        case nodes.Name(ctx="load"):
            yield Use(node.name, node.lineno or 1, how)
        case nodes.Output():
            for value in node.nodes:
                yield from _find_uses(value, "written")
        case nodes.If() | nodes.CondExpr():
            yield from _find_uses(node.test, "tested")
            for child in node.iter_child_nodes(exclude=("test",)):
                yield from _find_uses(child, how)
        case nodes.Filter(name="fence", node=nodes.Expr() as value) if how == "written":
            yield from _find_uses(value, how)
            for argument in node.iter_child_nodes(exclude=("node",)):
                yield from _find_uses(argument, "judged")
        case _:
            keeps_use = (
                (how == "written" and isinstance(node, nodes.List))
                or (how == "written" and isinstance(node, nodes.Filter) and node.name in _INSERTING_FILTERS)
                or (how == "tested" and isinstance(node, nodes.Not | nodes.And | nodes.Or))
            )
            for child in node.iter_child_nodes():
                yield from _find_uses(child, how if keeps_use else "judged")


def _check(node: nodes.Node) -> None:
    """Refuse a construct that templates may not use. Raises TemplateSyntaxError."""
    match node:
        case _ if not isinstance(node, _ALLOWED):
            _refuse(node, f"{type(node).__name__} is not available in prompts")
        case nodes.Getattr() if not (_is_name(node.node, "loop") and node.attr in _LOOP_ATTRIBUTES):
            _refuse(node, f"{node.attr!r} is not available: values have no attributes or methods; use a filter")
        case nodes.Call() if not _is_name(node.node, "range") or node.dyn_args or node.dyn_kwargs:
            _refuse(node, "only range(...) can be called; use a filter")
        case nodes.Filter() | nodes.Test() if node.dyn_args or node.dyn_kwargs:
            _refuse(node, "* and ** are not available")
        case nodes.Filter() if node.name.startswith("_"):
            _refuse(node, f"no filter named {node.name!r}")
        case nodes.Name() if node.name.startswith("_") or node.name == "self":
            _refuse(node, f"{node.name!r} can't be the name of a value")
        case nodes.Name() if node.name in _RESERVED_NAMES and node.ctx != "load":
            _refuse(node, f"{node.name!r} can't be the name of a value")
        case nodes.Const() if isinstance(node.value, float) and not math.isfinite(node.value):
            _refuse(node, "a number in the template is too large")
        case nodes.Const() if isinstance(node.value, str) and not is_unicode(node.value):
            _refuse(node, "a text contains half of a surrogate pair")


def _check_form(node: nodes.Node) -> None:
    """Refuse a statement or list in a form that templates may not use. Raises TemplateSyntaxError."""
    match node:
        case nodes.For() if node.recursive:
            _refuse(node, "recursive loops are not available")
        case nodes.Include():
            constant = isinstance(node.template, nodes.Const) and isinstance(node.template.value, str)
            # Without context, Jinja would collect all output before it could be counted.
            if not constant or node.ignore_missing or not node.with_context:
                _refuse(node, "an include must name one file, by its path in quotes, and nothing else")
        case nodes.List() | nodes.Tuple() if not all(isinstance(item, nodes.Const) for item in node.items):
            _refuse(node, "a list in a template may have only constant items")
        case nodes.Assign() | nodes.For() if not isinstance(node.target, nodes.Name):
            _refuse(node, "only a single name can be assigned")


def _is_name(node: nodes.Node, name: str) -> bool:
    return isinstance(node, nodes.Name) and node.name == name


def _refuse(node: nodes.Node, reason: str) -> NoReturn:
    # Nodes that Jinja itself adds around a tag may have no line.
    raise TemplateSyntaxError(reason, node.lineno or 1)


def _apply_filter(node: nodes.Node, name: str) -> nodes.Filter:
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)


class _ConcatReplacer(NodeTransformer):
    """Replaces each `~` with a filter, since Jinja does not limit the result of `~`."""

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802 (the name is Jinja's)
        items = nodes.List([self.visit(child) for child in node.nodes], lineno=node.lineno)
        return _apply_filter(items, JOINED)
