"""The state transitions of a task, as functions from a record to the next one, without a clock or a store.

    working ◀──▶ input_required
        └──────────────┴──▶ completed, failed, cancelled

If nothing changes, a function returns the same record. A task that is over never changes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ...contracts import TaskRecord
from ...protocol.types.tasks import TaskStatus

_FINAL = frozenset({"completed", "failed", "cancelled"})


def is_over(task: TaskRecord) -> bool:
    """Return True if the status of the task is final."""
    return task.status in _FINAL


def report(task: TaskRecord, message: str, now: float) -> TaskRecord:
    """Return the task with the status message `message`."""
    return task if is_over(task) or task.message == message else _revise(task, now, message=message)


def ask(task: TaskRecord, questions: Mapping[str, Any], now: float) -> TaskRecord:
    """Return the task with further `questions` that wait for answers. Their keys must be new."""
    if is_over(task) or not questions:
        return task
    return _revise(task, now, status="input_required", questions={**task.questions, **questions})


def answer(task: TaskRecord, answers: Mapping[str, Any], now: float) -> TaskRecord:
    """Return the task with further answers, except those to questions that do not wait for one."""
    expected_answers = {key: answer for key, answer in answers.items() if key in task.questions}
    if is_over(task) or not expected_answers:
        return task
    return _keep_open(task, expected_answers, now, {**task.answers, **expected_answers})


def withdraw(task: TaskRecord, keys: Iterable[str], now: float) -> TaskRecord:
    """Return the task without the questions and answers with these keys, which are no longer needed."""
    removed_keys = set(keys)
    if is_over(task) or removed_keys.isdisjoint({*task.questions, *task.answers}):
        return task
    return _keep_open(
        task, removed_keys, now, {key: answer for key, answer in task.answers.items() if key not in removed_keys}
    )


def end(
    task: TaskRecord, status: TaskStatus, outcome: Mapping[str, Any], now: float, message: str | None = None
) -> TaskRecord:
    """Return the task at its end, with the final `status`. `outcome` is its result or error, and `message` the reason
    for people, if any."""
    if is_over(task):
        return task
    return _revise(task, now, status=status, outcome=outcome, message=message, questions={}, answers={})


def cancel(task: TaskRecord, now: float, message: str | None = None) -> TaskRecord:
    """Return the task as cancelled."""
    return (
        task if is_over(task) else _revise(task, now, status="cancelled", message=message, questions={}, answers={})
    )


def _keep_open(task: TaskRecord, closed_keys: Iterable[str], now: float, answers: Mapping[str, Any]) -> TaskRecord:
    remaining = {key: question for key, question in task.questions.items() if key not in set(closed_keys)}
    status: TaskStatus = "input_required" if remaining else "working"
    return _revise(task, now, status=status, questions=remaining, answers=answers)


def _revise(task: TaskRecord, now: float, **changes: Any) -> TaskRecord:
    # The clock may have been set back, but `updated` must not decrease.
    return replace(task, updated=max(now, task.updated), revision=task.revision + 1, **changes)
