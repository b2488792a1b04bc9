"""[ensemble.grid]: the values that keys of a job and variables take, and the job of one cell."""

from __future__ import annotations

import ast
import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hpcfit.jobfile.read import Document, assign
from hpcfit.jobfile.values import boolean, fields, number, split_remedy, whole
from hpcfit.models.functions import FUNCTIONS
from hpcfit.records import InputError, Mistake

MOST_VALUES, MOST_CELLS = 1_000_000, 1_000_000
_RANGE = ("from", "to", "count", "log")
_read_range = fields({"from": number, "to": number, "count": whole(1, MOST_VALUES)}, {"log": boolean})
# Tables that say what a member is: the same for all of them.
_FIXED_TABLES = ("model", "data", "ensemble", "cluster", "simulate")
# Where a quoted text is an expression that may use a variable; under these keys it is not.
_WITH_EXPRESSIONS = {
    "truth": ("start", "parameters", "times", "noise"),
    "guess": None,
    "nodes": None,
    "fit": ("weights", "fixed", "tolerance"),
    "lyapunov": None,
}
_TEXTS = ("file", "column", "beyond_3_sigma", "method", "observe")


def grid(value: Any) -> dict[str, tuple[Any, ...]]:
    """{"guess.a" = [1, 2, 5], E = {from = "1/12", to = "1/8", count = 9, log = false}}: values by key."""
    if not isinstance(value, dict):
        raise InputError('must be a table, as in {"guess.a" = [1, 2, 5]}')
    given, found, mistakes = dict(_flat(value, "")), {}, []
    for key, values in given.items():
        try:
            _check_key(key)
            found[key] = _values(key, values)
        except InputError as error:
            for wrong in error.mistakes:
                problem, remedy = split_remedy(wrong.problem)
                inner = f"{key}.{wrong.key}" if wrong.key else key
                shown = wrong.value if wrong.key else values
                mistakes.append(Mistake("", problem, wrong.remedy or remedy, inner, shown))
    if mistakes:
        raise InputError(mistakes)
    if math.prod(map(len, found.values())) > MOST_CELLS:
        raise InputError(f"has more than {MOST_CELLS:,} cells; give fewer values")
    return found


def _flat(table: Mapping[str, Any], prefix: str) -> list[tuple[str, Any]]:
    """guess.a = [...] without quotes is a table in a table."""
    found = []
    for key, value in table.items():
        inner = isinstance(value, dict) and not any(name in value for name in _RANGE)
        found += _flat(value, f"{prefix}{key}.") if inner else [(f"{prefix}{key}", value)]
    return found


def _check_key(key: str) -> None:
    table = key.partition(".")[0].partition("[")[0]
    if "." in key and table in _FIXED_TABLES:
        raise InputError(f"[{table}] is the same for all members; vary another table, or submit several jobs")
    if "." not in key and not (key.isidentifier() and key.isascii()):
        raise InputError('is neither a key of the job nor a name; write "guess.a", or a name as E')
    if key in ("kind", "seed", "t", "pi", *_FIXED_TABLES, *_WITH_EXPRESSIONS, *FUNCTIONS):
        raise InputError(f"cannot be the name of a variable; choose another than {key}")


def _values(key: str, given: Any) -> tuple[Any, ...]:
    """A list as it stands, or numbers from a range; those of a variable are numbers."""
    if isinstance(given, dict):
        return _ranged(_read_range(given))
    if not isinstance(given, list) or not given:
        raise InputError("must be a list of values, or {from, to, count, log = true}")
    for value in given:
        if not isinstance(value, str | int | float | list | dict):
            raise InputError(f"has the value {value}; give numbers, texts, lists or tables")
    values = tuple(map(_constant if "." in key else number, given))
    for k, value in enumerate(values):
        if value in values[:k] if len(values) <= 1000 else False:
            raise InputError(f"has the value {value} twice; remove one")
    return values


def _constant(value: Any) -> Any:
    """A text that means a number as this number."""
    try:
        return number(value) if isinstance(value, str) else value
    except InputError:
        return value


def _ranged(given: Mapping[str, Any]) -> tuple[float, ...]:
    first, last, count = given["from"], given["to"], given["count"]
    if count == 1 or first == last:
        raise InputError("has one value only; write it as a list, or give two different ends and a count")
    if not given.get("log"):
        return tuple(np.linspace(first, last, count).tolist())
    if not first * last > 0.0:
        raise InputError("a logarithmic range has ends of the same sign, not 0; change from and to")
    inner = np.geomspace(first, last, count).tolist()
    return (first, *inner[1:-1], last)  # rounding must not move the ends


def variables(chosen: Mapping[str, Any]) -> dict[str, float]:
    """The plain names of a grid, or of a cell."""
    return {key: value for key, value in chosen.items() if "." not in key}


def document_of(document: Document, chosen: Mapping[str, Any]) -> Document:
    """The document of a cell: keys replaced, variables put into expressions, without the grid."""
    values = copy.deepcopy(document.values)
    if isinstance(values.get("ensemble"), dict):
        values["ensemble"].pop("grid", None)
        if values["ensemble"].get("of") == "lyapunov":  # each cell is a job of its own
            values["kind"] = values.pop("ensemble")["of"]
    for key, value in chosen.items():
        if "." in key:
            assign(values, key, copy.deepcopy(value), "ensemble.grid")
    known = variables(chosen)
    if known:
        for table, keys in _WITH_EXPRESSIONS.items():
            for each in _tables(values, table):
                for key in each if keys is None else [key for key in keys if key in each]:
                    each[key] = _replaced(each[key], known, key)
    return replace(document, values=values)


def _tables(values: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    found = values.get(name, [])
    return [each for each in (found if isinstance(found, list) else [found]) if isinstance(each, dict)]


def _replaced(value: Any, known: Mapping[str, float], key: str) -> Any:
    """A value of a job with the variables in its texts replaced by their numbers."""
    if key in _TEXTS:
        return value
    if isinstance(value, dict):
        return {name: _replaced(entry, known, name) for name, entry in value.items()}
    if isinstance(value, list):
        return [_replaced(entry, known, key) for entry in value]
    return _with_numbers(value, known) if isinstance(value, str) else value


class _Numbers(ast.NodeTransformer):
    """Names become numbers; one below zero keeps its sign apart, as -2**2 is not (-2)**2."""

    def __init__(self, known: Mapping[str, float]) -> None:
        self.known, self.found = known, False

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self.known:
            return node
        self.found = True
        value = self.known[node.id]
        size = ast.Constant(abs(value))
        return ast.UnaryOp(ast.USub(), size) if value < 0.0 else size

    def visit_Call(self, node: ast.Call) -> ast.expr:
        node.args = [self.visit(argument) for argument in node.args]
        return node


def _with_numbers(text: str, known: Mapping[str, float]) -> str:
    """An expression with numbers in the place of variables; what is none stays, and is reported later."""
    try:
        tree = ast.parse(text.strip(), mode="eval")
        numbers = _Numbers(known)
        tree = numbers.visit(tree)
        return ast.unparse(tree) if numbers.found else text
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text


def lane_keys(given: Mapping[str, Sequence[Any]], local: Sequence[str]) -> tuple[str, ...]:
    """The keys in which members of one problem may differ: guesses of shared parameters."""
    names = {f"guess.{name}" for name in local}
    return tuple(key for key in given if key.startswith("guess.") and key not in names)
