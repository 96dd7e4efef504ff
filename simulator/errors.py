"""The one exception family that reaches a user: a single clear sentence, never a traceback.

``UserError`` means bad input (exit code 2): the message names the file, field or value and says what
would be valid.  ``Unsupported`` is input that is valid but that the simulator does not model (a row of
``validate`` becomes ``status=unsupported`` with this text; elsewhere it is exit code 2).
"""


class UserError(Exception):
    """Bad input, told in one sentence."""


class Unsupported(UserError):
    """Valid input whose behaviour is not modelled; the sentence says what and where."""
