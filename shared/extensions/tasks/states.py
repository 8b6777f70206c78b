"""What may become of a task: functions from what it is to what it is next, without a clock or a store.

    working ◀──▶ input_required
       └──────────────┴──▶ completed, failed, cancelled

What is over stays as it is: each function gives back the very record that it was given where nothing changes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ...contracts import TaskRecord
from ...protocol.types.tasks import TaskStatus

_FINAL = frozenset({"completed", "failed", "cancelled"})


def is_over(task: TaskRecord) -> bool:
    """Whether nothing more becomes of it."""
    return task.status in _FINAL


def reported(task: TaskRecord, message: str, now: float) -> TaskRecord:
    """It has come so far."""
    return task if is_over(task) or task.message == message else _next(task, now, message=message)


def asked(task: TaskRecord, questions: Mapping[str, Any], now: float) -> TaskRecord:
    """It waits for answers to `questions` as well, whose keys are new."""
    if is_over(task) or not questions:
        return task
    return _next(task, now, status="input_required", questions={**task.questions, **questions})


def answered(task: TaskRecord, answers: Mapping[str, Any], now: float) -> TaskRecord:
    """Answers have come. Those to what it does not ask, or not any more, change nothing."""
    wanted = {key: answer for key, answer in answers.items() if key in task.questions}
    if is_over(task) or not wanted:
        return task
    return _asking(task, wanted, now, {**task.answers, **wanted})


def withdrawn(task: TaskRecord, keys: Iterable[str], now: float) -> TaskRecord:
    """It needs no answers of these keys any more: they were taken, or nobody waits for them."""
    gone = set(keys)
    if is_over(task) or gone.isdisjoint({*task.questions, *task.answers}):
        return task
    return _asking(task, gone, now, {key: one for key, one in task.answers.items() if key not in gone})


def ended(
    task: TaskRecord, status: TaskStatus, outcome: Mapping[str, Any], now: float, message: str | None = None
) -> TaskRecord:
    """It has come to `outcome`, its result or error; `message` says why, where that is not plain from this."""
    if is_over(task):
        return task
    return _next(task, now, status=status, outcome=outcome, message=message, questions={}, answers={})


def cancelled(task: TaskRecord, now: float, message: str | None = None) -> TaskRecord:
    """Nobody wants it any more."""
    return task if is_over(task) else _next(task, now, status="cancelled", message=message, questions={}, answers={})


def _asking(task: TaskRecord, done: Iterable[str], now: float, answers: Mapping[str, Any]) -> TaskRecord:
    left = {key: question for key, question in task.questions.items() if key not in set(done)}
    status: TaskStatus = "input_required" if left else "working"
    return _next(task, now, status=status, questions=left, answers=answers)


def _next(task: TaskRecord, now: float, **changes: Any) -> TaskRecord:
    # The clock may be set back.
    return replace(task, updated=max(now, task.updated), revision=task.revision + 1, **changes)
