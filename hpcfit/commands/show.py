"""hpcfit show RESULT.h5: a result as text, JSON or CSV; two results: compared."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from hpcfit.commands.results import load_named
from hpcfit.commands.verb import new_verb
from hpcfit.records import InputError, Mistake
from hpcfit.reporting import tables


def add(verbs: Any) -> None:
    parser = new_verb(
        verbs,
        "show",
        "print a result, or compare two",
        "hpcfit show demo.h5",
        "hpcfit show demo.h5 --json",
        "hpcfit show first.h5 second.h5",
    )
    parser.add_argument(
        "results",
        type=Path,
        nargs="+",
        metavar="RESULT",
        help="result file (.h5) or folder of a campaign; or two",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="as JSON")
    form.add_argument("--csv", action="store_true", help="as CSV, all digits")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    if len(arguments.results) > 2:
        raise InputError(
            Mistake("show", f"{len(arguments.results)} results given", "give one, or two to compare")
        )
    if len(arguments.results) == 2 and (arguments.json or arguments.csv):
        raise InputError(Mistake("show", "--json and --csv show one result", "leave them out to compare two"))
    saved = [load_named(path) for path in arguments.results]
    first = saved[0]
    if len(saved) == 2:
        names = (str(arguments.results[0]), str(arguments.results[1]))
        print(tables.compare(first.record, saved[1].record, names, unicode=_can_print_unicode()))
    elif arguments.json:
        print(json.dumps(tables.as_json(first.record, first.provenance), indent=2, allow_nan=False))
    elif arguments.csv:
        sys.stdout.write(tables.as_csv(first.record))
    else:
        print(tables.as_text(first.record, first.provenance, unicode=_can_print_unicode()))
    return 0


def _can_print_unicode() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") in ("utf8", "utf16", "utf32")
