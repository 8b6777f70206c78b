"""State transitions of a task: functions from a record to the next one, without a clock or a store.

    working ◀──▶ input_required
        └──────────────┴──▶ completed, failed, cancelled

A task that is over stays unchanged: each function returns the same record if nothing changes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ...contracts import TaskRecord
from ...protocol.types.tasks import TaskStatus

_FINAL = frozenset({"completed", "failed", "cancelled"})


def is_over(task: TaskRecord) -> bool:
    """Return True if the state of the task is final."""
    return task.status in _FINAL


def report(task: TaskRecord, message: str, now: float) -> TaskRecord:
    """Return the task with its new progress."""
    return task if is_over(task) or task.message == message else _revise(task, now, message=message)


def ask(task: TaskRecord, questions: Mapping[str, Any], now: float) -> TaskRecord:
    """Return the task with `questions`, whose keys are new, added to its open questions."""
    if is_over(task) or not questions:
        return task
    return _revise(task, now, status="input_required", questions={**task.questions, **questions})


def answer(task: TaskRecord, answers: Mapping[str, Any], now: float) -> TaskRecord:
    """Return the task with the answers added. Answers to unknown questions, or to questions no longer open, change
    nothing."""
    matching = {key: answer for key, answer in answers.items() if key in task.questions}
    if is_over(task) or not matching:
        return task
    return _keep_open(task, matching, now, {**task.answers, **matching})


def withdraw(task: TaskRecord, keys: Iterable[str], now: float) -> TaskRecord:
    """Return the task without the questions and answers with these keys, which were taken or are no longer needed."""
    gone = set(keys)
    if is_over(task) or gone.isdisjoint({*task.questions, *task.answers}):
        return task
    return _keep_open(task, gone, now, {key: answer for key, answer in task.answers.items() if key not in gone})


def end(
    task: TaskRecord, status: TaskStatus, outcome: Mapping[str, Any], now: float, message: str | None = None
) -> TaskRecord:
    """Return the task ended with `outcome`, its result or error; `message` is the reason, if it is not obvious."""
    if is_over(task):
        return task
    return _revise(task, now, status=status, outcome=outcome, message=message, questions={}, answers={})


def cancel(task: TaskRecord, now: float, message: str | None = None) -> TaskRecord:
    """Return the cancelled task."""
    return (
        task if is_over(task) else _revise(task, now, status="cancelled", message=message, questions={}, answers={})
    )


def _keep_open(task: TaskRecord, done: Iterable[str], now: float, answers: Mapping[str, Any]) -> TaskRecord:
    remaining = {key: question for key, question in task.questions.items() if key not in set(done)}
    status: TaskStatus = "input_required" if remaining else "working"
    return _revise(task, now, status=status, questions=remaining, answers=answers)


def _revise(task: TaskRecord, now: float, **changes: Any) -> TaskRecord:
    # The clock may be set back.
    return replace(task, updated=max(now, task.updated), revision=task.revision + 1, **changes)
