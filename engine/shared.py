"""What all sessions of one engine share: clock, prices, the queue of the device, features and encoder threads."""

from concurrent.futures import Executor
from dataclasses import dataclass

from ..clock import Clock
from .costs import Costs
from .dispatch import Dispatcher
from .drive import Scope
from .pools import FeatureCache
from .spec import EngineSpec


@dataclass(frozen=True, slots=True)
class Shared:
    """`scope` is the root of the cancellation tree."""

    clock: Clock
    spec: EngineSpec
    costs: Costs
    dispatcher: Dispatcher
    features: FeatureCache
    encoders: Executor
    scope: Scope
