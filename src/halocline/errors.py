"""What Halocline raises when something is wrong; each message says what, why and what to do."""


class HaloclineError(Exception):
    """Base of every error that Halocline raises on purpose."""


class InputError(HaloclineError, ValueError):
    """A wrong argument, equation, grid or option, found before any work is done."""


class CompileError(HaloclineError):
    """Generated code could not be compiled or its cache could not be used."""


class RunError(HaloclineError):
    """A run could not go on: a dead rank, no memory, values that are not finite."""
