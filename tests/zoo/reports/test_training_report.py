"""Training steps: FLOPs against those that torch counts in both passes, activations against the memory that is kept."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import checkpoint, set_checkpoint_early_stop

import zoo
from specs.language.load import load
from specs.model.model import Model
from specs.model.stack import Stack
from tests.exporters.reduced_presets import preset, structures
from tests.thinned import one_in
from tests.zoo.components.whole_chunks import small_blocks, source_tokens, tokens
from tests.zoo.reports.expert_flops import flop_counter
from tests.zoo.reports.task_sizes import input_values
from tests.zoo.tiny import BLOCK, bert, gpt2, llava, t5
from zoo.core.reduced import reduced_models, small_inputs
from zoo.reports.costs import costs
from zoo.reports.training import _reduced, training, trainings
from zoo.tracing.tasks import training_task

SIZES = {"B": 3}
LAYER_NORM_ONLY = ["bert-base", "gpt2", "lilt-roberta-en-base", "vit-base-16", "whisper-tiny"]
PRESETS = [*LAYER_NORM_ONLY, "t5-small", "gemma2-2b", "deepseek-v3", "gpt-oss-20b"]
UNLIKE_LAYERS = ["eomt-large-coco-panoptic-640", "umt5-base"]
OTHERS = sorted({*structures()} - {*PRESETS, *UNLIKE_LAYERS})


def smallest(name: str) -> Model:
    """A preset's narrowest reduced model, deeper than it has kinds of layers."""
    *_, (small, _) = reduced_models(small_inputs(load(name)))
    stacks: dict[str, Stack] = {}
    for place, stack in small.stacks():
        first, *others = stack.runs()
        runs = (first.model_copy(update={"repeat": first.repeat + 2}), *others)
        stacks[place] = stack.model_copy(update={"layers": runs})
    return small_blocks(small.model_copy(update=stacks))


class Memory(TorchDispatchMode):
    """The memory of every tensor that is made, but of numbers."""

    def __init__(self, *there: Tensor) -> None:
        super().__init__()
        self.there = {tensor.untyped_storage()._cdata for tensor in there}
        self.made: dict[int, tuple[StorageWeakRef, int]] = {}

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor) and tensor.ndim:
                storage = tensor.untyped_storage()
                if storage._cdata not in self.there:
                    self.made[storage._cdata] = (StorageWeakRef(storage), storage.nbytes())
        return result

    @property
    def alive(self) -> int:
        """Bytes of those that still exist."""
        gc.collect()
        return sum(size for reference, size in self.made.values() if not reference.expired())


class Step:
    """A forward pass in training, without dropout, at ``sizes``."""

    def __init__(self, spec: Model) -> None:
        self.model = zoo.build(spec, weights="random").train()
        for module in self.model.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.0
            elif isinstance(getattr(module, "dropout", None), float):
                module.dropout = 0.0  # type: ignore[assignment]
        self.model.requires_grad_()
        self.task = training_task(spec)
        self.sizes = SIZES | {"T": tokens(spec), "S": source_tokens(spec)}
        self.values = input_values(spec, self.task, self.sizes)

    @property
    def there(self) -> list[Tensor]:
        return [*self.model.parameters(), *self.model.buffers(), *self.values.values()]

    @property
    def given_bytes(self) -> int:
        """Of the inputs, which autograd holds on to, too, where it looks them up."""
        return sum(value.nbytes for value in self.values.values())

    def kept(self, backend: SDPBackend) -> int:
        with sdpa_kernel(backend), Memory(*self.there) as memory:
            outputs = dict(self.task.call(self.model, self.values))
        assert outputs
        return memory.alive


def without_dropout(spec: Model) -> Model:
    data = spec.model_dump(exclude={"expect"})

    def clear(part: Any) -> None:
        for inner in (
            part.values() if isinstance(part, dict) else part if isinstance(part, list | tuple) else ()
        ):
            clear(inner)
        if isinstance(part, dict) and "dropout" in part:
            part["dropout"] = 0.0

    clear(data)
    return Model.model_validate(data)


@one_in(8)
@pytest.mark.parametrize("name", [*PRESETS, *(pytest.param(name, marks=pytest.mark.slow) for name in OTHERS)])
def test_activations_are_the_memory_that_is_kept_for_the_backward_pass(name: str) -> None:
    spec = without_dropout(smallest(name))
    step, found = Step(spec), training(spec)
    assert found.unfused.at(**step.sizes) - step.kept(SDPBackend.MATH) in range(step.given_bytes + 1)
    if name in LAYER_NORM_ONLY:
        assert found.activations.at(**step.sizes) - step.kept(SDPBackend.FLASH_ATTENTION) in range(
            step.given_bytes + 1
        )


@pytest.mark.parametrize("name", UNLIKE_LAYERS)
def test_every_layer_keeps_its_own_biases_and_the_queries_that_pass_it(name: str) -> None:
    spec = without_dropout(smallest(name))
    step, found = Step(spec), training(spec)
    assert found.unfused.at(**step.sizes) - step.kept(SDPBackend.MATH) in range(step.given_bytes + 1)


def test_vectors_that_squares_join_are_copied_without_the_class_token() -> None:
    image = {
        "d_model": 64,
        "position": {"kind": "learned"},
        "embedding": {"kind": "patches", "image_size": 12, "patch_size": 3},
        "layers": 1,
        "block": BLOCK,
    }
    spec = llava(image=image, connector={"kind": "mlp", "token": 19, "shuffle": 2})
    step = Step(spec)
    unused = training(spec).unfused.at(**step.sizes) - step.kept(SDPBackend.MATH)
    assert unused in range(step.given_bytes + 1)


def test_one_kernel_keeps_the_mask_and_no_scores() -> None:
    found, squared = training(without_dropout(gpt2())), (("B", 1), ("T", 2))
    assert found.activations.terms[squared] == 4
    assert found.unfused.terms[squared] == 2 * 2 * 4  # layers, heads, bytes


@contextmanager
def checkpointed(model: nn.Module) -> Iterator[None]:
    """Every block's forward pass is run anew in the backward pass."""
    blocks = [block for module in model.modules() if isinstance(module, nn.ModuleList) for block in module]
    for block in blocks:
        inner = block.forward
        block.forward = lambda *args, inner=inner: checkpoint(
            inner, *args, use_reentrant=False, preserve_rng_state=False
        )
    yield
    for block in blocks:
        del block.forward


@one_in(6)
@pytest.mark.parametrize("name", ["gpt2", "bert-base", "vit-base-16", "whisper-tiny"])
def test_checkpointing_keeps_the_inputs_of_layers_and_what_is_outside_of_them(name: str) -> None:
    spec = without_dropout(smallest(name))
    step, found = Step(spec), training(spec).checkpointed
    with checkpointed(step.model):
        kept = step.kept(SDPBackend.FLASH_ATTENTION)
    assert abs(found.kept.at(**step.sizes) - kept) <= step.given_bytes
    assert found.at(**step.sizes) == found.kept.at(**step.sizes) + max(
        layer.at(**step.sizes) for layer in found.layers
    )


@one_in(3)
@pytest.mark.parametrize("name", ["bert-base", "t5-small", "gpt-oss-20b", "deepseek-v3", "whisper-tiny"])
def test_both_passes_have_the_matrix_products_that_torch_counts(name: str) -> None:
    spec = smallest(name)
    step, found = Step(spec), training(spec).passes
    with sdpa_kernel(SDPBackend.MATH), flop_counter() as counter:
        outputs = step.task.call(step.model, step.values)
        assert found.forward.at(**step.sizes) == counter.get_total_flops()
        sum(value.sum() for value in outputs.values()).backward()
    assert found.total.at(**step.sizes) == counter.get_total_flops()


def test_checkpointing_computes_the_layers_once_more() -> None:
    spec = gpt2()
    step, found = Step(spec), training(spec).passes
    whole = set_checkpoint_early_stop(False)  # otherwise a layer's last product is left out
    counter = flop_counter()
    with checkpointed(step.model), whole, sdpa_kernel(SDPBackend.MATH), counter:
        step.task.call(step.model, step.values)["logits"].sum().backward()
    assert found.checkpointed.at(**step.sizes) == counter.get_total_flops()


def test_an_encoder_of_two_that_has_token_types_is_trained() -> None:
    spec = t5()
    assert spec.encoder is not None
    embedding = spec.embedding_of(spec.encoder).model_dump() | {"token_types": 2}
    data = spec.model_dump()
    data["encoder"]["embedding"] = embedding
    typed = Model.model_validate(data)
    step, found = Step(typed), training(typed).passes
    assert "token_type_ids" in step.values
    with sdpa_kernel(SDPBackend.MATH), flop_counter() as counter:
        step.task.call(step.model, step.values)
    assert found.forward.at(**step.sizes) == counter.get_total_flops()


def test_every_layer_adds_as_much_as_the_one_before() -> None:
    three, four, five = (
        training(bert(encoder={"layers": n, "block": bert().encoder.block})) for n in (3, 4, 5)
    )
    assert four.activations - three.activations == five.activations - four.activations
    assert five.passes.forward - four.passes.forward == four.passes.forward - three.passes.forward


def test_halves_keep_less_and_dropout_a_mask_more() -> None:
    plain = load("gpt2", ["decoder.block.dropout=0.0"])
    full, half = training(plain), training(plain, torch.bfloat16)
    at = {"B": 8, "T": 512}
    assert full.activations.at(**at) / 2 < half.activations.at(**at) < full.activations.at(**at)
    dropping = training(load("gpt2", ["decoder.block.dropout=0.1"]))
    masks = 2 * 12 * 8 * 512 * 768  # one byte for each value of two branches in twelve layers
    assert dropping.activations.at(**at) - full.activations.at(**at) == masks


@pytest.mark.slow
@pytest.mark.parametrize("name", structures())
def test_dtypes_share_a_trace(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each dtype has the figures of its own trace: both halves share one, from which that of float32 follows."""
    spec = load(name)
    shared = trainings(spec, (torch.float32, torch.float16))
    assert {dtype: training(spec, dtype) for dtype in shared} == shared
    monkeypatch.setattr("zoo.reports.training.traced_dtype", lambda dtype: dtype)
    assert training(spec, torch.bfloat16) == shared[torch.float16]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        *("clip-vit-b32", "siglip2-base-16", "owlvit-base-32", "llava-1.5-7b", "gemma3-4b", "qwen3-vl-2b"),
        *(name for name in structures() if preset(name).architecture == "encoder-decoder"),
    ],
)
def test_the_parts_of_a_step_are_the_whole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dtypes, spec = (torch.float32, torch.float16), load(name)
    parts = trainings(spec, dtypes)
    monkeypatch.setattr(
        "zoo.reports.training_parts.training_tasks", lambda model, spec, outputs: [training_task(spec)]
    )
    monkeypatch.setattr("zoo.reports.training._reduced", _reduced.__wrapped__)  # type: ignore[attr-defined]
    assert trainings(spec, dtypes) == parts


def test_a_mixture_trains_the_chosen_experts() -> None:
    found, step = training(load("mixtral-8x7b")), costs(load("mixtral-8x7b")).stages["prefill"]
    assert found.passes.forward == step.total
    two, four = (training(load("mixtral-8x7b", [f"decoder.block.feed_forward.top_k={k}"])) for k in (2, 4))
    experts = 32 * (2 * 3 * 2 * 4096 * 14336 + 2 * 2 * 4096)
    assert (four.passes.forward - two.passes.forward).at(B=1, T=1) == experts
    assert (four.passes.backward - two.passes.backward).at(B=1, T=1) == 2 * experts
