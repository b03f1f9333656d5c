"""Objects that reject attributes which nothing would read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from halocline.errors import InputError
from halocline.words import near

_ABSENT = object()


class KnownAttributes:
    """Base of classes whose public attributes are not set from outside.

    An attribute can be set where the class has a property with a setter, or names it in `settable`. Others
    raise InputError. Names that begin with an underscore belong to the class and its subclasses.

    Attributes
    ----------
    settable : mapping of str to str
        Attributes that a user may set, with their meaning.
    advice : mapping of str to str
        What to do instead of setting an attribute, by its name.
    """

    settable: ClassVar[Mapping[str, str]] = {}
    advice: ClassVar[Mapping[str, str]] = {}
    _sealed = True

    def __setattr__(self, name: str, value: Any) -> None:
        if self._sealed and not name.startswith("_") and not self._may_set(name, value):
            raise self._rejected(name)
        super().__setattr__(name, value)

    def _may_set(self, name: str, value: Any) -> bool:
        return self._has_setter(name) or self.__dict__.get(name, _ABSENT) is value  # as `values |= {}` does

    def _has_setter(self, name: str) -> bool:
        return name in self.settable or getattr(getattr(type(self), name, None), "fset", None) is not None

    def _rejected(self, name: str) -> InputError:
        """Return the error for an attribute that cannot be set."""
        kind = type(self).__name__
        if name in self.advice:
            return InputError(f"{name} of a {kind} cannot be set: {self.advice[name]}")
        if name in self.__dict__ or hasattr(type(self), name):
            return InputError(f"{name} of a {kind} cannot be set once it is made; make another {kind}")
        known = sorted({n for n in (*self.__dict__, *dir(type(self))) if not n.startswith("_")})
        can = [n for n in known if self._has_setter(n)]
        may = f"; it can set {', '.join(can)}" if can else ""
        return InputError(f"a {kind} has no attribute {name!r}{near(name, known)}{may}")


class _Sealing(type):
    """Type of classes whose objects are sealed once they are made."""

    def __call__(cls, *arguments: Any, **keywords: Any) -> Any:
        made = super().__call__(*arguments, **keywords)
        made._sealed = True
        return made


class Sealed(KnownAttributes, metaclass=_Sealing):
    """Base of classes that set public attributes while an object is made, and not later."""

    _sealed = False
