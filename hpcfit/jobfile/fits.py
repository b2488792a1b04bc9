"""What a job must say to be a fit: parameters guessed or fixed, data from somewhere, names that exist."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hpcfit.models.define import Model
from hpcfit.models.graph import Graph
from hpcfit.models.names import nearest
from hpcfit.models.strings import expression_of, parse
from hpcfit.records import InputError

Wrong = Callable[..., None]  # (key, problem, remedy, value)


def check_fit(
    wrong: Wrong,
    given: Mapping[str, Any],
    tables: Mapping[str, Mapping[str, Any]],
    states: tuple[str, ...] | None,
    parameters: tuple[str, ...] | None,
    model: Model | None,
) -> None:
    """Every mistake in the tables of a fit that can be found without data."""
    fit = tables.get("fit", {})
    _check_parameters(wrong, tables.get("guess", {}), fit.get("fixed") or {}, parameters)
    _check_source(wrong, given)
    _check_observed(wrong, fit, tables, states)
    for name, start in tables.get("nodes", {}).items():
        if states is not None and name not in states:
            wrong(f"nodes.{name}", f"there is no state '{name}'", nearest(name, states), start)
        elif isinstance(start, str):
            _check_expression(wrong, f"nodes.{name}", start, None)
    for name, source in (fit.get("derived") or {}).items():
        if name in (*(states or ()), *(parameters or ())):
            wrong(f"fit.derived.{name}", "has the name of an unknown", "choose another name", source)
        elif model is not None:
            _check_expression(wrong, f"fit.derived.{name}", source, model)


def _check_parameters(
    wrong: Wrong, guess: Mapping[str, Any], fixed: Mapping[str, Any], known: tuple[str, ...] | None
) -> None:
    for name in fixed:
        if known is not None and name not in known:
            wrong("fit.fixed", f"there is no parameter '{name}'", nearest(name, known))
        elif name in guess:
            wrong(f"guess.{name}", "the parameter is fixed as well", "remove it here or in fit.fixed")
    missing = [name for name in known or () if name not in guess and name not in fixed]
    if missing:
        wrong(
            "guess",
            f"no value for the parameter {', '.join(missing[:8])}",
            "give each a guess, or a value in fit.fixed",
        )


def _check_source(wrong: Wrong, given: Mapping[str, Any]) -> None:
    """Data come from a file, or are simulated from the truth."""
    truth = given.get("truth")
    if "data" in given:
        if isinstance(truth, dict) and ("times" in truth or "noise" in truth):
            key = "times" if "times" in truth else "noise"
            wrong(f"truth.{key}", "the data come from [data]", f"remove truth.{key}, or the table [data]")
    elif not isinstance(truth, dict):
        wrong("data", "there are no data", "give [data] with a file, or [truth] to simulate them")
    elif "times" not in truth:
        wrong("truth.times", "is missing", "as in times = {start = 0.0, spacing = 0.1, count = 100}")


def _check_observed(
    wrong: Wrong,
    fit: Mapping[str, Any],
    tables: Mapping[str, Mapping[str, Any]],
    states: tuple[str, ...] | None,
) -> None:
    columns = tuple(tables.get("data", {}).get("columns") or ())
    observed = fit.get("observe") or columns or states
    weights = fit.get("weights") or {}
    for name in weights:
        if observed is not None and name not in observed:
            wrong("fit.weights", f"'{name}' is not observed", nearest(name, observed), weights[name])
    if weights and observed and not any(weights.get(name, 1.0) for name in observed):
        wrong("fit.weights", "all weights are 0", "leave at least one quantity with weight 1")
    for name in fit.get("observe") or ():
        if columns and name not in columns:
            wrong("fit.observe", f"[data] has no column for '{name}'", nearest(name, columns))


def _check_expression(wrong: Wrong, key: str, source: str, model: Model | None) -> None:
    try:
        if model is not None:
            expression_of(model, source)
        else:
            graph = Graph()
            parse(source, {"t": graph.leaf("time"), "pi": graph.symbol(3.14)}, graph)
    except InputError as error:
        problem, _, remedy = str(error).partition("; ")
        wrong(key, problem, remedy, source)
