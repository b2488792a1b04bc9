"""Sums over nodes that are spread over ranks are those over all nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hpcfit.linear.across import Across
from hpcfit.linear.chain import Residuals, Unknowns
from hpcfit.linear.segments import Segments
from hpcfit.mpi.serial import SERIAL
from hpcfit.mpi.together import gathered
from tests.conftest import Mpirun

LENGTHS, REACH = (23, 9, 40), 3
NODES = sum(LENGTHS)
BY_NODE = np.random.default_rng(1).normal(size=(1, NODES))
BY_LINK = np.random.default_rng(2).normal(size=(1, NODES - 1))
STEP = Unknowns(np.random.default_rng(3).normal(size=(1, NODES, 2)), np.array([[0.3, -2.0]]))


def compared(comm: Any) -> None:
    """This rank's part against the whole."""
    segments = Segments.cut(LENGTHS, 6)
    mine = segments.shares(comm.size)[comm.rank]
    own = segments[mine]
    first = int(segments.nodes[: mine.start].sum())
    last = first + int(own.nodes.sum())
    parts, whole = Across(comm, own), Across(SERIAL)
    here, links = slice(first, last), slice(first, last - 1 + int(own.joined[-1]))
    step = Unknowns(STEP.nodes[:, here], STEP.parameters)
    rows = Residuals(STEP.nodes[:, here], BY_LINK[:, links, None])
    BY_LINK[:, np.cumsum(LENGTHS)[:-1] - 1] = 0.0  # between experiments
    np.testing.assert_allclose(parts.total(BY_NODE[:, here]), whole.total(BY_NODE), rtol=1e-13)
    np.testing.assert_array_equal(parts.largest(np.abs(BY_NODE[:, here])), whole.largest(np.abs(BY_NODE)))
    np.testing.assert_allclose(parts.norms(step), whole.norms(STEP), rtol=1e-14)
    np.testing.assert_allclose(parts.objective(rows), (STEP.nodes**2).sum(keepdims=True)[0, 0], rtol=1e-13)
    assert parts.nodes(step) == NODES
    halves = parts.halves(BY_LINK[:, links], last - first)
    np.testing.assert_array_equal(gathered(comm, halves, axis=1), whole.halves(BY_LINK, NODES))
    around = parts.around(BY_NODE[:, here], REACH)
    np.testing.assert_allclose(gathered(comm, around, axis=1), whole.around(BY_NODE, REACH), atol=1e-14)


def test_one_rank() -> None:
    compared(SERIAL)
    padded = np.pad(BY_NODE[0], REACH)
    expected = [padded[k : k + 2 * REACH + 1].sum() for k in range(NODES)]
    np.testing.assert_allclose(Across(SERIAL).around(BY_NODE, REACH)[0], expected, atol=1e-14)


ON_RANKS = """
from hpcfit.mpi.world import world
from tests.linear.test_across import compared
compared(world())
print("the same\\n", end="")
"""


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_ranks(ranks: int, mpirun: Mpirun) -> None:
    done = mpirun(ranks, "-m", "mpi4py", "-c", ON_RANKS)
    assert done.stdout.splitlines() == ["the same"] * ranks, done.stderr
