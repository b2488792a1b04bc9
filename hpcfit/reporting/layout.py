"""Text in columns."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence

_PLAIN = str.maketrans(
    {"─": "-", "═": "=", "…": "~", "–": "-", "·": "-", "∂": "d", "•": "*", "é": "e", "λ": "L"}
)


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
    """The same in ASCII, each line as long as before."""
    return text.replace("± ", "+-").translate(_PLAIN).encode("ascii", "replace").decode("ascii")


def shortened(text: str, width: int) -> str:
    """At most `width` characters."""
    return text if len(text) <= width else text[: max(width - 1, 0)] + "…"


def cut(rows: list[tuple[str, ...]], most: int) -> list[tuple[str, ...]]:
    """At most so many rows; the last says how many are left out."""
    if len(rows) <= most:
        return rows
    more = (f"… {len(rows) - most + 1} more", *("" for _ in rows[0][1:]))
    return [*rows[: most - 1], more]


def running(entries: Iterable[str], width: int, first: str = "") -> list[str]:
    """Entries one after the other, broken between them."""
    lines: list[str] = [first] if first else []
    for entry in entries:
        if lines and lines[-1] == first:
            lines[-1] += entry
        elif lines and len(lines[-1]) + len(entry) + 3 <= width:
            lines[-1] += " · " + entry
        else:
            lines += textwrap.wrap(entry, width, initial_indent=" " * len(first), subsequent_indent="  ")
    return lines


def provenance_lines(provenance: Mapping[str, object], width: int) -> list[str]:
    """Where a result comes from, as running text."""
    return running((f"{visible(key)} {visible(value)}" for key, value in flat(provenance) if value), width)


def flat(mapping: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, str]]:
    """A nested mapping as dotted names and texts."""
    for key, value in mapping.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{key}.")
        elif isinstance(value, list | tuple):
            yield f"{prefix}{key}", ", ".join(map(str, value))
        else:
            yield f"{prefix}{key}", "" if value is None else str(value)


def matched(value: float, error: float) -> str:
    """A number with as many digits as its error has to say: three of the error's."""
    if not (math.isfinite(value) and math.isfinite(error) and error > 0.0):
        return number(value)
    decimals = 2 - math.floor(math.log10(error))
    leading = math.floor(math.log10(abs(value))) if value else 0
    if 0 <= decimals <= 9 and leading <= 9:
        return f"{value:.{decimals}f}"
    return f"{value:.{min(max(decimals + leading, 2), 16)}e}"


def signed(value: float, digits: int = 2) -> str:
    """A number with its sign; a dash where there is none."""
    return "–" if math.isnan(value) else f"{value:+.{digits}f}"
