"""What the instrument reads: states and observables g(t, x, p), with their derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hpcfit.models.define import Model
from hpcfit.models.derivatives import derivative
from hpcfit.models.evaluate import Program
from hpcfit.records import Array


class Readings:
    """g (..., o) and dg/dx (..., o, n), dg/dp (..., o, n_p) of the named quantities; constant slopes once."""

    def __init__(self, model: Model, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self.n, self.n_p = len(model.states), len(model.parameters)
        self.only_states = all(name in model.states for name in names)
        if self.only_states:
            self.columns = [model.states.index(name) for name in names]
            self._pick = np.eye(self.n)[self.columns]
            return
        assert model.graph is not None
        quantities = [model.quantity(name) for name in names]
        leaves = [model.graph.leaf("state", i) for i in range(self.n)]
        leaves += [model.graph.leaf("parameter", i) for i in range(self.n_p)]
        self._values = Program(model.graph, quantities)
        self._slopes = Program(
            model.graph, [slope for leaf in leaves for slope in derivative(quantities, leaf)]
        )

    def values(self, t: Any, states: Array, parameters: Array) -> Array:
        """t (...), states (..., n), parameters (..., n_p)."""
        if self.only_states:
            return self.picked(states)
        return _stacked(self._values(t, _split(states), _split(parameters)), states.shape[:-1])

    def picked(self, states: Array) -> Array:
        """The observed ones of the states (..., o), where nothing else is observed."""
        return states if self.columns == list(range(self.n)) else states[..., self.columns]

    def slopes(self, t: Any, states: Array, parameters: Array) -> tuple[Array, Array]:
        shape, o = states.shape[:-1], len(self.names)
        if self.only_states:  # the same everywhere
            once = (1,) * len(shape)
            return self._pick.reshape(*once, o, self.n), np.zeros((*once, o, self.n_p))
        flat = _stacked(self._slopes(t, _split(states), _split(parameters)), shape)
        table = np.moveaxis(flat.reshape(*shape, self.n + self.n_p, o), -1, -2)
        return table[..., : self.n], table[..., self.n :]


def _split(values: Array) -> list[Array]:
    return [values[..., i] for i in range(values.shape[-1])]


def _stacked(columns: Sequence[Any], shape: tuple[int, ...]) -> Array:
    return np.stack([np.broadcast_to(column, shape) for column in columns], axis=-1)
