"""The commands that build nothing or little: what they print, and how they exit."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import zoo
from cli.terminal.command_table import FUNCTIONS, GROUPS, Commands, summary
from specs.files.schema import json_schema
from specs.forms.canonical import canonical
from specs.language.catalog import ARCHITECTURES
from specs.language.load import load
from specs.language.preset_files import preset_names
from specs.language.reading import read_text
from specs.language.validation import validate
from specs.model.model import Expectation
from tests.cli.process import tables
from tests.cli.program import as_json, done, invoke, refused

pytestmark = pytest.mark.usefixtures("empty_directory")


def rows(text):
    return [line.split() for line in text.splitlines()[2:] if line]


# ------------------------------------------------------------------------------------------------------- list


def names(result):
    return [row[0] for row in rows(result.stdout.partition("\n\n")[0])]


def test_list_has_every_preset_with_its_parameters_and_ends_with_what_to_do_next(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    result = invoke("list")
    assert result.exit_code == 0
    assert names(result) == preset_names()
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert ["bert-base", "109M", "2018"] in [row[:3] for row in rows(result.stdout)]
    assert ["mixtral-8x7b", "46.7B", "(12.9B)", "2024"] in [row[:4] for row in rows(result.stdout)]
    assert result.stdout.endswith(
        f"\n{len(preset_names())} presets\n"
        "  zoo build albert-base-v2                # count, test and export it\n"
        "  zoo new my-model --like albert-base-v2  # start from a copy\n"
    )


def test_list_sorts_by_the_numbers_in_names():
    found = names(invoke("list", "qwen3-*b"))
    assert found.index("qwen3-0.6b") < found.index("qwen3-4b") < found.index("qwen3-14b")


def test_list_takes_a_pattern_and_an_architecture():
    assert names(invoke("list", "gpt2-?????")) == ["gpt2-large"]
    result = invoke("list", "tiny-*", "--architecture", "decoder", "--json")
    assert json.loads(result.stdout) == [
        {
            "name": "tiny-gpt", "architecture": "decoder", "parameters": 223616, "active_parameters": None,
            "year": None,
            "summary": "A byte-level decoder for tests and first steps (4 layers, 64 wide)",
            "source": "", "features": [], "tasks": ["text generation"], "hub": None,
        }
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "some", "not_this"),
    [
        (["vaswani"], {"transformer-base", "transformer-big"}, "bert-base"),
        (["GPT2"], {"gpt2", "gpt2-large"}, "gpt-neo-1.3b"),
        (["multilingual"], {"bert-base-multilingual-cased", "snowflake-arctic-embed-m-v2.0"}, "bert-base"),
        (["translation"], {"opus-mt-en-de", "nllb-200-1.3b", "m2m100-418m"}, "t5-small"),
        (["moe"], {"mixtral-8x7b", "deepseek-v3"}, "qwen3-4b"),
        (["sliding window"], {"gemma2-2b", "mistral-7b"}, "mistral-7b-v0.3"),
        (["multilingual", "embedding"], {"gte-multilingual-base"}, "bert-base-multilingual-cased"),
        (["llama", "3", "--max", "2b"], {"llama-3.2-1b"}, "llama-3.2-3b"),
        (["moe", "--min", "100b", "--since", "2025"], {"qwen3-235b-a22b"}, "mixtral-8x22b"),
        (["--until", "2018", "--architecture", "encoder"], {"bert-base"}, "roberta-base"),
    ],
)  # fmt: skip
def test_list_finds_words_tasks_features_sizes_and_years(words, some, not_this):
    found = set(names(invoke("list", *words)))
    assert found >= some
    assert not_this not in found


def test_list_finds_numbers_as_numbers():
    found = names(invoke("list", "llama", "3"))
    assert {"llama-3-8b", "llama-3.1-405b", "llama-3.2-1b"} <= {*found}
    assert not [name for name in found if "-3" not in name and "distill" not in name]


def test_list_names_the_hub_repository_of_the_weights_and_finds_presets_by_it():
    (found,) = as_json("list", "codegen-350M-mono")
    assert (found["name"], found["hub"]) == ("codegen-350m", "Salesforce/codegen-350M-mono")
    shown = invoke("list", "salesforce/codegen").stdout
    assert "code; Salesforce/codegen-350M-mono\n" in shown
    assert shown.endswith("  zoo export Salesforce/codegen-350M-mono  # with trained weights\n")
    named = [(preset.hub, preset.source) for preset in zoo.presets() if preset.hub]
    assert len(named) == len(dict(named)) > 100  # a size does not take the repository of its base
    assert all(hub in source and hub.count("/") == 1 for hub, source in named)
    assert next(iter(zoo.presets("bert-base"))).hub is None


def test_python_lists_the_same_presets_as_records():
    records = zoo.presets("moe", max_parameters=30e9, since=2025)
    assert {record.name for record in records} >= {"gpt-oss-20b"}
    assert all("mixture of experts (moe)" in record.features for record in records)
    assert [record.name for record in zoo.presets()] == preset_names()
    assert {record.architecture for record in zoo.presets()} == set(ARCHITECTURES)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gptt2"], "No preset matches 'gptt2'\n  Did you mean 'gpt2'?\n"),
        (["no", "such"], "No preset matches 'no such'\n  Use fewer or other words; zoo list shows all presets.\n"),
        (["--until", "1990"], "No preset matches\n  Leave out an option.\n"),
        (["--architecture", "encodr"], "--architecture 'encodr' is unknown\n  Did you mean 'encoder'?\n"),
        (["--max", "big"], "--max 'big' is no number of parameters\n  Write it as in --max 500m or --max 1.5b.\n"),
    ],
)  # fmt: skip
def test_list_of_nothing_suggests(arguments, message):
    result = invoke("list", *arguments)
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", message)


# --------------------------------------------------------------------------------------------------- new, init


@pytest.mark.parametrize("architecture", ["decoder", "encoder", "encoder-decoder"])
def test_new_writes_a_commented_spec_that_builds_and_claims_nothing(architecture):
    assert "zoo build my-model.yaml" in done("new", "my-model", "--architecture", architecture)
    text = Path("my-model.yaml").read_text("utf-8")
    assert len(text.splitlines()) <= 40
    assert max(map(len, text.splitlines())) <= 100
    assert "vocab_size" in text
    assert "# tokens of your tokenizer" in text
    spec = load("my-model.yaml")
    assert (spec.name, spec.architecture) == ("my-model", architecture)
    assert (spec.source, spec.year, spec.expect) == ("", None, Expectation())


@pytest.mark.parametrize("preset", preset_names()[::40])
def test_new_starts_as_the_same_model(preset):
    done("new", "mine.yaml", "--like", preset)
    assert canonical(load("mine.yaml")) == canonical(load(preset))


def test_new_replaces_nothing_unasked():
    Path("my-gpt.yaml").write_text("mine")
    result = invoke("new", "my-gpt")
    assert (result.exit_code, result.stderr) == (
        2,
        "my-gpt.yaml exists.\n  Pass another FILE, or --force to replace it.\n",
    )
    assert Path("my-gpt.yaml").read_text() == "mine"
    done("new", "my-gpt", "--force", "--json")
    assert invoke("new", "other", "--like", "gptt2").exit_code == 2
    assert not Path("other.yaml").exists()


def test_init_writes_a_zoo_file_that_plans():
    invoke("new", "my-gpt")
    assert "zoo make --plan" in done("init", "bert-tiny", "my-gpt.yaml")
    plan = done("make", "--plan", "--json")
    assert "bert-tiny/cpu-int8" in plan
    assert "my-gpt/portable-fp32" in plan
    assert invoke("init").stderr == "zoo.yaml exists.\n  Pass another directory, or --force to replace it.\n"
    twice = invoke("init", "bert-tiny", "bert-tiny", "--force")
    assert (twice.exit_code, twice.stderr) == (
        2,
        "bert-tiny: another model is named 'bert-tiny'\n  Give one of the specs another name.\n",
    )


# ------------------------------------------------------------------------------------------------------- show


def test_show_prints_a_file_that_reads_back_as_the_same_model():
    result = done("show", "t5-11b", "--set", "position.kind=rope")
    model = validate(read_text(result, "shown.yaml"))
    assert model == load("t5-11b", ["position.kind=rope"])
    assert "{}" not in result
    assert "null" not in result


def test_show_as_json():
    assert as_json("show", "gpt2")["decoder"]["block"]["attention"]["heads"] == 12


# --------------------------------------------------------------------------------------------------- validate


def test_validate_has_a_line_for_each_spec(tmp_path):
    (tmp_path / "bad.yaml").write_text("extends: gpt2\nd_modle: 3\nhead: {tied_embeddings: true}\n")
    result = invoke("validate", "gpt2", "bad.yaml", "t5-small")
    assert result.exit_code == 2
    assert result.stdout.splitlines() == [
        "gpt2: OK (gpt2: decoder, 12 layers, 768 wide); expect is not checked, zoo params does",
        "bad.yaml: 2 problems",
        "t5-small: OK (t5-small: encoder-decoder, 6 + 6 layers, 512 wide); expect is not checked, zoo params does",
    ]
    assert result.stderr.splitlines() == [
        "bad.yaml:2:1: d_modle: is not a known key", "  Did you mean 'd_model'?",
        "bad.yaml:3:8: head.tied_embeddings: is not a known key", "  Did you mean 'tie_embeddings'?",
    ]  # fmt: skip
    done("validate", "gpt2", "bert-base")
    assert invoke("validate", "gpt2", "--set", "d_model=384").stdout.endswith(" 384 wide)\n")


def test_validate_as_json(tmp_path):
    (tmp_path / "bad.yaml").write_text("extends: gpt2\nd_modle: 3\n")
    result = invoke("validate", "gpt2", "bad.yaml", "--json")
    good, bad = json.loads(result.stdout)["specs"]
    assert (result.exit_code, result.stderr) == (2, "")
    assert good == {"name": "gpt2", "passed": True, "unchecked": ["expect"], "errors": []}
    assert (bad["passed"], len(bad["errors"])) == (False, 1)
    assert {key: bad["errors"][0][key] for key in ("source", "line", "column", "path")} == {
        "source": "bad.yaml",
        "line": 2,
        "column": 1,
        "path": "d_modle",
    }


# ----------------------------------------------------------------------------------------------------- schema


def test_schema_is_that_of_the_language():
    assert json.loads(invoke("schema").stdout) == json_schema()
    assert invoke("schema", "--json").stdout == invoke("schema").stdout


# ----------------------------------------------------------------------------------------------------- params


def test_params_folds_equal_blocks_and_states_the_published_count():
    result = done("params", "bert-base", "-v")
    lines = [" ".join(line.split()) for line in tables(result).splitlines()]
    assert "blocks.0-11 x12 post_norm 7,087,872 85,054,464 77.7%" in lines
    assert "query Linear weight 768 x 768, bias 768 590,592 7,087,104 6.5%" in lines
    assert "total 109,482,240 100.0%" in lines
    assert "embedding tables 23,835,648 21.8%" in lines
    assert "without embedding tables 85,646,592 78.2%" in lines
    assert lines[-2:] == [
        "files of an export for portable: fp32 438.0 MB, fp16 219.2 MB, bf16 219.2 MB, int8 111.6 MB, int4 79.1 MB, q4f16 72.7 MB",
        "expected 109,482,240 = built 109,482,240",
    ]


def test_params_unfolds_and_stops_at_a_depth():
    names = [row[0] for row in rows(invoke("params", "tiny-gpt", "--unfold", "--depth", "2").stdout)]
    start = names.index("decoder")
    assert names[start : start + 6] == ["decoder", *(f"blocks.{i}" for i in range(4)), "final_norm"]
    assert "query" not in names
    assert rows(invoke("params", "tiny-gpt", "--depth", "0").stdout)[0][0] == "total"


def test_params_folds_only_what_is_equal_and_next_to_each_other():
    pattern = "decoder.layers=[{repeat: 2}, {use: wide}, {repeat: 3}]"
    wide = "decoder.blocks={wide: {feed_forward: {hidden: 512}}}"
    result = invoke("params", "tiny-gpt", "--depth", "2", "--set", wide, "--set", pattern)
    blocks = [row for row in rows(result.stdout) if row[0].startswith("blocks")]
    assert [row[:2] for row in blocks] == [
        ["blocks.0-1", "x2"],
        ["blocks.2", "pre_norm"],
        ["blocks.3-5", "x3"],
    ]


def test_params_names_the_owner_of_a_tied_weight():
    assert "weight = embedding.token.weight" in invoke("params", "gpt2", "-v").stdout


def test_params_counts_chosen_modules_together():
    result = invoke("params", "torch-transformer", "--path", "encoder", "--path", "decoder", "--depth", "1")
    assert [row[0] for row in rows(result.stdout)][:2] == ["encoder", "decoder"]
    assert ["selected", "44,140,544", "70.0%"] in rows(result.stdout)
    assert "encoder + decoder: expected 44,140,544 = built 44,140,544" in result.stdout


def test_params_as_json():
    data = as_json("params", "t5-small", "--depth", "1")
    assert data["total_parameters"] == 60_506_624
    assert data["bytes"]["fp16"] == pytest.approx(2 * 60_506_624, rel=0.001)
    paths = {module["path"]: module["parameters"] for module in data["modules"]}
    assert paths["decoder.blocks.5.cross_attention"] == 4 * 512 * 512
    data = as_json("params", "t5-small", "--path", "head")
    assert (data["selected_parameters"], len(data["modules"])) == (0, 2)


def test_params_fails_when_a_count_is_not_met():
    result = invoke("params", "tiny-gpt", "--set", "expect.parameters=223617", "-v")
    assert result.exit_code == 1
    assert tables(result.stdout).splitlines()[-1] == "expected 223,617, but built 223,616 (-1)"
    assert result.stderr.splitlines()[1:] == [
        "1 failed:",
        "  expect.parameters: expected 223,617, but built 223,616 (-1)",
        "    If the change is intended, remove expect.parameters, or set it to 223616.",
    ]
    result = invoke("params", "tiny-gpt", "--set", "expect.parameters=223617", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["expected"] == [
        {"path": "", "active": False, "published": 223617, "built": 223616, "met": False}
    ]


def test_params_of_a_module_that_is_not_there():
    message = refused("params", "gpt2", "--path", "decoder.blocks.12")
    assert message == "gpt2 has no module 'decoder.blocks.12'. Did you mean 'decoder.blocks.2'?\n"


# -------------------------------------------------------------------------------------------------- all of them


@pytest.mark.parametrize("command", ["show", "params", "build", "export", "check"])
def test_an_error_goes_to_stderr_or_json_with_status_2(command):
    message = refused(command, "gpt2", "--set", "decoder.block.attention.heads=7")
    assert message.startswith(
        "--set decoder.block.attention.heads=7: decoder.block.attention.heads: must divide d_model, which is 768\n"
    )
    result = invoke(command, "gpt2", "--set", "decoder.block.attention.heads=7", "--json")
    assert (result.exit_code, result.stderr) == (2, "")
    (error,) = json.loads(result.stdout)["errors"]
    assert (error["path"], error["value"]) == ("decoder.block.attention.heads", 7)
    assert error["remedy"].startswith("Use a divisor: 1, 2, 3")
    assert error["message"].startswith("--set decoder.block.attention.heads=7: ")


@pytest.mark.parametrize(
    "command", ["list", "show", "validate", "schema", "params", "build", "export", "check"]
)
def test_help_has_examples(command):
    for option in ("--help", "-h"):
        result = done(command, option)
        assert f"zoo {command}" in result.partition("Examples:")[2]
        assert "--json" in result


def test_unknown_commands_and_options_are_mistakes():
    assert invoke("frobnicate").exit_code == 2
    assert invoke("show", "gpt2", "--frobnicate").exit_code == 2
    assert invoke("show").exit_code == 2


def test_version():
    from importlib.metadata import version

    assert invoke("--version").stdout == f"zoo {version('zoo')}\n"


def test_inconclusive_comparisons_are_marked(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "180")
    from cli.tables.export_tables import print_verification
    from exporters.verification.result import OutputComparison, Verification

    proven = OutputComparison("one", "1 x 1", "logits", 1e-6, 1e-6, 2e-5, 1.0, passed=True)
    magnified = OutputComparison("two", "1 x 9", "logits", 0.2, 0.1, 0.4, 0.5, passed=True, rounding=0.05)
    print_verification(Verification("CPUExecutionProvider", "onnxruntime 1", "it", (proven, magnified)))
    shown = capsys.readouterr().out
    assert "equal" in shown
    assert "within rounding" in shown
    assert "1 of 2 comparisons are inconclusive" in shown
    assert "float32 itself differs by up to 5.0e-02 from more exact arithmetic" in shown


# ------------------------------------------------------------------------------------------------------- help


def test_help_has_every_command_in_a_group_and_cuts_none_off(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = invoke("--help").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert not [line for line in lines[1:] if line.endswith("...")]
    named = [line.split()[0] for line in lines if re.match(r"  [a-z]+  ", line)]
    assert sorted(named) == sorted(FUNCTIONS)
    assert [line for line in lines if line.rstrip(":") in GROUPS] == [f"{group}:" for group in GROUPS]


def test_zoo_help_shows_the_help_of_a_command():
    assert invoke("help").stdout == invoke("--help").stdout
    assert invoke("help", "build").stdout == invoke("build", "--help").stdout
    result = invoke("help", "biuld")
    assert (result.exit_code, result.stderr) == (2, "There is no command 'biuld'\n  Did you mean 'build'?\n")


def test_the_version_has_a_short_option():
    assert invoke("-V").stdout == invoke("--version").stdout != ""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_summary_is_the_first_paragraph_of_the_help(name: str) -> None:
    assert summary(name) == " ".join(Commands()[name].help.split("\n\n")[0].split())


def test_the_help_of_the_program_imports_no_command() -> None:
    code = "import sys\nsys.argv = ['zoo', '--help']\nfrom cli.app import app\ntry: app()\nexcept SystemExit: pass\n"
    code += "assert not {'pydantic', 'cli.commands.build', 'specs.files'} & {*sys.modules}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Count a model's parameters by module" in done.stdout
