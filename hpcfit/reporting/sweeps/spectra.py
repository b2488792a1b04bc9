"""Sweeps of spectra: one row a cell, exponents along a key, the largest one over two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hpcfit.records import Array, EnsembleResult
from hpcfit.reporting.ensembles.members import good
from hpcfit.reporting.layout import matched, number
from hpcfit.reporting.sweeps.groups import axis_numbers, cell_values, chosen_keys, value_text

NOTE = (
    "Exponents: natural logarithm per unit of time, with standard errors; of exponents that vanish the error "
    "is the bound C/T. regular: per cent of the trajectories, which are not averaged in."
)
MOST_EXPONENTS = 6  # of a table
NORMAL95 = 1.96


def exponents(ensemble: EnsembleResult) -> list[str]:
    return [name for name in ensemble.names if name.startswith("lambda")]


def by_cell(ensemble: EnsembleResult, name: str) -> tuple[Array, Array]:
    """Values and errors of each cell (cells,); NaN where there is no spectrum."""
    count = int(np.prod([len(values) for values in ensemble.grid.values()]))
    found, picked = np.full((2, count), np.nan), good(ensemble)
    k = ensemble.names.index(name)
    found[0, ensemble.cells[picked]] = ensemble.estimates[picked, k]
    found[1, ensemble.cells[picked]] = ensemble.errors[picked, k]
    return found[0], found[1]


def rows(ensemble: EnsembleResult) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Header and one row a cell."""
    names = exponents(ensemble)[:MOST_EXPONENTS]
    shown = [word for name in names for word in (name, "error")]
    columns = {name: by_cell(ensemble, name) for name in (*names, "dimension", "regular")}
    found = []
    for cell in range(len(columns["dimension"][0])):
        keys = [value_text(value) for value in cell_values(ensemble.grid, cell)]
        pairs = [(columns[name][0][cell], columns[name][1][cell]) for name in names]
        texts = [text for value, error in pairs for text in (matched(value, error), number(error, 2))]
        dimension, regular = (columns[name][0][cell] for name in ("dimension", "regular"))
        found.append((*keys, *texts, number(dimension, 5), number(100.0 * regular, 3)))
    return (*ensemble.grid, *shown, "dimension", "regular %"), found


def figures(ensemble: EnsembleResult) -> list[tuple[str, Any]]:
    """Exponents along the only key, or the largest one over the two keys with the most values."""
    from hpcfit.reporting.spectra.sweep import sweep, sweep_map

    names, keys = exponents(ensemble), chosen_keys(ensemble) or list(ensemble.grid)[:1]
    shape = tuple(len(values) for values in ensemble.grid.values())
    axes = [_places(ensemble.grid[key]) for key in keys]
    first = tuple(slice(None) if key in keys else 0 for key in ensemble.grid)  # of the other keys
    tables = {name: by_cell(ensemble, name) for name in (*names, "dimension", "regular")}
    picked = {name: [each.reshape(shape)[first] for each in pair] for name, pair in tables.items()}
    others = [f"{key} = {value_text(values[0])}" for key, values in ensemble.grid.items() if key not in keys]
    where = f" Here {', '.join(others)}." if others else ""
    if len(keys) == 1:
        heights, errors = (np.stack([picked[name][k] for name in names], axis=1) for k in (0, 1))
        half, (dimension, its_error) = NORMAL95 * errors, picked["dimension"]
        drawn = sweep(keys[0], axes[0], heights, half, dimension, its_error, picked["regular"][0])
        return [(f"Spectra along {keys[0]}, with 95 % intervals.{where}", drawn)]
    upwards, across = (np.argsort(axis) for axis in axes)
    found = []
    for name, what in ((names[0], "largest exponent"), ("dimension", "Kaplan–Yorke dimension")):
        table = picked[name][0][np.ix_(upwards, across)]
        if np.isfinite(table).any():
            drawn = sweep_map((keys[1], keys[0]), axes[1][across], axes[0][upwards], table, what)
            found.append((f"The {what} over {keys[1]} and {keys[0]}.{where}", drawn))
    return found


def _places(values: Sequence[Any]) -> Array:
    """Numbers where they are, other values one after another."""
    numbers = axis_numbers(values)
    return np.arange(1.0, len(values) + 1.0) if numbers is None else numbers
