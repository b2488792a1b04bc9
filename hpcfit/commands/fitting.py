"""The tables of a fit as plain arguments: data from files or from the truth, what is fitted, and how."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hpcfit.commands.loading import Inputs
from hpcfit.commands.progress import ProgressLine
from hpcfit.jobfile.check import Job
from hpcfit.models.define import Model
from hpcfit.mpi.together import on_root
from hpcfit.records import InputError, Mistake, Path, Series, Source
from hpcfit.studies.long import headings
from hpcfit.studies.simulate import simulate


def posing(job: Job) -> dict[str, Any]:
    """What is fitted, and from where."""
    options = job["fit"]
    return {
        "guess": job["guess"],
        "fixed": options["fixed"],
        "nodes": options["nodes"],
        "start": job["nodes"],
        "weights": options["weights"],
        "local": options["local"],
        "constraints": options["constraints"],
        "times": options["times"],
        "method": options["method"],
    }


def solving(job: Job) -> dict[str, Any]:
    """How it is fitted."""
    return {key: job["fit"][key] for key in ("tolerance", "max_iterations", "level", "phases")}


def known_truth(inputs: Inputs) -> dict[str, float]:
    """The truth by the names of the unknowns; one truth alone holds for the parameters of all experiments."""
    job, experiments = inputs.job, inputs.n_experiments
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


def data_of(comm: Any, inputs: Inputs, model: Model, member: int) -> Sequence[Source]:
    """What the fit sees: the recordings, or the truths with their noise, which rank 0 has."""
    if inputs.recordings:
        return inputs.recordings
    found: list[Series] = []

    def make() -> None:
        for path in simulated(inputs, model, member):
            assert path.exact is not None
            found.append(path.observed or path.exact)

    on_root(comm, make)
    return headings(comm, found)


def exact_data(inputs: Inputs, model: Model) -> tuple[Path, ...]:
    """The path of every experiment, whose values without noise are known at any time."""
    return tuple(simulated(inputs, model, 0, tell=False))


def simulated(inputs: Inputs, model: Model, member: int, *, tell: bool = True) -> Iterator[Path]:
    """The truth of every experiment, as its instrument sees it; tell: how far it has come."""
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
                observe=_recorded(inputs) if job.kind == "simulate" else observed(job, truth),
                noise=truth["noise"],
                seed=job.seed,
                member=member,
                experiment=e,
                data=_recording(inputs),
                tolerance=options.get("tolerance"),
                method=truth["method"] or options.get("method"),
                max_steps=options.get("max_steps"),
                watch=progress if tell else None,
            )
        finally:
            progress.close()
        if job.kind != "simulate" and not path.converged:
            place = job.document.place(label)
            problem = f"the truth cannot be integrated: {path.outcome.value} ({path.cause})"
            raise InputError(Mistake(place, problem, "change its start, parameters or times", label))
        yield path


def _recording(inputs: Inputs) -> Series | None:
    """What a simulation is compared with."""
    first = inputs.recordings[0] if inputs.recordings else None
    return first if isinstance(first, Series) else None


def _recorded(inputs: Inputs) -> tuple[str, ...] | None:
    """What the job observes, and with data everything that the data can be compared with."""
    observe: tuple[str, ...] | None = inputs.job["simulate"]["observe"]
    recorded = inputs.recordings[0].names if inputs.recordings else None
    if recorded is None or observe is None:
        return observe or recorded
    return (*observe, *(name for name in recorded if name not in observe))


def observed(job: Job, truth: Mapping[str, Any]) -> tuple[str, ...] | None:
    """What an experiment sees; None: all states."""
    return truth["observe"] or job["fit"]["observe"]
