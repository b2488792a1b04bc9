"""Where trajectories begin: far apart on an orbit, and not to follow each other bit by bit."""

from __future__ import annotations

import numpy as np
import pytest

from hpcfit.flow.frames import grow, start_bundle
from hpcfit.models.catalogue import find
from hpcfit.studies.beginnings import points_on_orbits

CASES = {
    "henon_map": ([0.1, 0.1], [1.4, 0.3], 500.0),
    "lorenz": ([1.0, 1.0, 20.0], [10.0, 28.0, 8 / 3], 40.0),
}


@pytest.mark.parametrize("name", CASES)
def test_trajectories_do_not_repeat_each_other(name: str) -> None:
    """What the first does after `apart` is not what the second does from its begin on."""
    start, parameters, apart = CASES[name]
    model, values = find(name), np.array([parameters])
    starts, failures = points_on_orbits(model, np.array([start]), values, 0.0, apart, 3, None, None)
    assert not failures
    np.testing.assert_array_equal(starts[0], start)
    grown = grow(model, start_bundle(model, starts, values), blocks=4, block=apart, interval=1.0).logarithms
    assert not np.isclose(grown[0, 2, 0], grown[1, 1, 0], rtol=1e-6)
    assert not np.isclose(grown[1, 2, 0], grown[2, 1, 0], rtol=1e-6)
