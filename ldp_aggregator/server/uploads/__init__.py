"""The short way of an upload: from the bytes of a connection to the writer's group, without a request object."""
