"""Text in columns."""

from __future__ import annotations

import math
from collections.abc import Sequence

_PLAIN = str.maketrans({"─": "-", "═": "=", "…": "~", "–": "-", "·": "-", "∂": "d", "•": "*", "é": "e"})


def number(value: float, digits: int = 8) -> str:
    """A number for people; what is not finite is a dash or an infinity."""
    if math.isnan(value):
        return "–"
    return f"{value:.{digits}g}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, left: Sequence[int] = (0,)) -> list[str]:
    """Lines of columns under a rule; the columns in `left` are flush left, the others right."""
    cells = [list(map(visible, row)) for row in (header, *rows)]
    used = [k for k in range(len(header)) if any(row[k] for row in cells[1:]) or k == 0]
    widths = {k: max(len(row[k]) for row in cells) for k in used}
    lines = [
        "  ".join(row[k].ljust(widths[k]) if k in left else row[k].rjust(widths[k]) for k in used).rstrip()
        for row in cells
    ]
    return [lines[0], "  ".join("─" * widths[k] for k in used), *lines[1:]]


def beside(blocks: Sequence[list[str]], width: int, gap: int = 4) -> list[str]:
    """Blocks of lines side by side as far as the width allows, the rest below."""
    lines: list[str] = []
    row: list[list[str]] = []
    for block in blocks:
        if row and sum(_breadth(b) + gap for b in row) + _breadth(block) > width:
            lines += [*_joined(row, gap), ""]
            row = []
        row.append(block)
    return lines + (_joined(row, gap) if row else [])


def _breadth(block: list[str]) -> int:
    return max(map(len, block), default=0)


def _joined(row: list[list[str]], gap: int) -> list[str]:
    joined = []
    for k in range(max(map(len, row))):
        parts = [(block[k] if k < len(block) else "").ljust(_breadth(block) + gap) for block in row]
        joined.append("".join(parts).rstrip())
    return joined


def visible(text: str) -> str:
    """One line without control characters: a file's text must not steer the terminal."""
    return "".join(c if c.isprintable() else " " for c in text)


def plain(text: str) -> str:
    """The same in ASCII."""
    return text.translate(_PLAIN).encode("ascii", "replace").decode("ascii")


def shortened(text: str, width: int) -> str:
    """At most `width` characters."""
    return text if len(text) <= width else text[: max(width - 1, 0)] + "…"
