"""An autotuned launch becomes a Choice: its configurations are recorded, none is timed.

On a GPU, Triton launches every configuration a few times on the first call, then keeps the fastest; later calls launch
that one alone, whatever pruning leaves there. Each option of the Choice is such a later call. Where launching more
than once can change the result (the kernel adds to memory, or hooks prepare it), the first call is an option too.

Of many configurations, each call that is not timed records some: other calls have the others.
"""

import math
from collections.abc import Sequence
from typing import Any

from triton import Config, OutOfResources

from gradekit.compat.triton import Autotuner, CompileTimeAssertionFailure, PTXASError
from gradekit.program import Choice, Launch, Step
from gradekit.tracer.errors import BeyondBudget, shortened
from gradekit.tracer.kernels import Compiler
from gradekit.tracer.recorder import Recorder

SKIPPED = (OutOfResources, CompileTimeAssertionFailure, PTXASError)
"""A configuration that fails so is left out by Triton too, as long as another works."""

MOST = 16
"""The most configurations of one launch of which each call records all: Triton's own tutorial of matmul has as many. Of
up to twice as many it records half of that, of more a quarter."""

OTHER_NUMBERS = (1, 40, 64, 1024, 4096)
"""What an integer that the key lacks may be in another call with an equal key: ragged, or full of usual tiles."""

FIRST_CALL = "the first call, in which every configuration runs before the last"


class Tuning:
    """Stands in for the autotuner's `run` and `best_config`. `turn` says which of many configurations the next call
    records: all of them where it is None. A call `for_proofs` is refused if it has many, since each would have to be
    proved."""

    def __init__(self, recorder: Recorder, compiler: Compiler) -> None:
        self.recorder = recorder
        self.compiler = compiler
        self.turn: int | None = None
        self.for_proofs = False

    def install(self) -> None:
        """Makes every autotuner use it."""
        Autotuner.run = lambda tuner, *args, **kwargs: self.run(tuner, args, kwargs)
        Autotuner.best_config = property(self.best_config, lambda tuner, config: vars(tuner).update(_best=config))

    def run(self, tuner: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Records the launch in configurations that Triton would try and whose turn it is; the first one's kernel."""
        tuner.nargs = noted = _Noting(zip(tuner.arg_names, args, strict=False))
        configs = tuner.prune_configs(kwargs) if len(tuner.configs) > 1 else tuner.configs
        _refuse_conflicts(configs, kwargs)
        lacking = noted.lacking(tuner, kwargs)
        if self.for_proofs and lacking:
            raise BeyondBudget(
                f"nothing is proved of configurations that are pruned by {', '.join(lacking)}, which the tuning key "
                "lacks: what was chosen for one call is used for another"
            )
        if self.for_proofs and len(configs) > MOST:
            raise BeyondBudget(f"proofs look at no more than {MOST} configurations of a launch")
        kept = _chosen_elsewhere(tuner, configs, kwargs)
        if self.for_proofs and kept:
            raise BeyondBudget("proofs do not follow what a call with an equal key has chosen")
        every = [*configs, *(config for config, _ in kept.values())]
        working, options, kernels = self._options(tuner, in_turn(every, self.turn), args, kwargs)
        tuner.best_config = working[0]
        if len(options) == 1:
            for step in options[0]:
                self.recorder.add(step)
        else:
            labels, tuning = [_label(config) + kept.get(id(config), (config, ""))[1] for config in working], None
            if self._accumulates(tuner, options):
                tuning = len(options)
                labels.append(FIRST_CALL)
                options.append(self._first_call(tuner, working, args, kwargs))
            self.recorder.add(Choice(tuple(options), tuple(labels), self.recorder.source(), tuning))
        tuner.nargs = None
        return kernels[0]

    def best_config(self, tuner: Any) -> Config:
        """The configuration of the first option; the others are dropped, for a submission that asks builds on it."""
        self.recorder.settle()
        return vars(tuner).get("_best")

    def _options(self, tuner: Any, configs: Sequence[Config], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        working, options, kernels, failure = [], [], [], None
        for config in configs:
            try:
                with self.recorder.branch() as steps:
                    kernels.append(_launch(tuner, config, args, kwargs))
            except SKIPPED as error:
                failure = error
                continue
            working.append(config)
            options.append(tuple(steps))
        if failure is not None and not working:
            raise failure
        return working, options, kernels

    def _accumulates(self, tuner: Any, options: Sequence[Sequence[Step]]) -> bool:
        if tuner.reset_to_zero or tuner.restore_value or tuner.user_defined_pre_hook:
            return True
        launches = [step for steps in options for step in steps if isinstance(step, Launch)]
        return any("tt.atomic" in self.compiler.kernels[launch.kernel].ttir for launch in launches)

    def _first_call(self, tuner: Any, configs: Sequence[Config], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        with self.recorder.branch() as steps:
            for config in configs:
                named = {**tuner.nargs, **kwargs, **config.all_kwargs()}
                if config.pre_hook:
                    config.pre_hook(named)
                tuner.pre_hook(named)
                tuner.fn.run(*args, **kwargs, **config.all_kwargs())
                tuner.post_hook(named, exception=None)
            tuner.pre_hook({**tuner.nargs, **kwargs, **configs[0].all_kwargs()}, reset_only=True)
            _launch(tuner, configs[0], args, kwargs)
        return tuple(steps)


class _Noting(dict[str, Any]):
    """A launch's arguments by name, of which it is noted which have been asked for."""

    def __init__(self, given: Any) -> None:
        super().__init__(given)
        self.asked: dict[str, None] = {}

    def __getitem__(self, name: str) -> Any:
        self.asked[name] = None
        return super().__getitem__(name)

    def get(self, name: str, otherwise: Any = None) -> Any:
        """See dict."""
        self.asked[name] = None
        return super().get(name, otherwise)

    def lacking(self, tuner: Any, named: dict[str, Any]) -> list[str]:
        """The numbers by which configurations may have been pruned, and which the tuning key lacks: those that were
        asked for, and what the launch is given by keyword and remembers that it is computed from sizes."""
        pruned = [name for name in self.asked if isinstance(super(_Noting, self).get(name), int)]
        if tuner.early_config_prune is not None:
            pruned += [
                name for name, value in named.items() if isinstance(value, int) and type(value) not in (int, bool)
            ]
        return [name for name in dict.fromkeys(pruned) if name not in tuner.keys]


def _chosen_elsewhere(tuner: Any, configs: Sequence[Config], kwargs: dict[str, Any]) -> dict[int, tuple[Config, str]]:
    """Configurations that pruning leaves out in this call, and not in another with an equal key: what that one chose is
    kept for both. By id, each with what its label says of it."""
    found: dict[int, tuple[Config, str]] = {}
    if not tuner.early_config_prune:
        return found
    own, here = tuner.nargs, {id(config) for config in configs}
    given = own | {name: value for name, value in kwargs.items() if name in tuner.arg_names}
    for name in [name for name, value in given.items() if _is_whole(value) and name not in tuner.keys]:
        for other in OTHER_NUMBERS:
            tuner.nargs = own | ({name: other} if name in own else {})
            try:
                elsewhere = tuner.prune_configs(kwargs | ({name: other} if name in kwargs else {}))
            except Exception:  # noqa: BLE001, S112  # there is no such call
                continue
            says = f" (which a call with another {name} may have chosen: the tuner's key lacks {name})"
            found |= {id(one): (one, says) for one in elsewhere if id(one) not in here and id(one) not in found}
    tuner.nargs = own
    return found


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def in_turn(configs: Sequence[Config], turn: int | None) -> Sequence[Config]:
    """The configurations that a call with this `turn` records (None: all); each belongs to one of the turns."""
    some = MOST // 2 if len(configs) <= 2 * MOST else MOST // 4
    turns = 1 if turn is None or len(configs) <= MOST else math.ceil(len(configs) / some)
    return configs[(turn or 0) % turns :: turns]


def _launch(tuner: Any, config: Config, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    if config.pre_hook is not None:
        config.pre_hook({**tuner.nargs, **kwargs, **config.all_kwargs()})
    return tuner.fn.run(*args, **kwargs, **config.all_kwargs())


def _refuse_conflicts(configs: Sequence[Config], kwargs: dict[str, Any]) -> None:
    """Raises ValueError where the launch gives what a configuration sets as well: Triton passes on both."""
    for config in configs:
        conflicts = sorted(kwargs.keys() & config.all_kwargs().keys())
        if conflicts:
            unsaid = any(name not in config.kwargs for name in conflicts)
            raise ValueError(
                f"Conflicting meta-parameters: {', '.join(conflicts)}. Each configuration sets them"
                f"{', by default where it does not name them' if unsaid else ''}: leave them out of the launch."
            )


def _label(config: Config) -> str:
    """The configuration as its author wrote it: "BLOCK=128, num_warps=4, num_stages=3"."""
    return shortened(", ".join(f"{name}={value}" for name, value in config.all_kwargs().items()))
