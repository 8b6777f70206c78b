"""The handlers of a client for input requests and notifications from its server. They convert between the
dictionaries on the wire and the models that the functions in `ClientOptions` accept and return."""

import logging
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from pydantic import ValidationError

from ...errors import InvalidAnswer, InvalidParams
from ...protocol.session.client_events import Notified
from ...protocol.types.base import Params, Wire, locate_first_error
from ...protocol.types.client import CreateMessageResult, ElicitResult, ListRootsResult
from ...protocol.types.elicitation import ElicitForm, ElicitUrl
from ...protocol.types.sampling import CreateMessageParams
from ..options import ClientOptions, Handler, Log, Roots, Sample
from ..schemas.schema_cost import UnusableSchema
from ..schemas.schemas import CheckedSchema
from .url_elicitation import Visits

ParamsT = TypeVar("ParamsT", bound=Params)
WireT = TypeVar("WireT", bound=Wire)

_log = logging.getLogger("shared.client.handlers")


class Handlers:
    """The handlers of one client."""

    def __init__(self, options: ClientOptions) -> None:
        self._options = options
        self.visits = Visits()
        self.input_handlers: dict[str, Handler] = {}
        """The handlers of input requests, by method."""
        self._notification_handlers: dict[str, Callable[[dict[str, Any]], None]] = {}
        if options.elicit is not None or options.elicit_url is not None:
            self.input_handlers["elicitation/create"] = self._elicit
        if options.sample is not None:
            self.input_handlers["sampling/createMessage"] = partial(_sample, options.sample, options.sample_tools)
        if options.roots is not None:
            self.input_handlers["roots/list"] = partial(_list_roots, options.roots)
        if options.on_log is not None:
            self._notification_handlers["notifications/message"] = partial(_log_message, options.on_log)
        if options.elicit_url is not None:
            self._notification_handlers["notifications/elicitation/complete"] = self._end_visit

    def on_notification(self, notification: Notified) -> None:
        """Handle a notification that belongs to no call and no subscription."""
        handler = self._notification_handlers.get(notification.method)
        if handler is not None:
            handler(notification.params)
        elif self._options.on_notification is not None:
            self._options.on_notification(notification.method, notification.params)

    # Input requests

    async def _elicit(self, params: dict[str, Any]) -> dict[str, Any]:
        mode = params.get("mode", "form")
        if mode == "form" and self._options.elicit is not None:
            form = _read("elicitation/create", ElicitForm, params)
            answer = _check_type(
                ElicitResult, await self._options.elicit(form), "elicit", 'action="accept", content=...'
            )
            try:
                return fill_in_defaults(form, answer).to_wire()
            except InvalidAnswer as error:
                # In the handshake era no caller of the client receives this error, so it is logged.
                _log.error("%s", error)
                raise
        if mode == "url" and self._options.elicit_url is not None:
            visit = _read("elicitation/create", ElicitUrl, params)
            if visit.elicitation_id is not None:
                self.visits.begin(visit.elicitation_id)
            answer = _check_type(ElicitResult, await self._options.elicit_url(visit), "elicit_url", 'action="accept"')
            if answer.action != "accept":
                self.visits.end(visit.elicitation_id or "")
            return ElicitResult(action=answer.action).to_wire()
        raise InvalidParams("this mode of elicitation was not declared")

    def _end_visit(self, params: dict[str, Any]) -> None:
        # Ids that are unknown or already completed must be ignored (2025-11-25, Elicitation, URL Mode).
        id_ = params.get("elicitationId")
        if isinstance(id_, str) and self.visits.end(id_) and self._options.on_visited is not None:
            self._options.on_visited(id_)


def _check_type(kind: type[WireT], answer: object, handler: str, fields: str) -> WireT:
    """Return `answer`, which the user's function named `handler` has returned. Raises TypeError if it is not of the
    class `kind`; the error's text does not contain the value, which may be a secret."""
    if not isinstance(answer, kind):
        raise TypeError(f"{handler} must return {kind.__name__}({fields}), not {type(answer).__name__}")
    return answer


def _read(method: str, model: type[ParamsT], params: dict[str, Any]) -> ParamsT:
    try:
        return model.model_validate(params)
    except ValidationError as error:
        path, fault = locate_first_error(error, params)
        raise InvalidParams(f"{method} is invalid at {path}: {fault}") from None


async def _sample(sample: Sample, allows_tools: bool, params: dict[str, Any]) -> dict[str, Any]:
    if not allows_tools and ("tools" in params or "toolChoice" in params):
        raise InvalidParams("sampling with tools was not declared")
    conversation = _read("sampling/createMessage", CreateMessageParams, params)
    fault = conversation.fault()
    if fault is not None:
        raise InvalidParams(fault)
    return _check_type(
        CreateMessageResult, await sample(conversation), "sample", "role=..., content=..., model=..."
    ).to_wire()


async def _list_roots(roots: Roots, _params: dict[str, Any]) -> dict[str, Any]:
    current_roots = await roots() if callable(roots) else roots
    return ListRootsResult(roots=list(current_roots)).to_wire()


def _log_message(log: Log, params: dict[str, Any]) -> None:
    level, logger = params.get("level"), params.get("logger")
    if isinstance(level, str):
        log(level, logger if isinstance(logger, str) else None, params.get("data"))


def fill_in_defaults(form: ElicitForm, answer: ElicitResult) -> ElicitResult:
    """Return `answer` with the defaults of the fields that an accepted form omits (SEP-1034); it is sent to the
    server in this form.

    Raises InvalidAnswer if the answer violates the schema of the form.
    """
    if answer.action != "accept":
        return ElicitResult(action=answer.action)
    filled = {name: value for name, value in (answer.content or {}).items() if value is not None}
    content: dict[str, Any] = {**form.defaults(), **filled}
    try:
        fault = CheckedSchema(form.requested_schema, form=True).find_error(content)
    except UnusableSchema:
        fault = None  # the schema can't be used, so the server has to check the answer itself
    if fault is not None:
        path, text = fault
        raise InvalidAnswer(f"the answer to a form is invalid at {'.'.join(path) or 'the top level'}: {text}")
    return ElicitResult(action="accept", content=content)
