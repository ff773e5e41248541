"""The classes of a model's components, each specialized to its spec: equal components share one class."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterable
from typing import Any

from torch import nn

from zoo.components.attention import CrossAttention, Projections, SelfAttention
from zoo.components.block import Block
from zoo.components.convolution import Convolution1d, Convolution2d
from zoo.components.disentangled import Disentangled
from zoo.components.latent import Latent
from zoo.components.linear import EmbeddingTable, Linear
from zoo.components.mixer import Mixer
from zoo.components.position import Position, Rope
from zoo.components.sharing import AdaptedLinear
from zoo.remote_code.collected import Collected, RemoteCodeError, is_ours, written
from zoo.remote_code.interface import dispatched
from zoo.remote_code.kinds import body_of
from zoo.remote_code.specialize import class_functions, specialized

INDENT = "    "


class Modules:
    """Writes the classes of modules into ``collected``."""

    def __init__(self, collected: Collected) -> None:
        self.collected = collected
        self._classes: dict[int, str] = {}
        self._needs_config: set[str] = set()
        self.token: nn.Module | None = None
        self.causal = True

    def constructed(self, module: nn.Module) -> str:
        """The expression that makes a module."""
        if isinstance(module, nn.ModuleList):
            return f"nn.ModuleList([{', '.join(map(self.constructed, module))}])"
        if isinstance(module, nn.Dropout):
            return f"nn.Dropout({module.p!r})"
        if isinstance(module, Linear) and type(module) is Linear:
            name = self.collected.reference(Linear, "Linear", set())
            return f"{name}({module.in_features}, {module.out_features}, bias={module.bias is not None})"
        if isinstance(module, EmbeddingTable) and type(module) is EmbeddingTable:
            name = self.collected.reference(EmbeddingTable, "EmbeddingTable", set())
            rows = "config.vocab_size" if module is self.token else str(module.num_embeddings)
            return f"{name}({rows}, {module.embedding_dim})"
        if isinstance(module, Convolution1d | Convolution2d):
            name = self.collected.reference(type(module), type(module).__name__, set())
            options = "".join(
                f", {each}={getattr(module, each)!r}" for each in ("stride", "padding", "groups")
            )
            return (
                f"{name}({module.in_channels}, {module.out_channels}, {module.kernel_size!r}{options}, "
                f"bias={module.bias is not None})"
            )
        name = self.written(module)
        return f"{name}({'config' if name in self._needs_config else ''})"

    def written(self, module: nn.Module) -> str:
        """The name of the class of a module."""
        if id(module) not in self._classes:
            if not is_ours(type(module)):
                raise RemoteCodeError(f"Module {type(module).__name__} cannot be written")
            if isinstance(module, AdaptedLinear):
                raise RemoteCodeError(
                    f"{type(module).__name__} cannot be written as remote code\n  Remove the adapters of shared layers."
                )
            self._classes[id(module)] = self._write(module)
        return self._classes[id(module)]

    def _write(self, module: nn.Module) -> str:
        long: dict[str, Any] = {}
        methods = self.methods(module, [*entries(module), *self.collected.entries.get(id(module), [])], long)
        text = "\n\n".join(textwrap.indent(each, INDENT) for each in methods.values())
        lines, needs = self.parts(module, text)
        if isinstance(module, Projections | Latent):
            needs = True
            lines = ["self.config = config", *lines]
        attributes = [_assigned(name, value) for name, value in {**self._facts(module), **long}.items()]
        head = f"def __init__(self{', config' if needs else ''}):"
        linear = isinstance(module, nn.Linear)
        sizes = (
            f"{module.in_features}, {module.out_features}, bias={module.bias is not None}" if linear else ""
        )
        init = "\n".join([head, f"{INDENT}super().__init__({sizes})", *(INDENT + line for line in lines)])
        doc = inspect.getdoc(type(module)) or ""
        parts = [f'"""{doc}"""'] if doc else []
        parts += ["\n".join(attributes)] if attributes else []
        parts += [init] if lines or linear else []
        body = textwrap.indent("\n\n".join(parts), INDENT)
        joined = "\n\n".join(filter(None, [body, text])) or f"{INDENT}pass"
        name = self.collected.add_class(
            type(module).__name__, f"class {{name}}({'nn.Linear' if linear else 'nn.Module'}):\n{joined}"
        )
        if needs:
            self._needs_config.add(name)
        return name

    def methods(self, module: nn.Module, names: Iterable[str], long: dict[str, Any]) -> dict[str, str]:
        """The text of methods of a module, and of those that they call."""
        wanted, made = list(names), {}
        attends = isinstance(module, Projections | Latent)
        while wanted:
            each = wanted.pop(0)
            name, _, base = each.partition(":")
            if each in made:
                continue
            functions = list(class_functions(module, name))
            function = (
                functions[0]
                if not base
                else next(f for f in functions if f.__qualname__.startswith(f"{base}."))
            )
            called: set[str] = set()
            known = self._known(module, name)
            tree = specialized(self.collected, module, function, body_of(module), known, long, called)
            if base:
                tree.name = f"base_{name}"
            made[each] = tree
            wanted += sorted(called)
        trees = dispatched(made) if attends else made
        return {each: written(tree) for each, tree in trees.items()}

    @staticmethod
    def _known(module: nn.Module, name: str) -> dict[str, Any]:
        """The values of parameters that are the same in every call."""
        if isinstance(module, Rope) and name == "rotate":
            if module.spec.sections is not None:
                raise RemoteCodeError("RoPE along several axes cannot be written as remote code")
            if module.spec.rotates == "input":
                raise RemoteCodeError("RoPE of the input of attention cannot be written as remote code")
            if len(module._prepared) != 1:
                raise RemoteCodeError("RoPE for heads of several widths cannot be written as remote code")
            return {"width": next(iter(module._prepared))}
        return {}

    def parts(self, module: nn.Module, text: str) -> tuple[list[str], bool]:
        """The statements that make the parameters, buffers and children of a module, and whether they need the config."""
        lines, needs, seen = [], False, set()
        own = {} if isinstance(module, nn.Linear) else module._parameters
        for name, parameter in own.items():
            if parameter is not None:
                shape = ", ".join(map(str, parameter.shape))
                frozen = "" if parameter.requires_grad else ", requires_grad=False"
                lines.append(f"self.{name} = nn.Parameter(torch.empty({shape}){frozen})")
                self.collected.imports.add("torch")
        for name, buffer in module._buffers.items():
            if buffer is not None:
                self.collected.imports.add("torch")
                lines.append(f'self.register_buffer("{name}", torch.empty({tuple(buffer.shape)}))')
        for name, child in module._modules.items():
            used = re.search(rf"self\.{name}\b", text) is not None
            if child is None or id(child) in seen or not (used or [*child.parameters()]):
                continue
            seen.add(id(child))
            made = self.constructed(child)
            needs = needs or "config" in made
            lines.append(f"self.{name} = {made}")
        return lines, needs

    def _facts(self, module: nn.Module) -> dict[str, Any]:
        """The attributes by which others know a module."""
        if isinstance(module, Position):
            return {"name": module.name}
        if isinstance(module, Latent):
            return {
                "scale": module.scale,
                "is_causal": self.causal,
                "num_key_value_groups": 1,
                "sliding_window": None,
            }
        if isinstance(module, Projections):
            cross = isinstance(module, CrossAttention)
            return {
                "scale": module.scale,
                "is_causal": self.causal and not cross,
                "num_key_value_groups": module.heads // module.key_value_heads,
                "sliding_window": None if cross else getattr(module, "window", None),
            }
        if isinstance(module, Mixer):
            return {"state_names": tuple(each.name for each in module.state)}
        return {}


def _assigned(name: str, value: object) -> str:
    """A class attribute, on several lines where it is long."""
    text = f"{name} = {value!r}"
    if len(text) <= 110:
        return text
    inner = textwrap.fill(repr(value)[1:-1], 104, initial_indent=INDENT, subsequent_indent=INDENT)
    return f"{name} = (\n{inner},\n)"


def entries(module: nn.Module) -> list[str]:
    """The methods of a module that others call."""
    if isinstance(module, Position):
        return [*position_methods(module)]
    if isinstance(module, Block):
        return ["layer"]
    if isinstance(module, CrossAttention):
        return ["forward", "keys_values"]
    if isinstance(module, SelfAttention) and compares(module):
        return ["forward", "queries", "keys"]
    return ["forward"]


def compares(module: SelfAttention) -> bool:
    """Whether an attention may be compared with vectors of distances."""
    return getattr(module, "compared", False)


def position_methods(position: Position) -> tuple[str, ...]:
    """The methods of a position that its stack and its attentions call."""
    if type(position).embed is not Position.embed:
        return ("embed",)
    further = ("bias", "distances", "compare")
    return ("rotate", "scale_queries", *(each for each in further if overrides(position, each)))


def overrides(position: Position, method: str) -> bool:
    """Whether a kind of position has a method of its own."""
    return getattr(type(position), method) is not getattr(Position, method)


def mark_compared(model: nn.Module) -> None:
    """Mark attentions in a model with disentangled positions, whose queries and keys of vectors others ask for."""
    if any(isinstance(each, Disentangled) for each in model.modules()):
        for each in model.modules():
            if isinstance(each, SelfAttention):
                each.compared = True  # type: ignore[assignment]
