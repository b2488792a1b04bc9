"""hpcfit cancel DIR: end the jobs of a campaign; what is done stays."""

from __future__ import annotations

import argparse
import logging
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from hpcfit.cluster import slurm
from hpcfit.cluster.local import ask_to_leave
from hpcfit.cluster.submitting import cancel_interrupted
from hpcfit.commands.standing import alive_jobs
from hpcfit.commands.verb import new_verb
from hpcfit.files.campaigns import read_plan
from hpcfit.files.locks import holder, locked
from hpcfit.files.submissions import read_submissions, record_submission
from hpcfit.records.submissions import CANCELLED, LOCAL, RELEASED

log = logging.getLogger(__name__)


def add(verbs: Any) -> None:
    parser = new_verb(
        verbs, "cancel", "end the jobs of a campaign; what is done stays", "hpcfit cancel campaign"
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="folder of the campaign")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    folder = arguments.folder
    read_plan(folder)
    held = holder(folder)
    if held and held.get("what") == LOCAL:
        ask_to_leave(held)
        log.info("process %s on this machine leaves when its tasks have ended a chunk", held["pid"])
        return 0
    with locked(folder, "cancel"):
        submissions = read_submissions(folder)
        if not submissions:
            log.info("%s: nothing was submitted", folder)
            return 0
        entries = slurm.queue()
        cancel_interrupted(submissions, entries, partial(record_submission, folder))
        jobs = alive_jobs(submissions, entries)
        slurm.cancel(jobs)
        for each in submissions:
            if each.state == RELEASED:
                record_submission(folder, replace(each, state=CANCELLED))
    log.info("cancelled: %s; continue with: hpcfit resume %s", ", ".join(jobs) or "no job was alive", folder)
    return 0
