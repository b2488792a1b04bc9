"""The members of a campaign that failed, once more from another guess: a campaign inside the first.

What the first one found stays as it is: with its failures replaced, an ensemble would flatter its guess.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hpcfit.commands.clusters import chosen_sizes, use_target
from hpcfit.commands.launching import Launch, launch_local, launch_slurm, show_scripts
from hpcfit.commands.loading import load, load_model, placing
from hpcfit.commands.opening import Opened
from hpcfit.commands.pilot import pilot
from hpcfit.commands.preparing import prepare
from hpcfit.commands.sweeps import Sweep
from hpcfit.files.campaigns import is_merged, result_file, unfinished_tasks
from hpcfit.files.locks import locked
from hpcfit.files.outcomes import numbers_of_failed
from hpcfit.records import InputError, Mistake
from hpcfit.records.submissions import LOCAL

log = logging.getLogger(__name__)
FOLDER = "again"
CHANGEABLE = ("guess.", "nodes.", "fit.")  # none of them changes the data


def again(campaign: Opened, launch: Launch, changes: Sequence[str], *, local: bool, dry_run: bool) -> int:
    """Compute what failed again, with some keys changed."""
    folder = campaign.folder
    _check(changes)
    if unfinished_tasks(folder, campaign.plan) or not is_merged(folder):
        problem = "not all members have been computed and merged yet"
        raise InputError(Mistake(str(folder), problem, "hpcfit resume it first, or hpcfit merge it"))
    failed = numbers_of_failed(result_file(folder))
    if not failed:
        log.info("%s: no member failed", folder)
        return 0
    plan = campaign.plan
    whole = str(campaign.inputs.job["ensemble"]["members"])
    overrides = [*plan.overrides, f"ensemble.members={whole}", *changes]
    copies = {name: folder / "inputs" / copy for name, copy in plan.inputs.items()}
    inputs = load(folder / "job.toml", overrides, copies)
    use_target(launch.profile, local=local)
    sweep = Sweep(inputs, placing(inputs.job, lambda: load_model(inputs.job)))
    cost = placing(inputs.job, lambda: pilot(sweep))
    found = chosen_sizes(launch.profile, cost.seconds, len(failed), None, local=local)
    log.info("%s failed members again, in %s tasks", f"{len(failed):,}", found.tasks)
    inner = _next(folder)
    launch = replace(launch, folder=inner, seconds=found.limit)
    if dry_run:
        if not local:
            show_scripts(launch, range(found.tasks))
        return 0
    inner.mkdir(parents=True)
    with locked(inner, LOCAL if local else "resume"):
        own = prepare(inner, inputs, sweep, found, launch.profile.ranks, overrides, failed)
        launch = replace(launch, plan=replace(own, name=f"{plan.name}-again"))
        return launch_local(launch) if local else launch_slurm(launch)


def _check(changes: Sequence[str]) -> None:
    for change in changes:
        if not change.strip().startswith(CHANGEABLE):
            known = ", ".join(f"{key}*" for key in CHANGEABLE)
            problem = f"'{change}' would be another experiment"
            raise InputError(Mistake("--set", problem, f"change {known}, or submit into another folder"))


def _next(folder: Path) -> Path:
    number = 1
    while (folder / FOLDER / str(number)).exists():
        number += 1
    return folder / FOLDER / str(number)
