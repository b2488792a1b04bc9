"""The state together with its derivatives by start and parameters, as columns that one scheme moves.

Internal differentiation (Bock 1981; Appendix B of Kallrath et al. 1993): the columns take the very
steps of the base solution, so that what is computed is the derivative of the computed solution.
A frame holds the columns of one step for many lanes, `y` of shape (n, columns, lanes):

* `ExactFrame`: the state and its tangents, moved by f and by f_x V + f_p (4.12);
* `DifferenceFrame`: the state and pairs of states displaced along the tangents, all moved by f.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from hpcfit.models.define import Equations, Model
from hpcfit.models.derivatives import jacobians
from hpcfit.models.evaluate import Program
from hpcfit.models.names import Named
from hpcfit.records import Array, InputError

DISPLACEMENT = np.finfo(float).eps ** (1 / 3)  # best for central differences
DIFFERENCE_TOLERANCE = 1e-8  # rounding divided by the displacement, with a margin


class Frame(Protocol):
    """Columns of one step: their start `y`, how they move, and the state and tangents they stand for."""

    y: Array
    tangent_scale: Array  # (m, lanes)

    def rhs(self, t: Array, y: Array) -> Array: ...

    def gather(self, y: Array) -> tuple[Array, Array]: ...

    def take(self, lanes: Any) -> Frame: ...


FrameMaker = Callable[[Array, Array, Array], Frame]  # state (n, L), tangents (n, m, L), parameters (n_p, L)


class ExactFrame:
    """State and tangents as they are."""

    def __init__(self, field: ExactField, y: Array, parameters: Array, tangent_scale: Array) -> None:
        self.y = y
        self.tangent_scale = tangent_scale
        self._field = field
        self._parameters = parameters

    def rhs(self, t: Array, y: Array) -> Array:
        return self._field(t, y, self._parameters)

    def gather(self, y: Array) -> tuple[Array, Array]:
        return y[:, 0], y[:, 1:]

    def take(self, lanes: Any) -> ExactFrame:
        return ExactFrame(
            self._field, self.y[..., lanes], self._parameters[:, lanes], self.tangent_scale[:, lanes]
        )


class ExactField:
    """f and, where tangents are asked for, f_x V + f_p, from the expressions of a traced model."""

    def __init__(self, model: Model, sensitivities: bool) -> None:
        assert model.graph is not None
        n = len(model.states)
        by_state, by_parameter = jacobians(model) if sensitivities else ((), ())
        products = [(i, j, entry) for i, row in enumerate(by_state) for j, entry in enumerate(row)]
        sources = [(i, n + k, entry) for i, row in enumerate(by_parameter) for k, entry in enumerate(row)]
        self._products = [item for item in products if item[2].constant != 0.0]
        self._sources = [item for item in sources if item[2].constant != 0.0]
        entries = [entry for *_, entry in (*self._products, *self._sources)]
        self._program = Program(model.graph, (*model.equations, *entries))

    def __call__(self, t: Array, y: Array, p: Array) -> Array:
        n = len(y)
        values = self._program(t, y[:, 0], p)
        moved = np.zeros_like(y)
        for i in range(n):
            moved[i, 0] = values[i]
        entries = iter(values[n:])
        for i, j, _ in self._products:
            moved[i, 1:] += next(entries) * y[j, 1:]
        for i, column, _ in self._sources:
            moved[i, 1 + column] += next(entries)
        return moved

    def frame(self, state: Array, tangents: Array, parameters: Array) -> Frame:
        y = np.concatenate([state[:, None], tangents], axis=1)
        return ExactFrame(self, y, parameters, natural_scale(state, parameters, tangents.shape[1]))


class DifferenceFrame:
    """The state and, for each tangent, the states displaced forwards and backwards along it."""

    def __init__(
        self, function: NumericField, y: Array, parameters: Array, sizes: Array, tangent_scale: Array
    ) -> None:
        self.y = y
        self.tangent_scale = tangent_scale
        self._function = function
        self._parameters = parameters  # (n_p, columns, lanes)
        self._sizes = sizes  # (m, lanes): half the distance of a pair, in units of its tangent

    def rhs(self, t: Array, y: Array) -> Array:
        return self._function(t, y, self._parameters)

    def gather(self, y: Array) -> tuple[Array, Array]:
        m = len(self._sizes)
        return y[:, 0], (y[:, 1 : 1 + m] - y[:, 1 + m :]) / (2 * self._sizes)

    def take(self, lanes: Any) -> DifferenceFrame:
        return DifferenceFrame(
            self._function,
            self.y[..., lanes],
            self._parameters[..., lanes],
            self._sizes[:, lanes],
            self.tangent_scale[:, lanes],
        )


class NumericField:
    """f on columns and lanes of numbers; an opaque function is called for each of them."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._program = Program(model.graph, model.equations) if model.graph is not None else None
        self.trouble: str = ""  # what an opaque function said when it last could not be evaluated

    def __call__(self, t: Array, y: Array, p: Array) -> Array:
        moved = np.empty_like(y)
        if self._program is not None:
            for i, value in enumerate(self._program(t, y, p)):
                moved[i] = value
            return moved
        for column, lane in np.ndindex(y.shape[1:]):
            moved[:, column, lane] = self._call(float(t[lane]), y[:, column, lane], p[:, column, lane])
        return moved

    def _call(self, t: float, state: Array, parameters: Array) -> Any:
        model = self._model
        function: Equations | None = model.function
        assert function is not None
        u = Named(model.name, "state", model.states, state.tolist())
        p = Named(model.name, "parameter", model.parameters, parameters.tolist())
        try:
            values = function(t, u, p)
        except (ArithmeticError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            self.trouble = f"{type(error).__name__}: {error}"
            return np.nan
        return self._numbers(values, len(state))

    def _numbers(self, values: Any, n: int) -> Any:
        """What an opaque function returned, as n numbers; a complex number counts as not finite."""
        try:
            vector = np.atleast_1d(np.asarray(values))
            if vector.shape == (n,):
                if np.iscomplexobj(vector):
                    self.trouble = "the function returned a complex number"
                    return np.nan
                return vector.astype(float)
            found = f"shape {np.shape(values)}"
        except (TypeError, ValueError):
            found = "something else than numbers"
        raise InputError(
            f"{self._model.name}: {n} states ({' '.join(self._model.states)}) but the function returned "
            f"{found}; return one number per state"
        )

    def culprit(self, t: float, state: Array, parameters: Array) -> str:
        """Why f has no finite value at one point; '' if it has one."""
        if self._program is not None:
            return self._program.culprit(t, state.tolist(), parameters.tolist())
        self.trouble = ""
        finite = np.isfinite(self._call(t, state, parameters)).all()
        return "" if finite else self.trouble or "the function returned a value that is not finite"

    def frame(self, state: Array, tangents: Array, parameters: Array) -> Frame:
        n, m = tangents.shape[:2]
        along = np.zeros((len(parameters), m, state.shape[1]))  # the direction of each tangent in p
        if m:
            along[np.arange(len(parameters)), n + np.arange(len(parameters))] = 1.0
        in_state = np.abs(tangents).max(axis=0) / _or_one(np.abs(state).max(axis=0))
        in_parameters = (along / _or_one(np.abs(parameters))[:, None]).max(axis=0, initial=0.0)
        sizes = DISPLACEMENT / _or_one(np.maximum(in_state, in_parameters))
        shift, turn = sizes * tangents, sizes * along
        base, values = state[:, None], parameters[:, None]
        y = np.concatenate([base, base + shift, base - shift], axis=1)
        p = np.concatenate([values, values + turn, values - turn], axis=1)
        return DifferenceFrame(self, y, p, sizes, natural_scale(state, parameters, m))


def natural_scale(state: Array, parameters: Array, m: int) -> Array:
    """Size (m, lanes) to expect of each tangent: that of the state divided by that of the unknown."""
    if not m:
        return np.empty((0, state.shape[1]))
    size = _or_one(np.abs(state).max(axis=0))
    return np.concatenate([np.ones_like(state), size / _or_one(np.abs(parameters))])


def _or_one(size: Array) -> Array:
    return np.where(size > 0.0, size, 1.0)
