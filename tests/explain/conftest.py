"""Results to explain, planned once."""

from __future__ import annotations

import pytest

from meshwright.planning import plan
from meshwright.strategy import Workload


@pytest.fixture(scope="session")
def result():
    """Pipelines only, so that bubble, pace and stages have something to say."""
    from meshwright.strategy import Space

    work = Workload(global_batch_size=64, seq_length=4096)
    return plan("llama-3.1-8b", "2x8xH100", work, space=Space(pipeline=(3, 4, 8)), top=4)


@pytest.fixture(scope="session")
def mixed():
    work = Workload(global_batch_size=64, seq_length=4096)
    return plan("llama-3.1-8b", "1x8xH100+1x8xAscend910B", work, top=2)
