"""What a job must say to be a fit: parameters guessed or fixed, data from somewhere, names that exist."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hpcfit.jobfile.names import ModelNames
from hpcfit.jobfile.values import split_remedy
from hpcfit.models.define import Model
from hpcfit.models.graph import Graph
from hpcfit.models.names import nearest
from hpcfit.models.strings import expression_of, parse
from hpcfit.records import InputError, Noise

Wrong = Callable[..., None]  # (key, problem, remedy, value)
Table = Mapping[str, Any]
SIMULATED_TIMES = "as in times = {start = 0.0, spacing = 0.1, count = 100}"


def check_fit(
    wrong: Wrong, given: Table, tables: Mapping[str, Table], names: ModelNames, model: Model | None
) -> None:
    """Every mistake in the tables of a fit that can be found without data."""
    fit = tables.get("fit", {})
    states = names.states
    _check_parameters(wrong, tables.get("guess", {}), fit.get("fixed") or {}, names.parameters)
    if given.get("kind") == "ensemble":
        _check_members(wrong, given)
    else:
        _check_source(wrong, given)
    columns = tuple(tables.get("data", {}).get("columns") or ())
    observed = fit.get("observe") or columns or (names.quantities if "data" in given else states)
    _check_observed(wrong, fit, columns, observed)
    _check_noise(wrong, tables.get("truth", {}).get("noise"), observed)
    for name, start in tables.get("nodes", {}).items():
        if states is not None and name not in states:
            wrong(f"nodes.{name}", f"there is no state '{name}'", nearest(name, states), start)
        elif isinstance(start, str):
            _check_expression(wrong, f"nodes.{name}", start, None)
    for name, source in (fit.get("derived") or {}).items():
        if name in (*(states or ()), *(names.parameters or ())):
            wrong(f"fit.derived.{name}", "has the name of an unknown", "choose another name", source)
        elif model is not None:
            _check_expression(wrong, f"fit.derived.{name}", source, model)


def _check_parameters(wrong: Wrong, guess: Table, fixed: Table, known: tuple[str, ...] | None) -> None:
    for name, value in fixed.items():
        if known is not None and name not in known:
            wrong(f"fit.fixed.{name}", f"there is no parameter '{name}'", nearest(name, known), value)
        elif name in guess:
            remedy = "remove it here or in fit.fixed"
            wrong(f"guess.{name}", "the parameter is fixed as well", remedy, guess[name])
    missing = [name for name in known or () if name not in guess and name not in fixed]
    if missing:
        wrong(
            "guess",
            f"no value for the parameter {', '.join(missing[:8])}",
            "give each a guess, or a value in fit.fixed",
        )


def _check_source(wrong: Wrong, given: Table) -> None:
    """Data come from a file, or are simulated from the truth."""
    truth = given.get("truth")
    if "data" in given:
        for key in ("times", "noise"):
            if isinstance(truth, dict) and key in truth:
                wrong(f"truth.{key}", "the data come from [data]", f"remove truth.{key}, or the table [data]")
    elif not isinstance(truth, dict):
        wrong("data", "there are no data", "give [data] with a file, or [truth] to simulate them")
    elif "times" not in truth:
        wrong("truth.times", "is missing", SIMULATED_TIMES)


def _check_members(wrong: Wrong, given: Table) -> None:
    """The members of an ensemble are one truth with different noise."""
    truth = given.get("truth")
    if "data" in given:
        wrong("data", "the members of an ensemble differ by simulated noise", "give [truth] instead")
    elif not isinstance(truth, dict):
        wrong("truth", "this table is missing", "an ensemble simulates the data of its members from it")
    else:
        if "times" not in truth:
            wrong("truth.times", "is missing", SIMULATED_TIMES)
        if "noise" not in truth:
            wrong("truth.noise", "is missing: members differ by their noise", "as in noise = {sd = 0.1}")


def _check_observed(
    wrong: Wrong, fit: Table, columns: tuple[str, ...], observed: tuple[str, ...] | None
) -> None:
    weights = fit.get("weights") or {}
    for name in weights:
        if observed is not None and name not in observed:
            wrong(f"fit.weights.{name}", f"'{name}' is not observed", nearest(name, observed), weights[name])
    if weights and observed and not any(weights.get(name, 1.0) for name in observed):
        wrong("fit.weights", "all weights are 0", "leave at least one quantity with weight 1", weights)
    for name in fit.get("observe") or ():
        if columns and name not in columns:
            wrong("fit.observe", f"[data] has no column for '{name}'", nearest(name, columns))


def _check_noise(wrong: Wrong, noise: Any, observed: tuple[str, ...] | None) -> None:
    """The size of the noise is the weight of the data, so that it cannot be 0."""
    if not isinstance(noise, Noise):
        return
    for key in ("sd", "fraction", "proportional"):
        size = getattr(noise, key)
        silent = [name for name in observed or () if not size.get(name)] if isinstance(size, Mapping) else []
        if silent or size == 0.0:
            who = f" for {', '.join(silent[:8])}" if silent else ""
            remedy = "give every observed quantity a size, or remove truth.noise to fit exact data"
            wrong(f"truth.noise.{key}", f"no noise{who}, and thus no weight in the fit", remedy, size)


def _check_expression(wrong: Wrong, key: str, source: str, model: Model | None) -> None:
    try:
        if model is not None:
            expression_of(model, source)
        else:
            graph = Graph()
            parse(source, {"t": graph.leaf("time"), "pi": graph.symbol(3.14)}, graph)
    except InputError as error:
        problem, remedy = split_remedy(str(error))
        usual = "write a number or an expression in t" if model is None else "remove it, or correct it"
        wrong(key, problem, remedy or usual, source)
