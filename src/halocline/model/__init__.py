"""How long a plan takes, without running it: a closed formula, and discrete-event execution."""

from halocline.model.execute import Prediction, Rates, Span, execute
from halocline.model.formula import StepTime, step_time

__all__ = ["Prediction", "Rates", "Span", "StepTime", "execute", "step_time"]
