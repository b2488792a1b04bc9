"""hpcfit logs DIR MEMBER: what the task of a member said."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from hpcfit.commands.verb import new_verb
from hpcfit.files.campaigns import notes, read_plan
from hpcfit.records import Campaign, InputError, Mistake
from hpcfit.reporting.layout import visible

TOLD = ("host", "ranks", "started", "ended", "members", "seconds", "status", "error")  # of each attempt
TAIL = 65536  # bytes of each log, unless all is asked for


def add(verbs: Any) -> None:
    parser = new_verb(
        verbs,
        "logs",
        "print what the task of a member said",
        "hpcfit logs campaign 4711",
        "hpcfit logs campaign merge",
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="folder of the campaign")
    parser.add_argument("member", metavar="MEMBER", help="number of a member, from 1; or: merge")
    parser.add_argument("--all", action="store_true", help="the logs in full, not only their ends")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    folder = arguments.folder
    plan = read_plan(folder)
    if arguments.member == "merge":
        head, prefix = "merge", "merge"
    else:
        task = task_of(plan, arguments.member)
        first, last = plan.tasks[task]
        head = f"member {arguments.member}: task {task}, members {first + 1:,} to {last:,}"
        prefix = str(task)
        for _, writer, note in (each for each in notes(folder) if each[0] == task):
            told = (f"{key} {visible(str(note[key]))}" for key in TOLD if note.get(key) not in (None, ""))
            head += f"\n  {writer}: {', '.join(told)}"
    print(head)
    found = _logs(folder, prefix)
    for path in found:
        print(f"==> {path} <==")
        _print_end(path, arguments.all)
    if not found:
        print("no log yet")
    return 0


def task_of(plan: Campaign, member: str) -> int:
    """The task that computes a member."""
    if not (member.isascii() and member.isdigit()) or not 1 <= int(member) <= plan.members:
        problem = f"the campaign has no member {member}"
        raise InputError(Mistake("MEMBER", problem, f"give a number from 1 to {plan.members}, or merge"))
    place = int(member) - 1
    return next(task for task, (first, last) in enumerate(plan.tasks) if first <= place < last)


def _logs(folder: Path, prefix: str) -> list[Path]:
    """All logs of a task, the oldest first."""
    try:
        names = os.listdir(folder / "logs")
    except FileNotFoundError:
        return []
    own = [
        folder / "logs" / name for name in names if name.startswith(f"{prefix}.") and name.endswith(".out")
    ]
    return sorted(own, key=lambda path: path.stat().st_mtime)


def _print_end(path: Path, whole: bool) -> None:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0 if whole else max(size - TAIL, 0))
        if not whole and size > TAIL:
            print(f"... {size - TAIL:,} bytes before (--all)")
            file.readline()
        text = file.read().decode("utf-8", "replace")
    sys.stdout.write("".join(f"{visible(line)}\n" for line in text.splitlines()))
