"""A campaign, a fake server, and devices that take part."""

from joined import (  # noqa: F401 - fixtures
    all_campaign,
    campaign,
    clock,
    draft,
    eventually,
    held_answer,
    join,
    model,
    perturbations,
    renewed,
    server,
    start,
    threads_of,
)
