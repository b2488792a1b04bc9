"""Folders of campaigns as submit makes them, for tests of what works on them."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib import metadata
from pathlib import Path

from hpcfit.commands.loading import load, load_model
from hpcfit.commands.sweeps import Sweep, compile_all
from hpcfit.files.campaigns import make_folders, plan_file, read_plan, write_plan
from hpcfit.kernels.pinning import pin
from hpcfit.records import Campaign, slices


def make_campaign(job: Path, folder: Path, *, task: int, chunk: int, members: int | None = None) -> Campaign:
    """The folder of a campaign with tasks of so many members; one that is there gets further tasks."""
    overrides = [] if members is None else [f"ensemble.members={members}"]
    inputs = load(job, overrides)
    sweep = Sweep(inputs, load_model(inputs.job))
    if plan_file(folder).exists():
        old = read_plan(folder)
        more = slices(old.members, sweep.plan.members, task)
        plan = replace(old, members=sweep.plan.members, tasks=(*old.tasks, *more))
        write_plan(folder, plan)
        return plan
    compile_all(sweep)
    make_folders(folder)
    (folder / "job.toml").write_text(inputs.job.document.text)
    copies = {}
    for name in inputs.hashes:
        copies[name] = Path(name).name
        (folder / "inputs" / copies[name]).write_bytes(inputs.job.path(name).read_bytes())
    plan = Campaign(
        name=job.stem,
        identity=inputs.campaign_identity,
        version=metadata.version("hpcfit"),
        kernel=pin(folder / "kernels"),
        members=sweep.plan.members,
        grid=sweep.plan.grid,
        chunk=chunk,
        tasks=tuple(slices(0, sweep.plan.members, task)),
        ranks=1,
        seed=inputs.job.seed,
        created="2026-11-18T20:00:00+00:00",
        inputs=copies,
        job_file=str(job),
    )
    write_plan(folder, plan)
    return plan


if __name__ == "__main__":
    make_campaign(Path(sys.argv[1]), Path(sys.argv[2]), task=int(sys.argv[3]), chunk=int(sys.argv[4]))
