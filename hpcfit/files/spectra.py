"""Spectra in result files.

Arrays: exponents, errors, bounds (exponent); growth (trajectory, block, exponent), of which all errors and
pictures are made; starts, parameters, regular (trajectory); failures (one array a column); section.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from hpcfit.files.hdf5 import columns, names_of, put, put_attributes, texts
from hpcfit.records import Convergence, Failure, Outcome, Section, Spectrum

_NUMBERS: dict[str, Any] = {
    part.name: {"float": float, "int": int, "bool": bool}[str(part.type)]
    for part in fields(Spectrum)
    if part.type in ("float", "int", "bool")
}
_RATES = {
    "exponents": "natural logarithm per unit of time, largest first",
    "errors": "standard errors; NaN where bounds has a number",
    "bounds": "of exponents that vanish; NaN for the others",
    "half_widths": "of 95 % intervals; the bounds of exponents that vanish",
}


def put_spectrum(file: Any, spectrum: Spectrum) -> None:
    """The attributes and arrays of a spectrum."""
    units = spectrum.units
    put_attributes(
        file,
        {
            "model": spectrum.model,
            "model_kind": spectrum.kind,
            "outcome": spectrum.outcome.name,
            "outcome_text": spectrum.outcome.value,
            "cause": spectrum.cause,
            "warnings": list(spectrum.warnings) or "",
            "seed": -1 if spectrum.seed is None else spectrum.seed,
            "units": json.dumps(dict(units)),
            "integrals": -1 if spectrum.integrals is None else spectrum.integrals,
            **{name: getattr(spectrum, name) for name in _NUMBERS},
        },
    )
    rate = f"1/{units.get('t', 'iteration' if spectrum.kind == 'map' else 'time')}"
    for name, note in _RATES.items():
        if getattr(spectrum, name) is not None:
            put(file, name, getattr(spectrum, name), dims=("exponent",), units=rate, note=note)
    note = "logarithm of the growth of each tangent in each block, the transient excluded"
    put(file, "growth", spectrum.growth, dims=("trajectory", "block", "exponent"), note=note)
    put(file, "starts", spectrum.starts, dims=("trajectory", "state"), **columns(spectrum.state_names, units))
    of_parameters = columns(spectrum.parameter_names, units)
    put(file, "parameters", spectrum.parameters, dims=("trajectory", "parameter"), **of_parameters)
    put(file, "regular", spectrum.regular, dims=("trajectory",), note="quasi-periodic, not averaged in")
    put_failures(file.create_group("failures"), spectrum.failures)
    if spectrum.draws is not None:
        note = "of which draw from the covariance of a fit a trajectory is; 0: the estimate"
        put(file, "draws", spectrum.draws, dims=("trajectory",), note=note)
    if spectrum.draw_exponents is not None and spectrum.draw_errors is not None:
        put(file, "draw_exponents", spectrum.draw_exponents, dims=("draw", "exponent"), units=rate)
        put(file, "draw_errors", spectrum.draw_errors, dims=("draw", "exponent"), units=rate)
    if spectrum.history is not None:
        _put_history(file.create_group("history"), spectrum.history, units, rate)
    if spectrum.section is not None:
        _put_section(file.create_group("section"), spectrum.section)


def get_spectrum(file: Any) -> Spectrum:
    """The spectrum that a file holds."""
    seed, integrals = int(file.attrs["seed"]), int(file.attrs["integrals"])
    warnings = file.attrs["warnings"]
    numbers: dict[str, Any] = {name: kind(file.attrs[name]) for name, kind in _NUMBERS.items()}
    rates: dict[str, Any] = {name: file[name][()] for name in _RATES if name in file}

    def optional(name: str) -> Any:
        return file[name][()] if name in file else None

    return Spectrum(
        model=str(file.attrs["model"]),
        state_names=names_of(file["starts"]),
        parameter_names=names_of(file["parameters"]),
        kind=str(file.attrs["model_kind"]),
        starts=file["starts"][()],
        parameters=file["parameters"][()],
        outcome=Outcome[str(file.attrs["outcome"])],
        cause=str(file.attrs["cause"]),
        growth=file["growth"][()],
        regular=file["regular"][()],
        failures=get_failures(file["failures"]),
        warnings=() if isinstance(warnings, str) else tuple(str(each) for each in warnings),
        section=_get_section(file["section"]) if "section" in file else None,
        history=_get_history(file["history"]) if "history" in file else None,
        integrals=None if integrals < 0 else integrals,
        units=json.loads(file.attrs["units"]),
        seed=None if seed < 0 else seed,
        draws=optional("draws"),
        draw_exponents=optional("draw_exponents"),
        draw_errors=optional("draw_errors"),
        **rates,
        **numbers,
    )


def put_failures(group: Any, failures: tuple[Failure, ...]) -> None:
    """Trajectories that stopped: one array a column."""
    put(group, "lanes", np.array([each.lane for each in failures], dtype=np.int64), dims=("failure",))
    put(group, "times", np.array([each.time for each in failures], dtype=float), dims=("failure",))
    for name, column in (
        ("outcomes", [each.outcome.name for each in failures]),
        ("causes", [each.cause for each in failures]),
    ):
        put(group, name, np.array(column, dtype=np.str_), dims=("failure",))


def get_failures(group: Any) -> tuple[Failure, ...]:
    lanes, times = group["lanes"][()].tolist(), group["times"][()].tolist()
    outcomes = [Outcome[name] for name in texts(group["outcomes"])]
    return tuple(Failure(*each) for each in zip(lanes, times, outcomes, texts(group["causes"]), strict=True))


def _put_history(group: Any, history: Convergence, units: Mapping[str, str], rate: str) -> None:
    note = "what would have been said after these times"
    put(group, "times", history.times, dims=("time",), units=units.get("t", "1"), note=note)
    put(group, "exponents", history.exponents, dims=("time", "exponent"), units=rate)
    put(group, "half_widths", history.half_widths, dims=("time", "exponent"), units=rate)


def _get_history(group: Any) -> Convergence:
    return Convergence(group["times"][()], group["exponents"][()], group["half_widths"][()])


def _put_section(group: Any, section: Section) -> None:
    put_attributes(group, {"surface": section.surface, "direction": section.direction})
    put(group, "points", section.points, dims=("point", "axis"), names=section.axes)
    put(group, "trajectories", section.trajectories, dims=("point",))
    if section.times is not None:
        put(group, "times", section.times, dims=("point",))
    note = "of the area that the invariant permits; NaN between pieces"
    put(group, "border", section.border, dims=("point", "axis"), names=section.axes, note=note)


def _get_section(group: Any) -> Section:
    first, second = names_of(group["points"])
    return Section(
        surface=str(group.attrs["surface"]),
        direction=int(group.attrs["direction"]),
        axes=(first, second),
        points=group["points"][()],
        trajectories=group["trajectories"][()],
        border=group["border"][()],
        times=group["times"][()] if "times" in group else None,
    )
