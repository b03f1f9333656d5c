"""Prediction of the time of a plan, by a closed formula or by discrete-event simulation."""

from halocline.model.execute import Prediction, execute
from halocline.model.formula import StepTime, step_time
from halocline.model.rates import Rates, memory_of_node

__all__ = ["Prediction", "Rates", "StepTime", "execute", "memory_of_node", "step_time"]
