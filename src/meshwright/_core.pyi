from collections.abc import Callable
from typing import TypeAlias

from meshwright.search.tables import UniformTables

# shape, row, partition, mode, step_s, peak_bytes, headroom_bytes; exists for types only
CandidateRow: TypeAlias = tuple[int, int, int, int, float, float, float]

def search_uniform(
    tables: UniformTables,
    top_k: int,
    threads: int,
    on_progress: Callable[[float], bool] | None,
) -> tuple[
    list[CandidateRow],  # best
    list[CandidateRow],  # pareto
    list[int],  # excluded
    int,  # candidates
    int,  # evaluated
    CandidateRow | None,  # nearest misfit
    bool,  # complete
]: ...
