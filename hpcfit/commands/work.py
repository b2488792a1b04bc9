"""What each kind of job does: plain arguments for a study, from the tables of a job."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from hpcfit.commands.loading import Inputs, load_model
from hpcfit.commands.progress import IterationLine, ProgressLine
from hpcfit.jobfile.check import Job
from hpcfit.jobfile.names import ModelNames
from hpcfit.models.define import Model
from hpcfit.models.strings import model_from_strings
from hpcfit.mpi.together import everywhere, on_root
from hpcfit.records import EnsembleResult, FitResult, InputError, Mistake, Path, Series
from hpcfit.studies.ensemble import ensemble_rounds, joined
from hpcfit.studies.fit import check_fit_data, fit
from hpcfit.studies.simulate import simulate

Record = Path | FitResult | EnsembleResult


def run_simulation(comm: Any, inputs: Inputs, member: int) -> Path:
    return on_root(comm, lambda: next(_simulated(inputs, load_model(inputs.job), member)))


def run_fit(comm: Any, inputs: Inputs, member: int) -> FitResult:
    job = inputs.job
    model = everywhere(comm, lambda: load_model(job))
    data = on_root(comm, lambda: _data(inputs, model, member))
    line = IterationLine(f"fitting {model.name}") if comm.rank == 0 else None
    try:
        result = fit(
            model,
            data,
            **_fit_arguments(inputs),
            derived=job["fit"]["derived"],
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
    job = inputs.job
    model = everywhere(comm, lambda: load_model(job))
    exact = on_root(comm, lambda: _exact(inputs, model))
    progress = ProgressLine(f"fitting {model.name}") if comm.rank == 0 else None
    try:
        yield from ensemble_rounds(
            model,
            exact,
            [truth["noise"] for _, truth in job.several("truth")],
            seed=job.seed,
            members=members_of(job),
            **_fit_arguments(inputs),
            comm=comm,
            watch=progress,
        )
    finally:
        if progress is not None:
            progress.close()


def members_of(job: Job) -> range:
    """The numbers of the members of an ensemble."""
    return range(1, job["ensemble"]["members"] + 1)


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
    check_fit_data(model, inputs.recordings or _not_yet_simulated(inputs, model), **_problem(job))


def _not_yet_simulated(inputs: Inputs, model: Model) -> list[Series]:
    """Stand-ins for data that only `run` makes."""
    names = [_observed(inputs.job, truth) or model.states for _, truth in inputs.job.several("truth")]
    return [
        Series(own, times, np.ones((len(times), len(own))))
        for own, times in zip(names, inputs.grids, strict=True)
    ]


def _observed(job: Job, truth: Mapping[str, Any]) -> tuple[str, ...] | None:
    """What an experiment sees; None: all states."""
    return truth["observe"] or job["fit"]["observe"]


def _by_names_only(names: ModelNames) -> Model | None:
    """A stand-in for a model whose file has not been run."""
    if names.states is None or names.parameters is None or names.quantities is None:
        return None
    return model_from_strings(
        names.name,
        states=names.states,
        parameters=names.parameters,
        equations=dict.fromkeys(names.states, "0"),
        observables={name: "0" for name in names.quantities if name not in names.states},
    )


def _problem(job: Job) -> dict[str, Any]:
    """What is fitted, and from where."""
    options = job["fit"]
    return {
        "guess": job["guess"],
        "fixed": options["fixed"],
        "nodes": options["nodes"],
        "start": job["nodes"],
        "weights": options["weights"],
        "local": options["local"],
    }


def _fit_arguments(inputs: Inputs) -> dict[str, Any]:
    """What fits and ensembles of fits have in common."""
    job, options = inputs.job, inputs.job["fit"]
    return {
        **_problem(job),
        "tolerance": options["tolerance"],
        "max_iterations": options["max_iterations"],
        "level": options["level"],
        "phases": options["phases"],
        "method": options["method"],
        "truth": _known(job, len(inputs.grids)),
    }


def _known(job: Job, experiments: int) -> dict[str, float]:
    """The truth by the names of the unknowns; one truth alone holds for the parameters of all experiments."""
    truths = [truth for _, truth in job.several("truth")]
    known = dict(truths[0]["parameters"]) if truths else {}
    for e, truth in enumerate(truths):
        known |= {name if e == 0 else f"{name}@{e + 1}": value for name, value in truth["start"].items()}
    for name in job["fit"]["local"]:
        known.pop(name, None)
        for e in range(experiments if truths else 0):
            own = truths[e if len(truths) > 1 else 0]["parameters"]
            known |= {f"{name}@{e + 1}": own[name]} if name in own else {}
    return known


def _data(inputs: Inputs, model: Model, member: int) -> list[Series]:
    """What the fit sees: the recordings, or the truth of every experiment with its noise."""
    if inputs.recordings:
        return list(inputs.recordings)
    found = []
    for path in _simulated(inputs, model, member):
        assert path.exact is not None
        found.append(path.observed or path.exact)
    return found


def _exact(inputs: Inputs, model: Model) -> list[Series]:
    return [path.exact for path in _simulated(inputs, model, 0) if path.exact is not None]


def _simulated(inputs: Inputs, model: Model, member: int) -> Iterator[Path]:
    """The truth of every experiment, as its instrument sees it."""
    job, options = inputs.job, inputs.job["simulate"]
    for e, (label, truth) in enumerate(job.several("truth")):
        progress = ProgressLine(f"simulating {model.name}")
        try:
            path = simulate(
                model,
                start=truth["start"],
                parameters=truth["parameters"],
                times=inputs.grids[e],
                sensitivities=bool(options.get("sensitivities")),
                observe=_recorded(inputs) if job.kind == "simulate" else _observed(job, truth),
                noise=truth["noise"],
                seed=job.seed,
                member=member,
                experiment=e,
                data=inputs.recordings[0] if inputs.recordings else None,
                tolerance=options.get("tolerance"),
                method=truth["method"] or options.get("method"),
                max_steps=options.get("max_steps"),
                watch=progress,
            )
        finally:
            progress.close()
        if job.kind != "simulate" and not path.converged:
            place = job.document.place(label)
            problem = f"the truth cannot be integrated: {path.outcome.value} ({path.cause})"
            raise InputError(Mistake(place, problem, "change its start, parameters or times", label))
        yield path


def _recorded(inputs: Inputs) -> tuple[str, ...] | None:
    """What the job observes, and with data everything that the data can be compared with."""
    observe: tuple[str, ...] | None = inputs.job["simulate"]["observe"]
    recorded = inputs.recordings[0].names if inputs.recordings else None
    if recorded is None or observe is None:
        return observe or recorded
    return (*observe, *(name for name in recorded if name not in observe))
