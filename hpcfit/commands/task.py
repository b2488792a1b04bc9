"""hpcfit task DIR I: compute one task of a campaign, chunk by chunk; what the jobs of an array run."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path
from typing import Any

from hpcfit.commands.leaving import Leaving, deadline
from hpcfit.commands.loading import load_model, placing
from hpcfit.commands.opening import opened, use_kernels
from hpcfit.commands.sweeps import Sweep
from hpcfit.commands.tasks import Task, Worker, survey
from hpcfit.commands.verb import new_verb
from hpcfit.files.hdf5 import parallel_h5py
from hpcfit.mpi.together import everywhere, on_root
from hpcfit.records import InputError, Interval, Mistake

log = logging.getLogger(__name__)
DONE, LEFT_EARLY = 0, 75
MOST_ROUNDS = 5  # of recomputing parts that turn out to be unreadable


def add(verbs: Any) -> None:
    parser = new_verb(
        verbs,
        "task",
        "compute one task of a campaign, or what is missing of it",
        "hpcfit task campaign 0",
        "mpirun -n 16 hpcfit task campaign 17",
        "HPCFIT_DEADLINE=$(($(date +%s) + 3600)) srun hpcfit task campaign 17",
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="folder of the campaign")
    parser.add_argument("task", type=int, metavar="I", help="which task; they count from 0")
    parser.set_defaults(run=run, parallel=True)


def run(comm: Any, arguments: argparse.Namespace) -> int:
    leaving = Leaving(deadline(comm))
    if comm.size > 1 and not all(comm.allgather(parallel_h5py() is not None)) and comm.rank == 0:
        log.info("no parallel HDF5: rank 0 writes for all (hpcfit doctor)")
    campaign = everywhere(comm, lambda: opened(arguments.folder))
    number, count = arguments.task, len(campaign.plan.tasks)
    if not 0 <= number < count:
        problem = f"the campaign has no task {number}"
        raise InputError(Mistake(str(arguments.folder), problem, f"give one of 0 to {count - 1}"))
    task = Task(campaign, number)
    held = on_root(comm, lambda: survey(task))
    if held is None:
        if comm.rank == 0:
            log.info("task %d is complete; nothing to do", number)
        return DONE
    everywhere(comm, lambda: use_kernels(campaign))
    model = everywhere(comm, lambda: load_model(campaign.inputs.job))
    worker = Worker(comm, task, Sweep(campaign.inputs, model), leaving)
    return placing(campaign.inputs.job, lambda: _work(comm, worker, held))


def _work(comm: Any, worker: Worker, held: list[Interval] | None) -> int:
    """Compute, join; again if a part turns out to be unreadable, and not for ever."""
    with worker.noted():
        for _ in range(MOST_ROUNDS):
            if held is None:
                return worker.ended(DONE)
            if why := worker.compute(held):
                return worker.ended(LEFT_EARLY, f"left early: {why}")
            if worker.join():
                return worker.ended(DONE)
            held = on_root(comm, lambda: survey(worker.task))
        problem = f"parts were unreadable {MOST_ROUNDS} times in a row"
        raise InputError(Mistake(str(worker.task.file), problem, "look at the disk, then resume"))
