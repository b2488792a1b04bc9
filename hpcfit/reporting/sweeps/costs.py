"""What a campaign took, from the provenance of its result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TASK_HEADER = ("task", "members", "hosts", "ranks", "job", "parts", "seconds", "members/s", "ended")


def rows(provenance: Mapping[str, Any], members: int) -> list[tuple[str, str]]:
    """Tasks, core-hours, bytes, attempts; nothing where the result is not that of a campaign."""
    spent = provenance.get("campaign")
    if not isinstance(spent, Mapping):
        return []
    each = 1000.0 * 3600.0 * spent["core_hours"] / max(members, 1)
    planned = f" of {spent['planned']:,}" if spent["planned"] != members else ""
    attempts = f"{spent['attempts']:,}"
    attempts += f", {spent['left_early']:,} of which left early" if spent["left_early"] else ""
    hosts = list(spent["hosts"])
    shown = ", ".join(hosts[:6]) + (f" and {len(hosts) - 6} more" if len(hosts) > 6 else "")
    return [
        ("campaign", f"{spent['name']}: {members:,}{planned} members in {spent['tasks']:,} tasks"),
        ("core-hours", f"{spent['core_hours']:.3g}, {each:.3g} ms a member and core"),
        ("files", f"{_bytes(spent['bytes'])}, {spent['bytes'] / max(members, 1):.0f} bytes a member"),
        ("attempts", attempts),
        ("machines", f"{len(hosts)}: {shown}"),
        ("from, to", f"{spent['created']}, {spent['finished']}"),
    ]


def without_campaign(provenance: Mapping[str, Any]) -> dict[str, Any]:
    """What is not told of a campaign elsewhere."""
    return {key: value for key, value in provenance.items() if key not in ("campaign", "tasks")}


def task_rows(provenance: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """One row a task, as under TASK_HEADER."""
    tasks = provenance.get("tasks")
    return [_task(k, task) for k, task in enumerate(tasks)] if isinstance(tasks, list) else []


def _task(number: int, task: Mapping[str, Any]) -> tuple[str, ...]:
    members, seconds = task["last"] - task["first"], float(task["seconds"])
    return (
        str(number),
        f"{members:,}",
        ", ".join(task["hosts"]),
        str(task["ranks"]),
        str((task.get("slurm") or {}).get("job_id", "")),
        str(task["parts"]),
        f"{seconds:.1f}",
        f"{members / seconds:.0f}" if seconds else "",
        str(task["ended"]),
    )


def _bytes(count: float) -> str:
    units = ["bytes", "kB", "MB", "GB", "TB"]
    while count >= 1000.0 and len(units) > 1:
        count /= 1000.0
        units.pop(0)
    return f"{count:.3g} {units[0]}"
