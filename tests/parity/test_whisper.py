"""Whisper against transformers, in PyTorch and as ONNX; and its table of sinusoids."""

import onnxruntime
import pytest
import torch
from transformers import WhisperConfig, WhisperForConditionalGeneration, WhisperModel
from transformers.models.whisper.modeling_whisper import sinusoids

from exporters.export import Options, export
from specs.model import Model
from tests.parity.reference import ACTIVATIONS, assert_close, build, load, through_checkpoint
from zoo.checkpoints.whisper import WHISPER
from zoo.checkpoints.write import stored_tensors

SPECIAL = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)
CONFIGS = {
    "odd-heads": dict(
        vocab_size=61, num_mel_bins=5, d_model=18, encoder_layers=3, decoder_layers=2, encoder_attention_heads=3,
        decoder_attention_heads=3, encoder_ffn_dim=17, decoder_ffn_dim=17, activation_function="gelu",
        max_source_positions=23, max_target_positions=31, **SPECIAL,
    ),
    "unequal": dict(
        vocab_size=40, num_mel_bins=8, d_model=24, encoder_layers=1, decoder_layers=3, encoder_attention_heads=2,
        decoder_attention_heads=4, encoder_ffn_dim=33, decoder_ffn_dim=50, activation_function="relu",
        max_source_positions=9, max_target_positions=12, **SPECIAL,
    ),
}  # fmt: skip


def whisper_spec(config: WhisperConfig, head: str = "language_modeling") -> Model:
    def stack(name: str, heads: int, hidden: int) -> dict[str, object]:
        return {
            "layers": getattr(config, f"{name}_layers"),
            "block": {
                "kind": "pre_norm",
                "norm": {"kind": "layer_norm"},
                "attention": {
                    "kind": "multi_head",
                    "heads": heads,
                    "bias": {"query": True, "key": False, "value": True, "output": True},
                },
                "feed_forward": {
                    "kind": "mlp",
                    "hidden": hidden,
                    "activation": ACTIVATIONS[config.activation_function],
                },
            },
        }

    sinusoidal = {"kind": "sinusoidal", "layout": "half_split", "spacing": "tensor2tensor", "table": True}
    return Model.model_validate(
        {
            "name": "tiny-whisper",
            "architecture": "encoder-decoder",
            "vocab_size": config.vocab_size,
            "d_model": config.d_model,
            "context_length": config.max_target_positions,
            "position": {"kind": "learned"},
            "encoder": {
                **stack("encoder", config.encoder_attention_heads, config.encoder_ffn_dim),
                "embedding": {"kind": "spectrogram", "mel_bins": config.num_mel_bins},
                "position": sinusoidal,
                "context_length": config.max_source_positions,
            },
            "decoder": stack("decoder", config.decoder_attention_heads, config.decoder_ffn_dim),
            "head": {"kind": head},
        }
    )


def batch(config: WhisperConfig, seed: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    """Features, B M T, and target tokens, B U."""
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(3, config.num_mel_bins, 2 * config.max_source_positions, generator=generator)
    return features, torch.randint(config.vocab_size, (3, 10), generator=generator)


@pytest.mark.parametrize("name", CONFIGS)
def test_logits_and_cached_steps(name, tmp_path):
    config = WhisperConfig(**CONFIGS[name])
    reference = build(WhisperForConditionalGeneration, config, seed=1)
    model = through_checkpoint(reference, whisper_spec(config), tmp_path)
    features, targets = batch(config)
    with torch.no_grad():
        theirs = reference(features, decoder_input_ids=targets)
        encoded = model.encode(features)
        assert_close(encoded.last_hidden_state, theirs.encoder_last_hidden_state)
        assert_close(model(features, targets).logits, theirs.logits)
        past, logits = None, []
        for end in range(1, targets.shape[1] + 1):
            step = model.decode(targets[:, end - 1 : end], encoded.present_key_values, None, past)
            past = step.present_key_values
            logits.append(step.logits)
        assert_close(torch.cat(logits, 1), theirs.logits)


@pytest.mark.parametrize("name", CONFIGS)
def test_body(name, tmp_path):
    config = WhisperConfig(**CONFIGS[name])
    reference = build(WhisperModel, config, seed=2)
    model = through_checkpoint(reference, whisper_spec(config, "none"), tmp_path)
    features, targets = batch(config)
    with torch.no_grad():
        theirs = reference(features, decoder_input_ids=targets).last_hidden_state
        assert_close(model(features, targets).last_hidden_state, theirs)


@pytest.mark.parametrize("name", CONFIGS)
def test_the_exported_graphs_and_their_cached_steps(name, tmp_path):
    config = WhisperConfig(**CONFIGS[name])
    reference = build(WhisperForConditionalGeneration, config, seed=4)
    reference.save_pretrained(tmp_path / "checkpoint")
    export(whisper_spec(config), tmp_path / "onnx", Options(weights=str(tmp_path / "checkpoint")))
    encoder, decoder = (
        onnxruntime.InferenceSession(
            tmp_path / "onnx" / f"{graph}_model.onnx", providers=["CPUExecutionProvider"]
        )
        for graph in ("encoder", "decoder")
    )
    assert [given.name for given in encoder.get_inputs()] == ["input_features"]
    assert encoder.get_inputs()[0].shape == [
        "batch_size",
        config.num_mel_bins,
        2 * config.max_source_positions,
    ]
    assert "encoder_attention_mask" not in {given.name for given in decoder.get_inputs()}

    def run(session, feeds):
        names = [output.name for output in session.get_outputs()]
        return dict(zip(names, session.run(names, feeds), strict=True))

    def caches(outputs):
        return {
            name.replace("present", "past_key_values"): value
            for name, value in outputs.items()
            if name.startswith("present")
        }

    features, targets = batch(config)
    with torch.no_grad():
        theirs = reference(features, decoder_input_ids=targets)
    encoded = run(encoder, {"input_features": features.numpy()})
    assert_close(torch.from_numpy(encoded["last_hidden_state"]), theirs.encoder_last_hidden_state)
    width = config.d_model // config.decoder_attention_heads
    empty = torch.empty(3, config.decoder_attention_heads, 0, width).numpy()
    past = {
        given.name: empty
        for given in decoder.get_inputs()
        if given.name.endswith(("decoder.key", "decoder.value"))
    }
    logits = []
    for start, end in ((0, 4), (4, 5), (5, 6), (6, 10)):
        outputs = run(decoder, {"input_ids": targets[:, start:end].numpy(), **caches(encoded), **past})
        past = caches(outputs)
        logits.append(torch.from_numpy(outputs["logits"]))
    assert_close(torch.cat(logits, 1), theirs.logits)


def test_the_table_is_computed_where_a_checkpoint_lacks_it(tmp_path):
    from safetensors.torch import save_file

    config = WhisperConfig(**CONFIGS["odd-heads"])
    reference = build(WhisperForConditionalGeneration, config, seed=5)
    spec = whisper_spec(config)
    tensors = dict(stored_tensors(through_checkpoint(reference, spec, tmp_path / "whole"), spec, WHISPER))
    del tensors["model.encoder.embed_positions.weight"]
    save_file(tensors, tmp_path / "model.safetensors")
    table = load(spec, tmp_path).encoder_embedding.position.table.weight
    assert torch.equal(table, sinusoids(config.max_source_positions, config.d_model))
    assert not table.requires_grad


@pytest.mark.parametrize("width", [2, 6, 384])
def test_sinusoids_of_whisper_with_and_without_a_table(width):
    from specs.position import Sinusoidal
    from zoo.components.position import SinusoidTable
    from zoo.context import BuildContext
    from zoo.registry import build_component

    if width > 2:  # of one frequency, the reference divides by zero
        kind = Sinusoidal(layout="half_split", spacing="tensor2tensor")
        context = BuildContext(width, 1500, causal=False, cross=False)
        computed = build_component(kind, context).embed(torch.zeros(1, 1500, width), torch.arange(1500)[None])
        assert torch.equal(computed[0], sinusoids(1500, width))
    table = SinusoidTable(Sinusoidal(table=True), 9, (1.0,))
    assert torch.equal(table.fixed("weight")[:, 0], torch.arange(9.0).double().sin().float())
