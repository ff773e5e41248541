"""``zoo sign``: sign an export, and write its bill of materials."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cli.options.options import ExportDirectory, Unverified
from cli.terminal.option import AsJson, Quiet, option
from cli.terminal.option_groups import ACTION


def sign(
    directory: ExportDirectory,
    key: Annotated[
        Path,
        option("PEM", "Private key: elliptic curve P-256, P-384 or P-521, not encrypted.", ACTION, "--key"),
    ],
    unverified: Unverified = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Sign an export with a private key, and write its bill of materials.

    bom.cdx.json lists the model, its files and what it was made from (CycloneDX 1.6). model.sig signs it with all other
    files of the export (OpenSSF Model Signing). Both are replaced where they exist, and removed when the model is
    exported again.

    \b
    Examples:
      openssl ecparam -name prime256v1 -genkey -noout -out key.pem
      openssl ec -in key.pem -pubout -out public.pem
      zoo sign build/gpt2 --key key.pem
    """
    from cli.terminal.screen import Screen

    screen = Screen(False, quiet, as_json)
    from cli.terminal.render import print_json
    from exporters.remotes.artefact import read_artefact
    from exporters.remotes.signing.signature import sign as sign_export

    signed = sign_export(read_artefact(directory, unverified=unverified), key)
    if as_json:
        print_json(
            {"directory": str(directory), "signature": str(signed.signature), "files": list(signed.files)}
        )
        return
    screen.title(str(directory), "", f"{len(signed.files):,} files")
    screen.row("signed", f"every file of the export: {signed.signature.name}")
    screen.row("listed", f"the model, its files and what it was made from: {signed.bill_of_materials.name}")
    screen.done(f"{directory} is signed")
    screen.next((["verify", str(directory), "--key", "public.pem"], "check it with the public key"))
