"""The other integrators. Each file offers the same function.

    prepare(model, tolerance) -> run
    run(starts (L, n), parameters (L, n_p), t0 (L,), dt) -> Answer

`prepare` translates and compiles, `run` only integrates; compiled things are reused by every run.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hpcfit.models.define import Model
from hpcfit.records import Array


class Answer(NamedTuple):
    """States and sensitivities at the ends of the intervals, one lane each."""

    states: Array  # (L, n)
    by_start: Array  # (L, n, n)
    by_parameters: Array  # (L, n, n_p)


Run = Callable[[Array, Array, Array, float], Answer]


def kept(pack: Callable[..., Any]) -> Callable[..., Any]:
    """`pack`, done again only for other inputs: arranging inputs is not what is measured."""
    last: list[Any] = [(), None]

    def packed(*inputs: Any) -> Any:
        if len(last[0]) != len(inputs) or any(a is not b for a, b in zip(last[0], inputs, strict=True)):
            last[:] = inputs, pack(*inputs)
        return last[1]

    return packed


@dataclass(frozen=True)
class Peer:
    """An integrator with its tolerances, the loosest first: the first that is accurate enough is timed.

    Peers of one module share the tolerance, so that only the first of them has to look for it.
    """

    name: str
    module: str
    tolerances: tuple[float, ...]
    aim: tuple[float, float] = (1e-12, 1e-12)  # largest errors of states and sensitivities that will do
    options: dict[str, Any] = field(default_factory=dict)

    def prepare(self, model: Model, tolerance: float) -> Run:
        """Imports the peer only now: who lacks one can still measure the others."""
        module = importlib.import_module(f"benchmarks.peers.{self.module}")
        run: Run = module.prepare(model, tolerance, **self.options)
        return run


def ladder(loosest: float, tightest: float) -> tuple[float, ...]:
    """Tolerances in half decades, both ends included."""
    rungs = (float(f"{lead}e-{power}") for power in range(1, 18) for lead in (3, 1))
    return tuple(rung for rung in rungs if tightest <= rung <= loosest)


_TAYLOR = ladder(1e-8, 1e-16)
_RUNGE_KUTTA = ladder(1e-10, 3e-14)

PEERS = (
    Peer("heyoka1", "heyoka", _TAYLOR, options={"lanes": 1}),
    Peer("heyoka4", "heyoka", _TAYLOR, options={"lanes": 4}),
    Peer("heyoka8", "heyoka", _TAYLOR, options={"lanes": 8}),
    Peer("jitcode", "jitcode", _RUNGE_KUTTA),
    Peer("casadi", "casadi", (1e-10,), aim=(1e-10, 1e-10)),
    Peer("scipy", "scipy", _RUNGE_KUTTA),
)
