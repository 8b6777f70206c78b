"""`Context`: what a handler uses to report progress, ask the client, and publish changes."""

import logging
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, get_args

from anyio import move_on_after
from pydantic import BaseModel, ValidationError

from ...errors import AnswerTimeout, DeclarationError, InvalidParams, MissingCapability, PeerError, ToolError
from ...protocol.identity import Peer
from ...protocol.records import record
from ...protocol.session.events import Call
from ...protocol.session.questions import (
    Question,
    elicit_form,
    elicit_url,
    end_round,
    list_roots,
    read_answer,
    read_question,
    sample,
)
from ...protocol.signing import digest
from ...protocol.types.client import CreateMessageResult, ElicitResult, LogLevel, Root
from ...protocol.wire.jsonrpc import Failure, RequestId, Response
from ..functions.argument_errors import describe
from ..functions.function import JsonSchema
from ..functions.inline_definitions import inline_definitions
from .call_task import CallTask
from .changes import Changes
from .coroutines import require_await
from .limits import CallLimits
from .turns import Turns

if TYPE_CHECKING:
    from .connection import Connection

log = logging.getLogger("shared.server.dispatch.context")

State = TypeVar("State")
Form = TypeVar("Form", bound=BaseModel)

_LEVELS = get_args(LogLevel)
_CANNOT_CONFIRM = (
    "cannot_confirm: this server asks the user before it changes anything, and this client can't be asked. "
    "Use a client that supports form elicitation"
)
_WITHOUT_CONFIRM = ", or have the operator start the server without --confirm"


@record
class Answer(Generic[Form]):
    """The user's answer to a form. `data` contains the values if `action` is "accept"."""

    action: Literal["accept", "decline", "cancel"]
    data: Form | None = None


class _Agreement(BaseModel, defer_build=True):
    """A form without fields, with which the user agrees by accepting it."""


@record
class Context(Generic[State]):
    """The interface of a handler to its call, its server and its client. A new context is made for each call."""

    call: Call
    link: "Connection"
    """The connection of the client. `link` and `call` are for the handlers of this package, not for authors."""
    running: Any
    """The `Run`, whose type can't be named here because its module imports this one."""
    state: State
    """The value that the server's lifespan yielded."""
    budget: CallLimits
    """The limits on the call."""

    @property
    def id(self) -> RequestId:
        """The id that the client has given the call, valid until the call is over."""
        return self.call.id

    @property
    def peer(self) -> Peer:
        """The caller. Authors should not depend on its protocol version."""
        return self.call.peer

    @property
    def may_be_task(self) -> bool:
        """True if the call is a task, or becomes one if it takes long. Then a tool need not return early, before its
        time limit."""
        return self.call.task is not None

    @property
    def settings(self) -> Any:
        """The operator's settings: an instance of the server's settings model."""
        return self.running.settings

    @property
    def changes(self) -> Changes:
        """The object with which to publish changes of lists and resources."""
        changes: Changes = self.running.changes
        return changes

    @property
    def owner(self) -> str:
        """The owner of data that is stored for later calls: the authenticated principal, or else the session, or else
        the client's address. Empty if there is only one client."""
        return self.call.peer.owner or self.link.client

    @require_await
    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Report progress to the client, if it requested that; `progress` must increase with each report. In a task,
        the report also becomes the status message of the task."""
        if self.call.task is not None:
            await self.call.task.report(progress, total, message)
        self.link.session.progress(self.call, progress, total, message)
        await self._send_waiting()

    @require_await
    async def log(self, level: LogLevel, data: Any, logger: str | None = None) -> None:
        """Send the client a log message, if it wants that level, and the server declares `capabilities={"logging":
        {}}`. `data` must not contain secrets. Raises ValueError for an unknown level."""
        if level not in _LEVELS:
            raise ValueError(f"ctx.log has no level {level!r}; levels: {', '.join(_LEVELS)}")
        if not self.running.identity.has(("logging",)) and not self.running.is_log_warned:
            self.running.is_log_warned = True
            log.warning('no client receives `ctx.log`: the server does not declare capabilities={"logging": {}}')
        self.link.session.log(self.call, level, data, logger)
        await self._send_waiting()

    def wants_log(self, level: LogLevel) -> bool:
        """Return True if the client receives log messages of that level. Check this before an expensive message."""
        return self.link.session.wants_log(self.call, level)

    def turn(self, of: Turns | None = None, *, brief: bool = False) -> AbstractAsyncContextManager[None]:
        """Return a context manager that waits for this client's turn to work in a thread, and holds the turn during
        its block. `of` is the author's own queue, instead of the one that all calls share.

        The call's time limit continues while it waits. `brief` says that the work takes less than a second; it then
        waits only for other brief work. Work of at most a millisecond needs no turn.
        """
        calls = self.link.calls
        return (of or (calls.brief_turns if brief else calls.turns)).acquire(self.link.client)

    async def close_stream(self, retry_ms: int = 1_000) -> None:
        """Disconnect the client while the call continues. The client reconnects after `retry_ms` milliseconds to
        receive the answer.

        Use this in long calls, which then occupy no HTTP connection. Does nothing where this is impossible: on other
        transports, in versions before 2025-11-25, and without a session.
        """
        self.link.session.pause(self.call, retry_ms)
        await self._send_waiting()

    async def _send_waiting(self) -> None:
        # Nothing more is sent for a call that is over, so it need not wait for a slow peer.
        if not self.call.is_over:
            await self.link.flush()

    @require_await
    async def ask(self, key: str, message: str, form: type[Form]) -> Answer[Form]:
        """Ask the user to fill in a form. `key` identifies the question within this call.

        In a session with a handshake, and in a task, `ask` waits for the answer. Otherwise the call ends here, and
        the client calls again with the answer, which `ask` then returns. So the function runs twice: **ask before you
        act**. Raises MissingCapability if the client does not support forms, and DeclarationError if `key` was used
        for another question in this call.
        """
        schema = form_schema(form)
        answer: ElicitResult = (await self.inputs({key: elicit_form(message, schema)}))[key]
        if answer.action != "accept":
            return Answer(answer.action)
        try:
            return Answer("accept", form.model_validate(answer.content or {}))
        except ValidationError as error:
            raise InvalidParams(f"the answer {key!r} does not fit the form: {describe(error, schema)}") from None

    @require_await
    async def confirm(self, message: str, *details: object) -> Literal[True]:
        """Ask the user to agree to the act that `message` describes. Raises ToolError if the user does not agree, or
        can't be asked; otherwise returns True, since authors write `if await ctx.confirm(...)`. **Confirm before you
        act**, and check afterwards that everything is still as described.

        `details` are further values that define the act, such as the version of a file to replace, and its new
        contents. If the client calls again with the user's consent, and a value has changed, the consent does not
        apply. The values are compared by `repr`.
        """
        # The client sends the key back with the consent. So the key must identify the act: the consent to change one
        # file must not apply to another.
        key = digest(repr((message, details)))[:16]
        try:
            answer = await self.ask(f"confirm {key}", message, _Agreement)
        except MissingCapability:
            has_option = "confirm" in type(self.settings).model_fields
            raise ToolError(f"{_CANNOT_CONFIRM}{_WITHOUT_CONFIRM if has_option else ''}.") from None
        if answer.action != "accept":
            raise ToolError("declined: the user did not agree; nothing was changed")
        return True

    @require_await
    async def ask_to_visit(self, key: str, message: str, url: str) -> ElicitResult:
        """Ask the user to open `url`. "accept" means only that the page was opened, not that the user has done
        anything there."""
        question = elicit_url(message, url, secrets.token_urlsafe(16))
        result: ElicitResult = (await self.inputs({key: question}))[key]
        return result

    @require_await
    async def sample(self, key: str, params: dict[str, Any]) -> CreateMessageResult:
        """Ask the client's model to complete a conversation, with the `params` of `sampling/createMessage`."""
        result: CreateMessageResult = (await self.inputs({key: sample(params)}))[key]
        return result

    @require_await
    async def roots(self, key: str = "roots") -> list[Root]:
        """Return the directories in which the user works. They are hints, not permissions."""
        return list((await self.inputs({key: list_roots()}))[key].roots)

    async def inputs(self, questions: Mapping[str, Question]) -> dict[str, Any]:
        """Ask several questions at once, and return the answers as models, by key. Raises the same errors as `ask`,
        PeerError if the client answers with an error, and AnswerTimeout if an answer does not arrive in time."""
        if (task := self._task) is not None:
            answers = await task.ask(questions)
            return {key: read_answer(question, answers[key]) for key, question in questions.items()}
        asked = self.call.questions = self.call.questions or {}
        for key, question in questions.items():
            # The id of an elicitation differs each time, so it is not compared.
            params = {name: value for name, value in question.params.items() if name != "elicitationId"}
            if asked.setdefault(key, (question.method, params)) != (question.method, params):
                # In the stateless era, the answer to the first question would be used for the second one.
                raise DeclarationError(f"the key {key!r} names two different questions in one call; use two keys")
        async with self._send_questions(questions) as ids_or_answers:
            for key, id_ in ids_or_answers.items():
                if not isinstance(id_, int):
                    continue  # the answer came with the call
                answer = await self._wait_for_answer(id_)
                if isinstance(answer, Failure):
                    method = questions[key].method
                    # Only a failure from our own transport has a kind: the question did not reach the client.
                    reason = f"{method} failed: {answer.message}" if answer.kind else f"the client refused {method}"
                    raise PeerError(reason, code=-32603)
                ids_or_answers[key] = read_answer(questions[key], answer.result)
            return ids_or_answers

    @property
    def _task(self) -> CallTask | None:
        """The task that answers instead of the client, if the call has become one."""
        task: CallTask | None = self.call.task
        return task if task is not None and task.is_detached else None

    async def _wait_for_answer(self, id_: int) -> Response | Failure:
        await self.link.flush()
        seconds = self.link.calls.limits.question_seconds
        with self.link.calls.pause_clock(self.call), move_on_after(seconds):
            return await self.link.answers.wait(id_)
        raise AnswerTimeout(seconds)

    async def forward_questions(
        self, requests: Mapping[str, tuple[str, dict[str, Any]]], carried: Any
    ) -> dict[str, Any]:
        """Ask the client the questions of another server, and return the raw answers. `requests` is the method and
        params of each question, by key.

        In a session with a handshake, and in a task, this waits for the answers. Otherwise the call ends here. When
        the client calls again, the answers are in `call.round.answers`, and `carried`, which must not be None, is in
        `call.round.carried`. Raises the same errors as `inputs`; PeerError contains the client's error.
        """
        questions = {key: read_question(*request) for key, request in requests.items()}
        if (task := self._task) is not None:
            return await task.ask(questions)
        if not self.peer.has_handshake:
            raise end_round(questions, self.peer, carried)
        async with self._send_questions(questions) as ids:
            answers = {key: await self._wait_for_answer(id_) for key, id_ in ids.items()}
        for answer in answers.values():
            if isinstance(answer, Failure):
                raise PeerError(answer.message, code=answer.code, data=answer.data)
        return {key: answer.result for key, answer in answers.items() if isinstance(answer, Response)}

    @asynccontextmanager
    async def _send_questions(self, questions: Mapping[str, Question]) -> AsyncIterator[dict[str, Any]]:
        """Ask the client the questions. Yield, by key, the id of each question, or its answer if that came with the
        call. At the end of the block, unanswered questions are withdrawn."""
        session = self.link.session
        ids_or_answers = session.ask(self.call, questions)
        sent = [value for value in ids_or_answers.values() if isinstance(value, int)]
        self.link.answers.expect(sent)
        try:
            yield ids_or_answers
        finally:
            self.link.answers.forget(sent)
            for id_ in sent:
                session.withdraw(id_)
            if sent:
                self.link.send_soon()  # the withdrawals, since a call that is over sends nothing else


# Conversion of a pydantic model to the flat schema that a form may have (2025-11-25, Elicitation, Requested Schema)

_TYPES = ("string", "number", "integer", "boolean")
_FORMATS = (None, "email", "uri", "date", "date-time")
_TEXT = {"format", "minLength", "maxLength", "enum", "enumNames", "oneOf"}
_NUMBER = {"minimum", "maximum"}
_ARRAY = {"items", "minItems", "maxItems"}
_KEYWORDS = {"type", "title", "description", "default"} | _TEXT | _NUMBER | _ARRAY
_ALTERNATIVES = {"exclusiveMinimum": "use ge=", "exclusiveMaximum": "use le="}
"""Advice for keywords that a form does not allow, but can express in another way."""


def form_schema(form: type[BaseModel]) -> dict[str, Any]:
    """Return the schema of `form`; the caller must not change it. Raises DeclarationError if `form` is not a model,
    or has a field that a form can't show. Fields may be strings, numbers, booleans, and single or multiple choices of
    strings; bounds must be inclusive."""
    value: object = form  # an author without a type checker may pass anything
    if not (isinstance(value, type) and issubclass(value, BaseModel)):
        raise DeclarationError(
            f"a form is a pydantic model, not {form!r}: declare a class with a field for each value, such as "
            "`class Name(BaseModel): name: str`"
        )
    return _make_form_schema(form)


@lru_cache(1_000)
def _make_form_schema(form: type[BaseModel]) -> dict[str, Any]:
    schema = inline_definitions(form.model_json_schema(schema_generator=JsonSchema))
    fields = {name: _check_form_field(form, name, field) for name, field in schema.get("properties", {}).items()}
    result: dict[str, Any] = {"type": "object", "properties": fields}
    if schema.get("required"):
        result["required"] = schema["required"]
    return result


def _check_form_field(form: type[BaseModel], name: str, field: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a field with keywords that a form allows. Raises DeclarationError if it can't."""
    if "const" in field:
        # Forms have no `const`; a choice with one value means the same.
        field = {"type": "string", "enum": [field.pop("const")], **field}
    items = field.get("items", {})
    is_choice_list = field.get("type") == "array" and ("enum" in items or "anyOf" in items)
    if field.get("type") not in _TYPES and not is_choice_list:
        raise DeclarationError(
            f"{form.__name__}.{name}: a form may have only strings, numbers, booleans and choices; use str, int, "
            'float, bool, Literal["a", "b"], an Enum of strings, or a list of such choices'
        )
    if any("enum" in part and part.get("type") != "string" for part in (field, items)):
        raise DeclarationError(f'{form.__name__}.{name}: choices must be strings, such as Literal["1", "2"]')
    unsupported = sorted(field.keys() - _KEYWORDS)
    if unsupported or field.get("format") not in _FORMATS:
        advice = {
            _ALTERNATIVES.get(keyword, "check the value in the tool, after the answer") for keyword in unsupported
        }
        raise DeclarationError(
            f"{form.__name__}.{name}: a form can't show {', '.join(unsupported) or repr(field['format'])}; "
            f"{' and '.join(sorted(advice)) or 'use str'}"
        )
    return field
