"""A model as modeling_*.py and configuration_*.py for transformers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from torch import nn

from specs.base.printable import printable
from specs.model.model import Model
from zoo.core.precision import in_dtype
from zoo.functional import (
    attention,
    attention_bias,
    positions_from,
    token_alignment,
    token_positions,
)
from zoo.models.stack import Stack
from zoo.remote_code import model_template, seq2seq_template, template
from zoo.remote_code.collected import IMPORTED, Collected
from zoo.remote_code.configs import config_of, configuration_class
from zoo.remote_code.heads import head_class
from zoo.remote_code.modules import Modules, mark_compared, overrides
from zoo.remote_code.parts import EmbeddedStack, parts_of, place_of
from zoo.remote_code.products import EXPERT_PRODUCT
from zoo.remote_code.refusals import check
from zoo.remote_code.stacks import cached_windows, carries_state, stack_class
from zoo.remote_code.state_template import COUNTED, STATE_CACHE, STATE_CONTEXT
from zoo.weights.ties import tied_names

_OUTPUTS = ["BaseModelOutput", "BaseModelOutputWithPast", "CausalLMOutputWithPast", "MaskedLMOutput",
            "QuestionAnsweringModelOutput", "Seq2SeqLMOutput", "Seq2SeqModelOutput", "SequenceClassifierOutput",
            "TokenClassifierOutput"]  # fmt: skip


@dataclass(frozen=True)
class RemoteCode:
    """The files of a model by name, the config without weights' dtype, and the stored name of every parameter."""

    files: dict[str, str]
    config: dict[str, Any]
    names: dict[str, str]
    copies: dict[str, tuple[str, ...]]
    """Further names under which buffers are stored that several layers share."""


def generate(model: nn.Module, spec: Model, version: str) -> RemoteCode:
    """Return the files for a model on the meta device. Raises :class:`RemoteCodeError` for what they cannot express."""
    return _Generator(model, spec, version).generate()


class _Generator:
    def __init__(self, model: Any, spec: Model, version: str) -> None:
        self.model, self.spec, self.version = model, spec, version
        base, changed, _ = spec.name.partition("+")  # a preset, and what --set changed
        name = f"{base}-variant" if changed else base
        self.prefix = (
            "".join(part[:1].upper() + part[1:] for part in re.split(r"[^A-Za-z0-9]+", name)) or "Zoo"
        )
        if not self.prefix[0].isalpha():
            self.prefix = f"Zoo{self.prefix}"
        self.module_name = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
        self.collected = Collected()
        self.modules = Modules(self.collected)
        self.parts: list[EmbeddedStack] = []

    def generate(self) -> RemoteCode:
        check(self.model, self.spec)
        mark_compared(self.model)
        self.parts = parts_of(self.model, self.spec)
        self.modules.token = self.parts[0].embedding.token
        for each, name in ((attention, "attention"), (attention_bias, "attention_bias"), (token_positions, "token_positions"),
                           (positions_from, "positions_from"), (in_dtype, "in_dtype")):  # fmt: skip
            self.collected.reference(each, name, set())
        if any(carries_state(part.stack) for part in self.parts):
            self.collected.imports |= {"field"}
            self.collected.reference(token_alignment, "token_alignment", set())
        embeddings = self._embeddings()
        classes = [stack_class(part.stack, part.name, self._modules_of(part.stack)) for part in self.parts]
        classes += [self._pretrained(), self._model(embeddings)]
        head = head_class(self.model, self.spec, self.prefix, self.modules, self._ties())
        classes += [head.text] if head.text else []
        parts = [EXPERT_PRODUCT] if "expert_product(" in self.collected.source() else []
        source = "\n\n\n".join(
            [*parts, self.collected.source(), *(each.strip() for each in (*self._shared(), *classes))]
        )
        title = f"{self.spec.name}{f': {self.spec.summary}' if self.spec.summary else ''}"
        shown = printable(title, keep="\t\n").replace("\\", "").replace('"', "'")
        header = template.HEADER.format(title=shown, version=self.version)
        config = config_of(
            self.spec, self.parts[-1].stack, self.module_name, self.prefix, head, tied=bool(self._ties())
        )
        return RemoteCode(
            {
                f"modeling_{self.module_name}.py": f"{header}\n{self._imports()}\n\n{source}\n",
                f"configuration_{self.module_name}.py": f"{header}{configuration_class(self.spec, self.parts, self.prefix, config)}",
            },
            config,
            head.names,
            self._copies(head.names),
        )

    @property
    def _own_cache(self) -> bool:
        """Whether the code has a cache of its own."""
        return self.spec.decodes and carries_state(self.parts[-1].stack)

    def _shared(self) -> list[str]:
        """What the classes of stacks use."""
        shared = [template.CONTEXT]
        if any(carries_state(part.stack) for part in self.parts):
            shared.append(STATE_CONTEXT)
        if self._own_cache:
            shared.append(STATE_CACHE.format(windows=cached_windows(self.parts[-1].stack)))
        return [*shared, template.VISIBLE]

    def _modules_of(self, stack: Stack) -> Modules:
        """The writer of modules, for those of a stack."""
        self.modules.causal = stack.causal
        return self.modules

    def _copies(self, names: dict[str, str]) -> dict[str, tuple[str, ...]]:
        buffers = {name for name, _ in self.model.named_buffers(remove_duplicate=False)}
        found: dict[str, tuple[str, ...]] = {}
        for name, first in tied_names(self.model).items():
            if name in buffers and not _is_alias(self.model, name):
                found[first] = (*found.get(first, ()), names[name])
        return found

    # The classes

    def _embeddings(self) -> list[str]:
        """The expressions that make the embeddings, which take vectors in the place of tokens."""
        made = [self.modules.constructed(part.embedding) for part in self.parts]
        for name in {each.partition("(")[0] for each in made}:
            self.collected.definitions[name] = self.collected.definitions[name].replace(
                "self.token(input_ids)",
                "(input_ids if input_ids.is_floating_point() else self.token(input_ids))",
            )
        return made

    def _pretrained(self) -> str:
        stacks = [part.stack for part in self.parts]
        mixers = [
            part
            for stack in stacks
            for block in stack.blocks
            for part in (block.attention, block.cross_attention)
        ]
        plain = all(
            getattr(each, "softcap", None) is None and getattr(each, "sinks", None) is None for each in mixers
        )
        blocks = [self.modules.constructed(block) for stack in stacks for block in stack.blocks]
        return template.PRETRAINED.format(
            prefix=self.prefix,
            name=self.spec.name,
            blocks=sorted({block.partition("(")[0] for block in blocks}),
            sdpa=plain,
            backend=len(stacks) == 1 and self.masks_for_itself(stacks[0]),
        )

    @staticmethod
    def masks_for_itself(stack: Stack) -> bool:
        """Whether other implementations of attention can take the place of the components': no scores but products."""
        adds = any(overrides(each, "bias") or overrides(each, "distances") for each in stack.positions)
        sinks = any(getattr(each, "sinks", None) is not None for each in stack.attentions.values())
        return not adds and not sinks and not carries_state(stack)

    def _model(self, embeddings: list[str]) -> str:
        ties = {
            place_of(name, self.spec): place_of(first, self.spec)
            for name, first in self._ties().items()
            if not name.startswith("head.")
        }
        typed = "token_type_ids" in self.collected.definitions[embeddings[0].partition("(")[0]]
        own, seq2seq = self._own_cache, len(self.parts) > 1
        common = {
            "prefix": self.prefix,
            "name": self.spec.name,
            "ties": ties,
            "types": ", token_type_ids" if typed else "",
            "cache": "StateCache()"
            if own
            else "DynamicCache()"
            if seq2seq
            else "DynamicCache(config=self.config)",
        }
        if not seq2seq:
            part = self.parts[0].name
            prepared = "position_ids is not None" if self.masks_for_itself(self.parts[0].stack) else "False"
            text = model_template.DECODER_MODEL if self.spec.decodes else model_template.ENCODER_MODEL
            return text.format(
                embedding=embeddings[0],
                part=part,
                stack=part.capitalize(),
                counted=COUNTED if own else "",
                prepared=prepared,
                **common,
            )
        tokens = {id(part.embedding.token) for part in self.parts}
        shared = "self.decoder.embedding.token = " if len(tokens) == 1 else ""
        encoder = seq2seq_template.ENCODER.format(embedding=embeddings[0], **common)
        counted = seq2seq_template.COUNTED if own else ""
        decoder = seq2seq_template.DECODER.format(embedding=embeddings[1], counted=counted, **common)
        model = seq2seq_template.MODEL.format(shared=shared, **common)
        return "\n\n\n".join(each.strip() for each in (encoder, decoder, model))

    def _ties(self) -> dict[str, str]:
        """The names of tied parameters, each with the name of the parameter that it is."""
        parameters = {name for name, _ in self.model.named_parameters(remove_duplicate=False)}
        return {
            name: first
            for name, first in tied_names(self.model).items()
            if name in parameters and not _is_alias(self.model, name)
        }

    def _imports(self) -> str:
        named = {"torch", "F", "nn", "Tensor", "dataclass", *self.collected.imports}
        lines = sorted({IMPORTED[name] for name in named}, key=lambda line: (line.startswith("from"), line))
        seq2seq = len(self.parts) > 1
        caches = ["Cache"] if self._own_cache else []
        caches += ["DynamicCache"] if seq2seq or not self._own_cache else []
        caches += ["EncoderDecoderCache"] if seq2seq else []
        layers = ["from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer"]
        return "\n".join(
            [
                *lines,
                f"from transformers import {', '.join(caches)}, GenerationMixin, PreTrainedModel",
                *(layers if self._own_cache else []),
                f"from transformers.modeling_outputs import {', '.join(sorted(_OUTPUTS))}",
                "from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS",
                "from transformers.utils.generic import can_return_tuple",
                "",
                f"from .configuration_{self.module_name} import {self.prefix}Config",
            ]
        )


def _is_alias(model: nn.Module, name: str) -> bool:
    """Whether a name leads through the second name of a module in its own parent, which generated classes do not have."""
    module: nn.Module = model
    for part in name.split(".")[:-1]:
        child = module.get_submodule(part)
        if not isinstance(module, nn.ModuleList):
            first = next(each for each, found in module._modules.items() if found is child)
            if first != part:
                return True
        module = child
    return False
