"""hpcfit status DIR: how far a campaign is."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from hpcfit.commands.standing import look
from hpcfit.commands.verb import new_verb
from hpcfit.reporting.standing import as_json, as_text

PAUSE = 5.0  # seconds between two looks


def add(verbs: Any) -> None:
    parser = new_verb(
        verbs,
        "status",
        "tell how far a campaign is",
        "hpcfit status campaign",
        "hpcfit status campaign --failed",
        "hpcfit status campaign --watch",
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="folder of the campaign")
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.add_argument("--failed", action="store_true", help="tasks in trouble, with the logs to read")
    parser.add_argument(
        "--watch",
        nargs="?",
        type=float,
        const=PAUSE,
        metavar="SECONDS",
        help=f"look again every so often ({PAUSE:g} s) until nothing is at work",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    unicode = (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")
    while True:
        found = look(arguments.folder)
        if arguments.json:
            print(json.dumps(as_json(found), allow_nan=False))
        else:
            clear = "\x1b[H\x1b[2J" if arguments.watch is not None and sys.stdout.isatty() else ""
            print(clear + as_text(found, unicode=unicode, trouble_only=arguments.failed))
        sys.stdout.flush()
        at_work = any(task.state in ("running", "waiting") for task in found.tasks)
        if arguments.watch is None or not at_work:
            return 0
        time.sleep(max(arguments.watch, 0.2))
