"""Pass 3b: tangents by parameters as quadrature, where there are many more parameters than states.

V_p = Phi (V_p + integral of Phi^-1 f_p) over each step (7 of Baake et al. 1992), by Gauss–Legendre nodes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hpcfit.kernels.jacobian import TangentRow
from hpcfit.kernels.text import function, minor, plain_lines
from hpcfit.models.derivatives import Matrix
from hpcfit.models.graph import Graph, Node

QUADRATURE_NODES = 8
LARGEST_INVERSE = 4  # states: the inverse of Phi is written out
FUNCTION_WORK = {"sin": 40, "cos": 40, "sqrt": 10, "divide": 5} | dict.fromkeys(
    ("exp", "log", "power", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh"), 600
)  # of a function of all lanes, in multiply-adds; those of the library go lane by lane


def prefers_quadrature(graph: Graph, rows: list[TangentRow], by_parameter: Matrix) -> bool:
    """Whether n_p columns by convolution cost more than quadrature of Phi^-1 f_p."""
    k, n, n_p = 18, len(rows), len(by_parameter[0])
    entries = [entry for row in by_parameter for entry in row]
    direct = n_p * sum(len(row.convolutions) for row in rows) * k * k / 2
    sources = sum(entry.constant != 0.0 for entry in entries)
    plain_work = sum(FUNCTION_WORK.get(graph.nodes[i].operation, 1) for i in graph.reachable(entries))
    by_nodes = QUADRATURE_NODES * ((n * n + n) * k + n**3 + n * sources + plain_work)
    return n <= LARGEST_INVERSE and by_nodes * 1.5 < direct


def quadrature_text(graph: Graph, by_parameter: Matrix, known_mode: Callable[[Node], str | None]) -> str:
    """C for f_p as numbers, for the nodes and for the inverse of Phi."""
    n, n_p = len(by_parameter), len(by_parameter[0])
    outputs = [
        (f"g[{i * n_p + j}]", entry)
        for i, row in enumerate(by_parameter)
        for j, entry in enumerate(row)
        if entry.constant != 0.0
    ]
    signature = "static void parameter_slopes(const v *x, const v *p, const v *u, const v *mode, v t, v *g)"
    columns = [name[2:-1] for name, _ in outputs]
    added = [
        f"    sum[{i * n_p + int(c) % n_p}] = FMA(inverted[{i * n + int(c) // n_p}], "
        f"g[{c}], sum[{i * n_p + int(c) % n_p}]);"
        for c in columns
        for i in range(n)
    ]
    nodes, weights = np.polynomial.legendre.leggauss(QUADRATURE_NODES)
    return "\n\n".join(
        [
            f"#define QUADRATURE_NODES {QUADRATURE_NODES}\n"
            f"#define NODES {{{', '.join(_long(0.5 + x / 2) for x in nodes)}}}\n"
            f"#define WEIGHTS {{{', '.join(_long(w / 2) for w in weights)}}}",
            function(signature, plain_lines(graph, outputs, known_mode)),
            function("static void accumulate(const v *inverted, const v *g, v *sum)", added),
            _inverse(n),
        ]
    )


def _inverse(n: int) -> str:
    """C for the inverse of an n x n matrix by cofactors: exact in form, no pivot to choose per lane."""

    every = tuple(range(n))
    lines = []
    for i in range(n):
        for j in range(n):
            sign = "-" if (i + j) % 2 else ""
            rest = minor("F", n, tuple(r for r in every if r != j), tuple(c for c in every if c != i))
            lines.append(f"    const v a{i}_{j} = {sign}({rest});")
    determinant = " + ".join(f"F[{j}] * a{j}_0" for j in range(n))
    lines.append(f"    const v scale = 1 / ({determinant});")
    lines += [f"    inverted[{i * n + j}] = a{i}_{j} * scale;" for i in range(n) for j in range(n)]
    return function("static void invert(const v *F, v *inverted)", lines)


def _long(value: float) -> str:
    return f"(real){value!r}"
