"""What a row says of a run before it ran: the only thing that the predictor may see.

Field names are column names. ``None`` or an empty text is "not stated".
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """The model, by its dimensions."""

    model: str = ""
    arch: str = ""
    layers: int | None = None
    hidden: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    ffn_hidden: int | None = None
    gated_mlp: bool | None = None
    vocab: int | None = None
    tied_embeddings: bool | None = None
    moe_experts: int | None = None
    moe_topk: int | None = None
    moe_ffn_hidden: int | None = None
    moe_shared_ffn: int | None = None
    moe_dense_layers: int | None = None
    mla: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """The machines."""

    device_type: str = ""
    device_mem_gb: float | None = None
    num_devices: int | None = None
    devices_per_node: int | None = None
    intra_node_link: str = ""
    inter_node_network: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parallel:
    """The strategy."""

    tp: int | None = None
    pp: int | None = None
    dp: int | None = None
    cp: int | None = None
    ep: int | None = None
    etp: int | None = None
    vpp: int | None = None
    micro_batch: int | None = None
    num_microbatches: int | None = None
    sequence_parallel: bool | None = None
    zero_stage: str = ""
    fsdp: bool | None = None
    recompute: str = ""
    recompute_detail: str = ""
    offload: str = ""
    schedule: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Software:
    """What ran it."""

    framework: str = ""
    framework_version: str = ""
    overlap_flags: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInputs:
    """Everything that was chosen before the run.

    Two rows with equal inputs are two measurements of one configuration.
    """

    architecture: Architecture = field(default_factory=Architecture)
    hardware: Hardware = field(default_factory=Hardware)
    parallel: Parallel = field(default_factory=Parallel)
    software: Software = field(default_factory=Software)
    task: str = ""
    seq_len: int | None = None
    global_batch: int | None = None
    precision: str = ""
    optimizer: str = ""
