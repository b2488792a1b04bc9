"""Fits and ensembles come back from their files as they went in; damaged files are refused."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hpcfit import Noise, simulate
from hpcfit.files.ensembles import EnsembleRows
from hpcfit.files.results import Record, Saved, load, put_provenance, save, writing
from hpcfit.models.catalogue import find
from hpcfit.records import EnsembleResult, Estimates, InputError, Pieces
from hpcfit.studies.ensemble import BY_MEMBER
from hpcfit.studies.fit import fit as fit_model
from tests.reporting.fit_material import AWKWARD, ENSEMBLES, ensemble, fit


def same(first: object, second: object) -> bool:
    """The same types and bits all the way down; NaN is NaN."""
    if isinstance(first, np.ndarray):
        return (
            isinstance(second, np.ndarray)
            and first.tobytes() == second.tobytes()
            and first.shape == second.shape
        )
    if is_dataclass(first):
        return type(first) is type(second) and all(
            same(getattr(first, part.name), getattr(second, part.name)) for part in fields(first)
        )
    if isinstance(first, tuple):
        return isinstance(second, tuple) and len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, dict):
        return (
            isinstance(second, dict)
            and list(first) == list(second)
            and all(map(same, first.values(), second.values()))
        )
    return (first == second or (first != first and second != second)) and type(first) is type(second)


def round_trip(record: Record, kind: str, folder: Path) -> Record:
    save(folder / "r.h5", Saved(record, kind, "the job: é–", "abc", {"seed": 5}))
    back = load(folder / "r.h5")
    assert (back.kind, back.job_text, back.job_hash, back.provenance) == (
        kind,
        "the job: é–",
        "abc",
        {"seed": 5},
    )
    return back.record


def assert_same(first: Record, second: Record) -> None:
    for part in fields(first):
        assert same(getattr(first, part.name), getattr(second, part.name)), part.name


@pytest.mark.parametrize("name", AWKWARD)
def test_a_fit_comes_back_as_it_went_in(name: str, tmp_path: Path) -> None:
    assert_same(AWKWARD[name], round_trip(AWKWARD[name], "fit", tmp_path))


@pytest.mark.parametrize("name", ENSEMBLES)
def test_an_ensemble_comes_back_as_it_went_in(name: str, tmp_path: Path) -> None:
    assert_same(ENSEMBLES[name], round_trip(ENSEMBLES[name], "ensemble", tmp_path))


def test_a_real_fit_comes_back_as_it_went_in(tmp_path: Path) -> None:
    model = find("henon_heiles")
    start, times = [0.0, 0.0, 0.1275**0.5, -0.35], 0.2 * np.arange(30)
    path = simulate(model, start=start, parameters=[1, 1, -1], times=times, noise=Noise(sd=0.03), seed=18)
    assert path.observed is not None
    found = fit_model(model, path.observed, guess={"a": 1.1, "b": 0.9, "c": -0.8})
    assert_same(found, round_trip(found, "fit", tmp_path))


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    values=st.lists(st.floats(), min_size=4, max_size=4),
    guess=st.dictionaries(
        st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1), st.floats()
    ),
    cause=st.text(st.characters(codec="utf-8", exclude_characters="\0")),
    seed=st.none() | st.integers(0, 2**63 - 1),
)
def test_any_values_and_names_survive(
    values: list[float], guess: dict[str, float], cause: str, seed: int | None, tmp_path: Path
) -> None:
    usual = fit()
    shown = fit(
        unknowns=Estimates(usual.unknowns.names, np.array(values), usual.unknowns.covariance),
        guess=guess,
        cause=cause,
        seed=seed,
        objective=values[0],
    )
    assert_same(shown, round_trip(shown, "fit", tmp_path))


def test_the_file_tells_names_units_and_axes_to_any_reader(tmp_path: Path) -> None:
    import h5py

    save(tmp_path / "r.h5", Saved(fit(n_experiments=2), "fit", "", "", {}))
    with h5py.File(tmp_path / "r.h5") as file:
        values = file["unknowns/values"]
        assert list(values.attrs["names"]) == ["x", "v", "x@2", "v@2", "p0", "p1"]
        assert list(values.attrs["units"]) == ["m", "m/s", "m", "m/s", "1/s", "1"]
        assert [dim.label for dim in file["nodes/states"].dims] == ["node", "state"]
        assert file["history/phase"].asstr()[0] == "presolve"
        assert file["experiments/2/residuals"].shape == (40, 2)
        assert file.attrs["outcome_text"] == "converged"

        def check(name: str, item: object) -> None:
            if isinstance(item, h5py.Dataset) and name != "job":
                assert all(dim.label for dim in item.dims), name

        file.visititems(check)


def test_errors_of_all_nodes_are_there_and_compressed(tmp_path: Path) -> None:
    import h5py

    shown = fit(5_000)
    save(tmp_path / "r.h5", Saved(shown, "fit", "", "", {}))
    with h5py.File(tmp_path / "r.h5") as file:
        errors = file["nodes/errors"]
        assert errors.shape == (5_000, 2)
        assert errors.compression == "gzip"
        assert errors.id.get_storage_size() < errors.nbytes


def test_pieces_of_some_intervals_come_back_as_they_went_in(tmp_path: Path) -> None:
    whole = fit()
    nodes = np.arange(3, 9)
    some = Pieces(whole.final.times[nodes], whole.final.states[nodes], nodes)
    shown = replace(whole, initial=some, final=some)
    assert_same(shown, round_trip(shown, "fit", tmp_path))


@pytest.mark.parametrize("kind", ["fit", "ensemble"])
@pytest.mark.parametrize("part", [0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_refused(kind: str, part: float, tmp_path: Path) -> None:
    save(tmp_path / "r.h5", Saved(fit() if kind == "fit" else ensemble(), kind, "", "", {}))
    whole = (tmp_path / "r.h5").read_bytes()
    (tmp_path / "cut.h5").write_bytes(whole[: int(part * len(whole))])
    with pytest.raises(InputError, match=r"cut\.h5: .*; "):
        load(tmp_path / "cut.h5")


@pytest.mark.parametrize(
    "missing", ["unknowns/covariance", "history/phase", "nodes", "job", "truth", "experiments/2"]
)
def test_a_missing_part_is_named(missing: str, tmp_path: Path) -> None:
    import h5py

    save(tmp_path / "r.h5", Saved(fit(n_experiments=2), "fit", "", "", {}))
    with h5py.File(tmp_path / "r.h5", "r+") as file:
        del file[missing]
    with pytest.raises(InputError, match="damaged result, a part is missing"):
        load(tmp_path / "r.h5")


@pytest.mark.parametrize(
    "place", ["unknowns/values", "experiments/1/values", "history/increment", "final/states"]
)
def test_a_changed_byte_is_found(place: str, tmp_path: Path) -> None:
    import h5py

    save(tmp_path / "r.h5", Saved(fit(), "fit", "", "", {}))
    with h5py.File(tmp_path / "r.h5") as file:
        offset = file[place].id.get_chunk_info(0).byte_offset
    content = bytearray((tmp_path / "r.h5").read_bytes())
    content[offset + 3] ^= 1
    (tmp_path / "r.h5").write_bytes(content)
    with pytest.raises(InputError, match="damaged result, a part is not readable"):
        load(tmp_path / "r.h5")


def test_a_record_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="FitResult"):
        save(tmp_path / "r.h5", Saved(ensemble(), "fit", "", "", {}))
    assert list(tmp_path.iterdir()) == []


def test_many_names_fit_into_a_file(tmp_path: Path) -> None:
    names = tuple(f"x@{k}" for k in range(6_000))
    wide = ensemble(2, failed=0, names=names, estimates=np.ones((2, 6_000)), errors=np.ones((2, 6_000)))
    assert_same(wide, round_trip(wide, "ensemble", tmp_path))


def test_rows_of_an_ensemble_may_come_in_any_order_and_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Written in pieces, out of order, in blocks of 16: the same file as at once."""
    monkeypatch.setattr("hpcfit.files.ensembles.ROWS", 16)
    whole = ensemble()
    count = len(whole.members)
    order = np.random.default_rng(1).permutation(count)
    with writing(tmp_path / "r.h5", "ensemble", "job", "hash") as file:
        rows = EnsembleRows(file, whole, count)
        for part in np.array_split(order, 7):
            rows.put(part, some_rows(whole, part))
        put_provenance(file, {})
    assert_same(load(tmp_path / "r.h5").record, whole)


def some_rows(whole: EnsembleResult, part: np.ndarray) -> EnsembleResult:
    """The rows of some members."""
    return replace(
        whole,
        **{name: getattr(whole, name)[part] for name in BY_MEMBER},
        outcomes=tuple(whole.outcomes[k] for k in part),
    )
