"""The folder of a campaign: made by submit, before anything works on it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from hpcfit.cluster.sizing import Sizes
from hpcfit.commands.loading import Inputs
from hpcfit.commands.opening import opened
from hpcfit.commands.sweeps import Sweep
from hpcfit.files.campaigns import make_folders, plan_file, read_plan, write_plan
from hpcfit.files.locks import NAME as LOCK
from hpcfit.files.replacing import replacing
from hpcfit.kernels.pinning import pin
from hpcfit.records import Campaign, InputError, Mistake, slices

MEMBERS_KEY = "ensemble.members"


def existing(folder: Path, inputs: Inputs) -> Campaign | None:
    """The campaign that is there already; it must be of the same job."""
    try:
        if not plan_file(folder).exists():
            if folder.exists() and (not folder.is_dir() or _has_others_files(folder)):
                problem = "exists and is no campaign of hpcfit"
                raise InputError(Mistake(str(folder), problem, "choose another folder", "-d"))
            return None
    except OSError as error:
        problem = f"cannot be looked at: {error.strerror}"
        raise InputError(Mistake(str(folder), problem, "choose another folder", "-d")) from None
    plan = read_plan(folder)
    if plan.identity != inputs.campaign_identity:
        problem = "belongs to another job, or its job, data or model file have changed since"
        raise InputError(Mistake(str(folder), problem, "choose another folder", "-d"))
    opened(folder)  # its own files are still those that were submitted
    return plan


def _has_others_files(folder: Path) -> bool:
    return any(not path.name.startswith(LOCK) for path in folder.iterdir())


def prepare(
    folder: Path,
    inputs: Inputs,
    sweep: Sweep,
    found: Sizes,
    ranks: int,
    overrides: Sequence[str],
    chosen: tuple[int, ...] = (),
) -> Campaign:
    """Make the folder: the job, copies of what it names, the machine code that was loaded, and the plan.

    chosen: these members alone; the overrides then tell of how many.
    """
    make_folders(folder)
    with replacing(folder / "job.toml") as part:
        part.write_text(inputs.job.document.text, encoding="utf-8")
    copies = {name: _copied(folder, inputs.job.path(name), k) for k, name in enumerate(inputs.hashes)}
    kernel = pin(folder / "kernels")
    plan = replace(planned(inputs, sweep, found, ranks, overrides, kernel), inputs=copies)
    if chosen:
        tasks = tuple(slices(0, len(chosen), found.members))
        plan = replace(plan, members=len(chosen), tasks=tasks, chosen=chosen, overrides=tuple(overrides))
    write_plan(folder, plan)
    return plan


def planned(
    inputs: Inputs, sweep: Sweep, found: Sizes, ranks: int, overrides: Sequence[str], kernel: str
) -> Campaign:
    """The plan of a new campaign."""
    job = inputs.job
    return Campaign(
        name=job.document.path.stem,
        identity=inputs.campaign_identity,
        version=metadata.version("hpcfit"),
        kernel=kernel,
        members=sweep.plan.members,
        grid=sweep.plan.grid,
        chunk=found.chunk,
        tasks=tuple(slices(0, sweep.plan.members, found.members)),
        ranks=ranks,
        seed=job.seed,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        overrides=tuple(each for each in overrides if each.partition("=")[0].strip() != MEMBERS_KEY),
        job_file=str(job.document.path.resolve()),
    )


def extended(folder: Path, plan: Campaign, members: int, size: int) -> Campaign:
    """The plan with tasks for the members that are new; written only if there are any."""
    if members < plan.members:
        problem = f"the campaign has {plan.members:,} members already, not {members:,}"
        raise InputError(Mistake(str(folder), problem, "ask for as many or for more", MEMBERS_KEY))
    if members == plan.members:
        return plan
    more = replace(plan, members=members, tasks=(*plan.tasks, *slices(plan.members, members, size)))
    write_plan(folder, more)
    return more


def _copied(folder: Path, source: Path, number: int) -> str:
    """A copy in inputs/, found by its number as two files may have one name."""
    name = f"{number}-{source.name}"
    with replacing(folder / "inputs" / name) as part:
        shutil.copyfile(source, part)
    return name
