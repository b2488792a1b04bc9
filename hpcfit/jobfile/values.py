"""Readers of single values: each returns the value in its normal form or raises what is wrong with it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from hpcfit.ensemble.noise import BEYOND_3_SIGMA
from hpcfit.models.names import nearest
from hpcfit.models.strings import number as constant
from hpcfit.records import InputError, Mistake, Noise

Reader = Callable[[Any], Any]
LONGEST_GRID = 100_000_000  # times


def text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InputError("must be a text in quotes")
    return value


def text_or_texts(value: Any) -> tuple[str, ...]:
    """One text, or a list of them."""
    parts = [value] if isinstance(value, str) else value
    if not isinstance(parts, list):
        raise InputError('must be a list of texts, as in ["a + b <= 1", "k >= 0"]')
    return tuple(map(text, parts))


def boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise InputError("must be true or false, without quotes")
    return value


def whole(smallest: int, largest: int) -> Reader:
    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise InputError("must be a whole number")
        if not smallest <= value <= largest:
            raise InputError(f"must lie between {smallest} and {largest}")
        return value

    return read


def number(value: Any) -> float:
    """A finite number, or a constant expression in quotes such as "sqrt(0.1275)"."""
    result = constant(value)
    if not math.isfinite(result):
        raise InputError("must be finite")
    return result


def positive(value: Any) -> float:
    result = number(value)
    if result <= 0.0:
        raise InputError("must be positive")
    return result


def not_negative(value: Any) -> float:
    result = number(value)
    if result < 0.0:
        raise InputError("must not be negative")
    return result


def positive_or_column(value: Any) -> float | str:
    """A positive number, or the name of a column."""
    return text(value) if _is_name(value) else positive(value)


def not_negative_or_column(value: Any) -> float | str:
    """A number from 0 on, or the name of a column."""
    return text(value) if _is_name(value) else not_negative(value)


def _is_name(value: Any) -> bool:
    """Whether a text is no number and no expression of numbers."""
    if not isinstance(value, str):
        return False
    try:
        constant(value)
    except InputError:
        return True
    return False


def number_or_expression(value: Any) -> float | str:
    """A number, or an expression in t as text."""
    return text(value) if isinstance(value, str) else number(value)


def nodes(value: Any) -> str | int | list[float]:
    """The word data, every k-th data time, or a list of times."""
    if isinstance(value, str):
        if value != "data":
            raise InputError("is no choice of nodes")
        return value
    if isinstance(value, list):
        if len(value) < 2:
            raise InputError(
                "has fewer than two times; give the first and the last time of the data, and more"
            )
        return list(times(value)["list"])
    return int(whole(1, 10**9)(value))


def between(smallest: float, largest: float) -> Reader:
    def read(value: Any) -> float:
        result = number(value)
        if not smallest <= result <= largest:
            raise InputError(f"must lie between {smallest:g} and {largest:g}")
        return result

    return read


def choice(*options: str) -> Reader:
    def read(value: Any) -> str:
        if value not in options:
            raise InputError(f"is not one of {', '.join(options)}; {nearest(str(value), options)}")
        return str(value)

    return read


def names(value: Any) -> tuple[str, ...]:
    """["x", "y"] or "x y"."""
    parts = value.replace(",", " ").split() if isinstance(value, str) else value
    if not isinstance(parts, list) or not parts or not all(isinstance(part, str) for part in parts):
        raise InputError('must be a list of names, as in ["x", "y"]')
    for i, part in enumerate(parts):
        if part in parts[:i]:
            raise InputError(f"names '{part}' twice; remove one")
    return tuple(parts)


def texts(value: Any) -> tuple[str, ...]:
    """A list of texts."""
    if not isinstance(value, list):
        raise InputError("must be a list of texts")
    return tuple(text(entry) for entry in value)


def table_of(reader: Reader) -> Reader:
    """A table whose values all go through the same reader."""

    def read(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise InputError("must be a table, as in {x = 1.0, y = 2.0}")
        return _each(value, dict.fromkeys(value, reader))

    return read


def one_or_table(reader: Reader) -> Reader:
    """One value for all names, or a table by name."""
    return lambda value: table_of(reader)(value) if isinstance(value, dict) else reader(value)


def fields(required: Mapping[str, Reader], optional: Mapping[str, Reader] | None = None) -> Reader:
    """A small table with known keys."""
    known = {**required, **(optional or {})}

    def read(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise InputError(f"must be a table with {', '.join(known)}")
        for key in value:
            if key not in known:
                raise InputError(Mistake("", "unknown key", nearest(key, known), key, value[key]))
        for key in required:
            if key not in value:
                raise InputError(f"lacks {key}; give {', '.join(required)}")
        return _each(value, known)

    return read


def list_of(reader: Reader) -> Reader:
    """Values that all go through the same reader."""

    def read(value: Any) -> list[Any]:
        if not isinstance(value, list) or not value:
            raise InputError("must be a list, as in [{x = 1.0, y = 2.0}, {x = 1.1, y = 2.0}]")
        numbered = {str(k + 1): each for k, each in enumerate(value)}
        return list(_each(numbered, dict.fromkeys(numbered, reader)).values())

    return read


def _each(value: Mapping[str, Any], readers: Mapping[str, Reader]) -> dict[str, Any]:
    """Every entry through its reader; mistakes carry the name of their entry."""
    result = {}
    mistakes = []
    for key, entry in value.items():
        try:
            result[key] = readers[key](entry)
        except InputError as error:
            mistakes.append(Mistake("", *split_remedy(str(error)), key, entry))
    if mistakes:
        raise InputError(mistakes)
    return result


def split_remedy(message: str) -> tuple[str, str]:
    """'problem; remedy' as two texts."""
    problem, _, remedy = message.partition("; ")
    return problem, remedy


_place = dict.fromkeys(("falls", "rises", "crosses", "at", "every"), number_or_expression)
jump = fields({"to": table_of(number_or_expression)}, {**_place, "count": whole(1, 10**9)})

_count = whole(1, LONGEST_GRID)
_grid_by_spacing = fields({"spacing": positive, "count": _count}, {"start": number})
_grid_by_end = fields({"end": number, "count": whole(2, LONGEST_GRID)}, {"start": number})
_grid_from_file = fields({"file": text}, {"column": text})


def times(value: Any) -> dict[str, Any]:
    """A list of times; {start, spacing, count}; {start, end, count}; or {file, column}."""
    if isinstance(value, list):
        if not value:
            raise InputError("is empty; give at least the start time")
        grid = [number(entry) for entry in value]
        for k in range(1, len(grid)):
            if grid[k] <= grid[k - 1]:
                problem = f"must increase: {grid[k]:.15g} comes after {grid[k - 1]:.15g}"
                raise InputError(f"{problem}; sort them and remove repeated ones")
        return {"list": grid}
    if isinstance(value, dict) and "file" in value:
        return {"column": "t"} | _grid_from_file(value)
    if isinstance(value, dict) and "end" in value:
        grid_by_end = {"start": 0.0} | _grid_by_end(value)
        if grid_by_end["end"] <= grid_by_end["start"]:
            raise InputError(f"ends at {grid_by_end['end']:g}, not after its start {grid_by_end['start']:g}")
        return grid_by_end
    return {"start": 0.0} | _grid_by_spacing(value)


_NOISE_SIZES = ("sd", "fraction", "proportional")
_noise_fields = fields(
    {},
    {
        **{name: one_or_table(not_negative) for name in _NOISE_SIZES},
        "beyond_3_sigma": choice(*BEYOND_3_SIGMA),
        "sd_t": not_negative,
    },
)


def noise(value: Any) -> Noise:
    """{sd | fraction | proportional = size, beyond_3_sigma = keep | redraw | discard, sd_t = size}."""
    given = _noise_fields(value)
    sizes = [name for name in _NOISE_SIZES if name in given]
    if len(sizes) != 1:
        shown = " and ".join(sizes) if sizes else "none"
        raise InputError(f"needs exactly one of sd, fraction, proportional; {shown} given")
    return Noise(**given)


_section_fields = fields(
    {"surface": text}, {"direction": whole(-1, 1), "axes": names, "points": whole(1, 10_000_000)}
)


def section(value: Any) -> dict[str, Any]:
    """A surface where an expression vanishes, its direction, and two quantities to look at there."""
    given = _section_fields(value)
    if len(given.get("axes", ("", ""))) != 2:
        raise InputError(f"has {len(given['axes'])} axes; give two quantities")
    return {"direction": 1, "axes": None, "points": 10_000, **given}
