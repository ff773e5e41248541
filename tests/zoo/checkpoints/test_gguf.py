"""GGUF files: how they are read, and everything that can be wrong with them."""

import contextlib
import os
import subprocess
import sys
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file
from transformers import LlamaForCausalLM

from specs.base.errors import UserError
from specs.forms.canonical import canonical
from specs.forms.resolved import resolved
from specs.language.writing import dump
from specs.model.model import Model
from tests.cli.program import done, invoke
from tests.parity.families.decoders import test_llama
from tests.parity.reference import build, llama_spec
from tests.zoo.checkpoints.gguf_files import Kind, write
from zoo.builder import assemble
from zoo.checkpoints.carried import tokenizer_origin
from zoo.checkpoints.gguf import PairsTogether
from zoo.checkpoints.open_weights import open_weights
from zoo.configs.gguf import config_of_gguf
from zoo.configs.importing import import_spec
from zoo.configs.named_model import model_kind
from zoo.families.common.config_errors import ConfigError, UnsupportedFieldsError
from zoo.weights.gguf import read_gguf
from zoo.weights.gguf_header import FREQUENCIES, read_header
from zoo.weights.materialize import materialize
from zoo.weights.source import WeightError


@pytest.fixture(scope="module")
def reference() -> LlamaForCausalLM:
    config = test_llama.TestLlama.config(
        vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1,
        head_dim=16, intermediate_size=32, max_position_embeddings=64, tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 500.0},
    )  # fmt: skip
    return build(LlamaForCausalLM, config, seed=1)


@pytest.fixture
def spec(reference) -> Model:
    return llama_spec(reference.config)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.gguf"


def write_one_tensor(writer):
    """A whole file, with one tensor."""
    writer.add_tensor("a", np.ones(3, np.float32))
    for step in ("header", "kv_data", "tensors"):
        getattr(writer, f"write_{step}_to_file")()
    writer.close()


def opened(path, spec, **options):
    return open_weights(str(path), assemble(spec), spec, **options)


def refused(path, spec) -> str:
    with pytest.raises(WeightError) as caught:
        opened(path, spec)
    return str(caught.value)


def config_refused(path) -> str:
    with pytest.raises(WeightError) as caught:
        config_of_gguf(path)
    return str(caught.value)


# -------------------------------------------------------------------------------------------- what is read


def test_tensors_stored_as_wanted_are_the_bytes_of_the_file(reference, spec, path):
    write(reference, path)
    source = opened(path, spec)
    assert source.names.name == "llama GGUF"
    content = path.read_bytes()
    for name in ("embedding.token.weight", "decoder.blocks.1.feed_forward.up.weight"):
        _path, offset, nbytes = source.raw(name)
        values = next(source.pieces(name))
        assert content[offset : offset + nbytes] == values.numpy().tobytes()
    assert source.raw("decoder.blocks.1.attention.query.weight") is None  # its rows are in another order
    write(reference, path, Kind.Q8_0)
    assert opened(path, spec).raw("embedding.token.weight") is None
    assert opened(path, spec).raw("decoder.final_norm.weight") is not None  # vectors are not quantized


@pytest.mark.parametrize("kind", [Kind.F16, Kind.BF16, Kind.Q4_0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_values_are_converted_piece_by_piece(kind, dtype, reference, spec, path, monkeypatch):
    held = write(reference, path, kind)
    monkeypatch.setattr("zoo.checkpoints.source.PIECE", 64)
    monkeypatch.setattr("zoo.weights.gguf.PIECE", 64)
    model: Any = assemble(spec, dtype)
    materialize(model, opened(path, spec, dtype=dtype))
    for ours, theirs in [
        (model.embedding.token.weight, "model.embed_tokens.weight"),
        (model.decoder.blocks[1].attention.key.weight, "model.layers.1.self_attn.k_proj.weight"),
    ]:
        assert torch.equal(ours, held[theirs].to(dtype))


@pytest.mark.parametrize("kind", [Kind.Q2_K, Kind.Q3_K, Kind.Q4_K, Kind.Q5_K, Kind.Q6_K, Kind.IQ4_XS])
@pytest.mark.parametrize("piece", [1, 600, 2**22])
def test_blocks_of_256_values(kind, piece, path, monkeypatch):
    monkeypatch.setattr("zoo.weights.gguf.PIECE", piece)
    generator = np.random.default_rng(0)
    rows, (_, nbytes) = 5, gguf.GGML_QUANT_SIZES[kind]
    blocks = generator.integers(0, 60, (rows, 2 * nbytes), dtype=np.uint8)  # no scale is infinite
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tensor("a", blocks, raw_dtype=kind)
    for step in ("header", "kv_data", "tensors"):
        getattr(writer, f"write_{step}_to_file")()
    writer.close()
    stored = read_gguf(path)["a"]
    assert (stored.shape, stored.dtype, stored.kind) == ((5, 512), torch.float32, kind.name)
    assert np.array_equal(stored.read().numpy(), gguf.quants.dequantize(blocks, kind))


def test_a_directory_with_one_file_is_read(reference, spec, path):
    write(reference, path)
    assert opened(path.parent, spec).names.name == "llama GGUF"
    write(reference, path.with_name("other.gguf"))
    assert "has several .gguf files and no index\n  Name one of them: model.gguf, other.gguf." in refused(
        path.parent, spec
    )


def test_a_file_without_a_suffix_is_known_by_its_first_bytes(reference, spec, path):
    write(reference, path)
    expected = canonical(import_spec(path))
    plain = path.rename(path.with_name("sha256-0123"))
    assert canonical(import_spec(plain)) == expected
    assert opened(plain, spec).names.name == "llama GGUF"
    assert tokenizer_origin(str(plain)) == plain
    assert model_kind(str(plain)) == "checkpoint"


def test_rows_in_pairs_can_be_undone():
    transform = PairsTogether(heads=3)
    for shape in [(24, 5), (24,)]:
        weight = torch.randn(shape)
        (back,) = transform.split(transform.join([weight]), [shape])
        assert torch.equal(back, weight)
        assert transform.stored_shape([shape]) == shape


@pytest.mark.slow
def test_configs_need_no_torch(reference, path):
    write(reference, path)
    code = f"""
import sys
from pathlib import Path
from zoo.configs.gguf import config_of_gguf
assert config_of_gguf(Path({str(path)!r}))["hidden_size"] == 32
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_export_of_a_quantized_file_is_verified(reference, spec, path, tmp_path, monkeypatch):

    monkeypatch.chdir(tmp_path)
    write(reference, path, Kind.Q8_0)
    (tmp_path / "spec.yaml").write_text(dump(resolved(spec)))
    printed = done("export", "spec.yaml", "--weights", "model.gguf", "-o", "out")
    assert "verify  passed, largest difference " in printed
    os.truncate(path, 900)
    result = invoke("export", "spec.yaml", "--weights", "model.gguf", "-o", "out")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("model.gguf is truncated")


# ------------------------------------------------------------------------------- what does not fit the spec


def test_scaled_frequencies_must_be_the_specs(reference, spec, path):
    write(reference, path, extra={"rope_freqs.weight": torch.ones(8)})
    opened(path, spec)
    assert "rope_scaling" not in config_of_gguf(path)
    write(reference, path, extra={"rope_freqs.weight": torch.linspace(1, 8, 8)})
    message = refused(path, spec)
    assert (
        "divides rotary frequencies by 1 to 8 (rope_freqs.weight), and the spec does otherwise\n" in message
    )
    assert "Llama 3.1 has {kind: llama3, factor: 8," in message
    assert (
        "divides rotary frequencies by numbers (rope_freqs.weight) other than the divisors of llama3 scaling"
        in config_refused(path)
    )
    write(reference, path, extra={"rope_freqs.weight": torch.ones(3)})
    opened(path, spec)
    for bad, shape in [(torch.ones(8).half(), "8 of F16"), (torch.ones(2, 4), "2 x 4 of F32")]:
        write(reference, path, extra={"rope_freqs.weight": bad})
        for message in (refused(path, spec), config_refused(path)):
            assert f"rope_freqs.weight must be a list of F32\n  value: {shape}" in message
    write(reference, path, extra={"rope_freqs.weight": torch.full((3,), 2.0)})
    assert "other than the divisors of llama3 scaling" in config_refused(path)


def test_missing_and_left_over_tensors(reference, spec, path):
    write(reference, path, drop=("model.norm.weight",), extra={"blk.0.more.weight": torch.ones(3)})
    assert refused(path, spec).splitlines() == [
        f"{path} does not fit the spec (tensor names of llama GGUF): 1 missing, 1 unused",
        "  missing: output_norm.weight (for decoder.final_norm.weight)",
        "  unused: blk.0.more.weight",
    ]


def test_a_tied_output_is_missing_from_an_untied_spec(reference, spec, path):
    write(reference, path)
    untied = spec.model_copy(update={"head": spec.head.model_copy(update={"tie_embeddings": False})})
    message = refused(path, untied)
    assert "missing: output.weight (for head.vocabulary.weight)" in message
    assert "  If the checkpoint ties its embeddings, set head.tie_embeddings: true." in message


def test_heads_that_do_not_divide_the_rows(reference, spec, path):
    write(reference, path, metadata={"attention.head_count": 3})
    assert "blk.0.attn_q.weight has 32 rows, which are not 3 heads of even width" in refused(path, spec)
    write(reference, path, metadata={"attention.head_count": [2, 3]})
    assert "llama.attention.head_count must be a whole number above 0\n  value: [2, 3]" in refused(path, spec)
    write(reference, path, metadata={"attention.head_count": [2, 2]})
    opened(path, spec)


def test_types_that_no_weights_come_in(reference, spec, path):
    write(
        reference,
        path,
        drop=("model.norm.weight",),
        extra={"output_norm.weight": torch.ones(32, dtype=torch.int8)},
    )
    assert (
        "of another dtype: output_norm.weight has dtype I8; weights must be F64, F32, F16 or BF16"
        in refused(path, spec)
    )


# ------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("architecture", "said"),
    [
        (
            "qwen3moe",
            "has the architecture 'qwen3moe', which zoo does not read from GGUF\n  Did you mean 'qwen3'?",
        ),
        ("falcon", "has the architecture 'falcon', which zoo does not read from GGUF\n  "),
    ],
)
def test_another_architecture(architecture, said, reference, spec, path):
    write_one_tensor(gguf.GGUFWriter(path, architecture))
    for message in (refused(path, spec), config_refused(path)):
        assert said in message
        assert message.endswith("Otherwise, use the model's safetensors.")
    if architecture == "falcon":
        assert "llama" in config_refused(path)


def test_an_architecture_whose_weights_are_of_no_family_yet(reference, spec, path, monkeypatch):
    write(reference, path)
    monkeypatch.setattr("zoo.weights.gguf_header.MODEL_TYPES", {"llama": "lama"})
    assert f"{path}: weights of model_type 'lama' cannot be read\n  Did you mean 'llama'?" in refused(
        path, spec
    )


def test_a_mixture_of_experts(reference, spec, path):
    write(reference, path, metadata={"expert_count": 8})
    assert "is a mixture of 8 experts, which zoo does not read from GGUF\n" in refused(path, spec)


def test_a_file_in_parts(reference, spec, path):
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_uint16("split.count", 3)
    write_one_tensor(writer)
    assert "is one of 3 parts\n  Merge them with llama-gguf-split --merge." in refused(path, spec)


def test_the_other_byte_order(spec, path):
    write_one_tensor(gguf.GGUFWriter(path, "llama", endianess=gguf.GGUFEndian.BIG))
    assert "has the opposite byte order\n  Use the file for this machine" in refused(path, spec)


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({"block_count": None}, "llama.block_count must be a whole number above 0\n  value: none"),
        ({"block_count": "two"}, "llama.block_count must be a whole number above 0\n  value: 'two'"),
        ({"attention.layer_norm_rms_epsilon": None}, "has no llama.attention.layer_norm_rms_epsilon"),
        ({"rope.dimension_count": 8}, "rotates 8 of 16 dimensions of a head, but llama rotates all"),
        ({"rope.scaling.type": "longrope"}, "rope.scaling.type must be none, linear or yarn\n  value: 'longrope'"),
        ({"rope.scaling.type": "linear"}, "has no llama.rope.scaling.factor"),
        ({"attention.head_count": 0, "attention.key_length": None}, "llama.attention.head_count must be a whole number above 0\n  value: 0"),
    ],
)  # fmt: skip
def test_metadata_that_makes_no_config(metadata, said, reference, path):
    write(reference, path, metadata=metadata)
    assert said in config_refused(path)


@pytest.mark.parametrize(
    ("metadata", "scaling"),
    [
        ({}, None),
        ({"rope.scaling.factor": 4.0}, {"rope_type": "linear", "factor": 4.0}),  # llama.cpp's own default
        ({"rope.scale_linear": 2.5}, {"rope_type": "linear", "factor": 2.5}),
        ({"rope.scaling.factor": 0.0}, {"rope_type": "linear", "factor": 1.0}),
        ({"rope.scaling.type": "none", "rope.scaling.factor": 4.0}, None),
    ],
)
def test_a_factor_alone_scales_linearly(metadata, scaling, reference, path):
    write(reference, path, metadata=metadata)
    assert config_of_gguf(path).get("rope_scaling") == scaling


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("attention.sliding_window", 4096),
        ("logit_scale", 0.0625),
        ("rope.scaling.attn_factor", 1.2),
        ("expert_used_count", 2),
        ("pooling_type", 3),
        ("attention.layer_windows", [1] * 2000),
    ],
)
def test_keys_that_are_not_modelled_are_refused(key, value, reference, path):
    write(reference, path, metadata={key: value})
    with pytest.raises(UnsupportedFieldsError) as caught:
        import_spec(path)
    assert f"has unsupported fields:\n  llama.{key}: " in str(caught.value)
    assert caught.value.fields == (f"llama.{key}",)
    assert import_spec(path, ignored=[f"llama.{key}"]).d_model == reference.config.hidden_size


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        (
            {"attention.head_count_kv": 2, "attention.head_count": 3},
            "llama.attention.head_count_kv: must divide llama.attention.head_count, which is 3\n  value: 2\n",
        ),
        ({"rope.freq_base": -1.0}, "llama.rope.freq_base: must be greater than 0\n  value: -1.0\n"),
        ({"rope.scaling.factor": -4.0}, "llama.rope.scaling.factor: must be "),
        (
            {
                "rope.scaling.type": "yarn",
                "rope.scaling.factor": 2.0,
                "rope.scaling.original_context_length": 32,
                "rope.scaling.yarn_beta_fast": 0.5,
            },
            "llama.rope.scaling.yarn_beta_fast: must be at least llama.rope.scaling.yarn_beta_slow, which is 1.0\n",
        ),
    ],
)
def test_broken_rules_name_the_keys_of_the_file(metadata, message, reference, path):
    write(reference, path, metadata=metadata)
    with pytest.raises(ConfigError) as caught:
        import_spec(path)
    assert f"{path}: {message}" in str(caught.value)


def test_keys_without_effect_on_the_model_are_accepted(reference, path):
    neutral = {
        "rope.scaling.attn_factor": 1.0,
        "expert_used_count": 0,
        "tensor_data_layout": "Meta AI original pth",
    }
    write(reference, path, metadata=neutral)
    assert import_spec(path).d_model == reference.config.hidden_size


def test_values_of_another_width_than_keys_are_refused(reference, path):
    write(reference, path, metadata={"attention.value_length": 8})
    assert "has values of width 8 and keys of width 16, but llama needs equal widths" in config_refused(path)


def test_frequencies_that_are_scaled_twice_are_refused(reference, path):
    extra = {FREQUENCIES: torch.full((8,), 2.0)}
    write(reference, path, extra=extra, metadata={"rope.scaling.factor": 4.0})
    assert "scales rotary frequencies twice" in config_refused(path)


def test_lists_in_lists_end_at_once(path):
    key, array = b"general.architecture", (9).to_bytes(4, "little")
    nested = array + (array + (1).to_bytes(8, "little")) * 100_000
    entry = len(key).to_bytes(8, "little") + key + nested
    path.write_bytes(b"GGUF" + (3).to_bytes(4, "little") + bytes(8) + (1).to_bytes(8, "little") + entry)
    assert "not a readable GGUF file: a list holds lists" in config_refused(path)


def test_without_the_library(reference, spec, path, monkeypatch):
    write(reference, path)
    monkeypatch.setitem(sys.modules, "gguf", None)
    for message in (refused(path, spec), config_refused(path)):
        assert message == f"{path}: reading GGUF needs a library: pip install 'zoo[gguf]'"


def test_a_file_cut_anywhere_is_refused_by_name(reference, spec, path):
    write(reference, path)
    whole = path.read_bytes()
    for length in (0, 3, 4, 8, 20, 100, 400, 900, len(whole) // 2, len(whole) - 4):
        path.write_bytes(whole[:length])
        message = refused(path, spec)
        assert str(path) in message
        assert "truncated" in message


def test_a_list_longer_than_the_file_ends_at_once(path):
    announced = (2**60).to_bytes(8, "little")
    key = b"general.architecture"
    array, uint8 = (9).to_bytes(4, "little"), (0).to_bytes(4, "little")
    entry = len(key).to_bytes(8, "little") + key + array + uint8 + announced
    path.write_bytes(
        b"GGUF" + (3).to_bytes(4, "little") + bytes(8) + (1).to_bytes(8, "little") + entry + bytes(9)
    )
    assert "is truncated: its header declares more data than the file has" in config_refused(path)


def test_a_file_that_shrinks_after_it_was_opened(reference, spec, path):
    for kind in (Kind.F32, Kind.Q8_0):
        write(reference, path, kind)
        source = opened(path, spec)
        os.truncate(path, 3000)
        with pytest.raises(WeightError, match=r"model\.gguf: blk\.1\.ffn_up\.weight cannot be read"):
            list(source.pieces("decoder.blocks.1.feed_forward.up.weight"))


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_changed_byte_is_never_a_traceback(data, reference, tmp_path_factory):
    path = tmp_path_factory.mktemp("changed") / "model.gguf"
    write(reference, path)
    content = bytearray(path.read_bytes())
    end = min(entry.offset for entry in read_header(path).tensors.values())
    content[data.draw(st.integers(0, end - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(content)
    spec = llama_spec(reference.config)
    for use in (lambda: opened(path, spec), lambda: config_of_gguf(path)):
        with contextlib.suppress(UserError):
            use()


def test_a_name_that_says_otherwise(reference, spec, path):
    write(reference, path)
    path.rename(path.with_name("model.safetensors"))
    assert "has suffix .safetensors, but holds GGUF\n  Rename it to end in .gguf." in refused(
        path.with_name("model.safetensors"), spec
    )
    save_file({"a": torch.ones(1)}, path)
    assert "has suffix .gguf, but holds safetensors" in refused(path, spec)
    path.write_bytes(b"no such thing" * 9)
    assert "is truncated or not a readable GGUF file: GGUF magic invalid" in refused(path, spec)
