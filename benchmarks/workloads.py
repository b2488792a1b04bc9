"""What is integrated: models, and start points along their own orbits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

import hpcfit.math
from benchmarks.peers.scipy import python_function
from benchmarks.peers.translate import leaves, table, translate
from hpcfit.math import exp, log, tanh
from hpcfit.models.catalogue import bradley_1998, find
from hpcfit.models.define import Example, Model, model
from hpcfit.models.evaluate import Program
from hpcfit.models.graph import Symbol
from hpcfit.records import Array

N_LANES = 1000


@dataclass(frozen=True)
class Workload:
    """Intervals of one length `dt`, one for each lane."""

    name: str
    model: Model
    starts: Array  # (L, n)
    parameters: Array  # (L, n_p)
    t0: Array  # (L,)
    dt: float

    def some(self, count: int) -> Workload:
        """`count` lanes, spread evenly."""
        chosen = np.linspace(0, len(self.t0) - 1, min(count, len(self.t0))).astype(int)
        return replace(
            self, starts=self.starts[chosen], parameters=self.parameters[chosen], t0=self.t0[chosen]
        )

    @property
    def lanes(self) -> tuple[Array, Array, Array, float]:
        """The arguments of a `Run`."""
        return self.starts, self.parameters, self.t0, self.dt


def workloads(*, quick: bool = False) -> Iterator[Workload]:
    """The rows of the table; `quick`: three small ones."""
    yield along_orbit(find("henon_heiles"))
    if not quick:
        yield along_orbit(find("quadratic"))
    yield along_orbit(find("lorenz"))
    yield along_orbit(invented)
    if quick:
        return
    yield along_orbit(find("rossler"))
    yield along_orbit(find("double_pendulum"))
    yield along_orbit(without(find("pendulum_driven"), "k1"))
    yield along_orbit(find("lorenz"), example=1, name="lorenz, figure 3")
    for found in vars(bradley_1998).values():
        if isinstance(found, Model) and found.smooth:
            yield along_orbit(found)
    yield along_orbit(find("lorenz96", 40))


def along_orbit(made: Model, *, example: int = 0, name: str = "", n_lanes: int = N_LANES) -> Workload:
    """Start points spread evenly in time over an example of the model; the interval is its spacing."""
    chosen = made.examples[example]
    start = [chosen.start[state] for state in made.states]
    parameters = [chosen.parameters[parameter] for parameter in made.parameters]
    function = python_function(made, made.equations)
    orbit = solve_ivp(
        lambda t, x: function(t, x.tolist(), parameters),
        (0.0, chosen.duration),
        start,
        method="DOP853",
        rtol=1e-10,
        atol=1e-10,
        dense_output=True,
    ).sol
    t0 = np.linspace(0.0, chosen.duration - chosen.spacing, n_lanes)
    if not made.smooth:
        t0 = t0[_without_kinks(made, orbit, parameters, t0, chosen.spacing)]
    lanes = np.tile(parameters, (len(t0), 1))
    return Workload(name or made.name, made, np.ascontiguousarray(orbit(t0).T), lanes, t0, chosen.spacing)


def _without_kinks(made: Model, orbit: Any, parameters: list[float], t0: Array, dt: float) -> Array:
    """Lanes on which no argument of abs or sign changes its sign: no peer ends its steps there."""
    assert made.graph is not None
    nodes = (made.graph.nodes[index] for index in made.graph.reachable(made.equations))
    arguments = [Symbol(made.graph, node.arguments[0]) for node in nodes if node.operation in ("abs", "sign")]
    times = t0[:, None] + np.linspace(-0.1, 1.1, 25) * dt
    states = orbit(times.ravel()).reshape(len(made.states), *times.shape)
    values = np.array(Program(made.graph, arguments)(times, states, parameters))
    kept: Array = ((values > 0).all(axis=2) | (values < 0).all(axis=2)).all(axis=0)
    return kept


def without(made: Model, name: str) -> Model:
    """The model with the parameter `name` replaced by zero, and all that falls away with it."""
    functions = table(hpcfit.math, abs=abs, sign=hpcfit.math.sign)

    def equations(t: Any, u: Any, p: Any) -> Any:
        parameters = [0.0 if parameter == name else getattr(p, parameter) for parameter in made.parameters]
        parameters = [t.graph.symbol(value) for value in parameters]
        states = [u[i] for i in range(len(made.states))]
        return tuple(
            translate(made, made.equations, functions, leaves(t, states, parameters, t.graph.symbol))
        )

    parameters = [parameter for parameter in made.parameters if parameter != name]
    return model(
        states=made.states, parameters=parameters, examples=made.examples, name=f"{made.name}_without_{name}"
    )(equations)


@model(
    states="a b c d e",
    parameters="gain rate load leak",
    examples=Example(
        start={"a": 0.5, "b": 1.0, "c": 0.2, "d": 1.5, "e": 0.1},
        parameters={"gain": 3.0, "rate": 1.5, "load": 0.8, "leak": 0.4},
        duration=40.0,
        spacing=0.2,
        source="invented for the benchmark",
    ),
)
def invented(t: Any, u: Any, p: Any) -> Any:
    """A ring of saturating reactions that no catalogue knows."""
    supply = p.gain / (1 + exp(4 * u.e))
    uptake = p.rate * u.a * u.b / (0.5 + u.a**2)
    return (
        supply - uptake + 0.1,
        uptake - p.leak * u.b * log(2 + u.c**2),
        tanh(u.b - u.d) - p.load * u.c,
        u.c + u.a / (1 + u.d**2) - p.leak * u.d,
        p.load * (u.d - 1) - u.e + tanh(u.a * u.c),
    )
