"""RFC 6570 templates, matched against URIs: the forms `{name}`, `{+name}`, `{?a,b}` and `{?all*}`.

A server mainly needs to match templates; maintained libraries only expand them. The time to match is linear in the
length of the URI, because of these rules. Two variables in one path segment are separated by the first occurrence of
the text between them (`{name}.{type}` matches `a.tar.gz` as `a` and `tar.gz`), and an atomic group prevents other
attempts. `{+name}` may occur once, and each variable after it must be in a segment of its own. So the regular
expression never backtracks further than one segment.
"""

import re
from collections.abc import Mapping
from functools import cached_property, lru_cache
from urllib.parse import parse_qsl, quote, unquote, urlencode

from ..errors import DeclarationError, InvalidParams

_RESERVED = ":/?#[]@!$&'()*+,;=%"
_STRAY_PERCENT = re.compile("%(?![0-9A-Fa-f]{2})")
_URI = r"[A-Za-z][A-Za-z0-9+.-]*:[!#-;=?-\[\]_a-z~]*"
"""A URI (RFC 3986), of which only the scheme and the characters are checked, not what follows a "%"."""
_IRI = (
    rf"{_URI.removesuffix(']*')}\u00a1-\u167f\u1681-\u1fff\u2010-\u2027\u2030-\u205e\u2070-\u2fff"
    r"\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\uffef\U00010000-\U000effff]*"
)
"""A URI that may also contain non-ASCII characters, since people use them in web addresses (RFC 3987), except white
space and lone surrogates. Compiling this expression takes 3 % of the time to start, so it is used only for strings
with such characters."""
_EXPRESSION = re.compile(r"\{([+?]?)([A-Za-z_][A-Za-z0-9_]*(?:,[A-Za-z_][A-Za-z0-9_]*)*\*?)\}")


class UriTemplate:
    """One compiled template. Raises DeclarationError if it has an unsupported form."""

    def __init__(self, template: str) -> None:
        self.template = template
        self.names: list[str] = []
        self._query: tuple[str, ...] = ()
        self._takes_whole_query = False
        self._regex = self._translate(template)

    def match(self, uri: str) -> dict[str, str] | None:
        """Return the variables in `uri`; None if it does not match. They are percent-decoded once, except those of
        `{+name}` and `{?all*}`, which stay as written."""
        plain, _, query = uri.partition("?") if self._query else (uri, "", "")
        path_match = self._pattern.fullmatch(plain)
        if path_match is None:
            return None
        groups = path_match.groupdict()
        values = {name: groups[name] if f"+{name}" in self._reserved else unquote(groups[name]) for name in groups}
        if not query:
            return values
        if self._takes_whole_query:
            return values | {self._query[0]: query}
        query_values = dict(parse_qsl(query, keep_blank_values=True))
        return values | {name: query_values[name] for name in self._query if name in query_values}

    def expand(self, values: Mapping[str, str]) -> str:
        """Return the URI with these values. Raises InvalidParams if a variable outside the query has no value."""
        return _EXPRESSION.sub(
            lambda expression: self._expand_expression(expression[1], expression[2], values), self.template
        )

    def _expand_expression(self, operator: str, variables: str, values: Mapping[str, str]) -> str:
        if operator == "?" and self._takes_whole_query:
            query = values.get(self._query[0])
            return f"?{query}" if query else ""
        if operator == "?":
            query_values = {name: values[name] for name in self._query if name in values}
            return add_query("", query_values)
        value = values.get(variables)
        if not value:
            raise InvalidParams(f"{self.template} needs a {variables!r}")
        if operator != "+":
            return quote(value, safe="")
        # A question mark would begin the query, if the template has one.
        safe = _RESERVED.replace("?", "") if self._query else _RESERVED
        return _STRAY_PERCENT.sub("%25", quote(value, safe=safe))

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        # Compiled at first use, since few clients read resources.
        return re.compile(self._regex, re.DOTALL)

    def _translate(self, template: str) -> str:
        parts, end, reserved = [], 0, set()
        for expression in _EXPRESSION.finditer(template):
            literal, (operator, variables) = template[end : expression.start()], expression.groups()
            if self._query:
                raise DeclarationError(f"{template}: {{?a,b}} must be last")
            if not literal and end and operator != "?":
                raise DeclarationError(f"{template}: variables must not be adjacent")
            parts.append(_escape_literal(literal, template))
            if end and operator != "?" and not set(literal) & set("/?#"):
                before, between = parts[-2:]
                if before.endswith(".+)"):
                    raise DeclarationError(
                        f"{template}: there must be a slash between {{+variable}} and the next variable"
                    )
                # The atomic group makes the variable end at the first occurrence of `between`. Otherwise a long URI
                # could match in very many ways, which would all be tried.
                parts[-2:] = [f"(?>{before[:-1]}?){between})"]
            parts.append(self._compile_variable(operator, variables, template))
            reserved |= {f"+{variables}"} if operator == "+" else set()
            end = expression.end()
        if self._query and template[end:]:
            raise DeclarationError(f"{template}: {{?a,b}} must be last")
        if len(reserved) > 1:
            raise DeclarationError(f"{template}: only one {{+variable}} is allowed")
        self._reserved = frozenset(reserved)
        return "".join(parts) + _escape_literal(template[end:], template)

    def _compile_variable(self, operator: str, variables: str, template: str) -> str:
        names = variables.removesuffix("*").split(",")
        self._takes_whole_query = variables.endswith("*")
        if self._takes_whole_query and (operator != "?" or len(names) > 1):
            raise DeclarationError(f"{template}: only {{?all*}} takes the whole query")
        if set(names) & set(self.names):
            raise DeclarationError(f"{template}: a variable occurs twice")
        self.names += names
        if operator == "?":
            self._query = tuple(names)
            return ""
        if len(names) > 1:
            raise DeclarationError(f"{template}: lists of variables are allowed only in {{?a,b}}")
        return f"(?P<{variables}>.+)" if operator == "+" else f"(?P<{variables}>[^/?#]+)"


def is_uri(text: str) -> bool:
    """Return True if `text` begins with a scheme, and has no ASCII characters that a URI can't contain (RFC 3986)."""
    return re.fullmatch(_URI if text.isascii() else _IRI, text) is not None


def is_uri_template(text: str) -> bool:
    """Return True if the text between a template's variables consists of characters that a URI can contain."""
    # A variable at the start may contain the scheme.
    plain = _EXPRESSION.sub("x:", text, count=1) if text.startswith("{+") else text
    return is_uri(_EXPRESSION.sub("x", plain))


def expand_uri(template: str, **variables: str) -> str:
    """Return the URI that `template` (RFC 6570) yields for these variables, which are percent-encoded. Use it to name
    a resource to a client. Raises TypeError if the template has other variables."""
    compiled = _compile(template)
    if set(variables) != set(compiled.names):
        raise TypeError(f"{template} has the variables {', '.join(compiled.names)}, not {', '.join(variables)}")
    return compiled.expand(variables)


_compile = lru_cache(1_000)(UriTemplate)


def add_query(uri: str, values: Mapping[str, str]) -> str:
    """Return `uri` with these values appended to its query."""
    query = urlencode(values, quote_via=quote)
    return f"{uri}{'&' if '?' in uri else '?'}{query}" if query else uri


def _escape_literal(text: str, template: str) -> str:
    if "{" in text or "}" in text:
        raise DeclarationError(
            f"{template}: a resource template may contain only {{name}}, {{+name}}, {{?a,b}} and {{?all*}}"
        )
    return re.escape(text)
