"""How long one rank computes: a roofline per op, with shape-dependent efficiency.

Per op and pass, ``max(FLOPs / (peak e), bytes / (bandwidth e_mem), launch)`` (Williams et al.
2009, with e(m, n, k) from ``Device.gemm_curve`` for contractions). Backward of a contraction
with a weight is two contractions of the same FLOPs, (m, k, n) for the input's gradient and
(k, n, m) for the weight's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meshwright.cluster import Device
from meshwright.cost.coefficients import Coefficients
from meshwright.cost.local import FloatArray, LocalShapes, Region
from meshwright.graph import (
    MATRIX_KINDS,
    Dtype,
    Op,
    OpKind,
    Role,
    Split,
    backward_factor,
)
from meshwright.strategy import AttentionKernel, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class OpTime:
    """Seconds of one op on one rank per micro-batch: shapes (R,)."""

    forward_s: FloatArray
    backward_s: FloatArray


def tensor_bytes(shapes: LocalShapes, name: str, workload: Workload) -> FloatArray:
    """Bytes of a tensor on one rank: shape (R,)."""
    tensor = shapes.tensor(name)
    width = {
        Dtype.COMPUTE: workload.recipe.activation_bytes
        if tensor.role is Role.ACTIVATION
        else workload.recipe.parameter_bytes,
        Dtype.FP32: 4.0,
        Dtype.INT64: 8.0,
        Dtype.BYTE: 1.0,
    }[tensor.dtype]
    return shapes.elements(name) * width


class ComputeModel:
    """Times ops of one block on one device type.

    Args:
        shapes: local lengths for R configurations.
        device: the device type.
        workload: precision and attention kernel.
        coefficients: of the software stack.
    """

    def __init__(
        self,
        shapes: LocalShapes,
        device: Device,
        workload: Workload,
        coefficients: Coefficients,
    ) -> None:
        self.shapes = shapes
        self.device = device
        self.workload = workload
        self.coefficients = coefficients
        sustained = device.sustained_efficiency
        self._memory_rate = (
            device.memory_bandwidth_bytes_per_s * device.memory_efficiency * sustained
        )

    def _peak(self, precision: str) -> float:
        """FLOP/s that the device keeps up through a whole step."""
        return self.device.peak(precision) * self.device.sustained_efficiency

    def time(self, op: Op) -> OpTime:
        """Forward and backward of one op."""
        if op.kind is OpKind.ATTENTION:
            return self._attention(op)
        if op.kind in MATRIX_KINDS:
            return self._contraction(op)
        return self._pointwise(op)

    def bytes(self, names: tuple[str, ...]) -> FloatArray:
        """Bytes of several tensors together: shape (R,)."""
        total: FloatArray = np.zeros(len(self.shapes.configs))
        for name in names:
            total = total + tensor_bytes(self.shapes, name, self.workload)
        return total

    def _launch(self, op: Op) -> float:
        return 0.0 if op.fused else self.device.launch_s

    def _operand_bytes(self, op: Op) -> FloatArray:
        return self.bytes(tuple(operand.tensor for operand in op.inputs + op.outputs))

    def _precision(self, op: Op) -> str:
        """Attention and recurrences stay in 16 bits when projections run in less."""
        narrow = self.workload.precision in ("fp8", "fp4")
        if op.kind in (OpKind.ATTENTION, OpKind.SCAN) and narrow:
            return "bf16"
        return self.workload.recipe.peak

    def _contraction(self, op: Op) -> OpTime:
        precision = self._precision(op)
        peak = self._peak(precision) * self._reached(precision)
        curve = self.device.gemm_curve(precision)
        flops = self.shapes.flops(op)
        memory_s = self._operand_bytes(op) / self._memory_rate
        launch_s = self._launch(op)

        def seconds(efficiency: FloatArray | float) -> FloatArray:
            return np.maximum(np.maximum(flops / (peak * efficiency), memory_s), launch_s)

        if op.kind is OpKind.SCAN:
            forward = seconds(curve.limit * self.coefficients.scan_efficiency)
            return OpTime(forward_s=forward, backward_s=2.0 * forward)
        # eff(m, n, k) with every half dimension scaled is eff of the dimensions scaled back.
        half = self.coefficients.gemm_half_scale
        half *= self.coefficients.family_half_scale.get(self.device.family, 1.0)
        m, n, k = (size / half for size in self.gemm_shape(op))
        forward = seconds(curve.efficiency(m, n, k))
        backward = seconds(curve.efficiency(m, k, n))
        if self.has_weight(op):
            backward = backward + seconds(curve.efficiency(k, n, m))
        if op.kind is OpKind.GROUPED_MATMUL:  # the busiest expert rank sets the pace
            imbalance = np.where(
                self.shapes.configs.expert > 1, self.coefficients.expert_imbalance, 1.0
            )
            forward, backward = forward * imbalance, backward * imbalance
        return OpTime(forward_s=forward, backward_s=backward)

    def _reached(self, precision: str) -> float:
        """Share of a tuned kernel's speed that the stack reaches on this device."""
        by_family, family = self.coefficients.family_efficiency, self.device.family
        share = self.coefficients.matrix_efficiency * by_family.get(family, 1.0)
        return share * by_family.get(f"{family}:{precision}", 1.0)

    def has_weight(self, op: Op) -> bool:
        """Whether the op contracts with a learned tensor."""
        return any(
            self.shapes.tensor(operand.tensor).role is Role.PARAMETER for operand in op.inputs
        )

    def gemm_shape(self, op: Op) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Rows, columns and reduction of a contraction on one rank: three shapes (R,).

        Columns are the output axes that only the second operand has, of this op and of those
        fused behind it; rows are all other output axes; of grouped contractions, one group's.
        """
        block, shapes = self.shapes.block, self.shapes
        region = shapes.region(op.axes)
        first, second = op.inputs[0].axes, op.inputs[1].axes
        output = op.outputs[0].axes
        experts = [a for a in second if block.axis(a).split is Split.EXPERT]
        columns = [a for a in output if a in second and a not in first]
        n = shapes.product(columns, region) * self._fused_width(op)
        m = shapes.product([a for a in output if a not in columns], region)
        k = shapes.product([a for a in first if a not in output and a in second], region)
        for expert in experts:
            # A rank receives as many routed tokens as it sends, for its own experts only.
            m = m / shapes.length(expert, region)
        return np.maximum(m, 1.0), np.maximum(n, 1.0), np.maximum(k, 1.0)

    def _fused_width(self, op: Op) -> float:
        """How much wider the kernel is for the ops fused behind (or in front of) this one."""
        ops = self.shapes.block.ops
        index = ops.index(op)
        start = index
        while start > 0 and ops[start].fused:
            start -= 1
        stop = start + 1
        while stop < len(ops) and ops[stop].fused and ops[stop].kind is op.kind:
            stop += 1
        widths = [self._columns(ops[i]) for i in range(start, stop) if ops[i].kind is op.kind]
        return sum(widths) / self._columns(op) if len(widths) > 1 else 1.0

    def _columns(self, op: Op) -> float:
        second, first = op.inputs[1].axes, op.inputs[0].axes
        sizes = {axis.name: axis.size or 1 for axis in self.shapes.block.axes}
        width = 1.0
        for axis in op.outputs[0].axes:
            if axis in second and axis not in first:
                width *= sizes[axis]
        return width

    def _attention(self, op: Op) -> OpTime:
        device, launch_s = self.device, self._launch(op)
        peak = self._peak(self._precision(op))
        flops = self.shapes.flops(op)
        factor = backward_factor(op, learned=False)
        if self.workload.attention is AttentionKernel.FUSED:
            memory_s = self._operand_bytes(op) / self._memory_rate
            extra = self.coefficients.attention_extra
            short = self._short_sequence(op)
            forward = np.maximum(short * flops / (peak * device.attention_efficiency), memory_s)
            backward = np.maximum(
                (factor + extra) * short * flops / (peak * device.attention_backward_efficiency),
                2.0 * memory_s,
            )
        else:  # full score matrices: the mask saves nothing, every matrix passes through memory
            assert op.mask is not None
            dense = flops / op.mask.density(self.shapes.seq_length)
            passed = 2.0 * self.bytes(op.saved + op.saved_unfused)
            memory_s = self.coefficients.score_traffic * passed / self._memory_rate
            limit = device.gemm_curve(self._precision(op)).limit
            forward = dense / (peak * limit) + memory_s
            backward = factor * dense / (peak * limit) + 2.0 * memory_s
        return OpTime(
            forward_s=np.maximum(forward, launch_s), backward_s=np.maximum(backward, launch_s)
        )

    def _short_sequence(self, op: Op) -> FloatArray:
        """How much slower a fused kernel is on short runs of queries than on long ones.

        Context ranks hold two chunks each, so that causal work is even; a kernel call sees one.
        """
        queries = self.shapes.length(op.inputs[0].axes[1], Region.TENSOR)
        chunk = np.where(self.shapes.configs.context > 1, 0.5, 1.0) * queries
        return 1.0 + self.coefficients.attention_half / chunk

    def _pointwise(self, op: Op) -> OpTime:
        """Memory-bound ops: every operand passes once; backward adds what was saved."""
        traffic = self._pointwise_bytes(op) * self.coefficients.pointwise_traffic
        saved = self.bytes(op.saved) * self.coefficients.pointwise_traffic
        launch_s = self._launch(op)
        return OpTime(
            forward_s=np.maximum(traffic / self._memory_rate, launch_s),
            backward_s=np.maximum((traffic + saved) / self._memory_rate, launch_s),
        )

    def _pointwise_bytes(self, op: Op) -> FloatArray:
        if op.kind is OpKind.EMBEDDING:  # only the rows that are looked up
            return 2.0 * self.bytes(tuple(operand.tensor for operand in op.outputs))
        if op.kind is OpKind.LOSS:  # fp32 logits and probabilities besides the logits
            return self.bytes(op.saved) + self._operand_bytes(op)
        return self._operand_bytes(op)
