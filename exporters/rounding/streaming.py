"""Rounding of weights for their inputs, in one streaming pass of a model over calibration inputs.

Each linear layer is rounded when the pass reaches it and then runs with its rounded weight, so that later layers see the same
inputs as in use. Only the weights of one layer are in memory at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from exporters.graph.quantization.matrix import whole_rows
from exporters.graph.quantization.scheme import is_table
from exporters.rounding.calibrated_weights import CalibratedWeights, Rounding
from exporters.rounding.experts import RoundedExperts
from exporters.rounding.gptq import gptq, products_of
from exporters.rounding.input_search import searched_inputs
from exporters.rounding.scales import searched
from zoo.builder import ZooModel
from zoo.components.mixer import State
from zoo.components.mixture import Experts, Matrices
from zoo.components.position import Position
from zoo.components.router import Router
from zoo.core.tensors import weight_tensors
from zoo.models.stack import Stack
from zoo.weights.blocks import Quantized
from zoo.weights.input_scales import InputScales
from zoo.weights.materialize import whole
from zoo.weights.source import WeightSource

Rows = Callable[[Tensor | None], None]
"""Sets the rows of layer inputs that are real tokens: B T booleans; None for all."""

Run = Callable[[ZooModel, Rows], object]
"""Runs a model once over all calibration inputs, and marks the rows that are real tokens."""

OnProgress = Callable[[int, int], None]
"""Reports the number of matrices rounded, and the total."""


def calibrate(
    model: ZooModel,
    source: WeightSource,
    roundings: Mapping[str, Rounding],
    run: Run,
    directory: Path,
    report: OnProgress,
) -> CalibratedWeights:
    """Round matrices of a model for the inputs of ``run``; the model is on the meta device and stays there.

    Linear layers are rounded by GPTQ (:mod:`exporters.rounding.gptq`), shared layers for their first use, experts for the
    tokens that choose them, and tables with the scales of least error. Errors of the source and of ``run`` are passed on.
    """
    weights = CalibratedWeights(source, directory)
    tables = [name for name in roundings if is_table((name,))]
    passing = _Pass(model, weights, roundings, lambda done: report(len(tables) + done, len(roundings)))
    with torch.no_grad():
        for done, name in enumerate(tables):
            report(done, len(roundings))
            weights.keep(name, roundings[name], _searched(source, name, roundings[name], passing.width(name)))
        with passing.hooked(), suppress(_ScoringError):
            run(model, passing.set_real_rows)
    return weights


def _searched(source: WeightSource, name: str, rounding: Rounding, width: int) -> Quantized:
    return Quantized.joined(
        searched(rounding.blocks, rows, None, rounding.dtype)
        for rows in whole_rows(source.pieces(name), width)
    )


class _ScoringError(Exception):
    """Ends the pass after the last layer, before the vocabulary is scored."""


class _Pass:
    """One pass through a model whose weights are loaded when needed, and released."""

    def __init__(
        self,
        model: ZooModel,
        weights: CalibratedWeights,
        roundings: Mapping[str, Rounding],
        report: Callable[[int], None],
    ) -> None:
        self._model, self._weights, self._roundings, self._report = model, weights, roundings, report
        self._real: Tensor | None = None
        self._names = {id(tensor): name for name, tensor in weight_tensors(model)}
        self._shapes = {name: tensor.shape for name, tensor in weight_tensors(model)}
        self._meta: dict[tuple[nn.Module, str], Tensor] = {}
        self._seen: tuple[Tensor, InputScales | None, Tensor] | None = None
        self._done = 0
        self._reused = set[nn.Module]()
        positions = (module for module in model.modules() if isinstance(module, Position))
        self._position_modules = {module for position in positions for module in position.modules()}
        """Position modules: owned by blocks, called by the stack before them."""

    def set_real_rows(self, real: Tensor | None) -> None:
        """Set the rows of layer inputs that are real tokens, from now on."""
        self._real = None if real is None or bool(real.all()) else real

    def width(self, name: str) -> int:
        """The columns of a matrix."""
        return self._shapes[name][1]

    @contextmanager
    def hooked(self) -> Iterator[None]:
        """A context in which the model runs as if it had its weights."""
        blocks = {
            block for path, block in self._model.named_modules() if path.rpartition(".")[0].endswith("blocks")
        }
        within = {module for block in blocks for module in block.modules()} - self._position_modules
        stacks = [stack for stack in self._model.modules() if isinstance(stack, Stack)]
        self._reused = {stack.blocks[source] for stack in stacks for source in stack.reused_layers()}
        with ExitStack() as hooks:
            hooks.callback(self._leave_all)
            for module in self._model.modules():
                if isinstance(module, Matrices):
                    continue  # read expert by expert
                self._hook(module, hooks, is_block=module in blocks, is_within=module in within)
                if module not in within and not self._is_matrix(module):
                    self._fill(module)
            yield

    def _hook(self, module: nn.Module, hooks: ExitStack, *, is_block: bool, is_within: bool) -> None:
        """Load and release a module's weights around its calls, until ``hooks`` are closed."""
        before: Callable[..., Any] | None = None
        after: Callable[..., Any] | None = None
        if isinstance(module, Experts):
            module.forward = partial(self._run_experts, module)  # type: ignore[method-assign]
            hooks.callback(delattr, module, "forward")
        elif self._is_matrix(module):  # a router chooses after its product, and is released with its block
            before, after = self._enter_matrix, None if isinstance(module, Router) else self._leave
        elif is_block:
            before, after = self._enter_block, self._leave_block
        elif is_within and not [*module.children()]:  # norms are called outside blocks, too
            before, after = self._enter, self._leave
        if before is not None:
            hooks.callback(module.register_forward_pre_hook(before).remove)
        if after is not None:
            hooks.callback(module.register_forward_hook(after).remove)

    def _leave_all(self) -> None:
        for module in {module for module, _ in self._meta}:
            self._leave(module)

    def _is_matrix(self, module: nn.Module) -> bool:
        if isinstance(module, nn.Embedding):
            return is_table((self._names[id(module.weight)],))
        return isinstance(module, nn.Linear)

    def _enter_block(self, block: nn.Module, args: object) -> None:
        for module in set(block.modules()) - self._position_modules:
            if not self._is_matrix(module) and not isinstance(module, Matrices):
                self._fill(module)

    def _leave_block(
        self, block: nn.Module, args: object, result: tuple[Tensor, State]
    ) -> tuple[Tensor, State]:
        """Release the weights of a block, and its state unless a later block reads it."""
        for module in block.modules():
            self._leave(module)
        self._seen = None
        x, state = result
        if block in self._reused:
            return result
        return x, tuple(tensor[:0].clone() for tensor in state)

    def _enter(self, module: nn.Module, args: object) -> None:
        self._fill(module)

    def _enter_matrix(self, module: nn.Module, args: tuple[Tensor]) -> Tensor | None:
        """Round a layer's weight, and its inputs if their scales are static."""
        weight = module.weight
        assert isinstance(weight, Tensor)
        name = self._names[id(weight)]
        if isinstance(module, nn.Linear) and is_table((name,)):
            raise _ScoringError
        rounding = self._roundings.get(name)
        if rounding is None:
            self._fill(module)
            return None
        width, x = weight.shape[-1], args[0]
        scales = None if rounding.inputs is None else self._input_scales(rounding, x)
        rounded = self._weights.restored(name, width)
        if rounded is None:
            values = whole(weight, self._weights.pieces(name))
            values = values if scales is None else values / scales.multipliers
            products = self._products(x, scales)
            self._weights.keep(name, rounding, gptq(rounding.blocks, values, products, rounding.dtype))
            self._done += 1
            self._report(self._done)
            rounded = self._weights.restored(name, width)
            assert rounded is not None
        self._fill(module, weight=rounded)
        return None if scales is None else scales.rounded(x)

    def _run_experts(self, experts: Experts, x: Tensor, weights: Tensor, chosen: Tensor) -> Tensor:
        """Round the experts of a mixture, and return the mixture of the rounded experts."""
        rounded = RoundedExperts(experts, self._weights, self._roundings, self._names)
        before = len(self._weights.calibrated)
        result = rounded.run(x.float(), weights.float(), chosen, self._real).to(x.dtype)
        self._done += len(self._weights.calibrated) - before
        self._report(self._done)
        return result

    def _input_scales(self, rounding: Rounding, x: Tensor) -> InputScales:
        """The scales of a product's inputs, searched at the first of its layers."""
        known = self._weights.input_scales(rounding.names)
        if known is not None:
            return known
        assert rounding.inputs is not None
        weights = [
            whole(torch.empty(self._shapes[name], device="meta"), self._weights.pieces(name))
            for name in rounding.names
        ]
        input_scales = searched_inputs(
            self._rows(x), torch.cat(weights).float(), rounding.blocks, rounding.inputs
        )
        self._weights.keep_inputs(rounding.names, input_scales)
        return input_scales

    def _products(self, x: Tensor, scales: InputScales | None) -> Tensor:
        """The products of all real tokens, ... K -> K K, of x as multiplied; parallel layers share x."""
        if self._seen is None or self._seen[0] is not x or self._seen[1] is not scales:
            rows = self._rows(x)
            rows = rows if scales is None else scales.rounded(rows) * scales.multipliers
            self._seen = x, scales, products_of(rows)
        return self._seen[2]

    def _rows(self, x: Tensor) -> Tensor:
        """The real tokens, ... K -> M K."""
        padded = self._real is not None and x.shape[:-1] == self._real.shape
        return (x[self._real] if padded else x.flatten(0, -2)).float()

    def _fill(self, module: nn.Module, **known: Tensor) -> None:
        """Load a module's weights, unless they are loaded."""
        for held in (module._parameters, module._buffers):
            for leaf, tensor in held.items():
                if tensor is None or id(tensor) not in self._names:
                    continue
                values = known.get(leaf)
                if values is None:
                    values = whole(tensor, self._weights.pieces(self._names[id(tensor)]))
                self._meta[module, leaf] = tensor
                held[leaf] = nn.Parameter(values, False) if isinstance(tensor, nn.Parameter) else values  # type: ignore[assignment]

    def _leave(self, module: nn.Module, *run: object) -> None:
        """Release a module's weights."""
        for held in (module._parameters, module._buffers):
            for leaf in held:
                if (tensor := self._meta.pop((module, leaf), None)) is not None:
                    held[leaf] = tensor  # type: ignore[assignment]
