"""What must not change along chaotic paths of Hamiltonian systems, over many units of time."""

from __future__ import annotations

import numpy as np

from hpcfit.flow.frames import grow, start_bundle
from hpcfit.models.catalogue import find
from hpcfit.records import Array

HEILES = find("henon_heiles")
PARAMETERS = [1.0, 1.0, -1.0]
START = np.array([0.0, 0.0, np.sqrt(0.1275), -0.35])


def energy(states: Array) -> Array:
    """E = 1/8 at the start, with more digits than the states have."""
    x1, x2, x3, x4 = states.astype(np.longdouble).T
    return (x3**2 + x4**2 + x1**2 + x2**2) / 2 + x1**2 * x2 - x2**3 / 3


def test_the_energy_of_eight_trajectories_does_not_drift() -> None:
    """Rounding scatters it by 1e-14 in 50,000 units; an error common to all steps would add up."""
    starts = [START]
    for _ in range(7):
        starts.append(
            grow(
                HEILES, start_bundle(HEILES, starts[-1], PARAMETERS), blocks=1, block=10.0, interval=5.0
            ).bundle.states[0]
        )
    bundle = start_bundle(HEILES, np.array(starts), PARAMETERS)
    end = grow(HEILES, bundle, blocks=1, block=50_000.0, interval=10.0).bundle
    drift = energy(end.states) / energy(bundle.states) - 1
    assert np.abs(drift).max() < 1e-13
    assert abs(drift.mean()) < 2e-14


def test_a_symplectic_frame_grows_in_pairs() -> None:
    """Conjugate columns in reverse order: their logarithms are opposite, block by block."""
    turned = np.block([[np.zeros((2, 2)), np.eye(2)], [-np.eye(2), np.zeros((2, 2))]])
    flow = np.array([START[2], START[3], 0.0, 0.0]) / np.hypot(START[2], START[3])
    across = np.array([-START[3], START[2], 0.0, 0.0]) / np.hypot(START[2], START[3])
    frame = np.stack([across, flow, turned @ flow, turned @ across], axis=1)
    growth = grow(
        HEILES, start_bundle(HEILES, START, PARAMETERS, frame), blocks=10, block=1000.0, interval=10.0
    )
    logarithms = growth.logarithms[0]
    np.testing.assert_allclose(logarithms[:, 0] + logarithms[:, 3], 0.0, atol=1e-11)
    np.testing.assert_allclose(logarithms[:, 1] + logarithms[:, 2], 0.0, atol=1e-11)
    np.testing.assert_array_equal(growth.divergence, 0.0)
    assert logarithms[:, 0].sum() > 100.0
