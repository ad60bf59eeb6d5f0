"""A builder that collects the axes, tensors and ops of one block."""

from __future__ import annotations

from meshwright.errors import ModelError
from meshwright.graph.axis import BATCH, SEQ, Axis, Split, batch_axis, seq_axis
from meshwright.graph.block import Block, BlockRole
from meshwright.graph.op import Mask, Op, Operand, OpKind, Term
from meshwright.graph.tensor import Dtype, Role, Tensor


class BlockBuilder:
    """Collects one block, op by op; tensors are named by the op that makes them.

    Every method that makes an activation returns its name, so that a block reads like the
    model's own code::

        b = BlockBuilder("mlp", BlockRole.LAYER)
        b.axis("hidden", 4096)
        b.axis("ffn", 16384, Split.TENSOR)
        x = b.input("x", (BATCH, SEQ, "hidden"))
        y = b.matmul("up", x, contract=("hidden",), produce=("ffn",))
        y = b.elementwise("gelu", (y,), saved=(y,))
        y = b.matmul("down", y, contract=("ffn",), produce=("hidden",))
        block = b.build(output=y)
    """

    def __init__(self, name: str, role: BlockRole, *, seq: Axis | None = None) -> None:
        self._name = name
        self._role = role
        self._axes: dict[str, Axis] = {BATCH: batch_axis(), SEQ: seq or seq_axis()}
        self._tensors: dict[str, Tensor] = {}
        self._ops: list[Op] = []
        self._inputs: list[str] = []

    # -- axes and tensors ----------------------------------------------------------------

    def axis(self, name: str, size: int, split: Split | None = None) -> str:
        """Declare an axis; declaring it twice with the same meaning is allowed."""
        return self.add_axis(Axis(name=name, size=size, split=split))

    def add_axis(self, axis: Axis) -> str:
        """Declare an axis by value, e.g. one that the workload binds."""
        known = self._axes.setdefault(axis.name, axis)
        if known != axis:
            raise ModelError(
                f"axis {axis.name!r} is both {known} and {axis}", where=f"{self._name}.{axis.name}"
            )
        return axis.name

    def axis_value(self, name: str) -> Axis:
        """The axis of that name, as declared."""
        return self._axes[name]

    def dims(self, tensor: str) -> tuple[str, ...]:
        """Axes along which the dimensions of a tensor run."""
        return self._tensors[tensor].dims

    def input(self, name: str, dims: tuple[str, ...], dtype: Dtype = Dtype.COMPUTE) -> str:
        """An activation that arrives from outside the block."""
        self._inputs.append(name)
        return self.activation(name, dims, dtype)

    def activation(self, name: str, dims: tuple[str, ...], dtype: Dtype = Dtype.COMPUTE) -> str:
        """Declare an activation without an op that makes it (an op given later does)."""
        return self._tensor(Tensor(name=name, dims=dims, dtype=dtype))

    def parameter(self, name: str, dims: tuple[str, ...], *, tied_to: str | None = None) -> str:
        """Declare a learned tensor."""
        return self._tensor(Tensor(name=name, dims=dims, role=Role.PARAMETER, tied_to=tied_to))

    def _tensor(self, tensor: Tensor) -> str:
        if tensor.name in self._tensors:
            raise ModelError(f"tensor {tensor.name!r} is declared twice", where=self._name)
        self._tensors[tensor.name] = tensor
        return tensor.name

    # -- ops -----------------------------------------------------------------------------

    def op(
        self,
        name: str,
        kind: OpKind,
        inputs: tuple[str | Operand, ...],
        outputs: tuple[str | Operand, ...],
        *,
        terms: tuple[Term, ...] = (),
        saved: tuple[str, ...] = (),
        saved_fused: tuple[str, ...] = (),
        saved_unfused: tuple[str, ...] = (),
        mask: Mask | None = None,
        fused: bool = False,
    ) -> None:
        """Add any op; a tensor given by name is read along its own dimensions."""
        self._ops.append(
            Op(
                name=name,
                kind=kind,
                inputs=tuple(self._operand(i) for i in inputs),
                outputs=tuple(self._operand(o) for o in outputs),
                terms=terms,
                saved=saved,
                saved_fused=saved_fused,
                saved_unfused=saved_unfused,
                mask=mask,
                fused=fused,
            )
        )

    def _operand(self, value: str | Operand) -> Operand:
        return Operand(tensor=value, axes=self.dims(value)) if isinstance(value, str) else value

    def matmul(
        self,
        name: str,
        x: str,
        *,
        contract: tuple[str, ...],
        produce: tuple[str, ...],
        bias: bool = False,
        per: tuple[str, ...] = (),
        kind: OpKind = OpKind.MATMUL,
        tied_to: str | None = None,
        fused: bool = False,
    ) -> str:
        """``x`` times a learned weight of dims ``per + contract + produce``.

        Args:
            name: of the op and of its output; the weight is ``name.weight``.
            x: input activation; has every axis of ``contract``.
            contract: axes summed over.
            produce: axes of the output that replace them.
            bias: whether a learned bias of dims ``per + produce`` is added.
            per: axes with one weight each (experts; heads of a grouped projection). An
                axis of ``per`` that ``x`` lacks (experts) selects by token.
            kind: contraction kind; experts use ``GROUPED_MATMUL``.
            tied_to: ``"block.tensor"`` whose storage the weight shares.
            fused: see ``Op.fused``.
        """
        kept = tuple(dim for dim in self.dims(x) if dim not in contract)
        weight = self.parameter(f"{name}.weight", per + contract + produce, tied_to=tied_to)
        inputs: tuple[str, ...] = (x, weight)
        if bias:
            inputs += (self.parameter(f"{name}.bias", per + produce),)
        out = self.activation(name, kept + produce)
        self.op(
            name,
            kind,
            inputs,
            (out,),
            terms=(Term(factor=2.0, axes=kept + contract + produce),),
            saved=(x,),
            fused=fused,
        )
        return out

    def norm(
        self,
        name: str,
        x: str,
        *,
        over: str | tuple[str, ...],
        bias: bool = False,
        learned: bool = True,
    ) -> str:
        """Normalise ``x`` over the axes ``over`` with a learned scale (and shift)."""
        axes = (over,) if isinstance(over, str) else over
        inputs: tuple[str, ...] = (x,)
        if learned:
            inputs += (self.parameter(f"{name}.weight", axes),)
        if bias:
            inputs += (self.parameter(f"{name}.bias", axes),)
        out = self.activation(name, self.dims(x))
        # Mean, variance, scale and shift: about five operations per element.
        terms = (Term(factor=5.0, axes=self.dims(x)),)
        self.op(name, OpKind.NORM, inputs, (out,), terms=terms, saved=(x,))
        return out

    def elementwise(
        self,
        name: str,
        inputs: tuple[str, ...],
        *,
        dims: tuple[str, ...] | None = None,
        saved: tuple[str, ...] = (),
        factor: float = 1.0,
        fused: bool = False,
    ) -> str:
        """A pointwise op with ``factor`` operations per element of its output.

        Args:
            name: of the op and its output.
            inputs: activations and parameters that it reads.
            dims: of the output; by default those of the first input.
            saved: what its backward needs.
            factor: operations per element.
            fused: see ``Op.fused``.
        """
        out = self.activation(name, dims or self.dims(inputs[0]))
        terms = (Term(factor=factor, axes=self.dims(out)),)
        self.op(name, OpKind.ELEMENTWISE, inputs, (out,), terms=terms, saved=saved, fused=fused)
        return out

    def dropout(self, name: str, x: str) -> str:
        """Dropout with a stored mask of one byte per element."""
        mask = self.activation(f"{name}.mask", self.dims(x), Dtype.BYTE)
        out = self.activation(name, self.dims(x))
        terms = (Term(factor=1.0, axes=self.dims(x)),)
        self.op(name, OpKind.ELEMENTWISE, (x,), (out, mask), terms=terms, saved=(mask,))
        return out

    def residual(self, name: str, x: str, branch: str, *, dropout: bool = False) -> str:
        """``x`` plus a branch, with dropout on the branch when asked."""
        if dropout:
            branch = self.dropout(f"{name}.dropout", branch)
        return self.elementwise(name, (x, branch))

    def build(self, *, output: str, active_experts: int = 0, auxiliary: bool = False) -> Block:
        """The finished block."""
        used = {dim for tensor in self._tensors.values() for dim in tensor.dims}
        used |= {axis for op in self._ops for axis in op.axes}
        return Block(
            name=self._name,
            role=self._role,
            axes=tuple(axis for axis in self._axes.values() if axis.name in used),
            tensors=tuple(self._tensors.values()),
            ops=tuple(self._ops),
            inputs=tuple(self._inputs),
            output=output,
            active_experts=active_experts,
            auxiliary=auxiliary,
        )
