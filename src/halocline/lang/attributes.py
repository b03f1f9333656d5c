"""Base classes of objects that reject assignments to unknown attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from halocline.errors import InputError
from halocline.words import suggestion

_ABSENT = object()


class KnownAttributes:
    """Base class of objects whose public attributes cannot be set from outside.

    An attribute can be set if the class has a property with a setter or lists the name in `settable`. Any
    other assignment raises InputError. Names that begin with an underscore are private to the class and its
    subclasses. Private attributes can be set.

    Attributes
    ----------
    settable : mapping of str to str
        Meaning of each attribute that a user may set. The keys are the names of the attributes.
    advice : mapping of str to str
        Recommended alternative to setting an attribute. The keys are the names of the attributes.
    """

    settable: ClassVar[Mapping[str, str]] = {}
    advice: ClassVar[Mapping[str, str]] = {}
    _sealed = True

    def __setattr__(self, name: str, value: Any) -> None:
        if self._sealed and not name.startswith("_") and not self._may_set(name, value):
            raise self._error_for(name)
        super().__setattr__(name, value)

    def _may_set(self, name: str, value: Any) -> bool:
        # An in-place operator, such as `thing.values |= {}`, assigns the same object again.
        return self._has_setter(name) or self.__dict__.get(name, _ABSENT) is value

    def _has_setter(self, name: str) -> bool:
        return name in self.settable or getattr(getattr(type(self), name, None), "fset", None) is not None

    def _error_for(self, name: str) -> InputError:
        """Return the error for an attribute that cannot be set."""
        kind = type(self).__name__
        if name in self.advice:
            return InputError(f"{name} of a {kind} cannot be set: {self.advice[name]}")
        if name in self.__dict__ or hasattr(type(self), name):
            return InputError(f"{name} of a {kind} cannot be changed after creation. Create another {kind}.")
        known = sorted({n for n in (*self.__dict__, *dir(type(self))) if not n.startswith("_")})
        settable = [n for n in known if self._has_setter(n)]
        hint = f"; attributes that can be set: {', '.join(settable)}" if settable else ""
        return InputError(f"a {kind} has no attribute {name!r}{suggestion(name, known)}{hint}")


class _Sealing(type):
    """Metaclass that seals each object after its construction."""

    def __call__(cls, *arguments: Any, **keywords: Any) -> Any:
        instance = super().__call__(*arguments, **keywords)
        instance._sealed = True
        return instance


class Sealed(KnownAttributes, metaclass=_Sealing):
    """Base class of objects whose public attributes are set in the constructor only."""

    _sealed = False
