"""C for jumps of the state: where they happen, where the state lands, and the derivatives of both."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hpcfit.kernels.text import function
from hpcfit.models.define import Model
from hpcfit.models.derivatives import derivative
from hpcfit.models.graph import Symbol

ARGUMENTS = "const v *x, const v *p, const v *u, const v *mode, v t"
Plain = Callable[[Sequence[tuple[str, Symbol]]], list[str]]
Surface = Callable[[Symbol], tuple[int, bool]]


def landings_text(model: Model, surface: Surface, plain: Plain) -> str:
    """Tables and functions of all jumps; `surface` gives the kink at which a function has its root."""
    assert model.graph is not None
    n, n_p = len(model.states), len(model.parameters)
    states = [model.graph.leaf("state", i) for i in range(n)]
    leaves = [*states, *(model.graph.leaf("parameter", i) for i in range(n_p))]
    maps, slopes = [], []
    for number, jump in enumerate(model.jumps):
        after = [jump.to.get(name, state) for name, state in zip(model.states, states, strict=True)]
        maps += [
            f"    if (jump == {number}) {{",
            *plain([(f"y[{i}]", each) for i, each in enumerate(after)]),
            "    }",
        ]
        outputs = []
        for k, leaf in enumerate([*leaves, model.graph.leaf("time")]):
            for i, entry in enumerate(derivative(after, leaf)):
                target = f"by_state[{i * n + k}]" if k < n else f"by_parameter[{i * n_p + k - n}]"
                outputs.append((target if k < n + n_p else f"by_time[{i}]", entry))
        slopes += [f"    if (jump == {number}) {{", *plain(outputs), "    }"]
    parts = [
        _root_table(model, surface),
        function(f"static void landing(int jump, {ARGUMENTS}, v *y)", maps),
        function(
            f"static void landing_slopes(int jump, {ARGUMENTS}, v *by_state, v *by_parameter, v *by_time)",
            slopes,
        ),
        _rhythms(model, leaves, plain),
    ]
    return "\n\n".join(part for part in parts if part)


def _root_table(model: Model, surface: Surface) -> str:
    """Which jump belongs to which kink and direction."""
    rows = []
    for number, jump in enumerate(model.jumps):
        if not jump.timed:
            symbol, direction = jump.root
            kink, negated = surface(symbol)
            rows.append(f"{{{kink}, {-direction if negated else direction}, {number}}}")
    table = "static const struct {{ short kink, direction, jump; }} root_jumps[ROOTS] = {{{}}};"
    return table.format(", ".join(rows)) if rows else ""


def _rhythms(model: Model, leaves: Sequence[Symbol], plain: Plain) -> str:
    """The first time and the distance of jumps at given times, and their derivatives."""
    assert model.graph is not None
    timed = [(number, jump) for number, jump in enumerate(model.jumps) if jump.timed]
    if not timed:
        return ""
    table = ", ".join(
        f"{{{number}, {1 if jump.every is None else jump.count or -1}, {int(jump.every is not None)}}}"
        for number, jump in timed
    )
    zero, values, slopes = model.graph.symbol(0.0), [], []
    for q, (_, jump) in enumerate(timed):
        for which, symbol in (("first", jump.at), ("every", zero if jump.every is None else jump.every)):
            values.append((f"{which}[{q}]", symbol))
            for k, leaf in enumerate(leaves):
                slopes.append((f"{which}[{q * len(leaves) + k}]", derivative([symbol], leaf)[0]))
    return "\n\n".join(
        [
            "static const struct { short jump; long count; int repeated; } "
            f"timed_jumps[TIMED] = {{{table}}};",
            function(f"static void rhythms({ARGUMENTS}, v *first, v *every)", plain(values)),
            function(f"static void rhythm_slopes({ARGUMENTS}, v *first, v *every)", plain(slopes)),
        ]
    )
