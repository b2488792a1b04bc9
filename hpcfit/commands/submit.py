"""hpcfit submit JOB.toml -d DIR: a campaign of an ensemble, its tasks handed to SLURM or to this machine."""

from __future__ import annotations

import argparse
import logging
import shlex
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from hpcfit.cluster import slurm
from hpcfit.cluster.profiles import Profile
from hpcfit.cluster.sizing import Sizes
from hpcfit.commands.clusters import (
    add_cluster_options,
    chosen_profile,
    chosen_sizes,
    given_options,
    use_target,
    wants_local,
)
from hpcfit.commands.launching import Launch, launch_local, launch_slurm, show_scripts
from hpcfit.commands.loading import Inputs, load, load_model, placing
from hpcfit.commands.pilot import Cost, pilot
from hpcfit.commands.preparing import existing, extended, planned, prepare
from hpcfit.commands.sweeps import Sweep
from hpcfit.commands.verb import new_verb
from hpcfit.files.locks import locked
from hpcfit.files.submissions import read_submissions
from hpcfit.records import Campaign, InputError, Mistake
from hpcfit.records.submissions import CANCELLED, LOCAL
from hpcfit.reporting.standing import duration, size

log = logging.getLogger(__name__)


def add(verbs: Any) -> None:
    parser = new_verb(
        verbs,
        "submit",
        "make a campaign of an ensemble and start it",
        "hpcfit submit jobs/ensemble.toml -d campaign --dry-run",
        "hpcfit submit jobs/ensemble.toml -d campaign --cluster big --ranks 16",
        "hpcfit submit jobs/ensemble.toml -d campaign --local --set ensemble.members=100000",
    )
    parser.add_argument("job", type=Path, help="job file (.toml) of kind ensemble")
    parser.add_argument("-d", "--directory", type=Path, required=True, metavar="DIR", help="folder to make")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="override a key of the job"
    )
    parser.add_argument("--tasks", type=int, help="how many; default: as many as take half an hour each")
    parser.add_argument(
        "--chunk", type=int, metavar="MEMBERS", help="that are kept together; default: 20 s of work"
    )
    parser.add_argument(
        "--prepare", action="store_true", help="make the folder only; start its tasks by hpcfit task DIR I"
    )
    add_cluster_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    folder, local = arguments.directory, wants_local(arguments)
    inputs = _ensemble(arguments)
    profile = _profile(arguments, inputs)
    if not local:
        slurm.max_array_size()  # a SLURM that does not answer is told before anything is computed
        _refuse_folder(folder)
    before = existing(folder, inputs)
    use_target(profile, local=local)
    sweep = Sweep(inputs, placing(inputs.job, lambda: load_model(inputs.job)))
    cost = placing(inputs.job, lambda: pilot(sweep))
    members = sweep.plan.members - (before.members if before else 0)
    found = chosen_sizes(profile, cost.seconds, max(members, 1), arguments.tasks, local=local)
    found = replace(found, chunk=arguments.chunk or found.chunk)
    _tell(sweep, cost, found, before, local)
    if not arguments.dry_run:
        return _start(arguments, sweep, found, profile, local)
    plan = planned(inputs, sweep, found, profile.ranks, arguments.set, "")
    if not local:
        launch = Launch(folder, plan, profile, given_options(arguments), found.limit)
        show_scripts(launch, range(len(plan.tasks)))
    return 0


def _start(arguments: argparse.Namespace, sweep: Sweep, found: Sizes, profile: Profile, local: bool) -> int:
    """Make or extend the folder and start its tasks; what was made for nothing is removed."""
    folder, inputs, made = arguments.directory, sweep.inputs, False
    try:
        made = _made(folder)
        with locked(folder, LOCAL if local else "submit"):
            before = existing(folder, inputs)  # again, as nobody else changes it now
            if before is None:
                plan = prepare(folder, inputs, sweep, found, profile.ranks, arguments.set)
            else:
                plan = extended(folder, before, sweep.plan.members, found.members)
            if arguments.prepare:
                log.info("prepared: tasks 0 to %d; then: hpcfit merge %s", len(plan.tasks) - 1, folder)
                return 0
            launch = Launch(folder, plan, profile, given_options(arguments), found.limit)
            return launch_local(launch) if local else launch_slurm(launch)
    except BaseException as error:
        if made:
            _remove_unused(folder)
        if isinstance(error, OSError):
            problem = f"cannot write here: {error.strerror}"
            remedy = "choose another folder, or make room"
            raise InputError(Mistake(str(folder), problem, remedy, "-d")) from None
        raise


def _ensemble(arguments: argparse.Namespace) -> Inputs:
    inputs = load(arguments.job, arguments.set)
    job = inputs.job
    if job.kind != "ensemble":
        problem, remedy = "a campaign is an ensemble", f"run this job by: hpcfit run {arguments.job}"
        raise InputError(Mistake(job.document.place("kind"), problem, remedy, "kind", job.kind))
    if key := job.not_runnable:
        problem = "this version cannot run it"
        raise InputError(Mistake(job.document.place(key), problem, "choose another", key))
    for option in ("tasks", "chunk"):
        value = getattr(arguments, option)
        if value is not None and value < 1:
            raise InputError(Mistake(f"--{option}", f"{value} is too few", "give 1 or more"))
    return inputs


def _profile(arguments: argparse.Namespace, inputs: Inputs) -> Profile:
    job = inputs.job
    place = job.document.place("cluster")
    return chosen_profile(arguments.cluster, job["cluster"], place, given_options(arguments))


def _refuse_folder(folder: Path) -> None:
    """SLURM would read numbers of jobs into such a name."""
    if "%" in str(folder.absolute()) or "\\" in str(folder.absolute()):
        problem = "SLURM gives % and \\ in the names of folders a meaning of its own"
        raise InputError(Mistake(str(folder), problem, "choose another folder", "-d"))


def _tell(sweep: Sweep, cost: Cost, found: Sizes, before: Campaign | None, local: bool) -> None:
    """What it will take, before anything is done."""
    members = sweep.plan.members
    new = members - (before.members if before else 0)
    where = "on this machine's cores" if local else f"limit {duration(found.limit)} each"
    cells = f" ({sweep.plan.cells:,} cells)" if sweep.plan.cells > 1 else ""
    log.info("members     %s%s%s", f"{members:,}", cells, f", {new:,} of them new" if before else "")
    if new > 0:
        log.info("tasks       %s of about %s, %s", f"{found.tasks:,}", duration(found.seconds), where)
        hours = new * cost.seconds / 3600
        log.info("core-hours  %.3g (%.3g ms a member, tried with %d)", hours, cost.seconds * 1e3, cost.tried)
        log.info("bytes       %s at most; files: %d", size(2 * new * cost.bytes), 2 * found.tasks + 10)


def _made(folder: Path) -> bool:
    """Make the folder if it is not there; whether this process did."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.mkdir()
    except FileExistsError:
        return False
    return True


def _remove_unused(folder: Path) -> None:
    """A folder that was made for nothing; it stays if jobs may know it or something is done in it."""
    used = (folder / "tasks").is_dir() and any((folder / "tasks").iterdir())
    try:
        submissions = read_submissions(folder)
    except InputError:
        return
    if not used and all(each.state == CANCELLED for each in submissions):
        shutil.rmtree(folder, ignore_errors=True)
        log.debug("removed %s", shlex.quote(str(folder)))
