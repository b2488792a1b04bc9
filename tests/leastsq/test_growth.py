"""Growth of errors along a chain, against products that are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hpcfit.leastsq.growth import BLOCK, decades
from hpcfit.linear.across import Across
from hpcfit.linear.chain import Chain
from hpcfit.mpi.serial import SERIAL
from tests.leastsq.toy_problems import Curve


def chain(links: int, factors: list[float]) -> Chain:
    """One state, multiplied by the same factor along every link; one member a factor."""
    problem = Curve(np.zeros((len(factors), links + 1)))
    plain = problem.linearise(SERIAL, problem.begin(0.0))
    return replace(plain, links_by_node=np.array(factors)[:, None, None, None] * plain.links_by_node)


@pytest.mark.parametrize("links", [BLOCK, 3 * BLOCK, 3 * BLOCK + 5])
def test_decades_add_up_along_the_links_and_shrinking_counts_as_none(links: int) -> None:
    found = decades(Across(SERIAL), chain(links, [10.0, 1.0, 0.1, 10.0**0.05]))
    np.testing.assert_allclose(found, [links, 0.0, 0.0, 0.05 * links], atol=1e-9)


def test_a_series_shorter_than_a_block_does_not_grow() -> None:
    assert decades(Across(SERIAL), chain(BLOCK - 1, [10.0])).tolist() == [0.0]


def test_nothing_grows_from_one_experiment_to_the_next() -> None:
    whole = chain(2 * BLOCK, [10.0])
    linked = [True] * (2 * BLOCK)
    linked[7] = False
    assert decades(Across(SERIAL), replace(whole, linked=np.array(linked)))[0] == pytest.approx(2 * BLOCK - 1)
