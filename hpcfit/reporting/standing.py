"""How far a campaign is, for people and for programs."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

from hpcfit.records.submissions import Standing, TaskStanding
from hpcfit.reporting.layout import plain, running, shortened, table, visible
from hpcfit.reporting.strict import strict_page

STATES = ("done", "running", "waiting", "held", "unknown", "left early", "failed", "missing")
TROUBLE = ("held", "left early", "failed")
MOST_ROWS, WIDTH = 20, 100


def as_text(standing: Standing, *, unicode: bool, trouble_only: bool = False) -> str:
    """Totals, then the tasks that are not done; those in trouble first."""
    lines = [f"{visible(standing.name)} · campaign in {visible(standing.folder)}", *_totals(standing)]
    shown = [task for task in standing.tasks if task.state != "done"]
    if trouble_only:
        shown = [task for task in shown if task.state in TROUBLE]
    shown.sort(key=lambda task: (task.state not in TROUBLE, STATES.index(task.state), task.task))
    if shown:
        lines += ["", *_tasks(shown)]
    elif trouble_only:
        lines += ["", "no task is in trouble"]
    text = "\n".join(lines)
    return text if unicode else "\n".join(map(plain, lines))


def as_json(standing: Standing) -> dict[str, object]:
    """All of it; a time that is not known is null."""
    return strict_page(asdict(standing))


def _totals(standing: Standing) -> list[str]:
    failed = sum(standing.failed.values())
    part = f"{standing.done / standing.members:.1%}" if standing.members else "–"
    members = [f"{standing.done:,} of {standing.members:,} done ({part})"]
    members += [f"{failed:,} of them failed"] if failed else []
    for name in ("running", "waiting", "unknown", "missing"):
        members += [f"{getattr(standing, name):,} {name}"] if getattr(standing, name) else []
    counts = Counter(task.state for task in standing.tasks)
    rows = [
        ("members", members),
        ("tasks", [f"{counts[state]:,} {state}" for state in STATES if counts[state]]),
        ("failed", [f"{count:,} {reason}" for reason, count in sorted(standing.failed.items())]),
        ("rate", _rate(standing)),
        ("result", _result(standing)),
        ("remark", list(standing.remarks)),
        ("next", _next(standing)),
    ]
    return [
        line
        for name, entries in rows
        if entries
        for line in running(map(visible, entries), WIDTH, f"{name:9}")
    ]


def _rate(standing: Standing) -> list[str]:
    if not standing.rate:
        return []
    digits = ",.0f" if standing.rate >= 100 else ".3g"
    found = [f"{standing.rate:{digits}} members/s"]
    if math.isfinite(standing.seconds_left) and standing.seconds_left > 0:
        found.append(f"about {duration(standing.seconds_left)} to go")
    return found


def _result(standing: Standing) -> list[str]:
    if standing.merged:
        return [standing.result]
    return ["not merged yet"] if standing.done == standing.members else []


def _next(standing: Standing) -> list[str]:
    """The command that goes on from here; none if something is at work."""
    if any(task.state in ("running", "waiting", "unknown") for task in standing.tasks):
        return []
    folder = shlex.quote(standing.folder)
    if standing.missing or any(task.state != "done" for task in standing.tasks):
        return [f"hpcfit resume {folder}"]
    verb = f"report {folder}" if standing.merged else f"merge {folder}"
    return [f"hpcfit {verb}"]


def _tasks(tasks: Sequence[TaskStanding]) -> list[str]:
    rows = [
        (
            str(task.task),
            f"{task.done:,} of {task.members:,}",
            task.state,
            shortened(visible(task.place), 24),
            shortened(visible(task.why), 40),
            task.log,
        )
        for task in tasks[:MOST_ROWS]
    ]
    more = [f"… {len(tasks) - MOST_ROWS:,} more"] if len(tasks) > MOST_ROWS else []
    return [*table(("task", "members", "state", "where", "why", "log"), rows, left=(0, 2, 3, 4, 5)), *more]


def duration(seconds: float) -> str:
    """For people."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def size(count: float) -> str:
    """Bytes for people."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"
