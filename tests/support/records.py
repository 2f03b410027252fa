"""Records for the tests of devices: one as it should be, one that must not be read, one that notes its readers."""

from collections.abc import Mapping

RECORD = {"age": "young", "income": 30_000, "hours": 12}
"""Of the campaign that the devices' tests share."""


class Watched(Mapping):
    """Notes in ``read`` which feature is asked for, and raises where its value is an exception.

    To be looked at in any other way fails.
    """

    def __init__(self, values, read=None):
        self.values_by_name = values
        self.read = [] if read is None else read

    def get(self, name, default=None):
        self.read.append(name)
        value = self.values_by_name.get(name, default)
        if isinstance(value, BaseException):
            raise value
        return value

    def __getitem__(self, name):
        raise AssertionError("a record is read with get")

    __iter__ = __len__ = __contains__ = __getitem__


class Untouchable(Watched):
    """A record that must not be read."""

    def __init__(self):
        super().__init__({})

    def get(self, *_):
        raise AssertionError("the record was read")
