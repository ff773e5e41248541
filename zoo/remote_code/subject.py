"""The model that is written, and what its files ask about it."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any

from specs.model.model import Model
from zoo.models.stack import stacks_of
from zoo.remote_code.attentions import Attentions, state_names
from zoo.remote_code.bindings import RemoteCodeError
from zoo.remote_code.heads import StoredHead, class_of
from zoo.remote_code.recording import attention_calls
from zoo.weights.ties import tied_names


class Subject:
    """A model on the meta device, with its spec and the names of its classes and files.

    Raises :class:`RemoteCodeError` for a model whose inputs the classes of transformers cannot pass on.
    """

    def __init__(self, model: Any, spec: Model) -> None:
        self.model, self.spec = model, spec
        if spec.packs_images:
            raise RemoteCodeError(
                f"{spec.name}: images of any size cannot be written as remote code\n"
                "  Use images of one size, or a family that can express the spec."
            )
        self.prefix, self.file = _names_of(spec)
        self.input = spec.embedding_of(spec.first_stack).input_name
        self.head = class_of(spec, self.input)
        self.stored_head = None if self.head is None else StoredHead.of(model.head)
        self.attentions = Attentions.of(model, attention_calls(model, spec))
        stacks = stacks_of(model)
        self.stacks = {name: stacks[name] for name, _ in spec.stacks()}
        self.main = "decoder" if spec.decodes else next(iter(self.stacks))
        self.stack = self.stacks[self.main]
        self.own_cache = spec.decodes and any(names != ("key", "value") for names in state_names(self.stack))

    @property
    def embeddings(self) -> dict[str, Any]:
        """The embeddings of stacks, by name, those with a token table first."""
        names = ["embedding", *(f"{name}_embedding" for name in self.stacks)]
        modules = self.model._modules
        embeddings = {name: modules[name] for name in names if name in modules}
        return dict(sorted(embeddings.items(), key=lambda pair: pair[1].token is None))

    @property
    def tables(self) -> dict[str, Any]:
        """The tables of tokens, by the names of embeddings."""
        embeddings = self.embeddings.items()
        return {name: embedding.token for name, embedding in embeddings if embedding.token is not None}

    @cached_property
    def names(self) -> dict[str, str]:
        """The stored name of every parameter and buffer."""
        tensors = [
            *self.model.named_parameters(remove_duplicate=False),
            *self.model.named_buffers(remove_duplicate=False),
        ]
        return {name: self._stored(name) for name, _ in tensors}

    def _stored(self, name: str) -> str:
        if self.stored_head is None:
            return name
        return self.stored_head.name(name) if name.startswith("head.") else f"model.{name}"

    def ties(self, written: set[str]) -> dict[str, str]:
        """The names of tied parameters in the file, each with the name of the parameter that it is."""
        parameters = {name for name, _ in self.model.named_parameters(remove_duplicate=False)}
        tied = tied_names(self.model).items()
        return {name: first for name, first in tied if name in parameters & written}

    def copies(self, written: set[str]) -> dict[str, tuple[str, ...]]:
        """The further stored names of buffers that several layers share."""
        buffers = {name for name, _ in self.model.named_buffers(remove_duplicate=False)}
        copies: dict[str, tuple[str, ...]] = {}
        for name, first in tied_names(self.model).items():
            if name in buffers & written:
                copies[first] = (*copies.get(first, ()), self.names[name])
        return copies


def _names_of(spec: Model) -> tuple[str, str]:
    """The prefix of the classes, and the end of the files' names."""
    base, changed, _ = spec.name.partition("+")  # a preset, and what --set changed
    name = f"{base}-variant" if changed else base
    prefix = "".join(part[:1].upper() + part[1:] for part in re.split(r"[^A-Za-z0-9]+", name)) or "Zoo"
    prefix = prefix if prefix[0].isalpha() else f"Zoo{prefix}"
    return prefix, re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
