"""What each kind of job does: plain arguments for a study, from the tables of a job."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from hpcfit.commands.fitting import data_of, known_truth, observed, posing, simulated, solving
from hpcfit.commands.loading import Inputs, load_model
from hpcfit.commands.progress import IterationLine, ProgressLine
from hpcfit.commands.sweeps import Sweep, alone, plan_of
from hpcfit.jobfile.check import Job
from hpcfit.jobfile.names import ModelNames
from hpcfit.models.define import Model
from hpcfit.models.strings import model_from_strings
from hpcfit.mpi.together import everywhere, on_root
from hpcfit.records import EnsembleResult, FitResult, Path, Series, Spectrum, slices
from hpcfit.studies.ensemble import joined, rows_in_rounds
from hpcfit.studies.fit import check_fit_data, fit_in_parts

log = logging.getLogger(__name__)
AT_ONCE = 1 << 18  # members that ranks share before they meet: memory does not grow with their number

Record = Path | FitResult | EnsembleResult | Spectrum


def run_simulation(comm: Any, inputs: Inputs, member: int) -> Path:
    return on_root(comm, lambda: next(simulated(inputs, load_model(inputs.job), member)))


def run_fit(comm: Any, inputs: Inputs, member: int) -> FitResult:
    model = everywhere(comm, lambda: load_model(inputs.job))
    realisation = member
    if inputs.job.kind == "ensemble":
        inputs, realisation = everywhere(comm, lambda: alone(inputs, member, model))
    job = inputs.job
    data = data_of(comm, inputs, model, realisation)
    line = IterationLine(f"fitting {model.name}") if comm.rank == 0 else None
    try:
        result = fit_in_parts(
            model,
            data,
            **posing(job),
            **solving(job),
            truth=known_truth(inputs),
            derived=job["fit"]["derived"],
            unknown_sigma=job["fit"]["unknown_sigma"],
            solver=job["fit"]["solver"],
            comm=comm,
            watch=line,
        )
    finally:
        if line is not None:
            line.close()
    return replace(result, seed=None if inputs.recordings else job.seed, member=member)


def run_ensemble(comm: Any, inputs: Inputs) -> EnsembleResult:
    """The whole table at once."""
    return joined(list(ensemble_in_rounds(comm, inputs)))


def ensemble_in_rounds(comm: Any, inputs: Inputs) -> Iterator[tuple[Any, EnsembleResult]]:
    """Rows of the members that have ended since the last round, with their places, on all ranks."""
    model = everywhere(comm, lambda: load_model(inputs.job))
    sweep = Sweep(inputs, model)
    known = everywhere(comm, sweep.known)
    sweep.bench.check(comm, strict=sweep.strict)
    if inputs.job["fit"].get("constraints") and comm.rank == 0:
        log.info(
            "with constraints the linear algebra of the members is not machine code: fewer fits a second"
        )
    progress = ProgressLine(sweep.doing) if comm.rank == 0 else None
    members = sweep.plan.members
    try:
        for first, last in slices(0, members, AT_ONCE):
            wanted = sweep.wanted(np.arange(first + 1, last + 1))
            watch = _part_of(progress, first / members, last / members)
            for places, columns in rows_in_rounds(comm, sweep.bench, wanted, watch=watch):
                yield first + places, sweep.bench.table(first + places + 1, columns, **known)
    finally:
        if progress is not None:
            progress.close()


def _part_of(progress: ProgressLine | None, begin: float, end: float) -> Callable[[float], None] | None:
    """Progress of a part as that of the whole."""
    return None if progress is None else lambda part: progress(begin + part * (end - begin))


def members_of(job: Job) -> range:
    """The numbers of the members of an ensemble."""
    return plan_of(job).numbers


WORK: Mapping[str, Callable[[Any, Inputs, int], Path | FitResult]] = {
    "simulate": run_simulation,
    "fit": run_fit,
}


def check_fit(inputs: Inputs) -> None:
    """Find what is wrong with a fit, as far as that is possible without integrating and without user code."""
    job = inputs.job
    model = job.model or _by_names_only(job.names)
    if model is None or not inputs.grids:
        return
    recorded = [source for source in inputs.recordings if isinstance(source, Series)]
    check_fit_data(model, recorded or _not_yet_simulated(inputs, model), **posing(job))


def _not_yet_simulated(inputs: Inputs, model: Model) -> list[Series]:
    """Stand-ins for data that only `run` makes."""
    found = []
    for (_, truth), times in zip(inputs.job.several("truth"), inputs.grids, strict=True):
        names = observed(inputs.job, truth) or model.states
        sigma_t = truth["noise"] and truth["noise"].sd_t
        off = np.full(len(times), sigma_t) if sigma_t else None
        found.append(Series(names, times, np.ones((len(times), len(names))), None, off))
    return found


def _by_names_only(names: ModelNames) -> Model | None:
    """A stand-in for a model whose file has not been run."""
    if names.states is None or names.parameters is None or names.quantities is None:
        return None
    return model_from_strings(
        names.name,
        states=names.states,
        parameters=names.parameters,
        equations=dict.fromkeys(names.states, "0"),
        observables={
            name: f"exp({' + '.join(names.states)})"  # of all states, and in no way that tells anything
            for name in names.quantities
            if name not in names.states
        },
    )
