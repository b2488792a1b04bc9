"""A campaign on a real SLURM of two virtual nodes, and the same campaign on this machine."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.journeys.campaign_material import S18, assert_same_numbers, hpcfit, numbers
from tests.minicluster import empty_queue, minicluster, wait_for


@pytest.fixture(scope="module")
def cluster() -> Iterator[Path]:
    with minicluster(2, 2, MINICLUSTER_DEAD="10") as folder:
        yield folder


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the job, and with the campaign as one rank of this machine computes it."""
    folder = tmp_path_factory.mktemp("campaigns")
    (folder / "s18.toml").write_text(S18)
    done = hpcfit("submit", "s18.toml", "-d", "alone", "--local", "--ranks", 1, cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


def status(folder: Path) -> dict[str, object]:
    done = hpcfit("status", folder.name, "--json", cwd=folder.parent)
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


def test_an_array_of_tasks_gives_the_numbers_of_one_rank(here: Path, cluster: Path) -> None:
    """2,000 fits as 8 tasks of 2 ranks each on 2 nodes; the merge follows by dependency."""
    done = hpcfit("submit", "s18.toml", "-d", "array", "--tasks", 8, "--ranks", 2, "--time", "10", cwd=here)
    assert done.returncode == 0, done.stderr
    for line in ("members     2,000", "tasks       8 of about", "core-hours", "bytes"):
        assert line in done.stderr
    result = here / "array" / "result.h5"
    wait_for(lambda: result.exists() and empty_queue(), 110, "the campaign")
    assert_same_numbers(result, here / "alone" / "result.h5")
    np.testing.assert_array_equal(numbers(result)["members"], np.arange(1, 2001))
    found = status(here / "array")
    assert (found["done"], found["missing"], found["merged"], found["failed"]) == (2000, 0, True, {})
    report = hpcfit("report", "array", "-o", "page.html", cwd=here)
    assert report.returncode == 0, report.stderr
    assert "2,000" in (here / "page.html").read_text()
