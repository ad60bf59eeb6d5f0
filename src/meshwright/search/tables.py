"""The tables of the uniform space: what the native core and its reference search.

A *uniform* strategy uses the same degrees on every stage. A candidate is a choice of

- a **shape** (S): the degrees and the order of their axes;
- a **row** (R): a local configuration (micro-batch, recomputation, sequence parallelism,
  ...) under the shape's **base** (Q), which is how parameters are divided inside a replica.
  Rows are grouped by base: shape ``s`` may use the ``K = R / Q`` rows from ``base[s] * K``;
- a **partition** (P): how the layers are cut into stages. Equal stages of a partition are one
  **class** (C);
- a **state mode** (Z): how parameters, gradients and optimizer state are kept.

Layers are given as **blocks** (B), distinct ones only; devices as **types** (T); what a group
of ranks pays as **links** (G); and why a candidate is excluded as **rules** (X). The formulas
are those of :mod:`meshwright.cost.step`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from meshwright.cost.step import OverlapFactors, StateMode
from meshwright.search._layout import check_layout, require

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int32]
MaskArray = npt.NDArray[np.uint32]
FlagArray = npt.NDArray[np.uint8]

#: The value of ``mode_max_pipeline`` that every pipeline degree is within.
NO_PIPELINE_LIMIT = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UniformTables:
    """Numbers for every candidate of a uniform space; read-only once made.

    Arrays are converted to the type shown if no value is lost, made C-contiguous, and checked
    once, here. Letters are the dimensions of the module's documentation.

    Attributes:
        micro_batch: [R] sequences per replica and micro-batch.
        row_rule: [R] rule that excludes the row, -1 if none does.
        forward_s, backward_s: [T, B, R] one micro-batch through one block, with the
            communication that is exposed inside it.
        activation_bytes: [B, R] kept for backward per micro-batch in flight.
        transient_bytes: [B, R] working set while the block runs; of a stage, the largest.
        boundary_bytes: [R] one message between stages.
        dense_parameters, expert_parameters: [B, Q] local to one rank before sharding.
        base: [S] row of the bases.
        pipeline, data: [S] stages, and replicas that divide the batch.
        dense_link, expert_link, hop_link: [S] links of the two kinds of parameters and of
            the messages between stages.
        dense_shards, expert_shards: [S] ranks that a sharded state is divided over.
        dense_ranks, expert_ranks: [S] ranks that share the parameters: shards x replicas.
        gather_latency_s, gather_s_per_byte: [G] all-gather of a buffer over the shards.
        scatter_latency_s, scatter_s_per_byte: [G] reduction of a buffer over all ranks that
            leaves every rank its shard.
        reduce_latency_s, reduce_s_per_byte: [G] all-reduce of a buffer over all ranks.
        hop_latency_s, hop_s_per_byte: [G] a message to the next stage.
        partition_pipeline: [P] stages, ascending.
        partition_virtual: [P] virtual stages per device.
        partition_classes: [P + 1] partition p has the classes from the p-th entry up to the
            next; their multiplicities add up to the stages.
        class_blocks: [C, B] how many of each block one stage has (whole numbers).
        class_first: [C] position of the first stage of the class.
        class_multiplicity: [C] stages in the class.
        class_devices: [C] bit t is set if a device of type t runs a stage of the class; the
            slowest sets the time, and memory must do for each.
        modes: [Z] the state modes.
        mode_needs_shards: [Z] 1 if the mode is pointless where nothing can be sharded: then
            it is excluded, under ``rule_unsharded``, for shapes with one shard of each kind.
        mode_max_pipeline: [Z] the mode is excluded, under ``rule_zero_pipeline``, for shapes
            with more stages; ``NO_PIPELINE_LIMIT`` for none.
        optimizer_s_per_parameter: [T, Z] update time per parameter that a rank owns.
        capacity_bytes, framework_bytes: [T] device memory, and what of it is not ours.
        overlap: what communication hides behind.
        fixed_s: host work per step.
        global_batch: sequences per step.
        rules: how many rules there are (X).
        rule_batch: for rows whose micro-batches do not divide the global batch.
        rule_interleave: for virtual stages without a pipeline, or with micro-batches that are
            no multiple of the stages.
        rule_unsharded: see ``mode_needs_shards``.
        rule_zero_pipeline: see ``mode_max_pipeline``.
        rule_memory: for candidates that do not fit.

    Raises:
        ValueError: an array has the wrong shape, type or values (our mistake, not a user's).
    """

    micro_batch: IntArray
    row_rule: IntArray
    forward_s: FloatArray
    backward_s: FloatArray
    activation_bytes: FloatArray
    transient_bytes: FloatArray
    boundary_bytes: FloatArray

    dense_parameters: FloatArray
    expert_parameters: FloatArray

    base: IntArray
    pipeline: IntArray
    data: IntArray
    dense_link: IntArray
    expert_link: IntArray
    hop_link: IntArray
    dense_shards: IntArray
    expert_shards: IntArray
    dense_ranks: IntArray
    expert_ranks: IntArray

    gather_latency_s: FloatArray
    gather_s_per_byte: FloatArray
    scatter_latency_s: FloatArray
    scatter_s_per_byte: FloatArray
    reduce_latency_s: FloatArray
    reduce_s_per_byte: FloatArray
    hop_latency_s: FloatArray
    hop_s_per_byte: FloatArray

    partition_pipeline: IntArray
    partition_virtual: IntArray
    partition_classes: IntArray

    class_blocks: FloatArray
    class_first: IntArray
    class_multiplicity: IntArray
    class_devices: MaskArray

    modes: tuple[StateMode, ...]
    mode_needs_shards: FlagArray
    mode_max_pipeline: IntArray
    optimizer_s_per_parameter: FloatArray

    capacity_bytes: FloatArray
    framework_bytes: FloatArray
    overlap: OverlapFactors
    fixed_s: float = 0.0
    global_batch: int

    rules: int
    rule_batch: int
    rule_interleave: int
    rule_unsharded: int
    rule_zero_pipeline: int
    rule_memory: int

    def __post_init__(self) -> None:
        names = {field.name for field in fields(self)}
        values = {name: getattr(self, name) for name in names}
        for name, array in check_layout(values, modes=len(self.modes)).items():
            object.__setattr__(self, name, array)
        self._check_indices()
        self._check_partitions()
        self._check_scalars()

    def _check_indices(self) -> None:
        require("base", (self.base < self.bases).all(), f"must be below {self.bases}")
        for name in ("dense_link", "expert_link", "hop_link"):
            require(name, (getattr(self, name) < self.links).all(), f"must be below {self.links}")
        for kind in ("dense", "expert"):
            enough = getattr(self, f"{kind}_ranks") >= getattr(self, f"{kind}_shards")
            require(f"{kind}_ranks", enough.all(), f"must be no fewer than {kind}_shards")
        require("row_rule", (self.row_rule < self.rules).all(), f"must be below {self.rules}")
        for name in (field.name for field in fields(self) if field.name.startswith("rule_")):
            value = getattr(self, name)
            require(name, 0 <= value < self.rules, f"must be 0 to {self.rules - 1}, is {value}")

    def _check_partitions(self) -> None:
        ends = self.partition_classes
        require("partition_pipeline", (np.diff(self.partition_pipeline) >= 0).all(), "must ascend")
        require(
            "partition_classes",
            ends[0] == 0 and ends[-1] == self.classes and (np.diff(ends) > 0).all(),
            f"must ascend strictly from 0 to {self.classes}",
        )
        stages = np.add.reduceat(self.class_multiplicity, ends[:-1])
        require(
            "class_multiplicity",
            (stages == self.partition_pipeline).all(),
            "must add up to partition_pipeline in every partition",
        )
        stages_of_class = np.repeat(self.partition_pipeline, np.diff(ends))
        require(
            "class_first",
            (self.class_first + self.class_multiplicity <= stages_of_class).all(),
            "must leave room for class_multiplicity stages before the end of the pipeline",
        )
        require(
            "class_devices",
            (self.class_devices > 0).all()
            and (self.class_devices.astype(np.uint64) >> np.uint64(self.device_types) == 0).all(),
            f"must name one or more of the {self.device_types} device types",
        )
        require(
            "class_blocks",
            (self.class_blocks == np.floor(self.class_blocks)).all(),
            "must be whole numbers",
        )

    def _check_scalars(self) -> None:
        require(
            "global_batch",
            1 <= self.global_batch < 2**31,
            f"must be 1 to 2**31 - 1, is {self.global_batch}",
        )
        require("fixed_s", 0.0 <= self.fixed_s < np.inf, f"must be finite, >= 0: {self.fixed_s}")
        for field in fields(self.overlap):
            value = getattr(self.overlap, field.name)
            require(f"overlap.{field.name}", 0.0 <= value <= 1.0, f"must be a share: {value}")
        for z, mode in enumerate(self.modes):
            for field in fields(mode):
                value = getattr(mode, field.name)
                require(f"modes[{z}].{field.name}", 0.0 <= value < np.inf, "must be finite, >= 0")

    @property
    def device_types(self) -> int:
        """T."""
        return int(self.forward_s.shape[0])

    @property
    def blocks(self) -> int:
        """B."""
        return int(self.forward_s.shape[1])

    @property
    def rows(self) -> int:
        """R."""
        return int(self.forward_s.shape[2])

    @property
    def bases(self) -> int:
        """Q."""
        return int(self.dense_parameters.shape[1])

    @property
    def rows_per_base(self) -> int:
        """K."""
        return self.rows // self.bases

    @property
    def shapes(self) -> int:
        """S."""
        return len(self.base)

    @property
    def partitions(self) -> int:
        """P."""
        return len(self.partition_pipeline)

    @property
    def classes(self) -> int:
        """C."""
        return int(self.class_blocks.shape[0])

    @property
    def links(self) -> int:
        """G."""
        return len(self.gather_latency_s)

    @property
    def candidates(self) -> int:
        """Complete candidates in the space, whether they can run or not."""
        first = np.searchsorted(self.partition_pipeline, self.pipeline, side="left")
        last = np.searchsorted(self.partition_pipeline, self.pipeline, side="right")
        return int((last - first).sum()) * self.rows_per_base * len(self.modes)

    def partitions_of(self, shape: int) -> range:
        """Partitions that a shape can use: those of its pipeline degree."""
        pipeline = self.pipeline[shape]
        first = np.searchsorted(self.partition_pipeline, pipeline, side="left")
        last = np.searchsorted(self.partition_pipeline, pipeline, side="right")
        return range(int(first), int(last))

    def rows_of(self, shape: int) -> range:
        """Rows that a shape can use: those of its base."""
        first = int(self.base[shape]) * self.rows_per_base
        return range(first, first + self.rows_per_base)

    def classes_of(self, partition: int) -> range:
        """Classes of stages in a partition, in pipeline order."""
        return range(
            int(self.partition_classes[partition]), int(self.partition_classes[partition + 1])
        )
