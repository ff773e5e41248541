"""``zoo push``: publish an export."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cli.options.options import ExportDirectory, Force, Unverified
from cli.terminal.option import option, switch
from cli.terminal.option_groups import ACTION
from cli.terminal.screen import Screen

if TYPE_CHECKING:
    from cli.terminal.screen import Screen
    from exporters.remotes.push import PushPlan

_LISTED = 8
_STYLES = {"same": "dim", "new": "green", "changed": "yellow", "removed": "red"}


def push(
    context: typer.Context,
    directory: ExportDirectory,
    to: Annotated[
        str, option("ADDRESS", "hf://ORG/NAME[@BRANCH], oci://REGISTRY/NAME:TAG, or a path.", ACTION, "--to")
    ],
    dry_run: Annotated[
        bool, switch("--dry-run", "List what would be sent, and send nothing.", ACTION)
    ] = False,
    force: Force = False,
    unverified: Unverified = False,
    *,
    screen: Screen,
) -> None:
    """Publish an export on the Hugging Face hub, in an OCI registry, or in a directory.

    The files of the export are published, with its records and its signature; other files in DIR are left out. Files that
    are there with the same digest are not sent again, so an interrupted push goes on where it stopped. All files appear at
    once: as one commit, one tag, or one directory. --force replaces and removes files of another export at the address.

    Exit status: 0 published, 2 a file of DIR has changed, or other files are at the address.

    \b
    Examples:
      zoo push build/gpt2 --to hf://my-team/gpt2-onnx
      zoo push build/gpt2 --to oci://ghcr.io/my-team/gpt2:int8 --dry-run
      zoo push build/gpt2 --to /mnt/models/gpt2
    """
    from cli.options.given import typed
    from cli.terminal.render import print_json
    from exporters.remotes.addresses import remote_of
    from exporters.remotes.artefact import read_artefact
    from exporters.remotes.push import OverwriteError, plan_push
    from exporters.remotes.push import push as publish

    plan = plan_push(read_artefact(directory, unverified=unverified), remote_of(to))
    _print_plan(screen, plan)
    if plan.overwritten and not force:
        raise OverwriteError(plan)
    address = None
    if not dry_run and not plan.current:
        with screen.progress() as progress:
            address = publish(plan, force=force, progress=progress)
    if screen.as_json:
        print_json({"directory": str(directory), **plan.as_dict(), "dry_run": dry_run, "published": address})
        return
    _print_result(screen, plan, address)
    if dry_run and not plan.current:
        screen.next((typed(context, without=("dry_run",)), "send it"))
    elif "://" in to:
        pulled = f"{directory.name or 'export'}-pulled"
        source = address if address and address.startswith("oci://") else to  # of the hub it is a page
        screen.next((["pull", source, "-o", pulled], "fetch it, and compare its digests"))


def _print_plan(screen: Screen, plan: PushPlan) -> None:
    """Print the files that are sent, or all of them in a table."""
    from cli.terminal.render import Column, print_table, say, styled
    from zoo.core.units import byte_text

    size = sum(change.size for change in plan.changes)
    screen.title(
        str(plan.artefact.directory), f"to {plan.remote}", f"{len(plan.changes)} files, {byte_text(size)}"
    )
    by_state: dict[str, list[str]] = {}
    for change in plan.changes:
        by_state.setdefault(change.state, []).append(change.name)
    for state, names in by_state.items():
        more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
        screen.row(state, f"{', '.join(names[:_LISTED])}{more}")
    if plan.artefact.others:
        screen.row("left out", f"not listed by export.json: {', '.join(plan.artefact.others)}")
    if not screen.tables:
        return
    print_table(
        [
            Column("file", pinned=True),
            Column("size", right=True),
            Column("at the address"),
            Column("send", right=True),
        ],
        [
            (
                change.name,
                byte_text(change.size),
                styled(change.state, _STYLES[change.state]),
                byte_text(change.size) if change.sent else "",
            )
            for change in plan.changes
        ],
    )
    if plan.artefact.others:
        say(f"\nLeft out, as export.json does not list them: {', '.join(plan.artefact.others)}.")


def _print_result(screen: Screen, plan: PushPlan, address: str | None) -> None:
    from zoo.core.units import byte_text

    size = byte_text(plan.bytes_to_send)
    if plan.current:
        screen.done(f"{plan.remote} is up to date, compared")
    elif address is None:
        screen.done(f"{size} would be sent to {plan.remote}, compared")
    else:
        screen.done(f"{address} is published: {size} sent")
