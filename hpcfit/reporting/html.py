"""The parts of a page that needs nothing else; everything that a user wrote is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources

from matplotlib.figure import Figure

from hpcfit.reporting import rendering

OPEN_ROWS = 40  # a longer table is folded
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"  # the page fetches and runs nothing


def document(title: str, sections: Sequence[str]) -> str:
    """The page with its style inside."""
    style = resources.files("hpcfit.reporting").joinpath("page.css").read_text(encoding="utf-8")
    head = (
        '<meta charset="utf-8">\n<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n"
    )
    body = "\n".join(sections) + "\n<footer>made by hpcfit report</footer>"
    return f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}</head>\n<body>\n{body}\n</body>\n</html>\n'


def header(title: str, badge: str, good: bool, cause: str, facts: Iterable[tuple[str, str]]) -> str:
    """Title, how it ended, and the main numbers."""
    quiet = f'<p class="quiet">{escape(cause)}</p>\n' if cause else ""
    boxes = "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in facts)
    return (
        f"<header>\n<h1>{escape(title)}</h1>\n"
        f'<span class="badge {"good" if good else "bad"}">{escape(badge)}</span>\n{quiet}'
        f'<dl class="facts">{boxes}</dl>\n</header>'
    )


def section(name: str, content: str) -> str:
    return f"<section>\n<h2>{escape(name)}</h2>\n{content}\n</section>"


def figure(caption: str, drawn: Figure) -> str:
    """A picture inside the page, with its caption."""
    size = drawn.get_size_inches() * 96 * 1.15
    source = rendering.data_address(drawn)
    return (
        f'<figure><img src="{source}" width="{size[0]:.0f}" height="{size[1]:.0f}" alt="{escape(caption)}">'
        f"<figcaption>{escape(caption)}</figcaption></figure>\n"
    )


def table(
    title: str,
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    words: bool = False,
    left: Sequence[str] = ("unit",),
) -> str:
    """A table without its empty columns, folded if it is long; the first column and `left` are flush left."""
    cells = list(rows)
    used = [k for k in range(len(header)) if k == 0 or any(row[k] for row in cells)]
    sides = ["name" if k == 0 or header[k] in left else "" for k in used]
    lines = []
    if not words:
        lines.append("".join(_cell("th", header[k], side) for k, side in zip(used, sides, strict=True)))
    for row in cells:
        lines.append("".join(_cell("td", row[k], side) for k, side in zip(used, sides, strict=True)))
    body = "".join(f"<tr>{line}</tr>\n" for line in lines)
    opening = '<table class="words">' if words else "<table>"
    text = f"{opening}\n{body}</table>"
    if len(cells) > OPEN_ROWS:
        text = f"<details><summary>{len(cells):,} rows</summary>\n{text}</details>"
    heading = f"<h3>{escape(title)}</h3>\n" if title else ""
    return f'<div class="table">{heading}{text}</div>\n'


def _cell(tag: str, text: str, side: str) -> str:
    return f'<{tag} class="name">{escape(text)}</{tag}>' if side else f"<{tag}>{escape(text)}</{tag}>"
