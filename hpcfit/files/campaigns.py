"""The folder of a campaign: what is planned, what is done, who did it.

DIR/job.toml, plan.json, inputs/ (copies of the files that the job names), kernels/ (machine code),
parts/<task>-<first>-<last>.<jobid>-<restart>.h5 (chunks of unfinished tasks), tasks/<task>.h5 (finished
tasks), tasks/<task>.<jobid>-<restart>.json (who worked on a task, when, and how it ended), logs/, result.h5.
A file appears whole or not at all; done = the file is there, and holds what its checksums say.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from hpcfit.files.replacing import replacing
from hpcfit.records import Campaign, InputError, Interval, Mistake, Part, gaps, united

FORMAT = 1
FOLDERS = ("inputs", "kernels", "parts", "tasks", "logs")
_PART = re.compile(r"(\d+)-(\d+)-(\d+)\.([^/]+)\.h5")
_UNFINISHED = re.compile(r"\..+\.part")  # of files/replacing.py
_TASK = re.compile(r"(\d+)\.h5")
_NOTE = re.compile(r"(\d+)\.([^/]+)\.json")


def plan_file(folder: Path) -> Path:
    return folder / "plan.json"


def task_file(folder: Path, task: int) -> Path:
    return folder / "tasks" / f"{task}.h5"


def part_file(folder: Path, part: Part) -> Path:
    return folder / "parts" / part.name


def result_file(folder: Path) -> Path:
    return folder / "result.h5"


def partial_file(folder: Path) -> Path:
    """What is there of an unfinished campaign, where somebody asked for it."""
    return folder / "partial.h5"


def make_folders(folder: Path) -> None:
    """The folder of a campaign with its inner folders, as far as they are not there."""
    for name in ("", *FOLDERS):
        try:
            (folder / name).mkdir(mode=0o700 if name == "kernels" else 0o777, parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                Mistake(str(folder / name), f"cannot be made: {error.strerror}", "choose another folder")
            ) from None


def write_plan(folder: Path, plan: Campaign) -> None:
    """plan.json, whole or not at all."""
    with replacing(plan_file(folder)) as part:
        part.write_text(json.dumps({"format": FORMAT, **asdict(plan)}, indent=1) + "\n", encoding="utf-8")


def read_plan(folder: Path) -> Campaign:
    """What a folder's campaign is."""
    file = plan_file(folder)
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        remedy = "give the folder that `hpcfit submit` made"
        raise InputError(Mistake(str(folder), "holds no campaign: there is no plan.json", remedy)) from None
    except NotADirectoryError:
        raise InputError(Mistake(str(folder), "is no folder", "give that of a campaign")) from None
    except OSError as error:
        raise InputError(
            Mistake(str(file), f"cannot be read: {error.strerror}", "check its permissions")
        ) from None
    except ValueError as error:
        raise InputError(Mistake(str(file), f"is damaged: {error}", "submit the job again")) from None
    if not isinstance(found, dict) or not isinstance(found.get("format"), int):
        raise InputError(Mistake(str(file), "is no plan of a campaign", "submit the job again"))
    if found["format"] > FORMAT:
        raise InputError(Mistake(str(file), f"format {found['format']} is newer", "upgrade hpcfit"))
    known = {field.name for field in fields(Campaign)}
    try:
        plan = Campaign(**{key: value for key, value in found.items() if key in known})
        tasks = tuple((int(first), int(last)) for first, last in found["tasks"])
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(Mistake(str(file), f"is damaged: {error}", "submit the job again")) from None
    return Campaign(
        **{**vars(plan), "tasks": tasks, "overrides": tuple(plan.overrides), "chosen": tuple(plan.chosen)}
    )


def parts(folder: Path) -> list[Part]:
    """All part files, by their names; several may hold the same members."""
    found = (_PART.fullmatch(name) for name in _names(folder / "parts"))
    return [Part(int(m[1]), int(m[2]), int(m[3]), m[4]) for m in found if m]


def finished_tasks(folder: Path) -> set[int]:
    """The tasks that have their file."""
    found = (_TASK.fullmatch(name) for name in _names(folder / "tasks"))
    return {int(m[1]) for m in found if m}


def is_merged(folder: Path) -> bool:
    """Whether the result is not older than any task: tasks may have been added, or computed again."""
    try:
        merged = result_file(folder).stat().st_mtime_ns
        return all(task_file(folder, task).stat().st_mtime_ns <= merged for task in finished_tasks(folder))
    except FileNotFoundError:
        return False


def remove_leftovers(folder: Path) -> None:
    """Parts of twins, and what killed tasks were writing; only when all tasks are finished."""
    for name in _names(folder / "parts"):
        if _PART.fullmatch(name) or _UNFINISHED.fullmatch(name):
            (folder / "parts" / name).unlink(missing_ok=True)
    for name in _names(folder / "tasks"):
        if _UNFINISHED.fullmatch(name):
            (folder / "tasks" / name).unlink(missing_ok=True)


def done_members(folder: Path, plan: Campaign | None = None) -> list[Interval]:
    """The places of the members that are in task or part files, as few intervals as possible.

    By the names of the files, which is quick; the task and the merge look at their content.
    """
    plan = plan or read_plan(folder)
    whole = [plan.tasks[task] for task in finished_tasks(folder) if task < len(plan.tasks)]
    return united([*whole, *(part.interval for part in parts(folder))])


def unfinished_tasks(folder: Path, plan: Campaign | None = None) -> dict[int, list[Interval]]:
    """The tasks without a file, and the places of their members that no part holds either."""
    plan, finished = plan or read_plan(folder), finished_tasks(folder)
    held: dict[int, list[Interval]] = {}
    for part in parts(folder):
        held.setdefault(part.task, []).append(part.interval)
    return {
        task: gaps(held.get(task, []), first, last)
        for task, (first, last) in enumerate(plan.tasks)
        if task not in finished
    }


def write_note(folder: Path, task: int, writer: str, note: Mapping[str, Any]) -> None:
    """Who worked on a task, when, and how it ended: tasks/<task>.<jobid>-<restart>.json."""
    with replacing(folder / "tasks" / f"{task}.{writer}.json") as part:
        part.write_text(json.dumps(dict(note), indent=1) + "\n", encoding="utf-8")


def notes(folder: Path) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """(task, writer, note) of all that worked on tasks; what cannot be read is left out."""
    for name in sorted(_names(folder / "tasks")):
        found = _NOTE.fullmatch(name)
        if not found:
            continue
        try:
            note = json.loads((folder / "tasks" / name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(note, dict):
            yield int(found[1]), found[2], note


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InputError(
            Mistake(str(folder), f"cannot be read: {error.strerror}", "check its permissions")
        ) from None
