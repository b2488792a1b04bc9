"""Check a document against the model's names and its own sense; find every mistake, not only the first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hpcfit.flow.propagate import DEFAULT_METHOD, METHODS
from hpcfit.jobfile.arrays import several, written
from hpcfit.jobfile.checker import Checker
from hpcfit.jobfile.fits import check_fit
from hpcfit.jobfile.grids import document_of
from hpcfit.jobfile.names import ModelNames
from hpcfit.jobfile.read import Document
from hpcfit.jobfile.schema import ARRAYS, RUNNABLE
from hpcfit.jobfile.spectra import check_lyapunov
from hpcfit.jobfile.sweeps import different_unknowns, has_grid, in_cell, lacks_members, single_changes
from hpcfit.jobfile.values import split_remedy
from hpcfit.models import catalogue
from hpcfit.models.define import Model
from hpcfit.models.names import nearest
from hpcfit.models.pythonfile import choose, declarations
from hpcfit.models.strings import model_from_strings
from hpcfit.records import InputError, Mistake, Noise

Tables = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Job:
    """A job without mistakes: every key read, defaults filled in. The key '' holds the top level."""

    document: Document
    kind: str
    seed: int
    tables: Tables
    names: ModelNames
    model: Model | None  # None: in a Python file, which has not been run

    def __getitem__(self, table: str) -> Mapping[str, Any]:
        return self.tables.get(table, {})

    def several(self, table: str) -> list[tuple[str, Mapping[str, Any]]]:
        """All tables [[truth]] or [[data]], each with what messages call it."""
        return several(self.tables, table)

    @property
    def not_runnable(self) -> str:
        """The key that asks for what can only be checked as yet; '' if there is none."""
        return "" if self.kind in RUNNABLE else "kind"

    @property
    def fits(self) -> bool:
        """True if the job fits, once or for many members."""
        return "fit" in (self.kind, self["ensemble"].get("of"))

    def path(self, name: str) -> Path:
        """A path as the job means it: relative to the job file."""
        return self.document.file(name)


def check(document: Document, model: Model | None = None) -> tuple[Job | None, list[Mistake]]:
    """The job that a document means, or all of its mistakes; no user code is run.

    Give the model if it is known already: a Python file tells all its names only when it has been run.
    A job with a grid is that of its first cell, and knows the grid; other cells are tried one key at a time.
    """
    if not has_grid(document):
        return check_cell(document, model)
    checker = Checker(document)
    asked = checker.read_table("ensemble", document.values["ensemble"])
    grid = asked["grid"]
    if checker.mistakes:
        return None, checker.mistakes
    first = {key: values[0] for key, values in grid.items()}
    job, mistakes = _cell_of(document, first, {}, model)
    if job is None:
        return None, mistakes
    for changed in single_changes(grid):
        other, wrong = _cell_of(document, first | changed, changed, model)
        mistakes += wrong or different_unknowns(document, changed, job.tables, other.tables if other else {})
    ensemble = {**asked, "members": asked["members"] or 1}
    if ensemble["of"] == "lyapunov" and ensemble["members"] > 1:
        place, remedy = document.place("ensemble.members"), "remove it: the members are the cells"
        problem = "the spectra of a cell would all be the same"
        mistakes.append(Mistake(place, problem, remedy, "ensemble.members", ensemble["members"]))
    whole = replace(job, kind="ensemble", document=document, tables={**job.tables, "ensemble": ensemble})
    return (None, mistakes) if mistakes else (whole, [])


def _cell_of(
    document: Document, chosen: Mapping[str, Any], told: Mapping[str, Any], model: Model | None
) -> tuple[Job | None, list[Mistake]]:
    """The job of a cell, or its mistakes, which name what was changed."""
    try:
        cell = document_of(document, chosen)
    except InputError as error:
        return None, [in_cell(document, each, chosen, told) for each in error.mistakes]
    job, mistakes = check_cell(cell, model, swept=True)
    return job, [in_cell(document, each, chosen, told) for each in mistakes]


def cell_job(job: Job, chosen: Mapping[str, Any], model: Model | None = None) -> Job:
    """The job of one cell of a job with a grid."""
    cell, mistakes = _cell_of(job.document, chosen, chosen, model)
    if cell is None:
        raise InputError(mistakes)
    return cell


def check_cell(
    document: Document, model: Model | None = None, *, swept: bool = False
) -> tuple[Job | None, list[Mistake]]:
    """The job that a document without a grid means, or all of its mistakes."""
    checker = Checker(document)
    kind, tables = checker.read_tables()
    if kind == "ensemble" and not swept and lacks_members(document):
        checker.wrong("ensemble.members", "is missing", "how many")
    if kind == "ensemble" and tables["ensemble"]["of"] == "lyapunov":
        remedy = "add [ensemble.grid], or let kind be lyapunov"
        checker.wrong("ensemble.of", "spectra of an ensemble are those of a grid", remedy, "lyapunov")
    names = None if model is None else ModelNames.of(model)
    if model is None:
        model, names = _model(checker, tables.get("model", {}))
    if names:
        _check_names(checker, tables, names)
    if kind == "simulate" and "truth" in document.values:
        _check_one_time_grid(checker, document.values)
    _check_experiments(checker, kind, tables)
    if names and "fit" in (kind, tables.get("ensemble", {}).get("of")):
        check_fit(checker.wrong, document.values, tables, names, model)
    if names and kind == "lyapunov":
        check_lyapunov(checker.wrong, document.values, tables, names, model)
    _check_opaque(checker, tables, model)
    _check_map_times(checker, tables, model)
    _check_tolerance(checker, tables.get("simulate", {}))
    if checker.mistakes or names is None:
        return None, sorted(checker.mistakes, key=lambda mistake: document.line(mistake.key))
    return Job(document, kind, tables[""]["seed"], tables, names, model), []


def _model(checker: Checker, table: Mapping[str, Any]) -> tuple[Model | None, ModelNames | None]:
    """The model, as far as it is known without running user code."""
    ways = [way for way in ("name", "equations", "file") if table.get(way)]
    if "model" not in checker.document.values:
        return None, None
    if not ways or ("equations" in ways and len(ways) > 1 and "file" in ways):
        checker.wrong(
            "model", "give a model in one way", "name = (catalogue), or states and equations, or file ="
        )
        return None, None
    try:
        if "file" in ways:
            return None, _declared(checker.document.file(table["file"]), table.get("name"))
        model = _inline(table) if "equations" in ways else catalogue.find(table["name"], table.get("size"))
        for way in ("states", "parameters", "observables", "invariant", "switches", "jumps", "units"):
            if "equations" not in ways and table.get(way):
                checker.wrong(f"model.{way}", "belongs to an inline model", "remove it, or give equations")
        return model, ModelNames.of(model)
    except InputError as error:
        key = "model.file" if "file" in ways else "model.equations" if "equations" in ways else "model.name"
        problem, remedy = split_remedy(str(error))
        checker.wrong(key, problem, remedy, None if key == "model.equations" else table[key.split(".")[1]])
        return None, None


def _inline(table: Mapping[str, Any]) -> Model:
    if not table.get("states"):
        raise InputError('equations without states; name them as in states = ["x", "y"]')
    return model_from_strings(
        table.get("name") or "model",
        states=table["states"],
        parameters=table["parameters"] or (),
        equations=table["equations"],
        kind=table["kind"],
        observables=table["observables"],
        invariant=table["invariant"],
        switches=table["switches"],
        jumps=table["jumps"],
        units=table["units"],
    )


def _declared(path: Path, name: str | None) -> ModelNames:
    found = {declaration.name: declaration for declaration in declarations(path)}
    declaration = found[choose(path, name, list(found))]
    both = declaration.states is not None and declaration.observables is not None
    quantities = (*(declaration.states or ()), *(declaration.observables or ())) if both else None
    return ModelNames(declaration.name, declaration.states, declaration.parameters, quantities)


def _check_names(checker: Checker, tables: Tables, names: ModelNames) -> None:
    """Every name in the job is one of the model's; what must be complete is complete."""
    given = checker.document.values
    options = tables.get("simulate" if tables[""]["kind"] == "simulate" else "fit", {})
    as_written = dict(written(given, "truth")) | dict(written(given, "data"))
    for k, (label, truth) in enumerate(several(tables, "truth")):
        _check_truth(checker, label, truth, as_written[label], options, names, first=not k)
    for label, data in several(tables, "data"):
        for key in ("columns", "sigma"):
            if isinstance(data[key], Mapping) and key in as_written[label]:
                _check_known(checker, f"{label}.{key}", data[key], names.quantities, "state or observable")
    for key in ("simulate.observe", "fit.observe"):
        table, name = key.split(".")
        value = tables.get(table, {}).get(name)
        if isinstance(value, Mapping | tuple):
            _check_known(checker, key, value, names.quantities, "state or observable")
    if "guess" in given:
        _check_known(checker, "guess", tables.get("guess", {}), names.parameters, "parameter")


def _check_truth(
    checker: Checker,
    label: str,
    truth: Mapping[str, Any],
    own: Mapping[str, Any],
    options: Mapping[str, Any],
    names: ModelNames,
    *,
    first: bool,
) -> None:
    """Names and completeness of one [[truth]]; what a later one takes from the first is checked there."""
    if first or "start" in own:
        _check_values(checker, f"{label}.start", truth["start"] or {}, names.states, "state")
    if first:
        _check_values(
            checker, f"{label}.parameters", truth["parameters"] or {}, names.parameters, "parameter"
        )
    elif isinstance(own.get("parameters"), dict):
        _check_known(checker, f"{label}.parameters", own["parameters"], names.parameters, "parameter")
    if "observe" in own:
        known = options.get("observe") or names.quantities
        _check_known(checker, f"{label}.observe", truth["observe"] or (), known, "observed quantity")
    if isinstance(truth["noise"], Noise) and "noise" in own:
        observed = truth["observe"] or options.get("observe") or names.states
        _check_noise_names(checker, label, truth["noise"], observed)


def _check_noise_names(checker: Checker, label: str, noise: Noise, observed: tuple[str, ...] | None) -> None:
    for size in ("sd", "fraction", "proportional"):
        by_name = getattr(noise, size)
        if isinstance(by_name, Mapping):
            _check_known(checker, f"{label}.noise.{size}", by_name, observed, "observed quantity")


def _check_experiments(checker: Checker, kind: str, tables: Tables) -> None:
    """Only a fit has several; they are in several tables, or in one file."""
    fits = "fit" in (kind, tables.get("ensemble", {}).get("of"))
    data = several(tables, "data")
    for label, table in data:
        if table["experiment"] and (len(data) > 1 or not fits):
            problem = "only one file may hold several experiments" if fits else f"kind '{kind}' has only one"
            remedy = "keep one [data], or remove it" if fits else "remove it"
            checker.wrong(f"{label}.experiment", problem, remedy, table["experiment"])
            break
    for name in () if fits else ARRAYS:
        for label, _ in several(tables, name)[1:2]:
            problem = f"a job of kind '{kind}' has one experiment"
            checker.wrong(label, problem, f'keep one [{name}], or let kind be "fit"')
    if kind == "simulate" and tables.get("truth", {}).get("observe"):
        value, remedy = tables["truth"]["observe"], "use simulate.observe"
        checker.wrong("truth.observe", "belongs to the experiments of a fit", remedy, list(value))


def _check_known(
    checker: Checker, key: str, given: Iterable[str], known: tuple[str, ...] | None, what: str
) -> None:
    for name in given:
        full = f"{key}.{name}" if isinstance(given, Mapping) else key
        if known is not None and name not in known and not checker.is_wrong(full):
            value = given[name] if isinstance(given, Mapping) else None
            checker.wrong(full, f"there is no {what} '{name}'", nearest(name, known), value)


def _check_values(
    checker: Checker, key: str, given: Mapping[str, float], known: tuple[str, ...] | None, what: str
) -> None:
    if checker.is_wrong(key):
        return
    _check_known(checker, key, given, known, what)
    missing = [name for name in known or () if name not in given]
    if missing:
        checker.wrong(key, f"no value for the {what} {', '.join(missing[:8])}", "give a value to each")


def _check_tolerance(checker: Checker, options: Mapping[str, Any]) -> None:
    tolerance, method = options.get("tolerance"), options.get("method") or DEFAULT_METHOD
    if tolerance is not None and tolerance < METHODS[method].smallest_tolerance:
        smallest = METHODS[method].smallest_tolerance
        checker.wrong(
            "simulate.tolerance", f"method {method} takes {smallest:g} at least", "leave it out", tolerance
        )


def _check_opaque(checker: Checker, tables: Tables, model: Model | None) -> None:
    """Only models with expressions are compiled."""
    methods = {f"{label}.method": truth.get("method") for label, truth in several(tables, "truth")}
    for key in ("simulate.method", "fit.method"):
        table, name = key.split(".")
        methods[key] = tables.get(table, {}).get(name)
    for key, method in methods.items():
        if model is not None and model.opaque and str(method).startswith("taylor"):
            checker.wrong(key, "an opaque model cannot be compiled", 'use "extrapolation"', method)
        if model is not None and model.jumps and str(method).startswith("extrapolation"):
            checker.wrong(key, f"the jumps of {model.name} need the compiled series", 'use "taylor"', method)


def _check_one_time_grid(checker: Checker, given: Mapping[str, Any]) -> None:
    timed = any("times" in truth for _, truth in written(given, "truth"))
    if not timed and "data" not in given:
        checker.wrong("truth.times", "is missing", "as in times = {start = 0.0, spacing = 0.1, count = 100}")
    if timed and "data" in given:
        checker.wrong("truth.times", "the times come from [data]", "remove truth.times, or the table [data]")


def _check_map_times(checker: Checker, tables: Tables, model: Model | None) -> None:
    if model is None or model.kind != "map":
        return
    for label, truth in several(tables, "truth"):
        grid = truth.get("times") or {}
        numbers = grid.get("list") or [grid.get("start", 0.0), grid.get("spacing", 1.0)]
        if "end" in grid or ("file" not in grid and any(value != round(value) for value in numbers)):
            remedy = "use whole times: {start = 0, spacing = 1, count = ...}"
            checker.wrong(f"{label}.times", f"{model.name} is a map", remedy)
