"""PETSc against the dense solver, on one rank and on several."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hpcfit.linear.chain import Chain, Residuals
from hpcfit.linear.dense import Decomposed, generalised_inverse
from hpcfit.linear.windows import condense
from hpcfit.mpi.serial import SERIAL
from hpcfit.records import InputError
from tests.conftest import Mpirun
from tests.linear.chains import random_chain, relative_error, vector

pytest.importorskip("petsc4py")

from hpcfit.linear import petsc
from hpcfit.linear.petsc import PetscInverse, petsc_inverse

CHAINS = {
    "one window": random_chain(1, stretch=1.05),
    "many windows": random_chain(2, stretch=3.0, n_nodes=60),
    "windows with fewer rows than unknowns": random_chain(3, stretch=40.0, n_nodes=40, n_rows=1),
    "experiments": random_chain(4, stretch=2.2, n_nodes=40, ends=[20, 22]),
    "no parameters": random_chain(5, stretch=2.2, n_parameters=0),
    "more parameters than states": random_chain(6, stretch=2.2, n_nodes=40, n_states=2, n_parameters=9),
    "one node": random_chain(7, n_nodes=1, n_rows=12),
}
IN_OTHER_UNITS = 1e-5  # of the rows


def differences(comm: Any, chain: Chain) -> dict[str, float]:
    """Relative differences of all that an inverse tells; serial dense is the reference."""
    plus, reference = petsc_inverse(comm, chain), generalised_inverse(chain)
    assert isinstance(plus, PetscInverse)
    assert (plus.rank.tolist(), plus.freedoms) == (reference.rank.tolist(), reference.freedoms)
    other = Residuals(chain.residuals.rows[:, ::-1], chain.residuals.links[:, ::-1])
    steps = [inverse.solve(chain.residuals) for inverse in (plus, reference)]
    others = [inverse.take(np.array([0])).solve(other) for inverse in (plus, reference)]
    factors = [
        np.concatenate([nodes[0].reshape(-1, plus.freedoms), parameters[0]])
        for nodes, parameters in (plus.covariance_factor(), reference.covariance_factor())
    ]
    found = {
        "step": relative_error(vector(steps[0]), vector(steps[1])),
        "step of other residuals": relative_error(vector(others[0]), vector(others[1])),
        "covariance": relative_error(factors[0] @ factors[0].T, factors[1] @ factors[1].T),
    }
    if len(chain.linked):
        pulls = [
            inverse.multipliers(other, step) for inverse, step in zip((plus, reference), others, strict=True)
        ]
        found["multipliers"] = relative_error(pulls[0], pulls[1])
    return found


def all_differences(comm: Any) -> dict[str, dict[str, float]]:
    return {name: differences(comm, chain) for name, chain in CHAINS.items()}


def test_the_chains_have_the_windows_that_they_are_named_after() -> None:
    counts = {name: condense(chain).count for name, chain in CHAINS.items()}
    assert counts["one window"] == counts["one node"] == 1
    assert counts["experiments"] > 3
    assert counts["many windows"] > 6
    sizes = np.bincount(condense(CHAINS["windows with fewer rows than unknowns"]).number[0])
    assert sizes.max() < 5


@pytest.mark.parametrize("name", CHAINS)
def test_one_rank_without_mpi_agrees_with_dense(name: str) -> None:
    found = differences(SERIAL, CHAINS[name])
    assert max(found.values()) < 1e-9, found


ON_RANKS = """
from hpcfit.mpi.world import world
from tests.linear.test_petsc import all_differences, blind, petsc_inverse
comm = world()
for name, found in all_differences(comm).items():
    assert max(found.values()) < 1e-9, (name, found)
ranks = comm.allgather(petsc_inverse(comm, blind(1.05)).rank[0])
assert ranks == [4] * comm.size, ranks
print(f"{comm.rank} of {comm.size} agrees\\n", end="")
"""


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_ranks_agree_with_dense(ranks: int, mpirun: Mpirun) -> None:
    done = mpirun(ranks, "-m", "mpi4py", "-c", ON_RANKS)
    assert set(done.stdout.splitlines()) == {f"{r} of {ranks} agrees" for r in range(ranks)}, done.stderr


def test_units_of_the_rows_do_not_matter() -> None:
    chain = CHAINS["experiments"]
    tiny = replace(
        chain,
        rows_by_node=IN_OTHER_UNITS * chain.rows_by_node,
        rows_by_parameters=IN_OTHER_UNITS * chain.rows_by_parameters,
        residuals=Residuals(IN_OTHER_UNITS * chain.residuals.rows, chain.residuals.links),
    )
    assert max(differences(SERIAL, tiny).values()) < 1e-9


def blind(stretch: float, part: float = 0.0) -> Chain:
    """Parameter 1 does what parameter 0 does, and this part of something else."""
    chain = random_chain(8, stretch=stretch, n_nodes=40)
    links, rows = chain.links_by_parameters.copy(), chain.rows_by_parameters.copy()
    links[..., 1] = links[..., 0] + part * links[..., 1]
    rows[..., 1] = rows[..., 0] + part * rows[..., 1]
    return replace(chain, links_by_parameters=links, rows_by_parameters=rows)


@pytest.mark.parametrize("part", [0.0, 1e-12, 1e-9])
@pytest.mark.parametrize("stretch", [1.05, 2.2, 4.0])
def test_a_deficient_rank_is_found_and_relaxed_by_the_dense_solver(stretch: float, part: float) -> None:
    chain = blind(stretch, part)
    plus = petsc_inverse(SERIAL, chain)
    assert isinstance(plus, Decomposed)
    reference = generalised_inverse(chain)
    assert plus.rank.tolist() == reference.rank.tolist()
    np.testing.assert_array_equal(
        vector(plus.solve(chain.residuals)), vector(reference.solve(chain.residuals))
    )


@pytest.mark.parametrize("stretch", [1.05, 2.2, 4.0])
def test_a_nearly_deficient_rank_is_not_deficient(stretch: float) -> None:
    assert isinstance(petsc_inverse(SERIAL, blind(stretch, 1e-2)), PetscInverse)


def test_no_data_at_all_are_a_rank_of_zero() -> None:
    chain = random_chain(9)
    empty = replace(
        chain,
        rows_by_node=np.zeros_like(chain.rows_by_node),
        rows_by_parameters=np.zeros_like(chain.rows_by_parameters),
    )
    assert petsc_inverse(SERIAL, empty).rank.tolist() == [0]


def test_inertia_is_that_of_the_constrained_problem() -> None:
    """One negative pivot for each compressed row and each constraint; another number is refused."""
    chain = CHAINS["experiments"]
    plus = petsc_inverse(SERIAL, chain)
    joined = condense(chain).count - 3
    expected = 3 * condense(chain).count + 2 + 3 * joined
    assert plus.system.has_negative_pivots(expected)
    assert not plus.system.has_negative_pivots(expected + 1)


def test_residuals_that_are_not_finite_have_no_increment() -> None:
    chain = CHAINS["many windows"]
    rows = chain.residuals.rows.copy()
    rows[0, 3, 0] = np.nan
    step = petsc_inverse(SERIAL, chain).solve(replace(chain.residuals, rows=rows))
    assert np.isnan(step.nodes).all()
    assert np.isnan(step.parameters).all()


def test_several_members_are_refused_with_a_remedy() -> None:
    with pytest.raises(InputError, match=r'fit\.solver = "petsc": .* 2; choose "dense"'):
        petsc_inverse(SERIAL, random_chain(1, stretch=[1.0, 1.1]))


def test_a_machine_without_petsc_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "petsc4py", None)
    with pytest.raises(InputError, match=r"PETSc is missing .* python3-petsc4py-real, or choose \"dense\""):
        petsc_inverse(SERIAL, CHAINS["one window"])


def test_a_workspace_that_is_too_small_is_enlarged(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []
    factorised = petsc._factorised

    def counted(library: Any, matrix: Any, workspace: int) -> Any:
        tried.append(workspace)
        return factorised(library, matrix, workspace)

    monkeypatch.setattr(petsc, "_factorised", counted)
    monkeypatch.setattr(petsc, "WORKSPACES", (-60, 400))
    found = differences(SERIAL, random_chain(2, stretch=4.0, n_nodes=900))
    assert tried == [-60, 400]
    assert max(found.values()) < 1e-9
