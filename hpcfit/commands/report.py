"""hpcfit report RESULT.h5 -o report.html: pictures and tables on one self-contained page."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path
from typing import Any

from hpcfit.commands.results import load_named
from hpcfit.commands.verb import new_verb
from hpcfit.files.replacing import replacing
from hpcfit.records import InputError, Mistake

log = logging.getLogger(__name__)


def add(verbs: Any) -> None:
    parser = new_verb(
        verbs,
        "report",
        "make a page with pictures (.html, .pdf, .png)",
        "hpcfit report demo.h5 -o demo.html",
        "hpcfit report campaign -o campaign.pdf",
    )
    parser.add_argument("result", type=Path, help="result file (.h5), or folder of a campaign")
    parser.add_argument(
        "-o", "--output", type=Path, help="page to write; default: the result's name with .html, here"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    try:
        from hpcfit.reporting.page import write_report  # loads matplotlib: only when needed
    except ModuleNotFoundError as missing:
        problem = f"reports need {missing.name}, which is not installed"
        raise InputError(Mistake("report", problem, "pip install 'hpcfit[report]'")) from None

    target = arguments.output or Path(arguments.result.with_suffix(".html").name)
    saved = load_named(arguments.result)
    with replacing(target) as part:
        write_report(
            saved.record,
            saved.provenance,
            saved.job_text,
            title=f"{saved.record.model}: {saved.kind}",
            target=part,
            suffix=target.suffix,
        )
    log.info("%s -> %s", arguments.result, target)
    return 0
