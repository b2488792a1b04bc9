"""hpcfit merge DIR: the result of a campaign from the files of its tasks."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path
from typing import Any

from hpcfit.commands.merging import merged
from hpcfit.commands.opening import opened
from hpcfit.commands.verb import new_verb

log = logging.getLogger(__name__)


def add(verbs: Any) -> None:
    parser = new_verb(
        verbs,
        "merge",
        "join the tasks of a campaign into its result",
        "hpcfit merge campaign && hpcfit show campaign",
        "hpcfit merge campaign --partial",
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="folder of the campaign")
    parser.add_argument(
        "--partial", action="store_true", help="join what is there, also of unfinished tasks, as partial.h5"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    target, said = merged(opened(arguments.folder), partial=arguments.partial)
    log.info("%s: %s -> %s", arguments.folder, said, target)
    return 0
