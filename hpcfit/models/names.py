"""Names of states and parameters: checking them, and reading values by name."""

from __future__ import annotations

import difflib
import keyword
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from hpcfit.models.functions import FUNCTIONS
from hpcfit.records import InputError

RESERVED = {"t", "pi", *(name for name, function in FUNCTIONS.items() if function.by_name)}


class NoSuchName(InputError, AttributeError):
    """A name that the model lacks; to numpy, which asks for optional methods, a missing attribute."""


def nearest(name: str, candidates: Iterable[str]) -> str:
    """'did you mean ...?' for the closest candidate, else the list of them all."""
    known = list(candidates)
    lowered = {candidate.lower(): candidate for candidate in known}
    close = difflib.get_close_matches(name.lower(), list(lowered), n=1, cutoff=0.6)
    if close:
        return f"did you mean '{lowered[close[0]]}'?"
    if not known:
        return "there are none"
    shown = " ".join(known[:12]) + (" ..." if len(known) > 12 else "")
    return f"known: {shown}"


def split_names(given: str | Sequence[str], owner: str, what: str) -> tuple[str, ...]:
    """'x y z' or ['x', 'y', 'z'] as a tuple of usable names."""
    names = tuple(given.replace(",", " ").split()) if isinstance(given, str) else tuple(given)
    for name in names:
        if not isinstance(name, str) or not name.isidentifier() or not name.isascii() or name.startswith("_"):
            raise InputError(f"{owner}: {what} {name!r} is not a name; use letters, digits and _")
        if keyword.iskeyword(name):
            raise InputError(f"{owner}: {what} '{name}' is a word of Python; call it '{name}_'")
        if name in RESERVED:
            raise InputError(
                f"{owner}: {what} '{name}' is the name of a function or constant; choose another"
            )
    return names


def checked_names(
    owner: str,
    states: str | Sequence[str],
    parameters: str | Sequence[str],
    observables: Sequence[str],
    units: Iterable[str],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """States and parameters of a model, all names usable and none of them used twice."""
    state_names = split_names(states, owner, "state")
    parameter_names = split_names(parameters, owner, "parameter")
    if not state_names:
        raise InputError(f'{owner}: no states; name them as in states="x y z"')
    everything = (*state_names, *parameter_names, *split_names(observables, owner, "observable"))
    for i, name in enumerate(everything):
        if name in everything[:i]:
            raise InputError(f"{owner}: the name '{name}' is used twice; give each quantity its own")
    for key in units:
        if key not in (*everything, "t"):
            raise InputError(f"{owner}: unit given for '{key}'; {nearest(key, everything)}")
    return state_names, parameter_names


class Named(NDArrayOperatorsMixin):
    """Values that can be read by name (u.x), by number (u[0]), in a loop, and as a numpy vector."""

    def __init__(self, owner: str, kind: str, names: Sequence[str], values: Sequence[Any]) -> None:
        self._owner = owner
        self._kind = kind
        self._names = names
        self._values = values

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # copy, pickle and numpy ask for protocols that this class lacks
        if name not in self._names:
            raise NoSuchName(f"{self._owner}: no {self._kind} '{name}'; {nearest(name, self._names)}")
        return self._values[self._names.index(name)]

    def __getitem__(self, index: Any) -> Any:
        return self._values[index]

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        numbers = all(isinstance(value, float) for value in self._values)
        vector = np.empty(len(self._values), dtype=float if numbers else object)
        vector[:] = list(self._values)
        return vector if dtype is None else vector.astype(dtype)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **keywords: Any) -> Any:
        plain = [np.asarray(value) if isinstance(value, Named) else value for value in inputs]
        elementwise = method == "__call__" and ufunc.signature is None and ufunc.nout == 1 and not keywords
        if elementwise and any(isinstance(value, np.ndarray) and value.dtype.hasobject for value in plain):
            one_by_one = np.frompyfunc(ufunc, ufunc.nin, 1)  # numpy itself would ask if x > y is true
            return one_by_one(*(np.asarray(value, dtype=object) for value in plain))
        return getattr(ufunc, method)(*plain, **keywords)
