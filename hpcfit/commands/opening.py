"""A campaign's folder as something to work on: everything that is pinned must still be as it was."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from hpcfit.commands.loading import Inputs, load
from hpcfit.commands.sweeps import plan_of
from hpcfit.files.campaigns import plan_file, read_plan
from hpcfit.kernels.pinning import kernel_hash, use_pinned
from hpcfit.records import Campaign, InputError, Mistake

AGAIN = "put the old one back, or submit the job into another folder"


@dataclass(frozen=True)
class Opened:
    """A campaign, and its job with all members."""

    folder: Path
    plan: Campaign
    inputs: Inputs

    @property
    def job_hash(self) -> str:
        """As `run` has it for the same ensemble; a choice of members is nothing that `run` computes."""
        chosen = ",".join(map(str, self.plan.chosen))
        own = hashlib.sha256(chosen.encode()).hexdigest()[:16] if chosen else "0"
        return f"{self.inputs.identity}-{own}"


def opened(folder: Path) -> Opened:
    """The campaign of a folder; a job, input or version that differs from the plan is refused."""
    plan = read_plan(folder)
    version = metadata.version("hpcfit")
    if plan.version != version:
        problem = f"was submitted with hpcfit {plan.version}, this is {version}"
        raise InputError(Mistake(str(folder), problem, "use that version, or submit into another folder"))
    copies = {name: folder / "inputs" / copy for name, copy in plan.inputs.items()}
    cells = 1
    for values in plan.grid.values():
        cells *= len(values)
    members = [] if plan.chosen else [f"ensemble.members={plan.members // cells}"]
    inputs = load(folder / "job.toml", [*plan.overrides, *members], copies)
    if inputs.campaign_identity != plan.identity:
        problem = "job.toml or a file in inputs/ is not the one that was submitted"
        raise InputError(Mistake(str(folder), problem, AGAIN))
    if not _is_of(plan, plan_of(inputs.job).members) or _holes(plan):
        raise InputError(Mistake(str(plan_file(folder)), "its tasks are not those of the job", AGAIN))
    return Opened(folder, plan, inputs)


def check_kernels(campaign: Opened) -> None:
    """The machine code in the folder must be that of the plan; it may be for other CPUs than this one."""
    _compare(campaign, kernel_hash(campaign.folder / "kernels"))


def use_kernels(campaign: Opened) -> None:
    """Take machine code from the folder alone; it must be that of the plan."""
    _compare(campaign, use_pinned(campaign.folder / "kernels"))


def _compare(campaign: Opened, found: str) -> None:
    if found != campaign.plan.kernel:
        problem = f"the machine code in kernels/ is {found[:8]}, not {campaign.plan.kernel[:8]} of the plan"
        raise InputError(Mistake(str(campaign.folder), problem, AGAIN))


def _is_of(plan: Campaign, members: int) -> bool:
    """Whether the members of the plan are those of the job, or some of them."""
    if not plan.chosen:
        return plan.members == members
    return plan.members == len(plan.chosen) and max(plan.chosen) <= members


def _holes(plan: Campaign) -> bool:
    """Whether the tasks leave members out, or share some."""
    ends = [0, *(last for _, last in plan.tasks)]
    return [first for first, _ in plan.tasks] != ends[:-1] or ends[-1] != plan.members
