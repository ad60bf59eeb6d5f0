"""Tables of the documentation, made from the code and the catalogues that they describe."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields

import click

from meshwright.calibration import PARAMETERS, Place
from meshwright.cli.app import cli
from meshwright.cluster.catalog import device_aliases, device_names, load_device
from meshwright.cost.stacks import MODERN
from meshwright.graph.catalog import catalog_names, entry
from meshwright.graph.sources.huggingface import registry
from meshwright.graph.sources.huggingface.registry import reader_of, registered
from meshwright.search.rules import RULES
from meshwright.strategy.target import find_target, target_names
from meshwright.units import GIB, GIGA, TERA


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |\n" for line in lines)


def code(words: Iterable[object]) -> str:
    """Words in code type."""
    return ", ".join(f"`{word}`" for word in words)


def models() -> str:
    """The catalogue of models."""
    return table(
        ("name", "parameters", "active", "other names", "source of the configuration"),
        (
            (
                f"`{name}`",
                entry(name).parameters.printed,
                active.printed if (active := entry(name).active) else "",
                code(entry(name).aliases),
                entry(name).source,
            )
            for name in catalog_names()
        ),
    )


def families() -> str:
    """Model types with a reader, by the module that reads them."""
    by_module: dict[str, list[str]] = defaultdict(list)
    for model_type in registered():
        reader = reader_of(model_type)
        assert reader is not None, model_type
        package, _, module = reader.__module__.rpartition(".")
        if package == registry.__package__:  # not one that a test or a user registered
            by_module[module].append(model_type)
    return table(
        ("file", "`model_type`"),
        ((f"`{module}.py`", code(types)) for module, types in sorted(by_module.items())),
    )


def devices() -> str:
    """The catalogue of device types."""
    rows = []
    for name in device_names():
        device = load_device(name)
        precision = device.effective_precision("bf16")
        rows.append(
            (
                f"`{name}`",
                device.vendor,
                f"{device.memory_bytes / GIB:.1f}",
                f"{device.peak('bf16') / TERA:g} ({precision})",
                f"{device.memory_bandwidth_bytes_per_s / GIGA:g}",
                f"{device.link}, {device.link_bandwidth_bytes_per_s / GIGA:g}",
                str(device.link_domain),
                f"{device.nic_bandwidth_bytes_per_s / GIGA:g}",
                code(device_aliases(name)),
            )
        )
    head = (
        "name",
        "vendor",
        "memory, GiB",
        "peak, TFLOP/s",
        "memory, GB/s",
        "link, GB/s",
        "joined by it",
        "network, GB/s",
        "other names",
    )
    return table(head, rows)


def rules() -> str:
    """Why a candidate is excluded."""
    return table(("rule", "because"), ((f"`{rule.name}`", rule.reason) for rule in RULES))


def targets() -> str:
    """What frameworks can run."""
    rows = []
    for name in target_names():
        target = find_target(name)
        lacks = [*target.without]
        lacks += [] if target.interleaved else ["virtual stages"]
        lacks += [] if target.uneven_layers else ["uneven stages"]
        lacks += [] if True in target.sequence_parallel else ["sequence parallelism"]
        rows.append(
            (
                f"`{name}`",
                target.title,
                ", ".join(map(str, target.zero_stages)),
                str(target.zero_with_pipeline),
                ", ".join(target.recompute),
                ", ".join(target.context_algorithms) if "context" not in target.without else "",
                ", ".join(lacks),
            )
        )
    head = (
        "name",
        "framework",
        "ZeRO",
        "ZeRO with a pipeline, at most",
        "recomputation",
        "context",
        "lacks",
    )
    return table(head, rows)


def coefficients() -> str:
    """What the software stack is taken to do."""
    rows = []
    for f in fields(MODERN):
        value = getattr(MODERN, f.name)
        if f.name == "sources":
            continue
        if f.name == "overlap":
            parts = ", ".join(f"{p.name} {getattr(value, p.name):g}" for p in fields(value))
            rows.append((f"`{f.name}`", parts, str(MODERN.sources[f.name])))
        elif isinstance(value, Mapping):
            parts = ", ".join(f"{name} {share:g}" for name, share in value.items())
            rows.append((f"`{f.name}`", parts or "none", str(MODERN.sources[f.name])))
        else:
            rows.append((f"`{f.name}`", f"{value:g}", str(MODERN.sources[f.name])))
    return table(("name", "value", "source"), rows)


def calibration_parameters() -> str:
    """What can be fitted."""
    return table(
        ("name", "of", "bounds", "spread", "neutral", "fitted from"),
        (
            (
                f"`{p.name}`",
                "the device family" if p.place is Place.FAMILY else "the stack",
                f"{p.low:g} to {p.high:g}",
                f"{p.spread:g}",
                f"{p.neutral:g}",
                "when named"
                if p.least_rows is None
                else f"{p.least_rows} row{'s' if p.least_rows > 1 else ''}",
            )
            for p in PARAMETERS
        ),
    )


def options(name: str) -> Callable[[], str]:
    """The options of one command."""

    def build() -> str:
        context = click.Context(cli, info_name="meshwright")
        command = cli.get_command(context, name)  # type: ignore[attr-defined]
        rows = []
        for parameter in command.params:
            if not isinstance(parameter, click.Option):
                continue
            spelled = code([*parameter.opts, *parameter.secondary_opts])
            value = "" if parameter.is_flag else f" `{parameter.metavar}`"
            text = (parameter.help or "").rstrip()
            if parameter.required:
                text += " Required."
            if parameter.show_default:
                text += f" [default: {parameter.default}]"
            rows.append((spelled + value, " ".join(text.split())))
        return table(("option", "meaning"), rows)

    return build


TABLES: dict[str, Callable[[], str]] = {
    "models": models,
    "families": families,
    "devices": devices,
    "rules": rules,
    "targets": targets,
    "coefficients": coefficients,
    "options-plan": options("plan"),
    "options-estimate": options("estimate"),
    "options-inspect": options("inspect"),
    "options-validate": options("validate"),
    "options-calibrate": options("calibrate"),
    "calibration-parameters": calibration_parameters,
}
