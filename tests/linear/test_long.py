"""Long chains, by a tree and by PETSc, on one rank and on several, against the reference."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hpcfit.linear import petsc
from hpcfit.linear.chain import Chain, Residuals, Unknowns
from hpcfit.linear.dense import generalised_inverse
from hpcfit.linear.held import held_step, held_step_reference
from hpcfit.linear.inverse import AnyInverse, first_nodes
from hpcfit.linear.long import LongInverse, TreeSolver, long_weak_step
from hpcfit.linear.petsc import PetscSolver
from hpcfit.linear.segments import Segments
from hpcfit.linear.weak import weak_step
from hpcfit.mpi.serial import SERIAL
from hpcfit.mpi.together import gathered
from hpcfit.records import InputError
from tests.conftest import Mpirun
from tests.linear.chains import random_chain, relative_error, vector

ME = np.array([0])
SEVEN = 7  # nodes of a segment, at most
SOLVERS: dict[str, Callable[[Any, Any], Any]] = {"tree": TreeSolver, "petsc": PetscSolver}


def clean(chain: Chain) -> Chain:
    """Nothing is said of links that do not exist."""
    ends = ~chain.linked
    chain.residuals.links[:, ends], chain.links_by_parameters[:, ends] = 0.0, 0.0
    return chain


CHAINS = {
    "one window": clean(random_chain(1, stretch=1.05)),
    "many windows": clean(random_chain(2, stretch=3.0, n_nodes=60)),
    "windows with fewer rows than unknowns": clean(random_chain(3, stretch=40.0, n_nodes=40, n_rows=1)),
    "experiments": clean(random_chain(4, stretch=2.2, n_nodes=40, ends=[12, 20, 29], n_rows=3)),
    "no parameters": clean(random_chain(5, stretch=2.2, n_nodes=30, n_parameters=0)),
    "more parameters than states": clean(
        random_chain(6, stretch=2.2, n_nodes=40, n_states=2, n_parameters=9)
    ),
}


def point(chain: Chain) -> Unknowns:
    """Where a chain may have been linearised; no scale of it is 1."""
    members, nodes, _, n, q = chain.shape
    rng = np.random.default_rng(7)
    sizes = 10.0 ** rng.uniform(-2.0, 2.0, size=n)
    return Unknowns(sizes * rng.normal(size=(members, nodes, n)), rng.normal(size=(members, q)))


def cut(chain: Chain, longest: int = SEVEN) -> Segments:
    begins = [*first_nodes(chain.linked), chain.shape[1]]
    return Segments.cut(np.diff(begins).tolist(), longest)


def part(comm: Any, chain: Chain, z: Unknowns, longest: int = SEVEN) -> tuple[Chain, Unknowns]:
    """What a rank has of a chain: its nodes, and the link that leads on from the last."""
    segments = cut(chain, longest)
    mine = segments.shares(comm.size)[comm.rank]
    own = segments[mine]
    first = int(segments.nodes[: mine.start].sum())
    last = first + int(own.nodes.sum())
    end = last - 1 + int(own.joined[-1])
    here, links = slice(first, last), slice(first, end)
    arrivals = chain.residuals.links + z.nodes[:, 1:]
    piece = Chain(
        chain.rows_by_node[:, here],
        chain.rows_by_parameters[:, here],
        chain.links_by_node[:, links],
        chain.links_by_parameters[:, links],
        Residuals(chain.residuals.rows[:, here], chain.residuals.links[:, links]),
        chain.linked[links],
        arrivals=arrivals[:, links],
        segments=own,
    )
    return piece, Unknowns(z.nodes[:, here], z.parameters)


def other_residuals(comm: Any, chain: Chain) -> tuple[Residuals, Residuals]:
    """Of the whole, and of this rank."""
    turned = replace(chain, residuals=Residuals(chain.residuals.rows[:, ::-1], chain.residuals.links * 0.3))
    return turned.residuals, part(comm, turned, point(turned))[0].residuals


def differences(comm: Any, chain: Chain, solver: str) -> dict[str, float]:
    """Relative differences of all that an inverse tells from what the reference tells of the whole chain."""
    z = point(chain)
    ours = LongInverse(comm, *part(comm, chain, z), SOLVERS[solver])
    reference = AnyInverse(chain, z, generalised_inverse)
    scales = reference.scales
    assert (ours.rank.tolist(), ours.freedoms) == (reference.rank.tolist(), reference.freedoms)
    whole, own = other_residuals(comm, chain)
    alpha = np.array([0.3])
    first, border = ours.covariance_factor(ME, all_nodes=False)
    factors = [
        np.concatenate([nodes[0].reshape(-1, ours.freedoms), parameters[0]])
        for nodes, parameters in ((first, border), reference.covariance_factor(ME, all_nodes=False))
    ]
    step = Unknowns(gathered(comm, ours.step.nodes, axis=1), ours.step.parameters)
    found = {
        "step": relative_error(vector(step), vector(reference.step)),
        "covariance": relative_error(factors[0] @ factors[0].T, factors[1] @ factors[1].T),
        "errors of nodes": relative_error(
            gathered(comm, ours.node_errors(ME), axis=1), reference.node_errors(ME)
        ),
        "objective": relative_error(ours.objective, reference.objective),
    }
    if chain.linked.all():  # else what counts as a link differs a little, and with it the units
        found |= {
            "scales": relative_error(ours.scales.states, scales.states),
            "increment": relative_error(ours.increment, reference.increment),
            "away": relative_error(ours.away(alpha, ME, own), reference.away(alpha, ME, whole)),
        }
    return found


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", CHAINS)
def test_one_rank_agrees_with_the_reference(name: str, solver: str) -> None:
    found = differences(SERIAL, CHAINS[name], solver)
    assert max(found.values()) < 1e-9, found


def weak_differences(comm: Any, chain: Chain) -> float:
    z, rng = point(chain), np.random.default_rng(3)
    holds = np.abs(rng.normal(size=z.nodes.shape[:2])) * (rng.random(z.nodes.shape[:2]) < 0.3)
    looseness = np.array([0.1])
    own, own_z = part(comm, chain, z)
    assert own.segments is not None
    first = sum(comm.allgather(own.shape[1])[: comm.rank])
    scales, step = long_weak_step(comm, own, own_z, looseness, holds[:, first : first + own_z.nodes.shape[1]])
    whole = Unknowns(gathered(comm, step.nodes, axis=1), step.parameters)
    expected = scales.unscaled(weak_step(chain.scaled(scales), looseness, holds))
    return relative_error(vector(whole), vector(expected))


def held_differences(comm: Any, chain: Chain) -> float:
    if not chain.shape[-1]:
        return 0.0  # nothing is asked without parameters
    z, precision = point(chain), 1.0 + np.arange(chain.shape[3])
    found = held_step(comm, *part(comm, chain, z), precision)
    expected = held_step_reference(chain, precision)
    return max(
        relative_error(mine, theirs) for mine, theirs in zip(found, expected, strict=True) if theirs.size
    )


@pytest.mark.parametrize("name", CHAINS)
def test_weak_continuity_and_held_nodes_agree_with_the_reference(name: str) -> None:
    assert weak_differences(SERIAL, CHAINS[name]) < 1e-11
    assert held_differences(SERIAL, CHAINS[name]) < 1e-10


def bits(comm: Any, chain: Chain) -> bytes:
    """All numbers that a tree gives, of all ranks together."""
    z = point(chain)
    own, own_z = part(comm, chain, z)
    ours = LongInverse(comm, own, own_z)
    _, weak = long_weak_step(comm, own, own_z, np.array([0.1]), np.zeros(own_z.nodes.shape[:2]))
    by_node = (ours.step.nodes, ours.node_errors(ME), weak.nodes)
    common = (ours.step.parameters, ours.increment, ours.objective, weak.parameters)
    return b"".join(
        [*(gathered(comm, each, axis=1).tobytes() for each in by_node), *(each.tobytes() for each in common)]
    )


ON_RANKS = """
from hpcfit.mpi.serial import SERIAL
from hpcfit.mpi.world import world
from tests.linear.test_long import *
comm = world()
for name, chain in CHAINS.items():
    for solver in SOLVERS:
        found = differences(comm, chain, solver)
        assert max(found.values()) < 1e-9, (name, solver, found)
    assert weak_differences(comm, chain) < 1e-11, name
    assert held_differences(comm, chain) < 1e-10, name
    assert bits(comm, chain) == bits(SERIAL, chain), name
assert LongInverse(comm, *part(comm, blind(0.0), point(blind(0.0))), PetscSolver).rank[0] == 4
print(f"{comm.rank} of {comm.size} agrees\\n", end="")
"""


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_ranks_agree_with_the_reference_and_the_tree_to_the_last_bit(ranks: int, mpirun: Mpirun) -> None:
    done = mpirun(ranks, "-m", "mpi4py", "-c", ON_RANKS)
    assert set(done.stdout.splitlines()) == {f"{r} of {ranks} agrees" for r in range(ranks)}, done.stderr


def test_a_thousand_windows_are_as_accurate_as_sparse_elimination() -> None:
    """The whole system (4.10) by scipy's sparse LU: nothing condensed, nothing joined."""
    from scipy.sparse import bmat, csc_matrix, identity
    from scipy.sparse.linalg import splu

    from tests.linear.chains import functions, jacobians

    chain = random_chain(11, stretch=1.6, n_nodes=700, n_rows=3)
    z = point(chain)
    ours = LongInverse(SERIAL, *part(SERIAL, chain, z, 50))
    j1, j2 = (csc_matrix(each) for each in jacobians(chain))
    f1, f2 = functions(chain)
    system = bmat([[-identity(j1.shape[0]), j1, None], [j1.T, None, j2.T], [None, j2, None]], format="csc")
    right = -np.concatenate([f1, np.zeros(j1.shape[1]), f2])
    lu = splu(system)
    solution = lu.solve(right)
    solution += lu.solve(right - system @ solution)
    expected = solution[len(f1) : len(f1) + j1.shape[1]]
    assert relative_error(vector(ours.step), expected) < 1e-9


def blind(share: float) -> Chain:
    """Parameter 1 does what parameter 0 does, and this share of something else."""
    chain = random_chain(8, stretch=1.5, n_nodes=40)
    links, rows = chain.links_by_parameters.copy(), chain.rows_by_parameters.copy()
    links[..., 1] = links[..., 0] + share * links[..., 1]
    rows[..., 1] = rows[..., 0] + share * rows[..., 1]
    return replace(chain, links_by_parameters=links, rows_by_parameters=rows)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("share", [0.0, 1e-12])
def test_a_deficient_rank_is_found_and_named(solver: str, share: float) -> None:
    chain = blind(share)
    ours = LongInverse(SERIAL, *part(SERIAL, chain, point(chain)), SOLVERS[solver])
    assert (ours.rank[0], ours.freedoms) == (4, 5)
    _states, parameters = ours.blind(ME)
    assert (parameters > 0.1).all()
    residuals = chain.residuals.rows + (chain.rows_by_node @ ours.step.nodes[..., None])[..., 0]
    residuals += (chain.rows_by_parameters @ ours.step.parameters[:, None, :, None])[..., 0]
    reference = AnyInverse(chain, point(chain), generalised_inverse)
    best = chain.predicted_squares(ME, reference.step).sum()
    assert (residuals**2).sum() == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_nearly_deficient_rank_is_not_deficient(solver: str) -> None:
    chain = blind(1e-2)
    ours = LongInverse(SERIAL, *part(SERIAL, chain, point(chain)), SOLVERS[solver])
    assert ours.rank[0] == ours.freedoms
    assert not ours.blind(ME)[1].any()
    if isinstance(ours.solver, PetscSolver):
        assert ours.solver.usable


def test_inertia_is_that_of_the_constrained_problem() -> None:
    """One negative pivot for each row on a window or the border, and for each link; others are refused."""
    chain = CHAINS["experiments"]
    ours = LongInverse(SERIAL, *part(SERIAL, chain, point(chain)), PetscSolver)
    windows, experiments = len(ours._windows.begins), 4
    expected = 3 * windows + 2 + 3 * (windows - experiments)
    assert ours.solver.system.has_negative_pivots(expected)
    assert not ours.solver.system.has_negative_pivots(expected + 1)


def test_residuals_that_are_not_finite_are_infinitely_far_away() -> None:
    chain = CHAINS["many windows"]
    own, z = part(SERIAL, chain, point(chain))
    rows = own.residuals.rows.copy()
    rows[0, 3, 0] = np.nan
    broken = replace(own.residuals, rows=rows)
    assert np.isnan(LongInverse(SERIAL, own, z).away(np.ones(1), ME, broken)).all()


def test_mumps_has_a_stack_for_long_systems() -> None:
    """With the usual 8 MB a million points on two ranks end in a segmentation fault."""
    chain = CHAINS["one window"]
    LongInverse(SERIAL, *part(SERIAL, chain, point(chain)), PetscSolver)
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    assert soft in (resource.RLIM_INFINITY, hard) or soft >= petsc.STACK


def test_a_machine_without_petsc_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "petsc4py", None)
    chain = CHAINS["one window"]
    with pytest.raises(InputError, match=r"PETSc is missing .* python3-petsc4py-real, or choose \"dense\""):
        LongInverse(SERIAL, *part(SERIAL, chain, point(chain)), PetscSolver)


def test_a_workspace_that_is_too_small_is_enlarged(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []
    factorised = petsc._factorised

    def counted(library: Any, matrix: Any, workspace: int) -> Any:
        tried.append(workspace)
        return factorised(library, matrix, workspace)

    monkeypatch.setattr(petsc, "_factorised", counted)
    monkeypatch.setattr(petsc, "WORKSPACES", (-60, 400))
    found = differences(SERIAL, random_chain(2, stretch=4.0, n_nodes=900), "petsc")
    assert tried == [-60, 400]
    assert max(found.values()) < 1e-9
