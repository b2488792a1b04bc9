"""What was handed to a batch system, and when: submissions.json in the folder of a campaign."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hpcfit.files.replacing import replacing
from hpcfit.records import InputError, Mistake
from hpcfit.records.submissions import Submission, SubmittedArray

FORMAT = 1


def read_submissions(folder: Path) -> list[Submission]:
    """All submissions of a campaign, the oldest first."""
    file = folder / "submissions.json"
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        if found["format"] > FORMAT:
            raise InputError(Mistake(str(file), f"format {found['format']} is newer", "upgrade hpcfit"))
        return [_submission(each) for each in found["submissions"]]
    except FileNotFoundError:
        return []
    except InputError:
        raise
    except OSError as error:
        raise InputError(
            Mistake(str(file), f"cannot be read: {error.strerror}", "check its permissions")
        ) from None
    except (KeyError, TypeError, ValueError) as error:
        remedy = "end its jobs by hand, remove it, and resume"
        raise InputError(Mistake(str(file), f"is damaged: {error}", remedy)) from None


def record_submission(folder: Path, submission: Submission) -> None:
    """Add a submission, or put it in the place of the one with its token."""
    known = {each.token: each for each in read_submissions(folder)} | {submission.token: submission}
    text = json.dumps({"format": FORMAT, "submissions": [asdict(each) for each in known.values()]}, indent=1)
    with replacing(folder / "submissions.json") as part:
        part.write_text(text + "\n", encoding="utf-8")


def _submission(values: Mapping[str, Any]) -> Submission:
    found = Submission(**{**values, "arrays": tuple(SubmittedArray(**each) for each in values["arrays"])})
    if not all(job.isdigit() for job in found.jobs):
        raise ValueError(f"{found.jobs} are no numbers of jobs")  # scancel is given what stands here
    return found
