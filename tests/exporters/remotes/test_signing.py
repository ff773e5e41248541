"""Signatures and bills of materials of exports."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

import zoo
from exporters.remotes.artefact import read_artefact
from exporters.remotes.signing.signature import check_signature
from specs.base.errors import UserError
from tests.cli.program import as_json, done, invoke, refused
from tests.exporters.remotes.conftest import PEM, write_keys
from tests.exporters.remotes.files import contents
from tests.zoo.tiny import bert
from zoo.files.ownership import MANIFEST, own_files

EXPORT = {
    "README.md", "build.json", "export.json", "model.onnx", "model.onnx.data", "probe.npz", "spec.yaml",
}  # fmt: skip
SIGNED = EXPORT | {"bom.cdx.json"}


def problem(directory, key):
    check = check_signature(directory, key.parent / "public.pem")
    assert check.valid == (not check.problem)
    return check.problem


@pytest.fixture
def signed(copy, key):
    directory = copy("first")
    done("sign", directory, "--key", key)
    return directory


def test_a_signed_export_holds(copy, key):
    directory = copy("first")
    text = done("sign", directory, "--key", key)
    assert "signed  every file of the export: model.sig" in text
    assert "bom.cdx.json" in text
    check = check_signature(directory, key.parent / "public.pem")
    assert (check.valid, check.problem, set(check.files)) == (True, "", SIGNED)
    assert check.as_dict() == {"valid": True, "problem": "", "files": sorted(SIGNED)}


def test_signing_as_json(copy, key):
    directory = copy("first")
    data = as_json("sign", directory, "--key", key)
    assert data == {
        "directory": str(directory),
        "signature": f"{directory}/model.sig",
        "files": sorted(SIGNED),
    }


@pytest.mark.slow
def test_the_tool_of_model_signing_verifies_it(signed, key):
    command = [Path(sys.executable).with_name("model_signing"), "verify", "key", signed, "--signature",
               signed / "model.sig", "--public_key", key.parent / "public.pem"]  # fmt: skip
    assert "succeeded" in subprocess.run(command, capture_output=True, text=True, check=True).stdout
    (signed / "spec.yaml").write_text("name: other\n")
    failed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert failed.returncode != 0
    assert "spec.yaml" in failed.stderr


@pytest.mark.parametrize("name", sorted(SIGNED))
def test_a_flipped_bit_shows(name, signed, key):
    data = bytearray((signed / name).read_bytes())
    data[len(data) // 2] ^= 1
    (signed / name).write_bytes(data)
    if name == "export.json" and own_files(signed, MANIFEST) is None:  # it is no JSON any more
        with pytest.raises(UserError, match="is not an export"):
            problem(signed, key)
    else:
        assert problem(signed, key) == f"files have changed since they were signed: {name}"


def test_a_missing_file_shows(signed, key):
    (signed / "model.onnx.data").unlink()
    assert "model.onnx.data" in problem(signed, key)


def test_a_file_that_the_signature_does_not_cover_shows(signed, key):
    """Whoever drops the record of a file from what is signed cannot hide behind the signature."""
    bill = (signed / "bom.cdx.json").read_bytes()
    (signed / "bom.cdx.json").unlink()
    config = __import__("model_signing").signing.Config().use_elliptic_key_signer(private_key=key)
    (signed / "model.sig").unlink()
    config.sign(signed, signed / "model.sig")
    (signed / "bom.cdx.json").write_bytes(bill)
    assert problem(signed, key) == "not signed: bom.cdx.json"


def test_files_of_the_user_are_not_signed(copy, key):
    directory = copy("first")
    (directory / "notes.txt").write_text("mine")
    done("sign", directory, "--key", key)
    (directory / "notes.txt").write_text("mine, and longer")
    (directory / "more.txt").write_text("mine, too")
    assert problem(directory, key) == ""


def test_another_key_does_not_verify(signed, tmp_path):
    assert problem(signed, write_keys(tmp_path / "others")) == "the signature was made with another key"


def test_a_forged_signature_does_not_verify(signed, key, tmp_path):
    """The contents and the name of the key are right, and the signature over them is another one's."""
    right = json.loads((signed / "model.sig").read_text())
    done("sign", signed, "--key", write_keys(tmp_path / "others"))
    forged = json.loads((signed / "model.sig").read_text())
    right["dsseEnvelope"]["signatures"] = forged["dsseEnvelope"]["signatures"]
    (signed / "model.sig").write_text(json.dumps(right))
    assert problem(signed, key) == "the signature was not made with this key"


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"dsseEnvelope": {}, "verificationMaterial": {}}'])
def test_a_damaged_signature_does_not_verify(text, signed, key):
    (signed / "model.sig").write_text(text)
    assert problem(signed, key).startswith("model.sig is damaged: ")


def test_without_a_signature(exports, key):
    with pytest.raises(UserError, match=r"is not signed \(no model\.sig\)"):
        problem(exports / "first", key)


@pytest.mark.parametrize("curve", [ec.SECP384R1(), ec.SECP521R1()], ids=["P-384", "P-521"])
def test_other_curves(curve, copy, tmp_path):
    directory, key = copy("first"), write_keys(tmp_path / "curve", curve)
    done("sign", directory, "--key", key)
    assert problem(directory, key) == ""


@pytest.mark.parametrize("kind", ["gone", "text", "encrypted", "rsa", "public", "curve"])
def test_invalid_keys_are_refused(kind, copy, key, tmp_path):
    directory, path = copy("first"), tmp_path / "bad.pem"
    before = contents(directory)
    pkcs8 = serialization.PrivateFormat.PKCS8
    plain = serialization.NoEncryption()
    if kind == "text":
        path.write_text("not a key")
    elif kind == "encrypted":
        secret = serialization.BestAvailableEncryption(b"secret")
        path.write_bytes(ec.generate_private_key(ec.SECP256R1()).private_bytes(PEM, pkcs8, secret))
    elif kind == "rsa":
        path.write_bytes(rsa.generate_private_key(65537, 2048).private_bytes(PEM, pkcs8, plain))
    elif kind == "public":
        path = key.parent / "public.pem"
    elif kind == "curve":
        path.write_bytes(ec.generate_private_key(ec.SECP256K1()).private_bytes(PEM, pkcs8, plain))
    said = refused("sign", directory, "--key", path)
    assert said.startswith(
        f"{path} cannot be read: No such file"
        if kind == "gone"
        else f"{path} must be a private key on an elliptic curve"
    )
    assert contents(directory) == before


def test_only_proven_exports_are_signed(exports, copy, key):
    assert "has not been verified" in refused("sign", exports / "unverified", "--key", key)
    directory = copy("unverified")
    done("sign", directory, "--key", key, "--unverified")
    assert problem(directory, key) == ""
    (directory / "spec.yaml").write_text("name: other\n")
    assert "has changed since it was exported: spec.yaml has" in refused(
        "sign", directory, "--key", key, "--unverified"
    )


def test_signing_again_replaces_the_signature(signed, key, tmp_path):
    other = write_keys(tmp_path / "others")
    done("sign", signed, "--key", other)
    assert problem(signed, other) == ""


@pytest.mark.slow
def test_records_and_signatures_are_part_of_an_export(signed, tmp_path):
    assert own_files(signed, MANIFEST) == frozenset(SIGNED) | {"model.sig"}
    assert read_artefact(signed).others == ()
    assert as_json("diff", signed, signed)
    assert invoke("run", signed, "--ids", "1,2,3").exit_code == 0
    zoo.export(bert(), signed)  # the earlier signature is not that of the new files
    assert set(contents(signed)) == EXPORT


def test_files_of_these_names_that_are_something_else_stay(copy):
    directory = copy("first")
    (directory / "model.sig").write_text("an essay")
    (directory / "bom.cdx.json").write_text('{"mine": true}')
    zoo.export(bert(), directory)
    assert (directory / "model.sig").read_text() == "an essay"
    assert (directory / "bom.cdx.json").read_text() == '{"mine": true}'


def bill(directory, key):
    # Importing it compiles grammars for a second.
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    done("sign", directory, "--key", key)
    text = (directory / "bom.cdx.json").read_text()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    return json.loads(text)


def test_the_bill_of_materials(copy, key):
    directory = copy("first")
    data = bill(directory, key)
    artefact = read_artefact(directory)
    model = data["metadata"]["component"]
    assert (model["type"], model["name"]) == ("machine-learning-model", "tiny-bert")
    assert model["hashes"] == [{"alg": "SHA-256", "content": artefact.digest}]
    listed = {each["name"]: each["hashes"][0]["content"] for each in model["components"]}
    assert listed == {name: artefact.files[name].sha256 for name in EXPORT}
    assert model["modelCard"]["modelParameters"]["modelArchitecture"] == "encoder"
    assert {"format": "input_ids [batch_size, sequence_length]"} in model["modelCard"]["modelParameters"][
        "inputs"
    ]
    tools = {each["name"]: each["version"] for each in data["metadata"]["tools"]["components"]}
    assert tools["zoo"] == zoo.__version__
    assert {"torch", "onnx", "onnxruntime"} <= set(tools)
    properties = {each["name"]: each["value"] for each in model["properties"]}
    assert properties == {
        "zoo:target": "portable",
        "zoo:precision": "fp32",
        "zoo:layout": "onnx",
        "zoo:weights": "random, seed 0",
        "zoo:verified": "true",
    }


def test_equal_exports_have_equal_bills(copy, key):
    directory = copy("first")
    assert bill(directory, key) == bill(directory, key)


def test_the_bill_names_calibration_inputs(tmp_path, key):
    arrays = tmp_path / "inputs.npz"
    np.savez(arrays, input_ids=np.arange(24).reshape(4, 6) % 20)
    model = zoo.build(bert(), weights="random")
    options = {"precision": "int8", "target": "cpu", "calibrate": arrays, "min_cosine": -1}
    zoo.export(model, tmp_path / "int8", **options)
    data = bill(tmp_path / "int8", key)
    manifest = read_artefact(tmp_path / "int8").record.manifest
    known = {
        name: inputs.sha256
        for name, inputs in (("calibration", manifest.calibrated_on), ("evaluation", manifest.judged_on))
        if inputs is not None
    }
    assert known
    found = {
        each["name"]: each["hashes"][0]["content"] for each in data["components"] if each["type"] == "data"
    }
    assert found == known
    assert data["metadata"]["component"]["modelCard"]["modelParameters"]["datasets"] == [
        {"ref": name} for name in known
    ]


def test_without_the_library(copy, key, monkeypatch):
    directory = copy("first")
    monkeypatch.setitem(sys.modules, "model_signing.signing", None)
    assert "pip install 'zoo[sign]'" in refused("sign", directory, "--key", key)
    assert not (directory / "bom.cdx.json").exists()


def test_comparing_with_pytorch_checks_the_signature(signed, key):
    public = key.parent / "public.pem"
    text = done("verify", signed, "--pytorch", "--key", public)
    assert f"with the key of {public}: 8 files" in " ".join(text.split())
    (signed / "bom.cdx.json").write_text('{"bomFormat": "CycloneDX", "specVersion": "1.6"}')
    failed = invoke("verify", signed, "--pytorch", "--key", public)
    assert failed.exit_code == 1
    assert "The signature does not hold: " in failed.stderr
    data = json.loads(invoke("verify", signed, "--pytorch", "--key", public, "--json").stdout)
    assert (data["passed"], data["signature"]["valid"]) == (False, False)
    assert "The signature does not hold: " in data["errors"][0]["message"]


def test_verifying_checks_the_signature(signed, key, copy):
    public = key.parent / "public.pem"
    assert f"with the key of {public}: 8 files" in " ".join(done("verify", signed, "--key", public).split())
    data = as_json("verify", signed, "--key", public)
    assert data["signature"]["valid"]
    (signed / "bom.cdx.json").write_text('{"bomFormat": "CycloneDX", "specVersion": "1.6"}')
    failed = invoke("verify", signed, "--key", public)
    assert failed.exit_code == 1
    assert "The signature does not hold: " in failed.stderr
    unsigned = invoke("verify", copy("other"), "--key", public)
    assert unsigned.exit_code in (1, 2)
    assert "model.sig" in unsigned.stderr
