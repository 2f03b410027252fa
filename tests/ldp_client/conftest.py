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
    server,
    start,
    threads_of,
)


@pytest.fixture
def renewed():
    """Wait until what is fetched for the next call is there."""

    def wait():
        for one in threading.enumerate():
            if isinstance(one, threading.Timer):
                one.join(20)

    return wait
