"""Long problems posed by parts: what ranks have together is the problem posed as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from hpcfit.linear.segments import Segments
from hpcfit.models.catalogue import find
from hpcfit.mpi.serial import SERIAL
from hpcfit.mpi.together import gathered
from hpcfit.mpi.world import world
from hpcfit.records import InputError, Series, Source
from hpcfit.shooting.grid import NodeChoice
from hpcfit.shooting.parts import Whole, pose_part
from hpcfit.shooting.pose import each_choice, pose, settle
from hpcfit.studies.long import cuts_of, headings
from tests.conftest import ROOT, Mpirun

LORENZ = find("lorenz")
GUESS = {"sigma": 9.0, "r": 30.0, "b": 2.0}
SEVEN = 7  # nodes of a segment, at most


def series(
    number: int, length: int, names: str = "xyz", missing: float = 0.0, *, sigma: bool = True
) -> Series:
    """Any numbers at uneven times; parts of a problem need not come from a path."""
    rng = np.random.default_rng(number)
    times = np.cumsum(rng.uniform(0.05, 0.2, size=length))
    values = rng.normal(size=(length, len(names)))
    values[rng.uniform(size=values.shape) < missing] = np.nan
    errors = rng.uniform(0.5, 2.0, size=values.shape) if sigma else None
    return Series(tuple(names), times, values, errors)


def between(own: Series, count: int) -> list[float]:
    """Node times that are not data times, some of them close together, beyond the data at both ends."""
    inner = np.sort(np.random.default_rng(count).uniform(own.times[0], own.times[-1], size=count))
    return [float(own.times[0]) - 0.1, *inner.tolist(), float(own.times[-1]) + 0.1]


MANY = [series(number, 9 + 5 * number, "xyz" if number % 3 else "xy", 0.2) for number in range(6)]
CASES: dict[str, tuple[list[Series], Any]] = {
    "one experiment": ([series(1, 60)], "data"),
    "missing values, some for long": ([series(2, 60, "xy", 0.7)], "data"),
    "every fourth time is a node": ([series(3, 151, missing=0.5)], 4),
    "fewer times than a step": ([series(number, 30) for number in range(6)], 40),
    "nodes between the times": ([series(6, 60, missing=0.3)], between(series(6, 60), 43)),
    "six experiments": (MANY, "data"),
    "six experiments, every third time": (MANY, 3),
    "unknown errors": ([series(7, 40, sigma=False), series(8, 33, "zx", sigma=False)], "data"),
}


def posed_by_parts(comm: Any, sources: Sequence[Source], choices: Any, cost: bool = False) -> dict[str, Any]:
    """What all ranks have together."""
    what = settle(LORENZ, [source.names for source in sources], guess=GUESS, weights={"x": 0.5})
    choices = each_choice(choices, len(sources))
    whole = Whole(what, sources, cuts_of(sources, choices))
    segments = Segments.cut(whole.lengths, SEVEN)
    uneven = np.random.default_rng(1).uniform(0.1, 3.0, size=len(segments)) if cost else None
    part = pose_part(comm, whole, segments, uneven)
    inner, nodes = part.problem.inner, part.start.nodes.shape[1]
    assert part.extent is not None
    assert part.extent.first_node == sum(comm.allgather(nodes)[: comm.rank])
    rows = [
        np.concatenate([each for each in comm.allgather(own.values) if len(each)]) for own in part.experiments
    ]
    for own, first, total in zip(part.experiments, part.extent.first_rows, part.extent.rows, strict=True):
        assert not own.count or first + own.count <= total
    assert not inner.weights[:, nodes:].any()
    return {
        "start": gathered(comm, part.start.nodes, axis=1),
        "data": gathered(comm, inner.data[:, :nodes], axis=1),
        "weights": gathered(comm, inner.weights[:, :nodes], axis=1),
        "times": gathered(comm, inner.grid.times[:nodes]),
        "experiments": gathered(comm, inner.grid.experiment[:nodes]),
        "outputs": gathered(comm, inner.grid.outputs),
        "linked": gathered(comm, inner.grid.linked),
        "precision": part.precision,
        "rough": np.array([part.rough]),
        "values": np.concatenate([own.ravel() for own in rows]),
    }


def posed_as_a_whole(experiments: list[Series], choices: NodeChoice) -> dict[str, Any]:
    posed = pose(LORENZ, experiments, guess=GUESS, weights={"x": 0.5}, nodes=choices)
    grid = posed.problem.grid
    return {
        "start": posed.start.nodes,
        "data": posed.problem.data,
        "weights": posed.problem.weights,
        "times": grid.times,
        "experiments": grid.experiment,
        "outputs": grid.outputs[grid.linked],
        "linked": grid.linked[grid.linked],
        "precision": posed.precision,
        "rough": np.array([posed.rough]),
        "values": np.concatenate([own.values.ravel() for own in experiments]),
    }


def check(comm: Any) -> None:
    for name, (experiments, choices) in CASES.items():
        expected = posed_as_a_whole(experiments, choices)
        sources: list[Sequence[Source]] = [experiments]
        if isinstance(choices, str | int):
            sources.append(headings(comm, experiments if comm.rank == 0 else []))
        for cost in (False, True):
            for own in sources:
                found = posed_by_parts(comm, own, choices, cost)
                found["outputs"] = found["outputs"][found["linked"]]
                found["linked"] = found["linked"][found["linked"]]
                for what, values in expected.items():
                    exact = what != "precision"  # which sums by segment
                    tolerance = {"rtol": 0.0 if exact else 1e-14, "atol": 0.0}
                    np.testing.assert_allclose(found[what], values, err_msg=f"{name}: {what}", **tolerance)


def test_one_rank_has_the_whole() -> None:
    check(SERIAL)


@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_ranks_have_the_whole_together(ranks: int, mpirun: Mpirun) -> None:
    done = mpirun(ranks, "-m", "mpi4py", "-m", "tests.shooting.test_parts", cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("checked") == ranks


def spoiled(name: str, row: int, value: float) -> Series:
    own = series(9, 50)
    (own.times if name == "times" else own.values[:, 1])[row] = value
    return own


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (spoiled("times", 30, 0.0), "times must increase: 0 comes after"),
        (spoiled("times", 31, np.nan), "time 31 is not finite"),
        (spoiled("values", 30, np.inf), "a value is infinite"),
        (series(9, 50, missing=1.0), "all values are missing"),
    ],
)
def test_rows_that_cannot_be_used_are_refused(wrong: Series, message: str) -> None:
    with pytest.raises(InputError, match=message):
        posed_by_parts(SERIAL, [series(1, 20), wrong], "data")


def test_too_few_values_are_refused() -> None:
    few = series(1, 20)
    few.values[1:] = np.nan
    with pytest.raises(InputError, match="3 values with weight for 6 unknowns"):
        posed_by_parts(SERIAL, [few], "data")


if __name__ == "__main__":
    check(world())
    print("checked", flush=True)
