"""Proof that the written files compute what the PyTorch model computes.

The files are loaded in ONNX Runtime as a client would load them, and every output of every case is compared with
the model's full forward pass.  Cached decoding is compared with the full pass too, never with itself.
"""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from exporters.cases import Batch, Case, cases
from exporters.lifting import lifted_file
from exporters.precisions import Precision
from exporters.providers import present
from exporters.targets import Padding, Target
from specs.errors import UserError
from specs.model import Model
from zoo.builder import ZooModel, assemble
from zoo.components.head import token_outputs
from zoo.components.mixture import Router
from zoo.tracing.tasks import ENCODER_HIDDEN, HIDDEN, Task
from zoo.weights.held import HeldWeights
from zoo.weights.materialize import materialize
from zoo.weights.random import RandomWeights
from zoo.weights.tensors import weight_bytes

ROUNDING = 8
"""How many times as far as PyTorch's own arithmetic an export may be from a more exact one, where that is more."""

EXACT_BYTES = 1_000_000_000
"""Models of at most this size are run in float64 when a difference is in question."""

DECISIVE = 1e-5
"""By which part of itself the score of the last expert chosen is to exceed that of the next: rounding decides nothing."""

DRAWS = 8
"""How often the tokens of a case are drawn in search of such."""

ENCODED = "encoder last_hidden_state"
"""The name under which an encoder-decoder's first graph's result is reported."""

NOT_FINITE = "it is not finite"

THE_FILES = "the files"
LIFTED = "the files with float32 in the place of bfloat16, every result rounded to bfloat16"
"""What runs: ONNX Runtime has no bfloat16 kernels for processors, nor its Python interface such inputs."""

PRESENT = "present"
"""The name under which the keys and values of all layers are reported."""

JUNK = 3.0
"""What stands in caches where nothing has been written: it means nothing."""

PAST, PRESENTS = "past_key_values.", "present."
"""How the names of keys and values begin, as inputs and as outputs."""


class VerificationError(UserError):
    """An export that does not compute what its model computes; nothing was kept of it."""

    def __init__(self, verification: Verification) -> None:
        self.verification = verification
        lines = []
        if failed := [comparison for comparison in verification.comparisons if not comparison.passed]:
            worst = max(failed, key=lambda c: c.max_abs)
            difference = worst.fault or f"{worst.max_abs:.2e} where {worst.tolerance:.1e} is allowed"
            lines.append(
                f"the export differs from the PyTorch model: {worst.case}, {worst.output}: {difference}"
            )
        if (rounded := verification.worst_weight) is not None:
            lines.append(
                f"of its weights {rounded.name} is furthest from what it was: {rounded.error:.2%} "
                f"(root mean square), and {rounded.limit:.2%} is allowed in {verification.precision}"
            )
        if verification.overflow:
            lines.append(verification.overflow)
        super().__init__("\n  ".join(lines))


@dataclass(frozen=True)
class RoundedWeight:
    """A weight that is stored rounded: the root mean square of the difference over its own, and how much is allowed."""

    name: str
    error: float
    limit: float

    @property
    def passed(self) -> bool:
        """Whether it is close enough to what it was."""
        return self.error <= self.limit


@dataclass(frozen=True)
class Comparison:
    """One output of one case: the largest difference, absolute and relative to the largest value there.

    ``top_token`` is the share of positions whose highest score is the same token, for scores of a vocabulary, and
    ``moved`` the largest difference, relative to the largest value, both from the model with its weights as they were;
    ``fault`` says why there is nothing to compare, and the differences are then infinite.  ``rounding`` is there
    where more than usual is allowed: PyTorch's own largest distance from arithmetic that is more exact.
    """

    case: str
    shape: str
    output: str
    max_abs: float
    max_rel: float
    tolerance: float
    top_token: float | None
    passed: bool
    fault: str = ""
    rounding: float | None = None
    moved: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """As JSON data, in which what is infinite is null."""
        return {k: None if v == math.inf else v for k, v in asdict(self).items()}


@dataclass(frozen=True)
class Verification:
    """All comparisons, what they ran on, and what was compared (the model, or a smaller twin of it).

    ``ran`` says what was run; ``worst_weight`` is the one that rounding has changed most, where weights are rounded;
    ``overflow`` names a layer whose results are too large for the precision.  ``not_run`` is the provider that the graphs
    are for, where they ran on another.
    """

    provider: str
    runtime: str
    subject: str
    comparisons: tuple[Comparison, ...] = field(default=())
    precision: str = "fp32"
    ran: str = THE_FILES
    worst_weight: RoundedWeight | None = None
    overflow: str = ""
    not_run: str | None = None

    @property
    def passed(self) -> bool:
        """Whether every comparison passed, and every weight is close enough to what it was."""
        kept = self.worst_weight is None or self.worst_weight.passed
        return kept and bool(self.comparisons) and all(comparison.passed for comparison in self.comparisons)

    @property
    def top_token(self) -> float | None:
        """The share of tokens, in the mean of the cases, whose highest score is that of the weights as they were."""
        shares = [comparison.top_token for comparison in self.comparisons if comparison.top_token is not None]
        return sum(shares) / len(shares) if shares else None

    @property
    def moved(self) -> float | None:
        """The largest difference from the model with its weights as they were, relative to the largest output."""
        return max((c.moved for c in self.comparisons if c.moved is not None), default=None)

    @property
    def max_abs(self) -> float:
        """The largest difference of all."""
        return max(comparison.max_abs for comparison in self.comparisons)

    @property
    def in_rounding(self) -> tuple[Comparison, ...]:
        """The comparisons that pass only as PyTorch is as far from more exact arithmetic itself: they prove little."""
        return tuple(c for c in self.comparisons if c.passed and c.rounding is not None)

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return {**asdict(self), "comparisons": [c.as_dict() for c in self.comparisons], "passed": self.passed}

    def followed_by(self, other: Verification) -> Verification:
        """The same, with the worst comparison of each output of another verification after its own."""
        cases = len({comparison.case for comparison in other.comparisons})
        worst: dict[str, Comparison] = {}
        for comparison in sorted(other.comparisons, key=lambda c: c.max_abs):
            case = f"twin, worst of {cases} cases"
            worst[comparison.output] = replace(comparison, case=case, top_token=None, moved=None)
        comparisons = (*self.comparisons, *worst.values())
        return replace(self, subject=f"{self.subject}, and {other.subject}", comparisons=comparisons)


def verify(
    graphs: Mapping[Path, Task],
    model: ZooModel,
    spec: Model,
    target: Target,
    precision: Precision,
    subject: str,
    progress: Callable[[str], None],
    write: Callable[[], None] = lambda: None,
    take_stored: Callable[[], Mapping[str, float]] | None = None,
    padding: Padding = "either",
) -> Verification:
    """Compare the graphs in files with a model that has its weights; ``write`` writes what is not there yet.

    ``take_stored`` gives the model the weights as they are stored, where they are rounded, and says how far each has
    moved; ``padding`` is the side on which the last graph takes it.

    Raises :class:`VerificationError` on a breach, with the whole table.
    """
    import onnxruntime

    places = [*graphs.values()][-1].places
    padding = "right" if places else padding
    found: list[Comparison] = []
    expected: dict[Case, Mapping[str, Tensor]] = {}
    per_token = frozenset({ENCODED, PRESENT}) | token_outputs(model.head, spec.d_model)
    dtype = precision.dtype_on(target)
    # Where a rounded input turns a router's choice, all that follows differs: bfloat16's 8 bits are as coarse.
    coarse = torch.bfloat16 if precision.bits and _routers(model) else dtype
    roundings = _roundings(model, spec, coarse, expected, per_token)
    moved: Mapping[str, float] = {}
    with ThreadPoolExecutor(1) as loader, torch.inference_mode():
        # Writing and loading the files leave the interpreter free: the model runs meanwhile.
        writing = loader.submit(write)
        loading = loader.submit(
            lambda: [_Loaded(_session(path, target, dtype), task) for path, task in graphs.items()]
        )
        for case in cases(spec, padding, places):
            progress(f"{case.name}, PyTorch")
            decided, full = _decided(model, case, spec.vocab_size or 0)
            expected[decided] = full
        writing.result()
        original = dict(expected)
        if take_stored is not None:
            progress("the weights as they are stored, PyTorch")
            moved = take_stored()
            expected.update({case: _full_pass(model, case) for case in original})
        try:
            loaded = loading.result()
        except _RefusalError as refusal:
            loaded, found = [], [_refused("loading", "", refusal)]
        for case, outputs in expected.items() if loaded else ():
            progress(f"{case.name}, ONNX Runtime")
            try:
                results = _run(loaded, case, per_token, padding)
            except _RefusalError as refusal:
                found.append(_refused(case.name, case.shape, refusal))
            else:
                for output, got in results.items():
                    real = _real(case, output, per_token, dtype)
                    expecting, before = outputs[output], original[case][output]
                    if output == "logits" and loaded[-1].task.last_only:
                        (expecting, real), (before, _) = _last(expecting, case), _last(before, case)
                    before = before if moved else expecting
                    found.append(
                        _compare(case, output, got, expecting, before, real, precision.tolerance, roundings)
                    )
        infinite = any(comparison.fault == NOT_FINITE for comparison in found)
        overflow = _overflow(model, original, dtype) if infinite else ""
    provider, wanted = loaded[0].session.get_providers()[0] if loaded else "none", target.providers[0]
    rounded = [RoundedWeight(name, error, precision.weight_error) for name, error in moved.items()]
    result = Verification(
        provider,
        f"onnxruntime {onnxruntime.__version__}",
        subject,
        tuple(found),
        precision.name,
        LIFTED if dtype == torch.bfloat16 else THE_FILES,
        max(rounded, key=lambda weight: weight.error, default=None),
        overflow,
        None if provider == wanted else wanted,
    )
    if not result.passed:
        raise VerificationError(result)
    return result


def _session(path: Path, target: Target, dtype: torch.dtype) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # what goes wrong is told here
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # PyTorch runs meanwhile
    with _refusals():
        if dtype != torch.bfloat16:
            return onnxruntime.InferenceSession(path, options, providers=present(target.providers))
        with lifted_file(path) as wide:
            return onnxruntime.InferenceSession(wide, options, providers=present(target.providers))


def _overflow(model: nn.Module, given: Iterable[Case], dtype: torch.dtype) -> str:
    """The layer with the largest results in float32, where they are too large for a dtype."""
    largest: dict[str, float] = {}

    def look(path: str) -> Callable[..., None]:
        def hook(module: nn.Module, args: Any, output: Tensor) -> None:
            largest[path] = max(largest.get(path, 0.0), float(output.abs().max()))

        return hook

    layers = [(path, module) for path, module in model.named_modules() if isinstance(module, nn.Linear)]
    hooks = [module.register_forward_hook(look(path)) for path, module in layers]
    for case in given:
        _full_pass(model, case)
    for each in hooks:
        each.remove()
    path, result = max(largest.items(), key=lambda item: item[1], default=("", 0.0))
    limit = torch.finfo(dtype).max
    if result <= limit:
        return ""
    return f"{path} gives up to {result:.1e}, and {str(dtype).removeprefix('torch.')} ends at {limit:.1e}"


class _RefusalError(Exception):
    """ONNX Runtime does not load a graph, or does not run it."""


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except Exception as error:  # ONNX Runtime's errors have no common class
        raise _RefusalError(str(error).strip().splitlines()[0]) from error


Expected = Mapping[Case, Mapping[str, Tensor]]
"""The outputs of the model's full pass by case."""


def _roundings(
    model: nn.Module, spec: Model, dtype: torch.dtype, expected: Expected, per_token: frozenset[str]
) -> Callable[[], Mapping[str, float]]:
    """How far PyTorch's own arithmetic takes it from a more exact one, at most, by output; empty for large models.

    That is float32 from float64, or half from float32: where a router's choice turns on a rounding, it is much.
    """

    @functools.cache
    def roundings() -> Mapping[str, float]:
        if weight_bytes(model) > EXACT_BYTES:
            return {}
        other, found = _in_dtype(model, spec, dtype), dict[str, float]()
        for case, outputs in expected.items():
            for output, value in _full_pass(other, case).items():
                real = _real(case, output, per_token, dtype)
                difference = float((value[real] - outputs[output][real]).abs().max())
                found[output] = max(difference, found.get(output, 0.0))
        return found

    return roundings


def _in_dtype(model: nn.Module, spec: Model, dtype: torch.dtype) -> nn.Module:
    """A model in float64 for one that works in float32, or in the half dtype that it works in."""
    if dtype == torch.float32:
        return copy.deepcopy(model).double()
    other = assemble(spec, dtype)
    materialize(other, HeldWeights(model, RandomWeights(other, spec)))
    return other


def _real(case: Case, output: str, per_token: frozenset[str], dtype: torch.dtype) -> Any:
    """An index of what is compared of an output: what stands at padding means nothing.

    Nor does what a row without any token gives in half, where keys that are not seen do not all score the same: it is to
    be finite.
    """
    batch = case.encoder if output == ENCODED and case.encoder is not None else case.batch
    masks = [each.mask for each in (case.encoder, case.batch) if each is not None and each.mask is not None]
    known = dtype == torch.float32 or not masks  # else rows without any token are left out
    rows = slice(None) if known else torch.stack([(mask == 1).any(1) for mask in masks]).all(0)
    if batch.mask is None or output not in per_token:
        return rows
    real = batch.mask == 1
    return real if known else real & rows[:, None]  # type: ignore[index]


def _last(values: Tensor, case: Case) -> tuple[Tensor, Tensor]:
    """What a full pass says of the last real token of each call: B C N, and B C, whether there is one."""
    mask = case.batch.mask
    assert mask is not None
    bounds = zip([0, *case.ends], case.ends, strict=False)
    within = [mask[:, start:end].any(1) for start, end in bounds]
    places = [mask[:, :end].cumsum(1).argmax(1) for end in case.ends]  # of the last 1
    index = torch.stack(places, 1)[..., None].expand(-1, -1, values.shape[-1])
    return values.gather(1, index), torch.stack(within, 1)


def _routers(model: nn.Module) -> list[Router]:
    return [module for module in model.modules() if isinstance(module, Router)]


def _decided(model: nn.Module, case: Case, vocabulary: int) -> tuple[Case, dict[str, Tensor]]:
    """A case and its full pass, with other tokens where a router of the model would choose between equals.

    A token whose next best expert is as good as its last goes to either, as rounding has it, and then all that follows
    differs.  Where no draw is clear, the clearest is taken.
    """
    routers = _routers(model)
    if not routers:
        return case, _full_pass(model, case)
    generator = torch.Generator().manual_seed(1)
    clearest, best = -1.0, (case, dict[str, Tensor]())
    for _ in range(DRAWS):
        margin, outputs = _margin(model, case, routers)
        if margin > clearest:
            clearest, best = margin, (case, outputs)
        if margin >= DECISIVE:
            break
        encoder = None if case.encoder is None else _redrawn(case.encoder, vocabulary, generator)
        case = replace(case, batch=_redrawn(case.batch, vocabulary, generator), encoder=encoder)
    return best


def _redrawn(batch: Batch, vocabulary: int, generator: torch.Generator) -> Batch:
    if batch.inputs.is_floating_point():
        return replace(batch, inputs=torch.randn(batch.inputs.shape, generator=generator))
    return replace(batch, inputs=torch.randint(vocabulary, batch.inputs.shape, generator=generator))


def _margin(model: nn.Module, case: Case, routers: Sequence[Router]) -> tuple[float, dict[str, Tensor]]:
    """The narrowest choice of all routers at real tokens, and the full pass in which they were made."""
    narrowest = [math.inf]
    masks = [batch.mask == 1 for batch in (case.batch, case.encoder) if batch and batch.mask is not None]

    def look(router: Router, args: tuple[Tensor], output: Tensor) -> None:
        margins = router.margin(args[0])
        real = next((mask for mask in masks if mask.shape == margins.shape), slice(None))
        narrowest.append(float(margins[real].min()))

    hooks = [router.register_forward_hook(look) for router in routers]
    try:
        outputs = _full_pass(model, case)
    finally:
        for hook in hooks:
            hook.remove()
    return min(narrowest), outputs


def _full_pass(model: Any, case: Case) -> dict[str, Tensor]:
    batch, encoder = case.batch, case.encoder
    batch = batch.closed_up() if case.gap else batch
    apart: dict[str, Tensor] = {}
    if encoder is not None:
        encoded = model.encode(_inputs(encoder, model), encoder.mask, encoder.types)
        outputs = model.decode(batch.inputs, encoded.present_key_values, encoder.mask)
        apart = {ENCODED: encoded.last_hidden_state}
    else:
        outputs = model(_inputs(batch, model), batch.mask, token_type_ids=batch.types)
    results = {**outputs}
    caches = [tensor for pair in outputs.present_key_values for tensor in pair]
    results |= {PRESENT: _side_by_side(caches)} if caches else {}
    if case.gap:
        assert case.batch.mask is not None
        width = model.decoder.blocks[0].attention.output.out_features
        for name in results.keys() & {PRESENT, *token_outputs(model.head, width)}:
            results[name] = _at_their_places(results[name], case.batch.mask)
    return apart | results


def _inputs(batch: Batch, model: nn.Module) -> Tensor:
    """A batch's inputs as a model takes them: token ids, or numbers in its own dtype."""
    inputs = batch.inputs
    return inputs.to(next(model.parameters()).dtype) if inputs.is_floating_point() else inputs


def _side_by_side(caches: Iterable[Tensor]) -> Tensor:
    """B G S K each -> B S and all that there is of a token."""
    return torch.cat([cache.transpose(1, 2).flatten(2) for cache in caches], -1)


@dataclass(frozen=True)
class _Loaded:
    """A graph in ONNX Runtime."""

    session: Any
    task: Task

    def __call__(self, feeds: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Its outputs by name, from those of ``feeds`` that it takes."""
        names = [output.name for output in self.session.get_outputs()]
        with _refusals():
            results = self.session.run(names, self._taken(feeds))
        return dict(zip(names, map(torch.from_numpy, results), strict=True))

    def in_place(self, feeds: Mapping[str, Tensor], buffers: Mapping[str, Any]) -> dict[str, Tensor]:
        """The same where it writes new keys and values into ``buffers``, from which it reads those of the past."""
        binding = self.session.io_binding()
        for name, array in self._taken(feeds).items():
            if name not in buffers:
                binding.bind_cpu_input(name, array)
        written = {name.replace(PAST, PRESENTS): buffer for name, buffer in buffers.items()}
        others = [output.name for output in self.session.get_outputs() if output.name not in written]
        for name in others:
            binding.bind_output(name)
        for name, buffer in buffers.items():
            binding.bind_ortvalue_input(name, buffer)
        for name, buffer in written.items():
            binding.bind_ortvalue_output(name, buffer)
        with _refusals():
            self.session.run_with_iobinding(binding)
        outputs = map(torch.from_numpy, binding.copy_outputs_to_cpu())
        held = {name: torch.from_numpy(buffer.numpy()) for name, buffer in written.items()}
        return {**dict(zip(others, outputs, strict=False)), **held}

    def _taken(self, feeds: Mapping[str, Tensor]) -> dict[str, Any]:
        wanted = {given.name for given in self.task.inputs}
        return {name: _array(tensor) for name, tensor in feeds.items() if name in wanted}


def _array(tensor: Tensor) -> Any:
    """A tensor as it is fed: numpy has no bfloat16, and the graph that is run in its place takes float32."""
    return np.ascontiguousarray((tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy())


def _buffers(cache: Mapping[str, Tensor], length: int) -> dict[str, Any]:
    """Room for so many keys and values in the place of an empty cache that has none."""
    import onnxruntime

    return {
        name: onnxruntime.OrtValue.ortvalue_from_numpy(
            np.full(
                (*empty.shape[:2], empty.shape[2] or length, empty.shape[3]), JUNK, dtype=_array(empty).dtype
            )
        )
        for name, empty in cache.items()
    }


def _run(
    loaded: Sequence[_Loaded], case: Case, per_token: frozenset[str], padding: Padding
) -> dict[str, Tensor]:
    """The outputs of the graphs, in pieces along the sequence where the case decodes in steps.

    What a graph gives of the cache, the next takes.
    """
    feeds: dict[str, Tensor] = {}
    results: dict[str, Tensor] = {}
    if case.encoder is not None:
        encode, *loaded = loaded
        outputs = encode(_given(case.encoder))
        feeds = _cache_of(outputs)
        if case.encoder.mask is not None:
            feeds["encoder_attention_mask"] = case.encoder.mask
        feeds[ENCODER_HIDDEN] = results[ENCODED] = outputs[HIDDEN]
    pieces: dict[str, list[Tensor]] = {}
    start, graph = 0, loaded[0]
    own = {k: empty for k, empty in _empty_cache(graph.task, case.batch).items() if k not in feeds}
    buffers = _buffers(own, case.buffer) if case.buffer else {}
    for end in case.ends:
        piece = case.batch.piece(start, end) if case.pieces else case.batch
        feeds = {**_empty_cache(graph.task, piece), **feeds, **_given(piece)}
        outputs = graph.in_place(feeds, buffers) if buffers else graph(feeds)
        cache = _cache_of(outputs)
        feeds |= cache
        for name, value in outputs.items():
            if not name.startswith(PRESENTS):
                pieces.setdefault(name, []).append(value)
        start, graph = end, loaded[-1]
    for name, parts in pieces.items():
        if name in per_token:
            results[name] = torch.cat(parts, 1)
        elif not case.pieces:  # one vector per sequence is of all its tokens, never of the last few
            results[name] = parts[0]
    kept = [tensor for name, tensor in cache.items() if ".encoder." not in name]
    if not kept:
        return results
    present = _side_by_side(kept)
    if padding == "right":
        assert case.batch.mask is not None
        present = _at_their_places(present, case.batch.mask)
    return {**results, PRESENT: present}


def _at_their_places(values: Tensor, mask: Tensor) -> Tensor:
    """What stands at the front of each row, put where the mask has 1: B places (N) and B S -> B S (N)."""
    places = (mask.cumsum(1) - 1).clamp(min=0)  # B S
    return values.gather(
        1, places if values.dim() == 2 else places[..., None].expand(-1, -1, values.shape[-1])
    )


def _cache_of(outputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The keys and values among outputs, by the names under which they go in again."""
    return {
        name.replace(PRESENTS, PAST): tensor for name, tensor in outputs.items() if name.startswith(PRESENTS)
    }


def _given(batch: Batch) -> dict[str, Tensor]:
    """A batch by the names of the inputs that a graph may have for it."""
    given = {batch.name: batch.inputs, "attention_mask": batch.mask, "token_type_ids": batch.types}
    if batch.mask is not None:
        given["position_ids"] = _places(batch.mask)[:, -batch.inputs.shape[1] :]
    return {name: values for name, values in given.items() if values is not None}


def _places(mask: Tensor) -> Tensor:
    """The place of each real token in a cache without gaps, and -1 for padding: B S -> B S."""
    return torch.where(mask == 1, mask.cumsum(1) - 1, -1)


def _empty_cache(task: Task, batch: Batch) -> dict[str, Tensor]:
    """Keys and values of no tokens, or places for some."""
    sizes = {"batch_size": batch.inputs.shape[0]}
    return {
        given.name: torch.full(
            [d if isinstance(d, int) else sizes.get(d, 0) for d in given.dims], JUNK, dtype=given.dtype
        )
        for given in task.inputs
        if given.name.startswith(PAST)
    }


def _compare(
    case: Case,
    output: str,
    got: Tensor,
    expected: Tensor,
    before: Tensor,
    real: Any,
    relative: float,
    roundings: Callable[[], Mapping[str, float]],
) -> Comparison:
    if got.shape != expected.shape:
        fault = f"it has shape {tuple(got.shape)}, and the model's {tuple(expected.shape)}"
        return _faulty(case.name, case.shape, output, fault)
    if not bool(torch.isfinite(got).all()):
        return _faulty(case.name, case.shape, output, NOT_FINITE)
    scores = output == "logits" and expected.dim() == 3
    moves = before is not expected
    got, expected, before = got[real].to(expected.dtype), expected[real], before[real]
    scale = float(expected.abs().max())
    difference = float((got - expected).abs().max())
    tolerance = relative * max(1.0, scale)
    rounding = None
    if difference > tolerance:  # some models make much of a rounding
        rounding = roundings().get(output)
        tolerance = max(tolerance, ROUNDING * (rounding or 0.0))
    top = float((got.argmax(-1) == before.argmax(-1)).float().mean()) if scores else None
    moved = float((got - before).abs().max()) / (float(before.abs().max()) or 1.0) if moves else None
    passed = difference <= tolerance
    return Comparison(
        case.name,
        case.shape,
        output,
        difference,
        difference / (scale or 1.0),
        tolerance,
        top,
        passed,
        rounding=rounding,
        moved=moved,
    )


def _faulty(case: str, shape: str, output: str, fault: str) -> Comparison:
    return Comparison(case, shape, output, math.inf, math.inf, 0.0, None, False, fault)


def _refused(case: str, shape: str, refusal: _RefusalError) -> Comparison:
    return _faulty(case, shape, "all outputs", f"ONNX Runtime refuses it: {refusal}")
