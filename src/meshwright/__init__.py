"""Meshwright plans the parallel training of large models.

A model and a cluster in, the best mix of tensor, pipeline, data, ZeRO, context and expert
parallelism out::

    import meshwright

    result = meshwright.plan(
        "llama-3.1-70b",
        "32x8xH100",
        meshwright.Workload(global_batch_size=1024, seq_length=8192),
    )
    print(result)

Every public name lives here. A name is imported when it is first used (PEP 562), so
``import meshwright`` alone costs a few milliseconds and does not load numpy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from meshwright.cluster import Cluster, load_cluster
    from meshwright.errors import (
        AssumptionWarning,
        ClusterError,
        FileError,
        InfeasibleError,
        MeshwrightError,
        MissingExtraError,
        ModelError,
        StrategyError,
        UnknownDeviceError,
        UnknownModelError,
        UsageError,
        WorkloadError,
    )
    from meshwright.graph import ModelGraph
    from meshwright.graph.sources import load_model
    from meshwright.planning import (
        Plan,
        PlanResult,
        estimate,
        load_plan,
        plan,
        save_plan,
        uniform_strategy,
    )
    from meshwright.strategy import Space, Stage, Strategy, Workload

    __version__: str

__all__ = [
    "AssumptionWarning",
    "Cluster",
    "ClusterError",
    "FileError",
    "InfeasibleError",
    "MeshwrightError",
    "MissingExtraError",
    "ModelError",
    "ModelGraph",
    "Plan",
    "PlanResult",
    "Space",
    "Stage",
    "Strategy",
    "StrategyError",
    "UnknownDeviceError",
    "UnknownModelError",
    "UsageError",
    "Workload",
    "WorkloadError",
    "__version__",
    "estimate",
    "load_cluster",
    "load_model",
    "load_plan",
    "plan",
    "save_plan",
    "uniform_strategy",
]

_NAMES_OF = {
    "meshwright.cluster": ("Cluster", "load_cluster"),
    "meshwright.errors": (
        "AssumptionWarning",
        "ClusterError",
        "FileError",
        "InfeasibleError",
        "MeshwrightError",
        "MissingExtraError",
        "ModelError",
        "StrategyError",
        "UnknownDeviceError",
        "UnknownModelError",
        "UsageError",
        "WorkloadError",
    ),
    "meshwright.graph": ("ModelGraph",),
    "meshwright.graph.sources": ("load_model",),
    "meshwright.planning": (
        "Plan",
        "PlanResult",
        "estimate",
        "load_plan",
        "plan",
        "save_plan",
        "uniform_strategy",
    ),
    "meshwright.strategy": ("Space", "Stage", "Strategy", "Workload"),
}
_MODULE_OF = {name: module for module, names in _NAMES_OF.items() for name in names}


def __getattr__(name: str) -> object:
    """Import a public name at its first use and keep it."""
    value: object
    if name == "__version__":
        from importlib.metadata import version

        value = version("meshwright")
    elif name in _MODULE_OF:
        value = getattr(import_module(_MODULE_OF[name]), name)
    else:
        raise AttributeError(f"module 'meshwright' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
