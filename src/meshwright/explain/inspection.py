"""Models and clusters in the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from meshwright.cluster import Cluster, Device
from meshwright.cluster.describe import DeviceRow, device_rows, level_rows
from meshwright.explain.model_info import BlockInfo, ModelInfo
from meshwright.explain.terminal import bare_table, make_console, section
from meshwright.units import (
    format_bytes,
    format_count,
    format_flops,
    format_percent,
    format_rate,
    format_seconds,
)


def print_model(info: ModelInfo, *, console: Console | None = None) -> None:
    """A model: its sums, its distinct blocks, and the ops of each."""
    console = console or make_console()
    console.print(Text(_model_sentence(info), style="bold"))
    console.print()
    console.print(
        f"Per token of a sequence of {info.seq_length:,}: "
        f"{format_flops(info.forward_flops_per_token)} forward, "
        f"{format_flops(info.training_flops_per_token)} forward and backward."
    )
    console.print()
    console.print(block_table(info))
    console.print()
    console.print(
        f"Activations per layer and sequence of {info.seq_length:,} (bf16, fused attention), "
        "by recomputation"
    )
    console.print(activation_table(info))
    for block in info.blocks:
        console.print()
        console.print(Text(f"Ops of {block.name}, forward, one sequence", style="bold"))
        console.print(op_table(block))
    section(console, "Read from", [info.model.source or "the caller", *info.model.assumptions])


def _model_sentence(info: ModelInfo) -> str:
    active = (
        f", {format_count(info.active_parameters)} active per token"
        if info.active_parameters != info.parameters
        else ""
    )
    beside = (
        f" (and {format_count(info.auxiliary_parameters)} in auxiliary blocks)"
        if info.auxiliary_parameters
        else ""
    )
    return (
        f"{info.model.name}: {info.layers} layers, {format_count(info.parameters)} parameters"
        f"{active}{beside}, family {info.model.family}."
    )


def block_table(info: ModelInfo) -> Table:
    """Distinct blocks with their counts."""
    table = bare_table()
    table.add_column("block", overflow="fold")
    table.add_column("role")
    for title in ("count", "parameters", "active", "FLOPs/token"):
        table.add_column(title, justify="right", no_wrap=True)
    for block in info.blocks:
        table.add_row(
            f"{block.name} (auxiliary)" if block.auxiliary else block.name,
            block.role,
            f"{block.count:,}",
            format_count(block.parameters),
            format_count(block.active_parameters),
            format_flops(block.forward_flops / info.seq_length),
        )
    return table


def activation_table(info: ModelInfo) -> Table:
    """What each kind of layer keeps for its backward."""
    layers = [block for block in info.blocks if block.role == "layer"]
    table = bare_table()
    table.add_column("layer", overflow="fold")
    for mode in layers[0].activation_bytes:
        table.add_column(mode, justify="right", no_wrap=True)
    for block in layers:
        table.add_row(block.name, *map(format_bytes, block.activation_bytes.values()))
    return table


def op_table(block: BlockInfo) -> Table:
    """The ops of one block."""
    table = bare_table()
    table.add_column("  op", overflow="fold")
    table.add_column("kind")
    table.add_column("FLOPs", justify="right", no_wrap=True)
    table.add_column("bytes", justify="right", no_wrap=True)
    for op in block.ops:
        flops = format_flops(op.flops) if op.flops else "–"
        table.add_row(f"  {op.name}", op.kind, flops, format_bytes(op.moved_bytes))
    return table


def print_cluster(cluster: Cluster, *, console: Console | None = None) -> None:
    """A cluster: groups, levels, and every number of each device with its source."""
    console = console or make_console()
    groups = ", ".join(
        f"{group.count:,} {group.device.name} on {group.num_nodes:,} nodes"
        for group in cluster.groups
    )
    console.print(
        Text(f"{cluster.name}: {cluster.num_devices:,} devices ({groups}).", style="bold")
    )
    console.print()
    console.print(level_table(cluster))
    for device in cluster.devices:
        console.print()
        console.print(Text(f"{device.name} ({device.vendor})", style="bold"))
        console.print(device_table(device))
    sources = [
        f"{row.group or 'boundary'} {row.level}: {row.source}" for row in level_rows(cluster)
    ]
    section(console, "Levels from", sources)
    if cluster.assumptions:
        section(console, "Assumed", cluster.assumptions)


def level_table(cluster: Cluster) -> Table:
    """How far a message travels, and how fast."""
    table = bare_table()
    table.add_column("group")
    table.add_column("level")
    titles = ("devices", "domains", "bandwidth", "reached", "latency", "oversubscribed")
    for title in titles:
        table.add_column(title, justify="right")
    for row in level_rows(cluster):
        table.add_row(
            row.group or "all",
            row.level,
            f"{row.size:,}",
            f"{row.domains:,}",
            format_rate(row.bandwidth_bytes_per_s, "B/s"),
            format_rate(row.effective_bandwidth_bytes_per_s, "B/s"),
            format_seconds(row.latency_s),
            f"{row.oversubscription:g}×",
        )
    return table


def device_table(device: Device) -> Table:
    """Every number of a device."""
    table = bare_table()
    table.add_column("  figure", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("source", overflow="fold")
    for row in device_rows(device):
        table.add_row(f"  {row.name}", _value(row), str(row.source))
    return table


def _value(row: DeviceRow) -> str:
    formats = {
        "B": format_bytes,
        "B/s": lambda value: format_rate(value, "B/s"),
        "FLOP/s": lambda value: format_rate(value, "FLOP/s"),
        "s": format_seconds,
        "share": format_percent,
    }
    return formats[row.unit](row.value) if row.unit in formats else f"{row.value:,.0f}"
