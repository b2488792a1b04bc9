"""Functions for equations: on symbols they build expressions, on numbers and arrays they compute."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hpcfit.models.functions import FUNCTIONS
from hpcfit.models.graph import Symbol
from hpcfit.models.names import Named, nearest
from hpcfit.records import InputError

pi = 3.141592653589793


def _function(name: str) -> Callable[..., Any]:
    function = FUNCTIONS[name]

    def call(*arguments: Any) -> Any:
        if len(arguments) != function.arity:
            raise InputError(f"{name}() takes {function.arity} arguments, {len(arguments)} given")
        arrays = [np.asarray(argument) for argument in arguments if isinstance(argument, np.ndarray | Named)]
        if any(array.dtype.hasobject for array in arrays):
            objects = [np.asarray(argument, dtype=object) for argument in arguments]
            return np.frompyfunc(call, function.arity, 1)(*objects)
        symbol = next((argument for argument in arguments if isinstance(argument, Symbol)), None)
        return symbol.graph.apply(name, *arguments) if symbol is not None else function.numpy(*arguments)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"{name} of numbers, arrays or symbols."
    return call


_CALLABLES = {name: _function(name) for name, function in FUNCTIONS.items() if function.by_name}
__all__ = ["pi", *_CALLABLES]
globals().update(_CALLABLES)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(f"hpcfit.math has no '{name}'; {nearest(name, __all__)}")
