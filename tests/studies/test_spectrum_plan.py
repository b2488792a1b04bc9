"""What a spectrum refuses, with the value and a remedy; which systems are found to be Hamiltonian."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hpcfit import InputError, spectrum
from hpcfit.lyapunov.hamiltonian import hamiltonian_form
from hpcfit.models import catalogue
from hpcfit.models.strings import model_from_strings
from hpcfit.studies.spectrum_asked import Asked
from hpcfit.studies.spectrum_plan import plan_spectrum

BAD: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "duration zero": ("lorenz", {"duration": 0.0}, ["duration = 0.0", "must be positive"]),
    "duration not finite": ("lorenz", {"duration": np.inf}, ["duration = inf", "must be finite"]),
    "negative transient": ("lorenz", {"transient": -1.0}, ["transient = -1.0", "must not be negative"]),
    "too many exponents": ("lorenz", {"exponents": 4}, ["exponents = 4", "3 states", "give 1 to 3"]),
    "no exponent": ("lorenz", {"exponents": 0}, ["exponents = 0", "give 1 to 3"]),
    "interval beyond block": ("lorenz", {"interval": 2.0, "block": 1.0}, ["longer than the block 1"]),
    "interval beyond duration": ("lorenz", {"interval": 200.0}, ["longer than the duration 10"]),
    "block beyond duration": ("lorenz", {"block": 20.0}, ["block = 20.0", "longer than the duration 10"]),
    "no trajectory": ("lorenz", {"trajectories": 0}, ["trajectories = 0", "must be 1 or more"]),
    "starts and their number": (
        "lorenz",
        {"trajectories": 4, "starts": [[1.0, 2.0, 3.0]]},
        ["trajectories = 4", "1 further starts make 2"],
    ),
    "an equilibrium": ("lorenz", {"start": [0.0, 0.0, 0.0]}, ["start", "is an equilibrium (x = 0"]),
    "a further start at rest": (
        "lorenz",
        {"starts": [[0.0, 0.0, 0.0]]},
        ["starts.1", "is an equilibrium"],
    ),
    "off the energy surface": ("henon_heiles", {"invariant": 0.125}, ["0.12905, not 0.125", "move it"]),
    "no energy": ("lorenz", {"invariant": 0.125}, ["lorenz has no invariant"]),
    "not Hamiltonian": ("lorenz", {"symplectic": True}, ["not Hamiltonian in its states x y z"]),
    "tolerance": ("lorenz", {"tolerance": 1e-30}, ["tolerance = 1e-30", "takes 1e-18 to 0.01"]),
    "method": ("lorenz", {"method": "tailor"}, ["method", "did you mean 'taylor'"]),
    "half an iteration": ("henon_map", {"duration": 10.5}, ["duration = 10.5", "whole numbers"]),
    "no surface": ("lorenz", {"section": {"surface": "w"}}, ["section.surface", "'w'"]),
    "one axis": ("lorenz", {"section": {"surface": "x", "axes": ["y"]}}, ["section.axes", "two"]),
    "no such axis": ("lorenz", {"section": {"surface": "x", "axes": ["y", "zz"]}}, ["'zz'"]),
    "start lacks a state": ("lorenz", {"start": {"x": 1.0}}, ["start lacks 'y'"]),
    "start not finite": ("lorenz", {"start": [np.nan, 1.0, 1.0]}, ["not finite"]),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_with_value_and_remedy(name: str) -> None:
    model, given, fragments = BAD[name]
    with pytest.raises(InputError) as raised:
        spectrum(catalogue.find(model), **({"duration": 10.0} | given))
    for fragment in fragments:
        assert fragment in str(raised.value)
    assert ";" in str(raised.value)


def test_all_mistakes_are_told_together() -> None:
    with pytest.raises(InputError) as raised:
        spectrum(catalogue.find("lorenz"), duration=-1.0, transient=-1.0)
    assert len(raised.value.mistakes) == 2


@pytest.mark.parametrize("name", sorted(catalogue.NAMES))
def test_hamiltonian_systems_of_the_catalogue_are_found(name: str) -> None:
    """The double pendulum and the spring pendulum have velocities where momenta would be canonical."""
    model = catalogue.find(name)
    example = model.examples[0]
    start, values = (np.array(list(each.values())) for each in (example.start, example.parameters))
    form = hamiltonian_form(model, start, values)
    assert (form is not None) == (name in ("henon_heiles", "springs_masses"))


def test_states_in_pairs_count_as_canonical_too() -> None:
    pairs = model_from_strings(
        "pairs",
        states=["q1", "p1", "q2", "p2"],
        parameters=[],
        equations={"q1": "p1", "p1": "-q1 - 2*q1*q2", "q2": "p2", "p2": "-q2 - q1**2 + q2**2"},
    )
    form = hamiltonian_form(pairs, np.array([0.1, 0.2, 0.3, 0.1]), np.empty(0))
    np.testing.assert_array_equal(form, np.kron(np.eye(2), [[0.0, 1.0], [-1.0, 0.0]]))


def test_conjugate_frames_have_the_flow_among_them() -> None:
    model = catalogue.find("henon_heiles")
    plan = plan_spectrum(model, Asked(duration=10.0), start=None, parameters=None, fit=None)
    (frame,) = plan.frames
    form = np.kron([[0.0, 1.0], [-1.0, 0.0]], np.eye(2))
    np.testing.assert_allclose(frame.T @ frame, np.eye(4), atol=1e-15)
    np.testing.assert_allclose(frame[:, 3], form @ frame[:, 0], atol=1e-15)
    np.testing.assert_allclose(frame[:, 2], form @ frame[:, 1], atol=1e-15)
    slope = np.array([0.3, -0.41, 0.0, 0.0])  # of the orbit at x = y = 0
    np.testing.assert_allclose(np.abs(frame[:, 1]), np.abs(slope) / np.linalg.norm(slope), atol=1e-15)


def test_times_are_whole_blocks() -> None:
    model = catalogue.find("lorenz")
    asked = Asked(duration=10.0, block=0.7, transient=1.0)
    plan = plan_spectrum(model, asked, start=None, parameters=None, fit=None)
    assert (plan.blocks, plan.transient_blocks) == (15, 2)
    assert plan.interval <= 0.7
    assert plan.marks[0] == 0
    assert plan.marks[-1] == plan.total == 17


def test_driven_systems_are_told() -> None:
    assert catalogue.find("driven_pendulum").driven
    assert not catalogue.find("lorenz").driven
