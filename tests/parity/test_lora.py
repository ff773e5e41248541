"""LoRA adapters of PEFT, merged: the outputs are those of PEFT's model with the adapter."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import peft
import pytest
import torch
import transformers
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file, save_file
from torch import Tensor

from exporters.export import export
from exporters.quality.quality import QualityError
from exporters.steps.adapters import NamedAdapter
from exporters.steps.options import ExportOptions
from exporters.verification.result import VerificationError
from specs.base.errors import UserError
from tests.cli.program import done, invoke
from tests.parity.reference import assert_close, build, load
from tests.thinned import one_in
from zoo import adapt
from zoo.configs.importing import import_spec
from zoo.weights.lora import LoraAdapter
from zoo.weights.source import WeightError

IDS = torch.arange(9)[None]
LLAMA = {
    "vocab_size": 31, "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4,
}  # fmt: skip
BERT = {**LLAMA, "num_labels": 3}
GPT2 = {"vocab_size": 31, "n_embd": 24, "n_layer": 2, "n_head": 4}
BASES: dict[str, tuple[Any, Any, Any]] = {
    "llama": (transformers.LlamaForCausalLM, transformers.LlamaConfig, LLAMA),
    "gpt2": (transformers.GPT2LMHeadModel, transformers.GPT2Config, GPT2),
    "bert": (transformers.BertForSequenceClassification, transformers.BertConfig, BERT),
    "qwen3_moe": (transformers.Qwen3MoeForCausalLM, transformers.Qwen3MoeConfig, {
        **LLAMA, "num_key_value_heads": 4, "moe_intermediate_size": 20, "num_experts": 3, "num_experts_per_tok": 2}),
    "mixtral": (transformers.MixtralForCausalLM, transformers.MixtralConfig, {
        **LLAMA, "num_key_value_heads": 4, "num_local_experts": 3, "num_experts_per_tok": 2}),
    "granitemoe": (transformers.GraniteMoeForCausalLM, transformers.GraniteMoeConfig, {
        **LLAMA, "num_key_value_heads": 4, "num_local_experts": 3, "num_experts_per_tok": 2}),
    "gpt_oss": (transformers.GptOssForCausalLM, transformers.GptOssConfig, {
        **LLAMA, "intermediate_size": 24, "num_key_value_heads": 2, "head_dim": 8, "num_local_experts": 3, "num_experts_per_tok": 2,
        "rope_parameters": {"rope_type": "default", "rope_theta": 500.0}}),
    "phi3": (transformers.Phi3ForCausalLM, transformers.Phi3Config, {**LLAMA, "pad_token_id": 0}),
}  # fmt: skip


@pytest.fixture
def base(tmp_path: Path) -> Callable[[str], Path]:
    """The directory of a small base model."""

    def made(name: str) -> Path:
        model, config, settings = BASES[name]
        build(model, config(**settings), 3).save_pretrained(tmp_path / name)
        return tmp_path / name

    return made


def tuned(directory: Path, place: Path, name: str, **settings: Any) -> Any:
    """A model with an adapter of random matrices, which is saved."""
    torch.manual_seed(4)
    model = get_peft_model(BASES[name][0].from_pretrained(directory), LoraConfig(**settings))
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in (parameter for parameter in model.parameters() if parameter.requires_grad):
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    model.save_pretrained(str(place))
    return model.eval()


def logits(directory: Path) -> Tensor:
    """What our model gives for a checkpoint."""
    with torch.no_grad():
        return load(import_spec(directory), directory)(IDS).logits


EXPERTS = ["experts.gate_up_proj", "experts.down_proj"]
SETTINGS: list[tuple[str, dict[str, Any]]] = [
    ("llama", {"r": 2, "target_modules": ["q_proj", "v_proj"]}),
    ("llama", {"r": 3, "lora_alpha": 16, "use_rslora": True, "target_modules": "all-linear"}),
    ("llama", {"r": 2, "use_dora": True, "target_modules": ["o_proj", "down_proj"]}),
    ("llama", {"r": 4, "rank_pattern": {"q_proj": 2}, "alpha_pattern": {"q_proj": 9, "layers.1.mlp.up_proj": 3},
               "target_modules": ["q_proj", "up_proj"]}),
    ("llama", {"r": 2, "target_modules": ["embed_tokens", "k_proj"], "layers_to_transform": [1]}),
    ("llama", {"r": 2, "target_modules": ["q_proj"], "modules_to_save": ["lm_head"]}),
    ("gpt2", {"r": 2, "target_modules": ["c_attn", "c_proj"], "fan_in_fan_out": True}),
    ("gpt2", {"r": 2, "use_dora": True, "target_modules": ["c_attn"], "fan_in_fan_out": True}),
    ("bert", {"r": 2, "task_type": "SEQ_CLS", "target_modules": ["query", "dense"]}),
    ("bert", {"r": 2, "bias": "all", "target_modules": ["query"]}),
    ("phi3", {"r": 2, "target_modules": ["qkv_proj", "gate_up_proj"]}),
    ("qwen3_moe", {"r": 2, "target_modules": ["q_proj"], "target_parameters": EXPERTS, "use_rslora": True,
                   "alpha_pattern": {"experts.down_proj": 5}}),
    ("qwen3_moe", {"r": 3, "target_modules": [], "target_parameters": ["1.mlp.experts.down_proj", "0.mlp.experts.down_proj"]}),
    ("qwen3_moe", {"r": 2, "target_modules": ["q_proj"], "target_parameters": ["down_proj"], "rank_pattern": {"down_proj": 3}}),
    ("gpt_oss", {"r": 2, "target_modules": [], "target_parameters": EXPERTS}),
    ("mixtral", {"r": 2, "target_modules": [], "target_parameters": ["mlp.gate.weight", *EXPERTS]}),  # stored under other names
    ("granitemoe", {"r": 2, "target_modules": [], "target_parameters": EXPERTS}),
]  # fmt: skip


@one_in(3)
@pytest.mark.parametrize(("name", "settings"), SETTINGS)
def test_merged_weights_are_those_of_peft(
    base: Callable[[str], Path], tmp_path: Path, name: str, settings: dict[str, Any]
) -> None:
    directory = base(name)
    model = tuned(directory, tmp_path / "adapter", name, **settings)
    (tmp_path / "merged").mkdir()
    adapt(import_spec(directory), str(directory), tmp_path / "merged", merge=str(tmp_path / "adapter"))
    with torch.no_grad():
        expected = model(input_ids=IDS).logits
    assert (expected - logits(directory)).abs().max() > 0.01
    assert_close(logits(tmp_path / "merged"), expected)


SWITCHED: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("llama", {"r": 3, "use_rslora": True, "target_modules": "all-linear"}, {}),
    ("llama", {"r": 2, "target_modules": ["q_proj", "down_proj"]}, {"target": "cpu"}),
    ("gpt2", {"r": 2, "target_modules": ["c_attn", "c_fc"], "fan_in_fan_out": True}, {"target": "cpu"}),
    ("phi3", {"r": 2, "target_modules": ["qkv_proj", "gate_up_proj"]}, {}),
    ("bert", {"r": 2, "target_modules": ["query", "value"]}, {"target": "cpu"}),
    ("qwen3_moe", {"r": 2, "target_modules": ["q_proj"], "target_parameters": EXPERTS}, {"target": "cpu"}),
    ("qwen3_moe", {"r": 2, "target_modules": [], "target_parameters": EXPERTS[1:]}, {}),
    ("gpt_oss", {"r": 2, "target_modules": [], "target_parameters": EXPERTS}, {"target": "cpu"}),
]


@one_in(4)
@pytest.mark.parametrize(("name", "settings", "options"), SWITCHED)
def test_switched_adapters_compute_what_peft_computes(
    base: Callable[[str], Path],
    tmp_path: Path,
    name: str,
    settings: dict[str, Any],
    options: dict[str, Any],
) -> None:
    """ONNX Runtime's own adapters: none, one, the other, and none again, in one session."""
    directory = base(name)
    places = {"first": settings, "second": {**settings, "r": 4, "lora_alpha": 20}}
    models = {place: tuned(directory, tmp_path / place, name, **changed) for place, changed in places.items()}
    adapters = [f"{place}={tmp_path / place}" for place in places]
    settings_of = ExportOptions.of(weights=str(directory), adapters=adapters, **options)
    export(import_spec(directory), tmp_path / "x", settings_of)
    session = onnxruntime.InferenceSession(tmp_path / "x" / "model.onnx", providers=["CPUExecutionProvider"])
    feeds = {"input_ids": IDS.numpy(), "attention_mask": torch.ones_like(IDS).numpy()}
    feeds |= {"token_type_ids": torch.zeros_like(IDS).numpy()} if name == "bert" else {}
    names = {value.name for value in session.get_inputs()}
    feeds |= {value.name: np.zeros((1, value.shape[1], 0, value.shape[3]), np.float32)
              for value in session.get_inputs() if value.name.startswith("past")}  # fmt: skip
    models[""] = BASES[name][0].from_pretrained(directory).eval()
    for place in ("", "first", "second", ""):
        run = onnxruntime.RunOptions()
        if place:
            adapter = onnxruntime.LoraAdapter()
            adapter.Load(str(tmp_path / "x" / f"{place}.onnx_adapter"))
            run.add_active_adapter(adapter)
        taken = {key: value for key, value in feeds.items() if key in names}
        (scores,) = session.run(["logits"], taken, run)
        with torch.no_grad():
            assert_close(torch.from_numpy(scores), models[place](input_ids=IDS).logits)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("precision", "target"), [("int8", "cpu"), ("int4", "cpu"), ("fp16", "cuda"), ("int4", "webgpu")]
)
def test_adapters_of_experts_are_verified_in_every_precision(
    tmp_path: Path, precision: str, target: str
) -> None:
    settings = {**BASES["qwen3_moe"][2], "hidden_size": 64, "moe_intermediate_size": 64}
    directory, single = tmp_path / "base", tmp_path / "single"
    build(transformers.Qwen3MoeForCausalLM, transformers.Qwen3MoeConfig(**settings), 3).save_pretrained(
        directory
    )
    tuned(directory, tmp_path / "all", "qwen3_moe", r=2, target_modules=[], target_parameters=EXPERTS)
    single.mkdir()  # as PEFT wrote it when experts were modules of their own: here one expert changes
    module = "base_model.model.model.layers.0.mlp.experts.1.up_proj"
    made = {f"{module}.lora_{part}.weight": 0.3 * torch.randn(3, 64) for part in "AB"}
    made[f"{module}.lora_B.weight"] = made[f"{module}.lora_B.weight"].T.contiguous()
    save_file(made, single / "adapter_model.safetensors")
    (single / "adapter_config.json").write_text('{"peft_type": "LORA", "r": 3, "lora_alpha": 9}')
    options = ExportOptions.of(
        weights=str(directory), adapters=[f"all={tmp_path / 'all'}", f"single={single}"], precision=precision,
        target=target, max_kl=9.0,
    )  # fmt: skip
    written = export(import_spec(directory), tmp_path / "x", options)
    assert written.manifest.adapters == ("all", "single")


@pytest.mark.slow
def test_an_export_says_how_far_each_adapter_is(base: Callable[[str], Path], tmp_path: Path) -> None:
    directory = base("llama")
    tuned(directory, tmp_path / "sql", "llama", r=2, target_modules=["q_proj", "v_proj"])
    arguments = [
        "--adapter",
        f"sql={tmp_path / 'sql'}",
        "--target",
        "cpu",
        "--precision",
        "int8",
        "-o",
        str(tmp_path / "x"),
    ]
    found = invoke("export", str(directory), *arguments)
    assert found.exit_code == 0, found.output
    assert "adapters passed, largest difference with each: sql " in found.output
    records = [json.loads((tmp_path / "x" / name).read_text()) for name in ("export.json", "build.json")]
    assert records[0]["adapters"] == ["sql"]
    recorded = records[1]["adapters"]["sql"]
    assert 0 < recorded["largest"] < 1e-3
    assert recorded["quality"]["figures"]["kl"] != records[1]["quality"]["figures"]["kl"]
    assert f"(KL {recorded['quality']['figures']['kl']:.2e})" in " ".join(found.output.split())
    assert "sql.onnx_adapter" in records[0]["files"]
    said = {}
    for name in ([], ["--adapter", "sql"]):
        ran = invoke("run", str(tmp_path / "x"), "--ids", "1,2,3", "--json", *name)
        said[len(name)] = json.loads(ran.stdout)["sequences"][0]["ids"]
    assert said[0] != said[2]
    wrong = invoke("run", str(tmp_path / "x"), "--ids", "1", "--adapter", "sq")
    assert (wrong.exit_code, wrong.stderr) == (
        2,
        f"{tmp_path / 'x'} has no adapter 'sq'\n  Did you mean 'sql'?\n",
    )


@pytest.mark.slow
def test_an_adapter_whose_rounding_loses_too_much_fails_the_export(tmp_path: Path) -> None:
    """It makes the scores some twenty times as large, and so the effect of rounding."""
    model, config, settings = BASES["llama"]
    directory = tmp_path / "wide"
    build(model, config(**settings | {"hidden_size": 64}), 3).save_pretrained(directory)
    generator = torch.Generator().manual_seed(1)
    made = {
        f"base_model.model.lm_head.lora_{part}.weight": torch.randn(shape, generator=generator) * size
        for part, shape, size in (("A", (24, 64), 1), ("B", (31, 24), 5))
    }
    (tmp_path / "loud").mkdir()
    save_file(made, tmp_path / "loud" / "adapter_model.safetensors")
    config = {"peft_type": "LORA", "r": 24, "lora_alpha": 24, "target_modules": ["lm_head"], "bias": "none"}
    (tmp_path / "loud" / "adapter_config.json").write_text(json.dumps(config))
    options = ExportOptions.of(
        weights=str(directory), adapters=[f"loud={tmp_path / 'loud'}"], precision="int8", target="cpu"
    )
    with pytest.raises(QualityError, match="With the adapter loud: int8 loses too much: its KL divergence"):
        export(import_spec(directory), tmp_path / "x", options)
    assert not (tmp_path / "x").exists()


def test_a_wrong_adapter_file_fails_the_export(
    base: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Matrices in the place of those of another layer."""
    directory = base("llama")
    tuned(directory, tmp_path / "sql", "llama", r=2, target_modules=["q_proj"])
    whole = NamedAdapter.matrices

    def swapped(self: NamedAdapter) -> dict[str, Any]:
        held = whole(self)
        return {
            name: held[name.replace(".0.", ".?.").replace(".1.", ".0.").replace(".?.", ".1.")]
            for name in held
        }

    monkeypatch.setattr(NamedAdapter, "matrices", swapped)
    monkeypatch.setattr(NamedAdapter, "as_stored", lambda self, matrices: self.pairs)
    options = ExportOptions.of(weights=str(directory), adapters=[f"sql={tmp_path / 'sql'}"])
    with pytest.raises(VerificationError):
        export(import_spec(directory), tmp_path / "x", options)
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"use_dora": True, "target_modules": ["q_proj"]}, r"scales the rows of decoder.blocks.0.attention.query.weight \(DoRA\)"),
        ({"target_modules": ["q_proj"], "modules_to_save": ["lm_head"]}, "replaces lm_head.weight, so it cannot be switched on"),
        ({"target_modules": ["embed_tokens"]}, "changes embedding.token.weight, which is a table of embeddings"),
    ],
)  # fmt: skip
def test_adapters_that_cannot_be_switched_are_to_be_merged(
    base: Callable[[str], Path], tmp_path: Path, settings: dict[str, Any], words: str
) -> None:
    directory = base("llama")
    tuned(directory, tmp_path / "sql", "llama", r=2, **settings)
    options = ExportOptions.of(weights=str(directory), adapters=[f"sql={tmp_path / 'sql'}"])
    with pytest.raises(UserError, match=words) as caught:
        export(import_spec(directory), tmp_path / "x", options)
    assert "Merge it into the model: zoo adapt BASE --merge DIR." in str(caught.value)


@pytest.mark.parametrize(
    ("adapters", "options", "words"),
    [
        (["sql"], {}, "adapters must be NAME=DIR"),
        (["a/b=sql"], {}, "adapters must be NAME=DIR"),
        (["sql=sql", "sql=other"], {}, "adapters has two adapters called sql"),
        (["sql=sql"], {"weights": "random"}, "adapters cannot be used without the weights of the base model"),
        (["sql=sql"], {"precision": "bf16", "target": "cuda"}, "adapters cannot be used with precision bf16"),
        (["sql=sql"], {"target": "tensorrt"}, "adapters cannot be used with target tensorrt"),
    ],
)  # fmt: skip
def test_wrong_options_are_refused(
    base: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    adapters: list[str],
    options: dict[str, Any],
    words: str,
) -> None:
    directory = base("llama")
    tuned(directory, tmp_path / "sql", "llama", r=2, target_modules=["q_proj"])
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=words):
        export(
            import_spec(directory),
            tmp_path / "x",
            ExportOptions.of(**{"weights": str(directory), "adapters": adapters, **options}),
        )


def test_the_command_merges(base: Callable[[str], Path], tmp_path: Path) -> None:
    directory = base("llama")
    model = tuned(directory, tmp_path / "adapter", "llama", r=2, target_modules=["q_proj"])
    arguments = [
        "adapt",
        str(directory),
        "--merge",
        str(tmp_path / "adapter"),
        "-o",
        str(tmp_path / "merged"),
    ]
    done(*arguments)
    with torch.no_grad():
        torch.testing.assert_close(
            logits(tmp_path / "merged"), model(input_ids=IDS).logits, atol=1e-5, rtol=1e-5
        )


def test_an_adapter_for_another_base_is_refused(base: Callable[[str], Path], tmp_path: Path) -> None:
    tuned(base("llama"), tmp_path / "adapter", "llama", r=2, target_modules=["q_proj"])
    directory = base("gpt2")
    with pytest.raises(UserError) as caught:
        adapt(import_spec(directory), str(directory), tmp_path / "merged", merge=str(tmp_path / "adapter"))
    assert (
        "fits another base model\n  model.layers.0.self_attn.q_proj.weight: the base has no such tensor"
        in str(caught.value)
    )
    wide = build(transformers.LlamaForCausalLM, transformers.LlamaConfig(**{**LLAMA, "hidden_size": 48}), 3)
    wide.save_pretrained(tmp_path / "wide")
    with pytest.raises(UserError, match=r"q_proj.weight: a change for 24 x 24, and the base has 48 x 48"):
        adapt(
            import_spec(tmp_path / "wide"), str(tmp_path / "wide"), tmp_path / "merged",
            merge=str(tmp_path / "adapter"),
        )  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"moe_intermediate_size": 16}, r"\w+ 3 x (24 x 16|32 x 24), \w+ 3 x "),
        ({"num_experts": 2}, r"\w+ 2 x (24 x 20|40 x 24), \w+ 2 x "),  # whose ranks would be 3
    ],
)
def test_an_adapter_of_other_experts_is_refused(
    base: Callable[[str], Path], tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    directory, other = base("qwen3_moe"), tmp_path / "other"
    tuned(directory, tmp_path / "adapter", "qwen3_moe", r=2, target_modules=[], target_parameters=EXPERTS)
    config = transformers.Qwen3MoeConfig(**{**BASES["qwen3_moe"][2], **changes})
    build(transformers.Qwen3MoeForCausalLM, config, 3).save_pretrained(other)
    what = "mlp.experts: a change of rank 2 for experts of 40 x 24, in 6 rows, and the base has "
    with pytest.raises(UserError, match=what + words):
        adapt(import_spec(other), str(other), tmp_path / "x", merge=str(tmp_path / "adapter"))


def test_square_experts_need_their_other_parameter(base: Callable[[str], Path], tmp_path: Path) -> None:
    directory = base("gpt_oss")
    tuned(directory, tmp_path / "adapter", "gpt_oss", r=2, target_modules=[], target_parameters=EXPERTS[1:])
    with pytest.raises(
        UserError,
        match="24 x 24, in 6 rows, which may be of several parameters, or of either order of their axes",
    ):
        adapt(import_spec(directory), str(directory), tmp_path / "x", merge=str(tmp_path / "adapter"))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"peft_type": "IA3"}, "peft_type must be LORA to be merged"),
        ({"lora_bias": True}, "lora_bias is not supported, as it adds to biases"),
        ({"target_parameters": "experts.down_proj"}, "target_parameters must be a list of names\n  value: 'experts.down_proj'"),
        ({"init_lora_weights": "pissa"}, "as it changes the base model's weights"),
        ({"rank_pattern": {"q_proj": 0}}, "rank_pattern.q_proj must be a whole number above 0"),
        ({"rank_pattern": {"q_proj": 8.5}}, "rank_pattern.q_proj must be a whole number above 0\n  value: 8.5"),
        ({"r": 8.5}, "r must be a whole number above 0\n  value: 8.5"),
        ({"r": "two"}, "r must be a whole number above 0"),
        ({"r": True}, "r must be a whole number above 0"),
        ({"lora_alpha": 0}, "lora_alpha must be a number above 0"),
    ],
)  # fmt: skip
def test_adapters_of_other_kinds_are_refused(
    base: Callable[[str], Path], tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    tuned(base("llama"), tmp_path / "adapter", "llama", r=2, target_modules=["q_proj"])
    path = tmp_path / "adapter" / "adapter_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    with pytest.raises(WeightError, match=words):
        LoraAdapter.open(tmp_path / "adapter")


@pytest.mark.parametrize(
    ("settings", "changes", "words"),
    [
        ({}, {"r": 4}, "q_proj has rank 2, and adapter_config.json states 4\n  Use both files"),
        ({}, {"rank_pattern": {"q_proj": 3}}, "q_proj has rank 2, and adapter_config.json states 3"),
        ({"use_dora": True}, {"use_dora": False}, "q_proj has magnitudes, and use_dora is false in adapter_config.json"),
        ({}, {"use_dora": True}, "q_proj has no magnitudes, and use_dora is true in adapter_config.json"),
    ],
)  # fmt: skip
def test_settings_of_other_matrices_are_refused(
    base: Callable[[str], Path],
    tmp_path: Path,
    settings: dict[str, Any],
    changes: dict[str, Any],
    words: str,
) -> None:
    tuned(base("llama"), tmp_path / "adapter", "llama", r=2, target_modules=["q_proj"], **settings)
    path = tmp_path / "adapter" / "adapter_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    with pytest.raises(WeightError, match=words):
        LoraAdapter.open(tmp_path / "adapter")


def test_an_adapter_that_makes_weights_infinite_is_named(base: Callable[[str], Path], tmp_path: Path) -> None:
    directory = base("llama")
    fault = (
        r"adapter_model.safetensors: .*q_proj.lora_A.* changes model.layers.0.self_attn.q_proj.weight to values "
        r"that are NaN or infinite\n  value: a factor of 5e\+38\n  Lower lora_alpha"
    )
    tuned(directory, tmp_path / "adapter", "llama", r=2, target_modules=["q_proj"], lora_alpha=1e39)
    with pytest.raises(WeightError, match=fault):
        adapt(import_spec(directory), str(directory), tmp_path / "x", merge=str(tmp_path / "adapter"))


def test_a_row_that_has_no_direction_is_named(base: Callable[[str], Path], tmp_path: Path) -> None:
    directory = base("llama")
    tensors = load_file(directory / "model.safetensors")
    name = "model.layers.0.self_attn.q_proj.weight"
    tensors[name][3] = 0
    save_file(tensors, directory / "model.safetensors", {"format": "pt"})
    tuned(directory, tmp_path / "adapter", "llama", r=2, target_modules=["q_proj"], use_dora=True)
    path = tmp_path / "adapter" / "adapter_model.safetensors"
    held = load_file(path)
    for part, tensor in held.items():
        if "layers.0.self_attn.q_proj.lora_B" in part:
            tensor[3] = 0
    save_file(held, path, {"format": "pt"})
    fault = rf"adapter_model.safetensors: DoRA scales row 3 of {re.escape(name)} to a magnitude, .*\n  Train the adapter again"
    with pytest.raises(WeightError, match=fault):
        adapt(import_spec(directory), str(directory), tmp_path / "x", merge=str(tmp_path / "adapter"))


def test_names_that_peft_does_not_load_are_refused(base: Callable[[str], Path], tmp_path: Path) -> None:
    tuned(base("llama"), tmp_path / "adapter", "llama", r=2, target_modules=["q_proj"])
    path = tmp_path / "adapter" / "adapter_model.safetensors"
    held = {name.removeprefix("base_model.model."): tensor for name, tensor in load_file(path).items()}
    save_file(held, path, {"format": "pt"})
    fault = (
        r"names must begin with base_model\.model\.: .*\n  value: 'model\.layers.*\n  Save the adapter with"
    )
    with pytest.raises(WeightError, match=fault):
        LoraAdapter.open(tmp_path / "adapter")
    model = transformers.LlamaForCausalLM.from_pretrained(tmp_path / "llama")
    with pytest.warns(UserWarning, match="missing adapter keys"):
        peft.PeftModel.from_pretrained(model, tmp_path / "adapter")


def test_changed_weights_too_large_for_a_dtype_are_refused(
    base: Callable[[str], Path], tmp_path: Path
) -> None:
    directory = base("llama")
    tuned(directory, tmp_path / "adapter", "llama", r=2, target_modules=["q_proj"], lora_alpha=1e6)
    with pytest.raises(
        WeightError,
        match=r"attention.query.weight has values that are too large for float16\n  value: .*\n  Use",
    ):
        adapt(import_spec(directory), str(directory), tmp_path / "x", merge=str(tmp_path / "adapter"), dtype="fp16")  # fmt: skip


def test_a_damaged_adapter_is_refused(base: Callable[[str], Path], tmp_path: Path) -> None:
    tuned(base("llama"), tmp_path / "adapter", "llama", r=2, target_modules=["q_proj"])
    file = tmp_path / "adapter" / "adapter_model.safetensors"
    tensors = peft.load_peft_weights(str(tmp_path / "adapter"))
    from safetensors.torch import save_file

    half = {name: tensor for name, tensor in tensors.items() if "lora_A" in name}
    save_file(half, file)
    with pytest.raises(WeightError, match="has one of the matrices A and B alone"):
        LoraAdapter.open(tmp_path / "adapter")
    save_file(
        {
            name: tensor[:, :1].contiguous() if "lora_B" in name else tensor
            for name, tensor in tensors.items()
        },
        file,
    )
    with pytest.raises(WeightError, match="have no product\n  value: 2 x 24 and 24 x 1"):
        LoraAdapter.open(tmp_path / "adapter")
    save_file({name: tensor.new_empty(0, 24) if "_A" in name else tensor.new_empty(24, 0) for name, tensor in tensors.items()}, file)  # fmt: skip
    with pytest.raises(WeightError, match="have no product\n  value: 0 x 24 and 24 x 0"):
        LoraAdapter.open(tmp_path / "adapter")
    save_file({}, file)
    with pytest.raises(WeightError, match=r"adapter_model.safetensors has no tensors"):
        LoraAdapter.open(tmp_path / "adapter")
    file.unlink()
    with pytest.raises(WeightError, match=r"has neither adapter_model.safetensors nor adapter_model.bin"):
        LoraAdapter.open(tmp_path / "adapter")
    with pytest.raises(WeightError, match=r"has no adapter_config.json"):
        LoraAdapter.open(tmp_path)
