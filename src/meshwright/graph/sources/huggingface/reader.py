"""A ``config.json`` as the readers of families see it."""

from __future__ import annotations

from collections.abc import Mapping

from meshwright.graph.sources.huggingface.fields import MAX_LAYERS, MAX_SIZE, FieldReader
from meshwright.graph.sources.huggingface.values import shown

__all__ = ["MAX_LAYERS", "MAX_SIZE", "ConfigReader"]


class ConfigReader(FieldReader):
    """Fields, nested objects, and fields that constrain each other.

    Args:
        values: the parsed JSON object.
        where: what the messages call it, e.g. ``"config.json"``.
        path: of the object inside the document, with a dot at its end.
        assumptions: shared with the readers of nested objects.
    """

    def __init__(
        self,
        values: Mapping[str, object],
        *,
        where: str = "config.json",
        path: str = "",
        assumptions: list[str] | None = None,
    ) -> None:
        super().__init__(values, where=where, path=path)
        self._assumptions = [] if assumptions is None else assumptions

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What ``assume`` collected, here and in readers made by ``sub``."""
        return tuple(self._assumptions)

    def assume(self, sentence: str) -> None:
        """Record what had to be assumed, as a full sentence."""
        if sentence not in self._assumptions:
            self._assumptions.append(sentence)

    # -- nested objects --------------------------------------------------------------------

    def sub(self, *names: str) -> ConfigReader | None:
        """A reader of the nested object (``text_config``), or ``None`` when absent."""
        name = self._present(names)
        if name is None:
            return None
        value = self._values[name]
        if not isinstance(value, Mapping):
            raise self.error(
                f"{name} is {shown(value)}", name, allowed="an object", fix="give an object"
            )
        return ConfigReader(
            value,
            where=self._where,
            path=f"{self._path}{name}.",
            assumptions=self._assumptions,
        )

    def text_model(self) -> ConfigReader:
        """The nested ``text_config`` where there is one, else this reader."""
        return self.sub("text_config", "llm_config", "language_config") or self

    def entries(self, *names: str, length: int | None = None) -> tuple[ConfigReader, ...] | None:
        """A list of objects (``block_configs``), each as a reader, or ``None`` when absent."""
        name = self._present(names)
        if name is None:
            return None
        readers = []
        for i, entry in enumerate(self._entries(name, length)):
            item = f"{name}[{i}]"
            if not isinstance(entry, Mapping):
                raise self.error(
                    f"{item} is {shown(entry)}", item, allowed="an object", fix=f"correct {name}"
                )
            readers.append(
                ConfigReader(
                    entry,
                    where=self._where,
                    path=f"{self._path}{item}.",
                    assumptions=self._assumptions,
                )
            )
        return tuple(readers)

    # -- fields that constrain each other --------------------------------------------------

    def head_dim(self, *, hidden: int, heads: int, names: tuple[str, ...] = ("head_dim",)) -> int:
        """The width of one head: its own field, or ``hidden / heads``."""
        if self.has(*names):
            return self.positive(*names)
        if hidden % heads:
            raise self.error(
                f"hidden size {hidden} is not divisible by {heads} attention heads",
                allowed="a hidden size that is a multiple of the heads, or an explicit head_dim",
                fix="correct one of the two, or give head_dim",
            )
        return hidden // heads

    def kv_heads(self, *names: str, heads: int, default: int | None = None) -> int:
        """Key and value heads; they divide the query heads."""
        kv_heads = self.positive(*names, default=heads if default is None else default)
        if heads % kv_heads:
            raise self.error(
                f"{heads} attention heads are not divisible by {kv_heads} key-value heads",
                self._present(names) or names[0],
                allowed=f"a divisor of {heads}",
                fix="correct one of the two",
            )
        return kv_heads

    def top_k(self, *names: str, experts: int, default: int | None = None) -> int:
        """Experts per token; no more than there are."""
        top_k = self.positive(*names, default=default)
        if top_k > experts:
            raise self.error(
                f"a token chooses {top_k} of {experts} experts",
                self._present(names) or names[0],
                allowed=f"1 to {experts}",
                fix="correct one of the two",
            )
        return top_k
