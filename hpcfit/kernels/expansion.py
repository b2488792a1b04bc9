"""Pass 2c: the series of the state and of f_x as C, and the names under which all others find them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hpcfit.kernels.jacobian import tangent_rows
from hpcfit.kernels.landings import landings_text
from hpcfit.kernels.passing import passing_names, words
from hpcfit.kernels.recurrences import SERIES, Recurrence
from hpcfit.kernels.series import Tape, normalised
from hpcfit.kernels.sliding import coupled, with_sliding
from hpcfit.kernels.text import function, plain_lines
from hpcfit.models.define import Model
from hpcfit.models.derivatives import derivative, jacobians
from hpcfit.models.graph import Symbol

CONVOLUTIONS_PER_LOOP = 12
ARGUMENTS = "v *restrict s, const v *p, const v *u, const v *mode"


class Expansion:
    """The recurrences of one model and its tangents, and the pieces of C that every kernel of flows needs."""

    def __init__(self, model: Model, events: Sequence[Symbol] = (), *, by_parameter: bool = True) -> None:
        assert model.graph is not None, "an opaque model has no expressions to compile"
        equations, self.slides = with_sliding(model)
        self.graph = model.graph
        self.model = model = replace(model, equations=equations)
        self.n, self.n_p = len(model.states), len(model.parameters)
        by_state, slopes = jacobians(model)
        wanted = slopes if by_parameter else tuple(() for _ in slopes)
        entries = [*(e for row in by_state for e in row), *(e for row in wanted for e in row)]
        normal = normalised(self.graph, [*model.equations, *entries])
        width, cut = len(wanted[0]), self.n + self.n * self.n
        self.equations = normal[: self.n]
        self.by_state = tuple(tuple(normal[self.n + i * self.n :][: self.n]) for i in range(self.n))
        self.by_parameter = tuple(tuple(normal[cut + i * width :][:width]) for i in range(self.n))
        self.base = Tape(self.graph)
        states = [self.graph.leaf("state", i) for i in range(self.n)]
        self.base.add([*states, self.graph.leaf("time"), *self.equations])
        self.kinks_of_equations = len(self.base.kinks)
        self.events = normalised(self.graph, events)
        self.drifts = normalised(self.graph, [drift for slide in self.slides for drift in slide.drifts])
        self.roots = dict(zip(*self._roots(), strict=True))
        self.base.add([*self.events, *self.drifts, *self.roots.values()])
        for root in self.roots.values():
            self.base.surface(root)
        self.base.add(self.base.kinks)  # kink arguments are series too
        self.tangent = Tape(self.graph, known=self.base)
        self.tangent.add([entry for row in (*self.by_state, *self.by_parameter) for entry in row])
        self.rows = tangent_rows(self.tangent, self.by_state)
        self.passing: set[str] = set()

    def _roots(self) -> tuple[list[int], list[Symbol]]:
        """The functions at whose roots the state jumps, as they are and in normal form."""
        found = [jump.root[0] for jump in self.model.jumps if not jump.timed]
        return [symbol.index for symbol in found], normalised(self.graph, found)

    def surface(self, root: Symbol) -> tuple[int, bool]:
        """The kink of a jump, and whether it has the other sign."""
        return self.base.surface(self.roots[root.index])

    def _surface_sizes(self) -> dict[str, int]:
        """Sizes that smooth models and plain kinks do without."""
        timed = sum(jump.timed for jump in self.model.jumps)
        sizes = {"SLIDES": len(self.slides), "ROOTS": len(self.model.jumps) - timed, "TIMED": timed}
        return {name: size for name, size in sizes.items() if size}

    def _series_names(self) -> list[str]:
        states = [f"x{i}_" for i in range(self.n)]
        recurrences = (*self.base.recurrences, *self.tangent.recurrences)
        made = [name for r in recurrences for name in (r.name, *r.arrays) if name not in self.passing]
        return [*states, "t_", *made]

    def _passing(self, watching: Sequence[Symbol]) -> set[str]:
        """Series that need no memory: nobody looks back at them."""
        watched = {
            self.tangent.names.get(symbol.index, "")
            for symbol in (*watching, *self.base.kinks, *self.events, *self.drifts)
        }
        watched |= {series for row in self.rows for series, _ in row.convolutions} | set(self._barriers())
        tangent = self.tangent.recurrences
        used = words([*(r.zero for r in tangent), *(r.finish for r in tangent)])
        used |= words(name for r in tangent for pair in r.convolutions for name in pair)
        return passing_names(self.base.recurrences, watched | used) | passing_names(tangent, watched)

    def _names(self) -> str:
        lines = [f"#define {name} (s + {i} * STRIDE)" for i, name in enumerate(self._series_names())]
        uniforms = [*self.base.uniforms, *self.tangent.uniforms]
        lines += [f"#define {name} u[{i}]" for i, (name, _) in enumerate(uniforms)]
        legend = [f"x{i}_ = {name}" for i, name in enumerate(self.model.states)]
        legend += [f"p[{i}] = {name}" for i, name in enumerate(self.model.parameters)]
        return f"/* {', '.join(legend)} */\n" + "\n".join(lines)

    def _uniforms(self) -> str:
        lines = [f"    {name} = {body};" for name, body in (*self.base.uniforms, *self.tangent.uniforms)]
        return function("static void uniforms(const v *p, v *u)", lines)

    def _next_states(self, k: str) -> list[str]:
        """C for the coefficients of the states after order k."""
        return [
            f"x{i}_[{k} + 1] = {self.base.value(equation, k)} * inverse[{k} + 1];"
            for i, equation in enumerate(self.equations)
        ]

    def _kinks(self) -> str:
        """The kink arguments as series, f on either side of a kink, and the gradients of the arguments."""
        if not self.base.kinks and not self.model.jumps:
            return ""
        slopes = [(f"f[{i}]", equation) for i, equation in enumerate(self.equations)]
        arguments = "(const v *x, const v *p, const v *u, const v *mode, v t, "
        parts = [function(f"static void slopes{arguments}v *f)", self._plain(slopes))]
        if self.base.kinks:
            parts = [self._series_table("kink_series[KINKS]", self.base.kinks), *parts]
            values = [(f"g[{j}]", kink) for j, kink in enumerate(self.base.kinks)]
            parts.append(function(f"static void kink_values{arguments}v *g)", self._plain(values)))
            gradients = function(
                f"static void kink_gradients{arguments}v *g)", self._plain(self._gradients())
            )
            parts.append(gradients)
        if self.slides:
            parts.append(self._slides())
            drifts = [(f"d[{i}]", drift) for i, drift in enumerate(self.drifts)]
            parts.append(function(f"static void slide_drifts{arguments}v *d)", self._plain(drifts)))
        if self.model.jumps:
            parts.append(landings_text(self.model, self.surface, self._plain))
        return "\n\n".join(parts)

    def _series_table(self, name: str, symbols: Sequence[Symbol]) -> str:
        """The numbers of some series; -1 of what stays as it is."""
        names = self._series_names()
        varying = [self.base.role[symbol.index] == SERIES for symbol in symbols]
        numbers = [
            names.index(self.base.names[symbol.index]) if varies else -1
            for symbol, varies in zip(symbols, varying, strict=True)
        ]
        table = ", ".join(map(str, numbers))
        return f"static const short {name} = {{{table}}};"

    def _gradients(self) -> list[tuple[str, Symbol]]:
        """The derivatives of the kink arguments by state, parameter and time."""
        leaves = [self.graph.leaf("state", i) for i in range(self.n)]
        leaves += [self.graph.leaf("parameter", i) for i in range(self.n_p)]
        gradients = []
        for j, kink in enumerate(self.base.kinks):
            for i, leaf in enumerate([*leaves, self.graph.leaf("time")]):
                (entry,) = normalised(self.graph, derivative([kink], leaf))
                gradients.append((f"g[{j * (self.n + self.n_p + 1) + i}]", entry))
        return gradients

    def _slides(self) -> str:
        """Which kink a path slides along, what drives it off, and which of them do not go together."""
        kinks = [self.base.surface(slide.kink)[0] for slide in self.slides]
        of_kink = [kinks.index(j) if j in kinks else -1 for j in range(len(self.base.kinks))]
        rows = ", ".join(
            f"{{{', '.join(str(int(e)) for e in row)}}}" for row in coupled(self.graph, self.slides)
        )
        return "\n".join(
            [
                f"static const short slide_kink[SLIDES] = {{{', '.join(map(str, kinks))}}};",
                f"static const short kink_slide[KINKS] = {{{', '.join(map(str, of_kink))}}};",
                self._series_table("drift_series[2 * SLIDES]", self.drifts),
                f"static const char coupled[SLIDES][SLIDES] = {{{rows}}};",
            ]
        )

    def _barriers(self) -> list[str]:
        """Series that must stay positive: square roots themselves, and what is raised to a power."""
        found = []
        for index in self.graph.reachable(self.equations):
            node = self.graph.nodes[index]
            inside = {"sqrt": index, "power": node.arguments[0] if node.arguments else index}.get(
                node.operation
            )
            if inside is not None and self.base.role[inside] == SERIES:
                found.append(self.base.names[inside])
        return found

    def _barrier_table(self) -> str:
        names = self._series_names()
        table = ", ".join(str(names.index(name)) for name in self._barriers())
        return f"static const short barrier_series[BARRIERS] = {{{table}}};" if table else ""

    def _plain(self, outputs: Sequence[tuple[str, Symbol]]) -> list[str]:
        return plain_lines(self.graph, outputs, self.tangent.known_mode)


def start_lines(recurrences: Sequence[Recurrence], after: Sequence[str] = ()) -> list[str]:
    """C for the coefficients 0 of all series; `after` closes the stage."""
    return [f"    {line}" for line in (*(f"{r.name}[0] = {r.zero};" for r in recurrences), *after)]


def stage_lines(recurrences: Sequence[Recurrence], after: Sequence[str] = ()) -> list[str]:
    """C for the coefficients k of all series: the convolutions in a few loops, then the rest in order."""
    lines: list[str] = []
    convolutions: list[tuple[str, str]] = []
    finishing = []
    for r in recurrences:
        numbers = [_number_of(pair, convolutions) for pair in r.convolutions]
        finishing.append(r.finish.format(c=[f"c{i}" for i in numbers]))
    for begin in range(0, len(convolutions), CONVOLUTIONS_PER_LOOP):
        part = list(enumerate(convolutions))[begin : begin + CONVOLUTIONS_PER_LOOP]
        lines += [f"v c{i} = all(0);" for i, _ in part]
        lines.append("for (int i = 1; i < k; i++) {")
        lines += [f"    c{i} = FMA({left}[i], {right}[k - i], c{i});" for i, (left, right) in part]
        lines.append("}")
    return [f"        {line}" for line in (*lines, *finishing, *after)]


def _number_of(pair: tuple[str, str], known: list[tuple[str, str]]) -> int:
    """The number of a convolution, shared with an equal one; factors commute."""
    for candidate in (pair, pair[::-1]):
        if candidate in known:
            return known.index(candidate)
    known.append(pair)
    return len(known) - 1
