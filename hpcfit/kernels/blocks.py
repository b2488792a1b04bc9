"""Pass 3a: C for the tangents, a block of columns at a time, with its sums in registers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hpcfit.kernels.jacobian import Combination, TangentRow
from hpcfit.kernels.text import function, literal

LARGEST_IN_NEAREST_CACHE = 12  # states; larger systems read their coefficients once for two orders


@dataclass(frozen=True)
class Blocking:
    """How many sums a loop keeps in registers, and so how tangents are cut into blocks."""

    registers: int  # 24 of 32, or 10 of 16


class TangentBlocks:
    """The functions that compute d[k][row][column] for blocks of columns of V' = f_x V + f_p."""

    def __init__(self, rows: Sequence[TangentRow], blocking: Blocking) -> None:
        self.rows = rows
        self.n = len(rows)
        self.blocking = blocking
        self.paired = self.n > LARGEST_IN_NEAREST_CACHE
        self.combinations: list[Combination] = []
        for row in rows:
            new = (part for _, part in row.convolutions if part.row is None)
            self.combinations += [part for part in new if part not in self.combinations]

    def text(self, widths: Sequence[int]) -> str:
        """C for all blocks, and the table that says which columns they hold."""
        firsts = [sum(widths[:i]) for i in range(len(widths))]
        table = ", ".join(f"{{{first}, {width}}}" for first, width in zip(firsts, widths, strict=True))
        kinds = sorted(set(widths))
        cases = [f"    if (width == {width}) tangents_{width}(s, p, u, order, d, source);" for width in kinds]
        signature = (
            "static void tangent_block(const v *restrict s, const v *p, const v *u, int order, int width, "
            "v *restrict d, const v *const *source)"
        )
        return "\n\n".join(
            [
                *(self._block(width) for width in kinds),
                f"#define COLUMNS {sum(widths)}\n#define BLOCKS {len(widths)}\n#define WIDEST {max(widths)}\n"
                f"static const struct {{ int first, width; }} blocks[BLOCKS] = {{{table}}};",
                function(signature, cases),
            ]
        )

    def widths(self, columns: int) -> list[int]:
        """Columns cut into blocks of nearly equal width."""
        convolving = max(1, min(4, sum(bool(row.convolutions) for row in self.rows)))
        sums = convolving * (2 if self.paired else 1)
        widest = max(1, min(8, self.blocking.registers // sums))
        count = -(-columns // widest)
        each, extra = divmod(columns, count)
        return [each + (i < extra) for i in range(count)]

    def _block(self, width: int) -> str:
        """Coefficients of `width` columns of the tangents: d[k][row][column]."""
        sums = width * (2 if self.paired else 1)
        first = self._combine("k", width)
        for group in _groups(self.rows, max(1, self.blocking.registers // sums)):
            first += self._first_order(group, width)
        second: list[str] = []
        if self.paired:
            second = ["if (k + 1 == order) break;", *self._combine("(k + 1)", width)]
            second += [line for r in range(self.n) for line in self._second_order(r, width)]
        body = [
            f"    enum {{ BLOCK = {self.n + len(self.combinations)} * {width} }};",
            *([f"    v later[{self.n * width}];"] if self.paired else []),
            f"    for (int k = 0; k < order; k += {2 if self.paired else 1}) {{",
            *(f"        {line}" for line in (*first, *second)),
            "    }",
        ]
        signature = (
            f"static void tangents_{width}(const v *restrict s, const v *p, const v *u, int order, "
            "v *restrict d, const v *const *source)"
        )
        return function(signature, body)

    def _place(self, combination: Combination) -> int:
        row = combination.row
        return row if row is not None else self.n + self.combinations.index(combination)

    def _combine(self, k: str, width: int) -> list[str]:
        """C for the self.combinations of rows at order k."""
        lines = []
        for j, combination in enumerate(self.combinations):
            for c in range(width):
                terms = " + ".join(
                    f"{literal(factor)} * d[{k} * BLOCK + {row * width + c}]"
                    for row, factor in combination.terms
                )
                lines.append(f"d[{k} * BLOCK + {(self.n + j) * width + c}] = {terms};")
        return lines

    def _products(self, r: int, c: int, width: int, k: str) -> str:
        """C for the products of one entry at order k; empty where there are none."""
        return " + ".join(
            f"{value} * d[{k} * BLOCK + {row * width + c}]" for value, row in self.rows[r].products
        )

    def _sums(self, r: int, width: int, into: str, k: str) -> list[str]:
        """C that adds series[k] times the coefficients at e to the sums of a row."""
        return [
            f"{into}{r}_{c} = FMA({series}[{k}], e[{place * width + c}], {into}{r}_{c});"
            for series, part in self.rows[r].convolutions
            for place in [self._place(part)]
            for c in range(width)
        ]

    def _first_order(self, group: list[int], width: int) -> list[str]:
        """C for order k + 1 of some rows: one loop over all older coefficients with all sums in registers.

        In pairs, the sums b of order k + 2 are taken in the same pass, as far as they are known by then.
        """
        cells = [(r, c) for r in group for c in range(width)]
        lines = [f"v a{r}_{c} = {self._products(r, c, width, 'k') or 'all(0)'};" for r, c in cells]
        passing = [line for r in group for line in self._sums(r, width, "a", "k - j")]
        if self.paired:
            lines += [f"v b{r}_{c} = all(0);" for r, c in cells]
            passing += [line for r in group for line in self._sums(r, width, "b", "k + 1 - j")]
        if passing:
            lines += ["for (int j = 0; j <= k; j++) {", "    const v *e = d + j * BLOCK;"]
            lines += [*(f"    {line}" for line in passing), "}"]
        for r, c in cells:
            lines += self._finish(r, c, width, f"a{r}_{c}", "k")
        return lines + [f"later[{r * width + c}] = b{r}_{c};" for r, c in cells if self.paired]

    def _second_order(self, r: int, width: int) -> list[str]:
        """C for order k + 2 of one row: what order k + 1 adds to its sums."""
        lines = ["{", "    const v *e = d + (k + 1) * BLOCK;"]
        for c in range(width):
            products = self._products(r, c, width, "(k + 1)")
            lines.append(f"    v a{r}_{c} = later[{r * width + c}]{f' + {products}' if products else ''};")
        lines += [f"    {line}" for line in self._sums(r, width, "a", "0")]
        for c in range(width):
            lines += [f"    {line}" for line in self._finish(r, c, width, f"a{r}_{c}", "(k + 1)")]
        lines[1] += " (void)e;"
        return [*lines, "}"]

    def _finish(self, r: int, c: int, width: int, name: str, k: str) -> list[str]:
        """C that completes the coefficient after k of one entry."""
        source = f"source[{r * width + c}]"
        return [
            f"if ({source}) {name} += {source}[{k}];",
            f"d[({k} + 1) * BLOCK + {r * width + c}] = {name} * inverse[{k} + 1];",
        ]


def _groups(rows: Sequence[TangentRow], largest: int) -> list[list[int]]:
    """Rows that share a loop: at most `largest` of those with convolutions together."""
    convolving = [r for r, row in enumerate(rows) if row.convolutions]
    plain_rows = [r for r, row in enumerate(rows) if not row.convolutions]
    groups = [convolving[i : i + largest] for i in range(0, len(convolving), largest)]
    return groups + [[r] for r in plain_rows]
