"""What a job must say to be a fit: parameters guessed or fixed, data from somewhere, names that exist."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hpcfit.jobfile.arrays import several, written
from hpcfit.jobfile.names import ModelNames
from hpcfit.jobfile.values import split_remedy
from hpcfit.models.conditions import Names, relations
from hpcfit.models.define import Model
from hpcfit.models.graph import Graph
from hpcfit.models.names import nearest
from hpcfit.models.strings import expression_of, parse
from hpcfit.records import InputError, Noise

Wrong = Callable[..., None]  # (key, problem, remedy, value)
Table = Mapping[str, Any]
RECORDING = ("file", "time", "columns", "experiment")  # what tells one recording from another
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
        if fit.get("unknown_sigma"):
            remedy = "remove it: the members of an ensemble know their noise"
            wrong("fit.unknown_sigma", "is for single fits", remedy, list(fit["unknown_sigma"]))
    else:
        _check_source(wrong, given)
    columns = _columns(several(tables, "data"))
    observed = _observed(tables, columns, names)
    _check_observed(wrong, fit, columns, observed)
    _check_local(wrong, given, tables, names.parameters)
    _check_constraints(wrong, fit, names)
    for k, (label, truth) in enumerate(several(tables, "truth")):
        if not k or truth.get("noise") is not tables["truth"].get("noise"):
            _check_noise(
                wrong, label, truth.get("noise"), truth.get("observe") or fit.get("observe") or states
            )
    _check_alike(wrong, given, tables)
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
    """Data come from files, or are simulated from the truth."""
    truths = written(given, "truth")
    if "data" in given:
        for label, truth in truths:
            for key in ("times", "noise", "observe"):
                if key in truth:
                    remedy = f"remove {label}.{key}, or the table [data]"
                    wrong(f"{label}.{key}", "the data come from [data]", remedy)
    elif not truths:
        wrong("data", "there are no data", "give [data] with a file, or [truth] to simulate them")
    elif "times" not in truths[0][1]:
        wrong(f"{truths[0][0]}.times", "is missing", SIMULATED_TIMES)


def _check_members(wrong: Wrong, given: Table) -> None:
    """The members of an ensemble are one truth with different noise."""
    truths = written(given, "truth")
    if "data" in given:
        wrong("data", "the members of an ensemble differ by simulated noise", "give [truth] instead")
    elif not truths:
        wrong("truth", "this table is missing", "an ensemble simulates the data of its members from it")
    else:
        label, truth = truths[0]
        if "times" not in truth:
            wrong(f"{label}.times", "is missing", SIMULATED_TIMES)
        if "noise" not in truth:
            wrong(f"{label}.noise", "is missing: members differ by their noise", "as in noise = {sd = 0.1}")


def _columns(data: Sequence[tuple[str, Table]]) -> tuple[str, ...]:
    """The quantities that the data have columns for, where the job says so for all of them."""
    if not all(table.get("columns") for _, table in data):
        return ()
    return tuple(dict.fromkeys(name for _, table in data for name in table["columns"]))


def _observed(
    tables: Mapping[str, Table], columns: tuple[str, ...], names: ModelNames
) -> tuple[str, ...] | None:
    """What is fitted in some experiment, as far as that is known without data."""
    usual = tables.get("fit", {}).get("observe")
    if "data" in tables:
        return usual or columns or names.quantities
    common: tuple[str, ...] | None = usual or names.states
    own = [truth.get("observe") or common for _, truth in several(tables, "truth")]
    seen = [each for each in own if each is not None]
    return (
        tuple(dict.fromkeys(name for each in seen for name in each)) if len(seen) == len(own) > 0 else common
    )


def _check_local(
    wrong: Wrong, given: Table, tables: Mapping[str, Table], known: tuple[str, ...] | None
) -> None:
    """Parameters of each experiment exist and are not fixed; the others have one truth."""
    local = tables.get("fit", {}).get("local") or ()
    for name in local:
        if known is not None and name not in known:
            wrong("fit.local", f"there is no parameter '{name}'", nearest(name, known), list(local))
        elif name in (tables["fit"].get("fixed") or {}):
            remedy = "remove it here or in fit.fixed"
            wrong("fit.local", f"the parameter {name} is fixed", remedy, list(local))
        if name in tables.get("nodes", {}):
            wrong(f"nodes.{name}", "is a local parameter", f"give guess.{name} instead")
    truths = several(tables, "truth")
    options = given.get("fit")
    misread = not local and isinstance(options, dict) and "local" in options
    for label, truth in [] if misread else truths[1:]:
        for name, value in (truth.get("parameters") or {}).items():
            first = (truths[0][1].get("parameters") or {}).get(name)
            if name not in local and first is not None and value != first:
                problem = f"differs from {first:g} of {truths[0][0]}, but is fitted as one for all"
                wrong(f"{label}.parameters.{name}", problem, f'add "{name}" to fit.local', value)


def _check_constraints(wrong: Wrong, fit: Table, names: ModelNames) -> None:
    """As far as names go; times and experiments are known with the data."""
    if names.states is None or names.parameters is None or names.quantities is None:
        return
    local = tuple(fit.get("local") or ())
    known = Names(
        names.states,
        tuple(name for name in names.quantities if name not in names.states),
        tuple(name for name in names.parameters if name not in local),
        tuple(name for name in names.parameters if name in local),
        None,
    )
    for source in fit.get("constraints") or ():
        try:
            relations(source, known)
        except InputError as error:
            problem, remedy = split_remedy(str(error))
            wrong("fit.constraints", problem, remedy or "correct it", source)


def _check_alike(wrong: Wrong, given: Table, tables: Mapping[str, Table]) -> None:
    """What several experiments must have in common, and what not."""
    for table, key in (("data", "sigma"), ("truth", "noise")):
        (first, own), *others = several(tables, table) or [(table, {})]
        for label, other in others:
            if own.get(key) is None and other.get(key) is not None:
                remedy = f"give {key} to all experiments, or to none"
                wrong(f"{label}.{key}", f"{first} has no {key}", remedy)
    data = several(tables, "data")
    known: dict[str, str] = {}
    for label, each in data:
        same = known.setdefault(str([each.get(name) for name in RECORDING]), label)
        if same != label and each.get("file"):
            wrong(f"{label}.file", f"the same data as {same}", "name another file or columns", each["file"])
    truths = several(tables, "truth")
    grouped = any(each.get("experiment") for _, each in data)
    if "data" in given and len(truths) > 1 and not grouped and len(truths) != len(data):
        problem = f"{len(truths)} tables [[truth]] for {len(data)} of [data]"
        wrong(truths[-1][0], problem, "give one to each, or one in all")


def _check_observed(
    wrong: Wrong, fit: Table, columns: tuple[str, ...], observed: tuple[str, ...] | None
) -> None:
    weights = fit.get("weights") or {}
    for name in weights:
        if observed is not None and name not in observed:
            wrong(f"fit.weights.{name}", f"'{name}' is not observed", nearest(name, observed), weights[name])
    if weights and observed and not any(weights.get(name, 1.0) for name in observed):
        wrong("fit.weights", "all weights are 0", "leave at least one quantity with weight 1", weights)
    for name in fit.get("unknown_sigma") or ():
        if observed is not None and name not in observed:
            known = nearest(name, observed)
            wrong("fit.unknown_sigma", f"'{name}' is not observed", known, list(fit["unknown_sigma"]))
    for name in fit.get("observe") or ():
        if columns and name not in columns:
            wrong("fit.observe", f"[data] has no column for '{name}'", nearest(name, columns))


def _check_noise(wrong: Wrong, label: str, noise: Any, observed: tuple[str, ...] | None) -> None:
    """The size of the noise is the weight of the data, so that it cannot be 0."""
    if not isinstance(noise, Noise):
        return
    for key in ("sd", "fraction", "proportional"):
        size = getattr(noise, key)
        silent = [name for name in observed or () if not size.get(name)] if isinstance(size, Mapping) else []
        if silent or size == 0.0:
            who = f" for {', '.join(silent[:8])}" if silent else ""
            remedy = "give every observed quantity a size, or remove truth.noise to fit exact data"
            wrong(f"{label}.noise.{key}", f"no noise{who}, and thus no weight in the fit", remedy, size)


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
