"""Long problems, whose nodes are spread over ranks: which they are, and what solves them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hpcfit.flow.shots import can_shoot
from hpcfit.leastsq.strategy import Options
from hpcfit.linear.compiled import has_compiler
from hpcfit.linear.segments import LENGTH, Numbers, Segments
from hpcfit.linear.solvers import SOLVERS
from hpcfit.models.define import Model
from hpcfit.records import Array, Heading, InputError, Mistake, Series, Source
from hpcfit.shooting.experiments import check_rows, of_experiment
from hpcfit.shooting.grid import Cut, NodeChoice
from hpcfit.shooting.sources import Wanted, taken

LONG = 512  # nodes from which a problem is cut into segments
MANY = 16  # experiments
WIDE = 16  # states; there a node is so much work that segments pay at once
SHORT = 16  # nodes of a segment of a problem that is not long
PETSC = 50_000  # nodes from which PETSc, where it is there, solves the condensed problem


def cuts_of(sources: Sequence[Source], choices: Sequence[NodeChoice]) -> list[Cut]:
    """Where the experiments are cut at their nodes."""
    cuts = []
    for e, (source, choice) in enumerate(zip(sources, choices, strict=True)):

        def times(source: Source = source) -> Array:
            series = source.rows(0, source.count)
            check_rows(series)
            return series.times

        with of_experiment(e, len(sources)):
            cuts.append(Cut.of(source.count, choice, times))
    return cuts


def headings(comm: Any, series: Sequence[Series]) -> Sequence[Source]:
    """Series that rank 0 has, and others have not: what each rank is to know of them."""
    told = comm.bcast([Heading(each.names, each.count, each.has_sigma, each.has_sigma_t) for each in series])
    return series or told


def all_rows(comm: Any, sources: Sequence[Source]) -> list[Series]:
    """All data, on all ranks."""
    if all(isinstance(source, Series) for source in sources) and comm.size == 1:
        return [source for source in sources if isinstance(source, Series)]
    return taken(comm, sources, [Wanted(e, 0, source.count) for e, source in enumerate(sources)])


def segments_of(
    model: Model,
    lengths: Numbers,
    *,
    method: str | None,
    level: str,
    solver: str | None,
    constrained: bool = False,
    levels: bool = False,
) -> Segments | None:
    """The segments of a problem that is long, wide, or has many experiments; None: ranks have it as a whole.

    That depends on the problem alone, not on the ranks. lengths (E,): nodes of every experiment.
    """
    why = "fit.unknown_sigma" if levels else _why_whole(model, method, level, constrained)
    if solver == "petsc" and why:
        raise InputError(Mistake("", f"not with {why}", 'choose "dense"', "fit.solver", solver))
    if why or solver == "reference":
        return None
    wide = len(model.states) >= WIDE
    if lengths.sum() >= LONG or len(lengths) >= MANY:
        return Segments.cut(lengths, SHORT if wide else LENGTH)
    return Segments.cut(lengths, SHORT) if wide or solver == "petsc" else None


def _why_whole(model: Model, method: str | None, level: str, constrained: bool) -> str:
    """Why every rank must have the whole problem; '' if it need not."""
    if constrained:
        return "fit.constraints"
    if level != "natural":
        return f'fit.level = "{level}"'
    if not can_shoot(model, method):
        return "an integrator that is not compiled"
    return "" if has_compiler() else "no C compiler"


def chosen_solver(solver: str | None, segments: Segments | None) -> str:
    """The one that was asked for; else by size, and by what is there."""
    if solver is not None or segments is None or segments.nodes.sum() < PETSC:
        return solver or "dense"
    return "petsc" if has_petsc() else "dense"


def has_petsc() -> bool:
    from importlib.util import find_spec

    return find_spec("petsc4py") is not None


def solver_log(comm: Any, options: Options) -> str:
    """What PETSc says of its work, where it was asked."""
    if options.solver is not SOLVERS["petsc"]:
        return ""
    from hpcfit.linear.petsc import log_view

    return log_view(comm)
