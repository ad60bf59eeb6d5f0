"""Models and clusters in the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from meshwright.cluster import Cluster, Device
from meshwright.cluster.describe import DeviceRow, device_rows, level_rows
from meshwright.explain.console import (
    bare_table,
    opened,
    paragraph,
    print_bold,
    print_section,
    print_text,
)
from meshwright.explain.model_info import BlockInfo, ModelInfo
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
    with opened(console) as out:
        print_bold(out, _model_sentence(info))
        out.print()
        print_text(
            out,
            f"Per token of a sequence of {info.seq_length:,}: "
            f"{format_flops(info.forward_flops_per_token)} forward, "
            f"{format_flops(info.training_flops_per_token)} forward and backward.",
        )
        out.print()
        out.print(block_table(info))
        out.print()
        print_text(
            out,
            f"Activations per layer and sequence of {info.seq_length:,} (bf16, fused attention), "
            "by recomputation",
        )
        out.print(activation_table(info))
        for block in info.blocks:
            out.print()
            print_bold(out, f"Ops of {block.name}, forward, one sequence")
            out.print(op_table(block))
        lines = [info.model.source or "the caller", *info.model.assumptions]
        print_section(out, "Read from", lines)


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
    notes = Notes()
    groups = ", ".join(
        f"{group.count:,} {group.device.name} on {_nodes(group.num_nodes)}"
        for group in cluster.groups
    )
    with opened(console) as out:
        print_bold(out, f"{cluster.name}: {cluster.num_devices:,} devices ({groups}).")
        out.print()
        out.print(level_table(cluster, notes))
        for device in cluster.devices:
            out.print()
            print_bold(out, f"{device.name} ({device.vendor})")
            out.print(device_table(device, notes))
        out.print()
        print_bold(out, "Sources")
        for number, text in enumerate(notes.texts, start=1):
            line = paragraph(out, text, first=f"  [{number}] ", rest="      ")
            out.print(Text(line))
        if cluster.assumptions:
            print_section(out, "Assumed", cluster.assumptions)


class Notes:
    """Sources, each numbered at its first use."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def number(self, text: str) -> str:
        """The mark of a source."""
        if text not in self.texts:
            self.texts.append(text)
        return f"[{self.texts.index(text) + 1}]"


def _nodes(count: int) -> str:
    return f"{count:,} node" if count == 1 else f"{count:,} nodes"


def level_table(cluster: Cluster, notes: Notes) -> Table:
    """How far a message travels, and how fast."""
    rows = level_rows(cluster)
    shared = any(row.oversubscription != 1.0 for row in rows)
    table = bare_table()
    table.add_column("group", overflow="fold")
    table.add_column("level", overflow="fold")
    titles = ("devices", "domains", "rate", "reached", "latency")
    for title in (*titles, "shared") if shared else titles:
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("source", no_wrap=True)
    for row in rows:
        cells = [
            row.group or "all",
            row.level,
            f"{row.size:,}",
            f"{row.domains:,}",
            format_rate(row.bandwidth_bytes_per_s, "B/s"),
            format_rate(row.effective_bandwidth_bytes_per_s, "B/s"),
            format_seconds(row.latency_s),
            *([f"{row.oversubscription:g}:1"] if shared else []),
        ]
        table.add_row(*cells, Text(notes.number(str(row.source))))
    return table


def device_table(device: Device, notes: Notes) -> Table:
    """Every number of a device."""
    table = bare_table()
    table.add_column("  figure", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("source", no_wrap=True)
    for row in device_rows(device):
        mark = Text(f"{row.source.kind} {notes.number(str(row.source))}")
        table.add_row(f"  {row.name}", _value(row), mark)
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
