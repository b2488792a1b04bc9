"""Pass 2: which products the tangents need.

V' = f_x V + f_p, row by row: an entry of f_x that is constant or uniform multiplies one coefficient, an entry
that is a series asks for a convolution. Entries of one row that are multiples of each other share one: their
columns are added first (s V_a - s V_b is one convolution with V_a - V_b).
"""

from __future__ import annotations

from dataclasses import dataclass

from hpcfit.kernels.recurrences import SERIES
from hpcfit.kernels.series import Tape
from hpcfit.models.derivatives import Matrix
from hpcfit.models.graph import Symbol


@dataclass(frozen=True)
class Combination:
    """A sum of rows of V with fixed factors: sum of factor * V[row]."""

    terms: tuple[tuple[int, float], ...]

    @property
    def row(self) -> int | None:
        """The row, if the combination is just that row."""
        return self.terms[0][0] if len(self.terms) == 1 and self.terms[0][1] == 1.0 else None


@dataclass(frozen=True)
class TangentRow:
    """One row of f_x V: convolutions (series, combination) and products (value, row)."""

    convolutions: tuple[tuple[str, Combination], ...]
    products: tuple[tuple[str, int], ...]


def tangent_rows(tape: Tape, by_state: Matrix) -> list[TangentRow]:
    """The products of every row of f_x V; the tape knows all entries already."""
    return [_row(tape, entries) for entries in by_state]


def _row(tape: Tape, entries: tuple[Symbol, ...]) -> TangentRow:
    groups: dict[int, list[tuple[int, float]]] = {}
    products = []
    for column, entry in enumerate(entries):
        if entry.constant == 0.0:
            continue
        if tape.role[entry.index] == SERIES:
            base, factor = _without_factor(entry)
            groups.setdefault(base.index, []).append((column, factor))
        else:
            products.append((tape.value(entry, "0"), column))
    convolutions = []
    for index, terms in groups.items():
        if len(terms) == 1:
            entry = entries[terms[0][0]]
            convolutions.append((tape.names[entry.index], Combination(((terms[0][0], 1.0),))))
        else:
            convolutions.append((tape.names[index], Combination(tuple(terms))))
    return TangentRow(tuple(convolutions), tuple(products))


def _without_factor(entry: Symbol) -> tuple[Symbol, float]:
    """An entry as base and constant factor: -(2 x) is x with the factor -2."""
    factor = 1.0
    while True:
        arguments = [Symbol(entry.graph, argument) for argument in entry.node.arguments]
        if entry.node.operation == "negative":
            entry, factor = arguments[0], -factor
        elif entry.node.operation == "multiply" and arguments[0].constant is not None:
            entry, factor = arguments[1], factor * arguments[0].constant
        elif entry.node.operation == "multiply" and arguments[1].constant is not None:
            entry, factor = arguments[0], factor * arguments[1].constant
        else:
            return entry, factor
