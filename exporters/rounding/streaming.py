"""Rounding weights for their inputs, in one streaming pass of a model over calibration inputs.

Each linear layer is rounded when the pass reaches it and continues with its rounded weight, so that later layers see
the inputs that they will see in use. Only the weights of one layer are held at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map_only
from torch.utils.hooks import RemovableHandle

from exporters.graph.quantization.matrix import whole_rows
from exporters.graph.quantization.scheme import is_table
from exporters.rounding.calibrated_weights import CalibratedWeights, Rounding
from exporters.rounding.experts import RoundedExperts
from exporters.rounding.gptq import FactoredProducts, check_finite, gptq, products_of
from exporters.rounding.input_search import searched_inputs
from exporters.rounding.scales import searched
from zoo import functional
from zoo.builder import ZooModel
from zoo.components.mixer import State
from zoo.components.mixture import Experts, Matrices
from zoo.components.router import Router
from zoo.components.spans import LstmLayer
from zoo.core.tensors import weight_tensors
from zoo.models.stack import stacks_of
from zoo.weights.blocks import Quantized
from zoo.weights.input_scales import InputScales
from zoo.weights.source import WeightSource

Rows = Callable[[Tensor | None], None]
"""Sets which rows of the inputs of layers are tokens and not padding: B T booleans; None for all."""

Run = Callable[[ZooModel, Rows], object]
"""Runs a model once over all calibration inputs, and marks the rows that are tokens."""

OnProgress = Callable[[int, int], None]
"""Receives the number of matrices rounded, and the total."""


def calibrate(
    model: ZooModel,
    source: WeightSource,
    roundings: Mapping[str, Rounding],
    run: Run,
    directory: Path,
    on_progress: OnProgress,
) -> CalibratedWeights:
    """Round matrices of a model, which is on the meta device and stays there, for the inputs that ``run`` provides.

    Linear layers are rounded by GPTQ (:mod:`exporters.rounding.gptq`), shared ones for their first use; experts for the
    tokens that choose them; tables by the scales of least error. Errors of the source and of ``run`` are passed on.
    """
    calibrated = CalibratedWeights(source, directory)
    tables = {name: rounding for name, rounding in roundings.items() if is_table((name,))}
    streamed = _Pass(
        model, calibrated, roundings, lambda done: on_progress(len(tables) + done, len(roundings))
    )
    with torch.no_grad():
        round_to_nearest(model, calibrated, tables, lambda done: on_progress(done, len(roundings)))
        with streamed.hooked(), streamed:
            run(model, streamed.choose_rows)
    return calibrated


def round_to_nearest(
    model: ZooModel,
    weights: CalibratedWeights,
    roundings: Mapping[str, Rounding],
    on_progress: Callable[[int], None],
) -> None:
    """Set the nearest codes of matrices of a model, for the scales of least error whatever the inputs."""
    tensors = dict(weight_tensors(model))
    for done, (name, rounding) in enumerate(roundings.items()):
        on_progress(done)
        rows = whole_rows(weights.pieces(name), tensors[name].shape[-1])
        codes = (searched(rounding.blocks, part, None, rounding.dtype) for part in rows)
        weights.keep(name, rounding, Quantized.joined(codes))


class _Pass(TorchFunctionMode):
    """One pass through a model whose weights are loaded when needed, and released.

    Experts are run one by one. From the scores of the vocabulary on, nothing is computed: those tensors are on the meta
    device, as the weight of the scores is.
    """

    def __init__(
        self,
        model: ZooModel,
        calibrated: CalibratedWeights,
        roundings: Mapping[str, Rounding],
        on_progress: Callable[[int], None],
    ) -> None:
        super().__init__()
        self._model, self._calibrated, self._roundings, self._on_progress = (
            model,
            calibrated,
            roundings,
            on_progress,
        )
        self._real: Tensor | None = None
        self._names = {id(tensor): name for name, tensor in weight_tensors(model)}
        self._shapes = {name: tensor.shape for name, tensor in weight_tensors(model)}
        self._meta: dict[tuple[nn.Module, str], Tensor] = {}
        self._products_of: tuple[Tensor, InputScales | None, FactoredProducts] | None = None
        self._checked: Tensor | None = None
        self._done = 0
        self._scored = False
        self._experts = {
            id(module.up.weight): module for module in model.modules() if isinstance(module, Experts)
        }
        stacks = stacks_of(model).values()
        self._reused = {stack.blocks[source] for stack in stacks for source in stack.reused_layers()}
        """The blocks whose keys and values a later block reads."""
        positions = [position for stack in stacks for position in stack.positions]
        self._of_positions = {module for position in positions for module in position.modules()}
        """The modules of positions: owned by blocks, called by the stack before them."""

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        options = kwargs or {}
        if function is functional.mixture_of_experts:
            return self._run_experts(*args, **options)
        if self._scored:
            args, options = tree_map_only(Tensor, lambda tensor: tensor.to("meta"), (args, options))
        return function(*args, **options)

    def choose_rows(self, real: Tensor | None) -> None:
        """Set the rows that layers see from now on."""
        self._real = None if real is None or bool(real.all()) else real

    @contextmanager
    def hooked(self) -> Iterator[None]:
        """A context in which the model runs as if it had its weights."""
        blocks = {
            block for path, block in self._model.named_modules() if path.rpartition(".")[0].endswith("blocks")
        }
        within = {module for block in blocks for module in block.modules()} - self._of_positions
        handles: list[RemovableHandle] = []
        try:
            for module in self._model.modules():
                handles += self._hooks(module, is_block=module in blocks, in_block=module in within)
                if module not in within and not self._is_matrix(module):
                    self._fill(module)
            yield
        finally:
            for handle in handles:
                handle.remove()
            for module in {module for module, _ in self._meta}:
                self._leave(module)

    def _hooks(self, module: nn.Module, *, is_block: bool, in_block: bool) -> Iterator[RemovableHandle]:
        """Load the weights of a module when it is called, and release them after."""
        if isinstance(module, Matrices):
            return  # read expert by expert
        if isinstance(module, LstmLayer):
            # It reads the matrices of its gates, which stay floats, without calling them.
            yield module.register_forward_pre_hook(self._enter_whole)
            yield module.register_forward_hook(self._leave_whole)
            return
        if self._is_matrix(module):
            yield module.register_forward_pre_hook(self._enter_matrix)
            if not isinstance(module, Router):  # it chooses after its product, and is left with its block
                yield module.register_forward_hook(self._leave)
        elif is_block:
            yield module.register_forward_pre_hook(self._enter_block)
            yield module.register_forward_hook(self._leave_block)
        elif in_block and not [*module.children()]:  # norms are called outside blocks, too
            yield module.register_forward_pre_hook(self._enter)
            yield module.register_forward_hook(self._leave)

    def _is_matrix(self, module: nn.Module) -> bool:
        if isinstance(module, nn.Embedding):
            return is_table((self._names[id(module.weight)],))
        return isinstance(module, nn.Linear)

    def _enter_block(self, block: nn.Module, args: object) -> None:
        for module in set(block.modules()) - self._of_positions:
            if not self._is_matrix(module) and not isinstance(module, Matrices):
                self._fill(module)

    def _leave_block(
        self, block: nn.Module, args: object, result: tuple[Tensor, State]
    ) -> tuple[Tensor, State]:
        """Release the weights of a block, and its state where no later block reads it."""
        self._leave_whole(block)
        self._products_of = self._checked = None
        x, state = result
        if block in self._reused:
            return result
        return x, tuple(tensor[:0].clone() for tensor in state)

    def _enter(self, module: nn.Module, args: object) -> None:
        self._fill(module)

    def _enter_whole(self, module: nn.Module, args: object) -> None:
        for part in module.modules():
            self._fill(part)

    def _leave_whole(self, module: nn.Module, *run: object) -> None:
        for part in module.modules():
            self._leave(part)

    def _enter_matrix(self, module: nn.Module, args: tuple[Tensor]) -> Tensor | None:
        """Round a layer's weight, and its inputs where their scales are static."""
        weight = module.weight
        assert isinstance(weight, Tensor)
        name = self._names[id(weight)]
        if isinstance(module, nn.Linear) and is_table((name,)):
            self._scored = True
            return args[0].to("meta")
        rounding = self._roundings.get(name)
        if rounding is None:
            self._fill(module)
            return None
        width, x = weight.shape[-1], args[0]
        if isinstance(module, nn.Linear) and self._checked is not x:  # a table reads token ids
            check_finite(self._rows(x), name)
            self._checked = x
        scales = None if rounding.inputs is None else self._input_scales(rounding, x)
        rounded = self._calibrated.restored(name, width)
        if rounded is None:
            values = self._calibrated.whole(name, weight)
            values = values if scales is None else values / scales.multipliers
            products = self._products(x, scales)
            with torch._C.DisableTorchFunction():  # this mode takes as long as a small operation
                codes = gptq(rounding.blocks, values, products, rounding.dtype)
            self._calibrated.keep(name, rounding, codes)
            self._done += 1
            self._on_progress(self._done)
            rounded = self._calibrated.restored(name, width)
            assert rounded is not None
        self._fill(module, weight=rounded)
        return None if scales is None else scales.rounded(x)

    def _run_experts(
        self,
        x: Tensor,
        weights: Tensor,
        chosen: Tensor,
        into: tuple[functional.ExpertMatrices, ...],
        *others: Any,
        of_input: bool,
    ) -> Tensor:
        """Round the experts of a mixture, and return the result of :func:`zoo.functional.mixture_of_experts`."""
        experts = self._experts[id(into[0].weight)]
        rounded = RoundedExperts(experts, self._calibrated, self._roundings, self._names)
        before = len(self._calibrated.calibrated)
        result = rounded.run(x.float(), weights.float(), chosen, self._real, of_input=of_input).to(x.dtype)
        self._done += len(self._calibrated.calibrated) - before
        self._on_progress(self._done)
        return result

    def _input_scales(self, rounding: Rounding, x: Tensor) -> InputScales:
        """How to round the inputs of a product, found at the first of its layers."""
        known = self._calibrated.input_scales(rounding.names)
        if known is not None:
            return known
        assert rounding.inputs is not None
        weights = [
            self._calibrated.whole(name, torch.empty(self._shapes[name], device="meta"))
            for name in rounding.names
        ]
        scales = searched_inputs(self._rows(x), torch.cat(weights).float(), rounding.blocks, rounding.inputs)
        self._calibrated.keep_inputs(rounding.names, scales)
        return scales

    def _products(self, x: Tensor, scales: InputScales | None) -> FactoredProducts:
        """The products of all tokens of x, ... K, as it is multiplied; parallel layers share x."""
        if self._products_of is None or self._products_of[0] is not x or self._products_of[1] is not scales:
            rows = self._rows(x)
            rows = rows if scales is None else scales.rounded(rows) * scales.multipliers
            self._products_of = x, scales, FactoredProducts.of(products_of(rows))
        return self._products_of[2]

    def _rows(self, x: Tensor) -> Tensor:
        """The tokens without padding, ... K -> M K."""
        padded = self._real is not None and x.shape[:-1] == self._real.shape
        return (x[self._real] if padded else x.flatten(0, -2)).float()

    def _fill(self, module: nn.Module, **known: Tensor) -> None:
        """Load a module's weights, except those that are loaded already."""
        for held in (module._parameters, module._buffers):
            for leaf, tensor in held.items():
                if tensor is None or id(tensor) not in self._names:
                    continue
                values = known.get(leaf)
                if values is None:
                    values = self._calibrated.whole(self._names[id(tensor)], tensor)
                self._meta[module, leaf] = tensor
                held[leaf] = nn.Parameter(values, False) if isinstance(tensor, nn.Parameter) else values  # type: ignore[assignment]

    def _leave(self, module: nn.Module, *run: object) -> None:
        """Release a module's weights."""
        for held in (module._parameters, module._buffers):
            for leaf in held:
                if (tensor := self._meta.pop((module, leaf), None)) is not None:
                    held[leaf] = tensor  # type: ignore[assignment]
