"""hpcfit resume DIR: start what is missing of a campaign and is not at work already."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path
from typing import Any

from hpcfit.cluster.sizing import SHORTEST_LIMIT
from hpcfit.cluster.times import seconds_of
from hpcfit.commands.again import again
from hpcfit.commands.clusters import add_cluster_options, chosen_profile, given_options, wants_local
from hpcfit.commands.launching import Launch, launch_local, launch_slurm, show_missing
from hpcfit.commands.opening import check_kernels, opened
from hpcfit.commands.verb import new_verb
from hpcfit.files.locks import locked
from hpcfit.files.submissions import read_submissions
from hpcfit.jobfile.read import read_document
from hpcfit.records import Campaign, InputError, Mistake
from hpcfit.records.submissions import LOCAL, Submission

log = logging.getLogger(__name__)


def add(verbs: Any) -> None:
    parser = new_verb(
        verbs,
        "resume",
        "start what is missing of a campaign",
        "hpcfit resume campaign",
        "hpcfit resume campaign --time 02:00:00 --dry-run",
        "hpcfit resume campaign --failed --set guess.a=5",
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="folder of the campaign")
    parser.add_argument(
        "--failed", action="store_true", help="compute the members that failed again, in DIR/again/1, 2, ..."
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="with --failed: from another guess"
    )
    add_cluster_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    folder = arguments.folder
    campaign = opened(folder)
    check_kernels(campaign)
    plan, submissions = campaign.plan, read_submissions(folder)
    last = submissions[-1] if submissions else None
    local = wants_local(arguments, before=last.state == LOCAL if last else None)
    launch = _launch(arguments, plan, last)
    if arguments.set and not arguments.failed:
        problem = "what is missing is computed as the rest was"
        raise InputError(Mistake("--set", problem, "give --failed, too, or submit into another folder"))
    if arguments.failed:
        return again(campaign, launch, arguments.set, local=local, dry_run=arguments.dry_run)
    if arguments.dry_run:
        show_missing(launch, local=local)
        return 0
    with locked(folder, LOCAL if local else "resume"):
        return launch_local(launch) if local else launch_slurm(launch)


def _launch(arguments: argparse.Namespace, plan: Campaign, last: Submission | None) -> Launch:
    """As it was submitted, but for what is said now; the profile is read again."""
    given = given_options(arguments)
    options = {**({"ranks": plan.ranks} if plan.ranks else {}), **(last.options if last else {}), **given}
    cluster = arguments.cluster or (last.cluster if last else "") or None
    job = arguments.folder / "job.toml"
    table = read_document(job, plan.overrides).values.get("cluster", {})
    profile = chosen_profile(cluster, table, str(job), options)
    before = last.seconds if last else 0
    seconds = seconds_of(profile.time) if profile.time else before or SHORTEST_LIMIT
    return Launch(arguments.folder, plan, profile, options, seconds)
