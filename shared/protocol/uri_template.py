"""RFC 6570 templates, matched against URIs: the forms `{name}`, `{+name}`, `{?a,b}` and `{?all*}`.

Maintained libraries expand templates but don't match them, which a server mainly needs. Matching is linear in the
URI: two variables in one path segment are separated by the first occurrence of the text between them (`{name}.{type}`
matches `a.tar.gz` as `a` and `tar.gz`), and an atomic group prevents other attempts. A `{+name}` may occur once, and
after it every variable must have its own segment. So no match backtracks further than one segment.
"""

import re
from collections.abc import Mapping
from functools import cached_property, lru_cache
from urllib.parse import parse_qsl, quote, unquote, urlencode

from ..errors import DeclarationError, InvalidParams

_RESERVED = ":/?#[]@!$&'()*+,;=%"
_STRAY_PERCENT = re.compile("%(?![0-9A-Fa-f]{2})")
_URI = r"[A-Za-z][A-Za-z0-9+.-]*:[!#-;=?-\[\]_a-z~]*"
"""The characters of a URI (RFC 3986, section 2), without a check of "%"."""
_IRI = (
    rf"{_URI.removesuffix(']*')}\u00a1-\u167f\u1681-\u1fff\u2010-\u2027\u2030-\u205e\u2070-\u2fff"
    r"\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\uffef\U00010000-\U000effff]*"
)
"""The same with non-ASCII characters, since people use them in web addresses (RFC 3987), except white space and lone
surrogates. Compiling it takes 3 % of a start, so only a string that has such characters does."""
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
        """Return the variables of `uri`, percent-decoded once, except `{+name}` and the query `{?all*}`, which stay
        as written. Return None if there is no match."""
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
        """Return the URI with these values. Raises InvalidParams if one is missing that is not part of the query."""
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
        # The pattern is compiled when it is needed, since few clients read resources.
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
                # In the atomic group the variable ends at the first such position, so a long URI is not matched in
                # all possible ways.
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
    """Return True if `text` has a scheme, and no ASCII characters that must be percent-encoded (RFC 3986)."""
    return re.fullmatch(_URI if text.isascii() else _IRI, text) is not None


def is_uri_template(text: str) -> bool:
    """Return True if the text around a template's variables may be in a URI."""
    # A variable at the start may contain the scheme.
    plain = _EXPRESSION.sub("x:", text, count=1) if text.startswith("{+") else text
    return is_uri(_EXPRESSION.sub("x", plain))


def expand_uri(template: str, **variables: str) -> str:
    """Return the URI of `template` (RFC 6570) with these variables, percent-encoded: the URI under which a client
    knows the resource. Raises TypeError if the template has different variables."""
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
