"""Pages: self-contained, escaped, the same bytes each time, for awkward paths too."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path as File

import numpy as np
import pytest

from hpcfit.records import InputError
from hpcfit.reporting import page, style
from tests.reporting.reporting_material import AWKWARD, JOB, PROVENANCE, failed, hostile, path, recorded


class Reader(HTMLParser):
    """Collects tags, attributes and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


OTHERWISE_TESTED = {
    "usual",
    "recorded",
    "two states",
    "three states",
    "two times",
    "tiny",
}  # pages cost a second


@pytest.mark.parametrize("name", [name for name in AWKWARD if name not in OTHERWISE_TESTED])
def test_pages_of_awkward_paths(name: str) -> None:
    shown = AWKWARD[name]
    text = page.html(shown, PROVENANCE, JOB, "a title")
    read = Reader(text)
    assert shown.outcome.value in read.text
    assert "script" not in read.tags
    assert all((value or "").startswith("data:image/") for name, value in read.attributes if name == "src")
    assert not {"href", "srcset", "style", "onload"} & {name for name, _ in read.attributes}
    assert not re.search(r"url\(|@import", text)
    assert len(text) < 3_000_000


@pytest.mark.parametrize("name", ["failed half-way", "failed at once", "hostile", "one time", "400 states"])
def test_pdf_and_png_of_awkward_paths(name: str, tmp_path: File) -> None:
    for suffix, magic in ((".pdf", b"%PDF"), (".png", b"\x89PNG")):
        target = tmp_path / "part"
        page.write_report(AWKWARD[name], PROVENANCE, JOB, "title", target, suffix)
        assert target.read_bytes().startswith(magic)


def test_what_a_user_wrote_is_escaped() -> None:
    text = page.html(hostile(), {"<k>": "<v>"}, JOB, "<title> & more")
    read = Reader(text)
    assert "<script" not in text
    assert not any("://" in (value or "") for _, value in read.attributes)
    assert not {"script", "b", "i", "k", "v"} & set(read.tags)
    assert JOB in read.text
    assert "<title> & more" in read.text


def test_badge_names_the_failure() -> None:
    text = page.html(failed(0), PROVENANCE, "", "t")
    assert 'class="badge bad"' in text
    assert "largest component &lt;1e200&gt;" in text
    assert 'class="badge good"' in page.html(path(1, 1, 0), PROVENANCE, "", "t")


@pytest.mark.parametrize("suffix", [".html", ".pdf", ".png"])
def test_same_input_same_bytes(suffix: str, tmp_path: File) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    for target in (first, second):
        page.write_report(recorded(), PROVENANCE, JOB, "title", target, suffix)
    assert first.read_bytes() == second.read_bytes()
    assert not re.search(rb"CreationDate|<dc:date>|20\d\d-\d\d-\d\dT", first.read_bytes())


@pytest.mark.parametrize("suffix", ["", ".docx", "png"])
def test_unknown_suffix_names_the_known(suffix: str, tmp_path: File) -> None:
    with pytest.raises(InputError, match=r"\.html, \.pdf, \.png"):
        page.write_report(path(), {}, "", "t", tmp_path / "x", suffix)
    assert not list(tmp_path.iterdir())


def test_the_users_settings_neither_matter_nor_change() -> None:
    import matplotlib

    usual = page.html(path(1, 1, 0), {}, "", "t")
    with matplotlib.rc_context({"lines.linewidth": 9.0, "font.size": 30.0}):
        assert page.html(path(1, 1, 0), {}, "", "t") == usual
        assert matplotlib.rcParams["lines.linewidth"] == 9.0


def test_formulas_are_shown_as_text() -> None:
    assert style.label("$x$", {"$x$": "m"}) == r"\$x\$ [m]"
    assert len(style.literal("long" * 100)) == 40


def test_a_million_points_make_a_small_page() -> None:
    times = np.arange(1_000_000) * 1e-3
    states = np.column_stack([np.cos(times), np.sin(3 * times)])
    bare = dict.fromkeys(("by_start", "by_parameters", "invariant", "observed", "exact"))
    long = path(2, 2, 0, times=times, states=states, **bare)
    assert len(page.html(long, {}, "", "t")) < 2_000_000
