"""How parameters, gradients and optimizer state are kept: ZeRO stages and offload.

Bytes per parameter under mixed-precision Adam, n data ranks (Rajbhandari et al. 2020,
section 3 and figure 1, with fp32 gradients as Megatron-LM accumulates them): stage 0
``2 + 4 + 12``, stage 1 ``2 + 4 + 12/n``, stage 2 ``2 + (4 + 12)/n``, stage 3
``(2 + 4 + 12)/n``.
"""

from __future__ import annotations

from meshwright.cost.coefficients import Coefficients
from meshwright.cost.device_models import DeviceModel
from meshwright.cost.step import StateMode
from meshwright.strategy import Offload, Workload
from meshwright.units import GIGA

#: Memory bandwidth of a host that one device's share of an optimizer step gets: a two-socket
#: server streams about 200 GB/s for 8 devices. Analytic.
HOST_BYTES_PER_S = 25 * GIGA


def state_mode(
    workload: Workload, *, zero_stage: int, offload: Offload, coefficients: Coefficients
) -> StateMode:
    """Where states live and which collectives keep them equal, for one ZeRO stage.

    What a stack keeps beside or instead of the recipe's copies comes from its coefficients.
    With the states on the host, the step and its copies are there too.
    """
    recipe, precision = workload.recipe, workload.precision
    states = coefficients.state_bytes.get(precision, workload.optimizer_bytes)
    gradient_bytes = coefficients.gradient_bytes.get(precision, recipe.gradient_bytes)
    parameter_bytes = recipe.parameter_bytes
    if zero_stage >= 3 and coefficients.sharded_master:
        # One fp32 copy serves as parameters and as master weights.
        parameter_bytes += recipe.master_bytes - recipe.parameter_bytes * bool(recipe.master_bytes)
        states -= recipe.master_bytes
    on_host = offload is Offload.OPTIMIZER
    return StateMode(
        parameter_bytes=parameter_bytes,
        gradient_bytes=gradient_bytes,
        optimizer_bytes=0.0 if on_host else states + coefficients.step_copy_bytes,
        parameter_sharded=zero_stage >= 3,
        gradient_sharded=zero_stage >= coefficients.gradient_stage,
        optimizer_sharded=zero_stage >= 1,
        reduce_at_step=zero_stage == 0,
        scatter_at_step=zero_stage == 1,
        gather_at_step=zero_stage in (1, 2),
        scatter_per_micro_batch=zero_stage >= 2,
        gather_per_micro_batch=zero_stage >= 3,
        gather_bytes=recipe.parameter_bytes,
        reduce_bytes=min(gradient_bytes, recipe.gradient_bytes),
    )


def optimizer_s_per_parameter(workload: Workload, model: DeviceModel, *, offload: Offload) -> float:
    """Seconds to update one parameter: every state is read and written, the gradient is read.

    With the states in host memory, gradients go down and parameters come up the host link,
    and the host's memory sets the pace of the update.
    """
    recipe, device = workload.recipe, model.device
    traffic = recipe.gradient_bytes + 2.0 * workload.optimizer_bytes + recipe.parameter_bytes
    if offload is Offload.OPTIMIZER:
        link = (recipe.gradient_bytes + recipe.parameter_bytes) / device.host_bandwidth_bytes_per_s
        return link + traffic / HOST_BYTES_PER_S
    rate = device.memory_bandwidth_bytes_per_s * device.memory_efficiency
    return model.coefficients.optimizer_traffic * traffic / rate
