"""Fits and simulations of models with jumps and switches."""

from __future__ import annotations

import numpy as np
import pytest

from hpcfit import Experiment, Noise, fit, simulate
from hpcfit.commands.loading import load
from hpcfit.commands.work import run_ensemble
from hpcfit.models.catalogue import find
from hpcfit.mpi.serial import SERIAL
from hpcfit.records import Outcome
from tests.conftest import ROOT


@pytest.mark.parametrize("name", ["bouncing_ball", "relay", "coulomb_pendulum", "dosing", "stick_slip"])
def test_examples_recover_their_parameters(name):
    """Ten noise realisations of each: all converge, all within five errors."""
    asked = ['kind="ensemble"', 'ensemble.of="fit"', "ensemble.members=10", "fit.derived={}"]
    result = run_ensemble(SERIAL, load(ROOT / "jobs" / "examples" / f"{name}.toml", asked))
    columns = [result.names.index(each) for each in result.parameter_names]
    truth = np.array([result.truth[each] for each in result.parameter_names])
    assert all(outcome is Outcome.CONVERGED for outcome in result.outcomes)
    assert (np.abs(result.estimates[:, columns] - truth) < 5 * result.errors[:, columns]).all()


def test_nodes_at_doses_fit_like_nodes_between_them():
    """A node at a dose is the state before it: the estimates do not depend on where the nodes are."""
    made, times = find("dosing"), np.arange(97) * 0.5
    values = [0.9, 0.15, 100.0, 0.0, 8.0]
    path = simulate(
        made,
        start=[0.0, 0.0],
        parameters=values,
        times=times,
        noise=Noise(sd=1.0),
        seed=3,
        observe=["gut", "blood"],
    )
    experiment = Experiment(
        times, dict(zip(("gut", "blood"), path.observed.values.T, strict=True)), sigma=1.0
    )
    results = [
        fit(
            made,
            experiment,
            guess={"absorption": 0.8, "elimination": 0.2},
            fixed={"dose": 100.0, "lag": 0.0, "interval": 8.0},
            nodes=nodes,
        )
        for nodes in (16, 11)  # at doses, and not
    ]
    assert all(result.converged for result in results)
    assert results[0].parameters == pytest.approx(results[1].parameters, rel=1e-9)
    assert results[0].parameters["elimination"] == pytest.approx(
        0.15, abs=5 * results[0].errors["elimination"]
    )


def test_a_path_lists_what_it_met():
    """By name, with times and the states before; a path without switches lists nothing."""
    path = simulate(find("bouncing_ball"), start=[1.0, 0.0], parameters=[9.81, 0.5], times=[0.0, 1.0])
    fall = (2 / 9.81) ** 0.5
    assert path.switchings.names == ("jump bounce", "jump bounce")
    assert path.switchings.times == pytest.approx([fall, 2 * fall], rel=1e-14)
    assert path.switchings.states[:, 1] == pytest.approx([-9.81 * fall, -9.81 * fall / 2], rel=1e-14)
    assert (
        simulate(find("rossler"), start=[1, 1, 1], parameters=[0.2, 0.2, 5], times=[0, 1]).switchings is None
    )
