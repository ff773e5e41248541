"""The original Transformer against torch.nn's, by way of their state dicts in both directions."""

import math

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from specs.language.load import load as load_spec
from specs.model.model import Model
from tests.parity.reference import assert_close, load, ragged, redraw
from tests.thinned import one_in
from zoo.builder import assemble
from zoo.checkpoints.write import stored_tensors
from zoo.families.seq2seq.torch_nn import TORCH
from zoo.weights.source import WeightError

WIDTH, HEADS, HIDDEN, VOCAB = 24, 3, 40, 37


def block(kind: str, activation: str, eps: float, bias: bool = True) -> dict:
    return {
        "kind": kind,
        "norm": {"kind": "layer_norm", "eps": eps, "bias": bias},
        "attention": {"kind": "multi_head", "heads": HEADS, "bias": bias},
        "feed_forward": {"kind": "mlp", "hidden": HIDDEN, "activation": activation, "bias": bias},
    }


def model_of(fields: dict, tensors: dict, directory, reference: nn.Module | None = None):
    """Our model of a state dict; what it writes is the state dict of the reference again."""
    spec = Model.model_validate({"name": "stack", "vocab_size": VOCAB, "d_model": WIDTH, **fields})
    save_file(tensors, directory / "transformer.safetensors")
    model = load(spec, directory / "transformer.safetensors")
    if reference is not None:
        back = dict(stored_tensors(model, spec, TORCH))
        assert all(torch.equal(tensor, tensors[name]) for name, tensor in back.items())
        redraw(reference, 99)
        reference.load_state_dict(back)
    return model


def vaswani(length: int, width: int) -> torch.Tensor:
    """The sinusoids as section 3.5 of the paper writes them: length x width."""
    table = torch.zeros(length, width)
    for position in range(length):
        for i in range(width // 2):
            angle = position / 10000 ** (2 * i / width)
            table[position, 2 * i], table[position, 2 * i + 1] = math.sin(angle), math.cos(angle)
    return table


@one_in(3)
@pytest.mark.parametrize("final_norm", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("kind", ["post_norm", "pre_norm"])
def test_encoder_stack(kind, activation, final_norm, tmp_path):
    layer = nn.TransformerEncoderLayer(
        WIDTH, HEADS, HIDDEN, 0.0, activation, 1e-4, batch_first=True, norm_first=kind == "pre_norm"
    )
    norm = nn.LayerNorm(WIDTH, eps=1e-4) if final_norm else None
    reference = nn.ModuleDict(
        {
            "embedding": nn.Embedding(VOCAB, WIDTH),
            "encoder": nn.TransformerEncoder(layer, 2, norm, enable_nested_tensor=False),
        }
    ).eval()
    redraw(reference, 1)
    stack = {"layers": 2, "block": block(kind, activation, 1e-4), "final_norm": final_norm}
    spec = {"architecture": "encoder", "encoder": stack}
    model = model_of(spec, reference.state_dict(), tmp_path, reference)
    ids, mask = ragged(3, 9, VOCAB, "right", 2)
    with torch.no_grad():
        theirs = reference["encoder"](reference["embedding"](ids), src_key_padding_mask=mask == 0)
        assert_close(model(ids, mask).last_hidden_state, theirs, mask)


@pytest.mark.parametrize("kind", ["post_norm", "pre_norm"])
def test_decoder_stack_is_a_causal_encoder_stack(kind, tmp_path):
    layer = nn.TransformerEncoderLayer(
        WIDTH, HEADS, HIDDEN, 0.0, batch_first=True, norm_first=kind == "pre_norm"
    )
    layers = nn.TransformerEncoder(layer, 3, nn.LayerNorm(WIDTH), enable_nested_tensor=False)
    reference = nn.ModuleDict({"embedding": nn.Embedding(VOCAB, WIDTH), "encoder": layers}).eval()
    redraw(reference, 3)
    stack = {"layers": 3, "block": block(kind, "relu", 1e-5), "final_norm": True}
    spec = {"architecture": "decoder", "decoder": stack}
    model = model_of(spec, reference.state_dict(), tmp_path, reference)
    ids, mask = ragged(3, 9, VOCAB, "right", 4)
    causal = torch.ones(9, 9, dtype=torch.bool).triu(1)
    with torch.no_grad():
        embedded = reference["embedding"](ids)
        theirs = layers(embedded, causal, src_key_padding_mask=mask == 0)
        assert_close(model(ids, mask).last_hidden_state, theirs, mask)


def test_a_stack_or_a_layer_alone(tmp_path):
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, HIDDEN, 0.0, batch_first=True, norm_first=True).eval()
    embedding = nn.Embedding(VOCAB, WIDTH)
    stack = {"layers": 1, "block": block("pre_norm", "relu", 1e-5), "final_norm": False}
    spec = {"architecture": "encoder", "encoder": stack}
    ids, mask = ragged(3, 9, VOCAB, "right", 2)
    for alone in (layer, nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)):
        redraw(alone, 5)
        tensors = {"embedding.weight": embedding.weight.detach(), **alone.state_dict()}
        model = model_of(spec, tensors, tmp_path)
        with torch.no_grad():
            theirs = alone.eval()(embedding(ids), src_key_padding_mask=mask == 0)
            assert_close(model(ids, mask).last_hidden_state, theirs, mask)


def test_stacks_without_an_embedding_name_the_missing_tensor(tmp_path):
    reference = nn.Transformer(WIDTH, HEADS, 1, 1, HIDDEN)
    part = {"layers": 1, "block": block("post_norm", "relu", 1e-5), "final_norm": True}
    spec = {"architecture": "encoder-decoder", "encoder": part, "decoder": part}
    with pytest.raises(WeightError, match=r"missing: embedding.weight \(for encoder_embedding") as caught:
        model_of(spec, reference.state_dict(), tmp_path)
    assert "stacks take vectors: store the table" in str(caught.value)


@one_in(3)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("kind", ["post_norm", "pre_norm"])
def test_encoder_decoder(kind, activation, bias, tmp_path):
    class Reference(nn.Transformer):
        def __init__(self) -> None:
            super().__init__(
                WIDTH, HEADS, 2, 3, HIDDEN, 0.0, activation, None, None, 1e-4, True, kind == "pre_norm", bias
            )
            self.embedding = nn.Embedding(VOCAB, WIDTH)
            self.generator = nn.Linear(WIDTH, VOCAB)

    reference = Reference().eval()
    redraw(reference, 5)
    part = {"block": block(kind, activation, 1e-4, bias), "final_norm": True}
    spec = {
        "architecture": "encoder-decoder",
        "position": {"kind": "sinusoidal"},
        "embedding": {"scale": "sqrt_d_model"},
        "encoder": {"layers": 2, **part},
        "decoder": {"layers": 3, **part},
        "head": {"kind": "language_modeling", "tie_embeddings": False, "bias": True},
    }
    model = model_of(spec, reference.state_dict(), tmp_path, reference)
    ids, mask = ragged(3, 9, VOCAB, "right", 6)
    targets, target_mask = ragged(3, 7, VOCAB, "right", 7)
    causal = torch.ones(7, 7, dtype=torch.bool).triu(1)

    def embedded(tokens):
        return reference.embedding(tokens) * math.sqrt(WIDTH) + vaswani(tokens.shape[1], WIDTH)

    with torch.no_grad():
        hidden = reference(
            embedded(ids), embedded(targets), tgt_mask=causal, src_key_padding_mask=mask == 0,
            tgt_key_padding_mask=target_mask == 0, memory_key_padding_mask=mask == 0,
        )  # fmt: skip
        assert_close(model(ids, targets, mask, target_mask).logits, reference.generator(hidden), target_mask)


def test_the_preset_has_the_stacks_of_torch_at_its_defaults():
    with torch.device("meta"):
        reference = nn.Transformer()
    spec = load_spec("torch-transformer")
    stored = {name: tensor.shape for name, tensor in stored_tensors(assemble(spec), spec, TORCH)}
    assert stored.pop("embedding.weight") == (spec.vocab_size, spec.d_model)
    assert stored == {name: tensor.shape for name, tensor in reference.state_dict().items()}
