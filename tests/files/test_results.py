"""Results come back from their file as they went in, and other programs can read them."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from hpcfit import Noise, simulate
from hpcfit.files.results import Saved, load, save
from hpcfit.models.catalogue import find
from hpcfit.records import Path as Trajectory
from hpcfit.records import Series, Switchings


def some_path(**options: object) -> Trajectory:
    model = find("double_pendulum")
    example = model.examples[0]
    times = np.linspace(0.0, 2.0, 9)
    return simulate(model, start=example.start, parameters=example.parameters, times=times, **options)


def same(first: object, second: object) -> bool:
    for kind in (Series, Switchings):
        if isinstance(first, kind) and isinstance(second, kind):
            return all(same(getattr(first, f.name), getattr(second, f.name)) for f in fields(kind))
    if isinstance(first, np.ndarray):
        return isinstance(second, np.ndarray) and np.array_equal(first, second, equal_nan=True)
    return first == second


@pytest.mark.parametrize("end", [0.1, 2.0])
def test_what_a_path_has_met_comes_back(end: float, tmp_path: Path) -> None:
    """Also nothing at all."""
    path = simulate(find("bouncing_ball"), start=[1.0, 0.0], parameters=[9.81, 0.9], times=[0.0, end])
    save(tmp_path / "r.h5", Saved(path, "simulate", "the job", "abc", {}))
    back = load(tmp_path / "r.h5").record
    assert same(path.switchings, back.switchings)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"sensitivities": True, "noise": Noise(sd=0.1, beyond_3_sigma="discard"), "seed": 5},
        {"observe": ["energy", "tip_x"], "noise": Noise(fraction=0.1)},
        {"max_steps": 3},
    ],
)
def test_a_result_comes_back_as_it_went_in(options: dict[str, object], tmp_path: Path) -> None:
    path = some_path(**options)
    saved = Saved(path, "simulate", "the job: é–", "abc", {"seed": 5, "sha256": {"x": "y"}})
    save(tmp_path / "r.h5", saved)
    back = load(tmp_path / "r.h5")
    for part in fields(Trajectory):
        assert same(getattr(path, part.name), getattr(back.record, part.name)), part.name
    assert (back.job_text, back.job_hash, back.provenance) == ("the job: é–", "abc", saved.provenance)


def test_the_file_tells_names_units_and_axes_to_any_reader(tmp_path: Path) -> None:
    import h5py

    save(tmp_path / "r.h5", Saved(some_path(sensitivities=True), "simulate", "", "", {}))
    with h5py.File(tmp_path / "r.h5") as file:
        states = file["states"]
        assert states.shape == (9, 4)
        assert list(states.attrs["names"]) == ["phi1", "phi2", "rate1", "rate2"]
        assert list(states.attrs["units"]) == ["rad", "rad", "rad/s", "rad/s"]
        assert [dim.label for dim in states.dims] == ["time", "state"]
        assert file["times"].attrs["units"] == "s"
        assert file["by_parameters"].shape == (9, 4, 3)
        assert file.attrs["outcome_text"] == "done"


def test_a_failed_save_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full_disk(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("hpcfit.files.paths.put_series", full_disk)
    with pytest.raises(OSError, match="No space"):
        save(tmp_path / "r.h5", Saved(some_path(noise=Noise(sd=0.1)), "simulate", "", "", {}))
    assert list(tmp_path.iterdir()) == []
