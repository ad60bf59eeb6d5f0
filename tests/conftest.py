"""What every test shares."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

REPOSITORY = Path(__file__).resolve().parent.parent

# The same examples on every machine: a red test is red for everyone. `HYPOTHESIS_PROFILE=explore`
# draws new ones, and many more, to look for what the fixed ones miss.
settings.register_profile(
    "ci",
    derandomize=True,
    database=None,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("explore", max_examples=2000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def shared() -> Path | None:
    """The folder of real inputs beside the checkout, or None where it is not there.

    A test that takes it runs on its own small cases in the second case; it does not skip.
    """
    folder = REPOSITORY.parent / "shared"
    return folder if (folder / "DESIGN.md").is_file() else None
