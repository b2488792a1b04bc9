"""What a job must say to be a spectrum: values from somewhere, and names that exist."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hpcfit.jobfile.names import ModelNames
from hpcfit.models.define import Model
from hpcfit.models.names import nearest

Wrong = Callable[..., None]  # (key, problem, remedy, value)
Table = Mapping[str, Any]
MEANINGLESS = ("times", "noise", "observe", "method")  # keys of [truth] that are of simulations and fits


def check_lyapunov(
    wrong: Wrong, given: Table, tables: Mapping[str, Table], names: ModelNames, model: Model | None
) -> None:
    """Every mistake in the tables of a spectrum that can be found without computing."""
    options = tables.get("lyapunov", {})
    _check_source(wrong, given, options, model)
    for number, start in enumerate(options.get("starts") or (), 1):
        _check_start(wrong, f"lyapunov.starts.{number}", start, names.states)


def _check_source(wrong: Wrong, given: Table, options: Table, model: Model | None) -> None:
    """Start and parameters are in the job, in the result of a fit, or in an example of the catalogue."""
    truth = given.get("truth")
    if isinstance(truth, dict):
        for key in MEANINGLESS:
            if key in truth:
                wrong(f"truth.{key}", "has no meaning in a job of kind 'lyapunov'", "remove it")
    elif isinstance(truth, list) and len(truth) > 1:
        wrong("truth[2]", "a spectrum has one experiment", "keep one [truth]; see lyapunov.starts")
    if options.get("from") and truth is not None:
        remedy = "remove lyapunov.from, or the table [truth]"
        wrong("lyapunov.from", "start and parameters come from [truth]", remedy, options["from"])
    if options.get("draws") and not options.get("from"):
        remedy = 'give lyapunov.from = "fit.h5", or remove it'
        wrong("lyapunov.draws", "draws need the covariance of a fit", remedy, options["draws"])
    if truth is None and not options.get("from") and model is not None and not model.examples:
        wrong("truth", "this table is missing", "give start and parameters, or lyapunov.from")


def _check_start(wrong: Wrong, key: str, start: Table, known: tuple[str, ...] | None) -> None:
    for name in start:
        if known is not None and name not in known:
            wrong(f"{key}.{name}", f"there is no state '{name}'", nearest(name, known), start[name])
    if missing := [name for name in known or () if name not in start]:
        wrong(key, f"no value for the state {', '.join(missing[:8])}", "give a value to each")
