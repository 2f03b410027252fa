"""How a refusal is looked at."""

import pytest


@pytest.fixture
def code_of():
    """The code of the error of this kind that a call raises."""

    def code(kind, call, *given, **named):
        with pytest.raises(kind) as caught:
            call(*given, **named)
        return caught.value.code

    return code
