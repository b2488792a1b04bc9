"""Where a campaign runs: options of the command line, the job's table [cluster], the user's profile."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from typing import Any

from hpcfit.cluster import slurm
from hpcfit.cluster.local import cores
from hpcfit.cluster.profiles import Profile, combined, configuration_file, read_profile
from hpcfit.cluster.sizing import Sizes, local_sizes, sizes
from hpcfit.records import InputError, Mistake

OF_SLURM = ("cluster", "partition", "account", "qos", "time", "memory", "max_running", "options")
GIVEN = ("partition", "account", "qos", "time", "memory", "ranks", "max_tasks", "max_running", "options")


def add_cluster_options(parser: argparse.ArgumentParser) -> None:
    where = parser.add_argument_group("where", f"profiles of clusters stand in {configuration_file()}")
    where.add_argument("--local", action="store_true", help="on this machine's cores; default without SLURM")
    where.add_argument("--cluster", metavar="NAME", help="a profile of the user's configuration")
    where.add_argument("--partition", help="SLURM partition")
    where.add_argument("--account", help="SLURM account")
    where.add_argument("--qos", help="SLURM quality of service")
    where.add_argument("--time", help="limit of a task, as in 01:00:00")
    where.add_argument("--memory", help="of a rank, as in 2G")
    where.add_argument("--ranks", type=int, help="MPI ranks of a task")
    where.add_argument("--max-running", type=int, metavar="K", help="tasks at once")
    where.add_argument(
        "--option",
        action="append",
        dest="options",
        metavar="--KEY=VALUE",
        help="a further option of sbatch, as in --option=--constraint=rome",
    )
    parser.add_argument("--dry-run", action="store_true", help="print the exact scripts; change nothing")


def given_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """What the command line says, in the words of a profile."""
    found = {key: getattr(arguments, key, None) for key in GIVEN}
    return {key: value for key, value in found.items() if value is not None}


def chosen_profile(
    cluster: str | None, table: Mapping[str, Any], place: str, options: Mapping[str, Any]
) -> Profile:
    """The command line over the job over the user's profile."""
    table = {key: value for key, value in table.items() if value not in (None, (), [])}
    by_job = combined(read_profile(cluster), table, place, foreign=True)
    return combined(by_job, options, "the command line")


def use_target(profile: Profile, *, local: bool) -> None:
    """Machine code is built for the CPU that the profile names, and tried here."""
    if profile.cpu and not local:
        os.environ["HPCFIT_CPU"] = profile.cpu


def chosen_sizes(
    profile: Profile, seconds_each: float, members: int, tasks: int | None, *, local: bool
) -> Sizes:
    """Tasks for SLURM or for this machine's cores."""
    if not local:
        return sizes(members, seconds_each, profile, tasks)
    slots = profile.max_running or max(cores() // profile.ranks, 1)
    return local_sizes(members, seconds_each, profile.ranks, slots, tasks)


def wants_local(arguments: argparse.Namespace, before: bool | None = None) -> bool:
    """Whether the tasks run here: as asked, else as before, else where there is no SLURM."""
    asked = [f"--{key.replace('_', '-')}" for key in OF_SLURM if getattr(arguments, key) is not None]
    if arguments.local and asked:
        problem = f"{asked[0]} belongs to SLURM, and --local runs without it"
        raise InputError(Mistake("the command line", problem, "give one of them"))
    if arguments.local:
        return True
    if asked:
        slurm.needed()
        return False
    return (not slurm.is_here()) if before is None else before
