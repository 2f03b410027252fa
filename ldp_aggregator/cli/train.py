"""``ldp-aggregator train``: a model from what was counted, published under the next version."""

from __future__ import annotations

import argparse
from pathlib import Path

from ldp_aggregator.cli.common import CommandError, Groups, add_command, add_store_options, say, with_store, write_file
from ldp_aggregator.publishing import UntrainableError, publish_trained
from ldp_aggregator.simplex import FLOOR, NORM_SUB


def add_commands(groups: Groups) -> None:
    parser = add_command(groups, "train", "train a model and publish it for the campaign's devices", _train)
    add_store_options(parser)
    parser.add_argument("id", metavar="ID", help="the campaign's id")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the model to a file, too")
    parser.add_argument(
        "--post", choices=(NORM_SUB, FLOOR), default=NORM_SUB, help="post-processing (default: %(default)s)"
    )


def _train(options: argparse.Namespace) -> None:
    try:
        reports, model = with_store(options, lambda store: publish_trained(store, options.id, options.post))
    except UntrainableError as error:
        raise CommandError(str(error)) from None
    if options.output:
        write_file(options.output, model.document)
    say(f"model version {model.version} from {reports} reports is published")
