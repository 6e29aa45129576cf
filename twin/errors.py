"""The one error that the twin shows to its user: words, never a traceback."""


class TwinError(Exception):
    """Something that the user can act on; the text is complete and ready to print."""
