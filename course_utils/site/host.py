"""A lab on a page: what the panel is in Jupyter, over messages, and without a kernel.

It runs in the browser, in a worker of the page: like a view, it imports neither torch nor numpy nor Jupyter.
"""

import json
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from course_utils import labs
from course_utils.labs import fields
from course_utils.labs.lab import Change, Lab, Progress, View, sentence

NEEDS_A_KERNEL = "That needs a kernel, to run torch on a machine of yours."
RECORDED = Path("recorded")  # beside the course's modules, where the worker unpacks both


@dataclass(frozen=True)
class Recorded:
    """What a lab found out with torch when the page was made, by the answers that it depends on."""

    by: Sequence[str] = ()
    found: Mapping[tuple[object, ...], object] = field(default_factory=dict)

    def of(self, asked: object) -> object:
        """For these answers."""
        return self.found[tuple(getattr(asked, name) for name in self.by)]


class Host:
    """A lab, its answers so far, and the job that runs, if one does."""

    def __init__(self, lab: Lab, recorded: Recorded | None = None) -> None:
        self.lab, self.found = lab, lab.found
        self._recorded = recorded
        self._job: Iterator[Progress] | None = None
        self._svg, self._failed = "", False
        self.values = {name: one.default for name, one in lab.fields.items()}
        # As in the panel, the ends are not known before the first look.
        self._ends = {n: one.default + 1 for n, one in lab.fields.items() if isinstance(one, fields.Whole)}
        self._names: dict[str, list[str]] = {}
        self._follow()
        self._first = dict(self.values)

    def answer(self, message: Mapping[str, object]) -> dict[str, object]:
        """Do what a message says, and say what the page has to show."""
        shown: dict[str, object] = {}
        try:
            for what, argument in message.items():
                shown |= getattr(self, f"_do_{what}")(argument)
            shown |= self._view()
        except Exception as error:
            shown["mistake"] = NEEDS_A_KERNEL if isinstance(error, ImportError) else sentence(error)
        return shown | {"running": self._job is not None, "fields": self.state()}

    def state(self) -> dict[str, dict[str, object]]:
        """What each control shows: its value, whether it is asked, and what follows the other answers."""
        state = {}
        for name, one in self.lab.fields.items():
            value = self.values[name]
            if isinstance(one, fields.Choice):
                value = next((label for label, option in one.options.items() if option == value), None)
            state[name] = {"value": value, "asked": one.asked(self.values)}
            if name in self._ends:
                state[name]["end"] = self._ends[name]
            if name in self._names:
                state[name]["names"] = self._names[name]
        return state

    # What a message can say.

    def _do_set(self, said: Mapping[str, object]) -> dict[str, object]:
        """Move controls; what a page says of a choice is the option's name."""
        for name, value in said.items():
            one = self.lab.fields[name]
            said = said | {name: one.options.get(value) if isinstance(one, fields.Choice) else value}
        self._move(said)
        return self._forget_report()

    def _do_preset(self, label: str) -> dict[str, object]:
        """Nonsense in other controls gives way to what they began with."""
        self._move(self.lab.presets[label])
        try:
            self._view()
        except ValueError:
            self._move({**self._first, **self.lab.presets[label]})
        return self._forget_report()

    def _do_pick(self, key: str) -> dict[str, object]:
        """A late click may mean a part that has gone."""
        if self.lab.pick and f'data-key="{escape(key)}"' in self._svg:
            self._move(self.lab.pick(key, self._asked()))
        return {}

    def _do_act(self, label: str) -> dict[str, object]:
        asked = self._asked()
        self._know(_without_kernel(self.lab.actions[label])(asked, self._found(asked)))
        return {}

    def _do_start(self, label: str) -> dict[str, object]:
        if self._job:
            return {}
        self._job = _without_kernel(self.lab.jobs[label])(self._asked(), self.found)
        self._failed = False
        return {"report": "", "failed": False}

    def _do_step(self, stop: bool) -> dict[str, object]:
        """The job's next step; the page asks for one after the other, so that it can be moved and stopped between."""
        if not self._job:
            return {}
        try:
            step = next(self._job, None)
        except Exception as error:
            self._job, self._failed = None, True
            failure = NEEDS_A_KERNEL if isinstance(error, ImportError) else sentence(error)
            return {"report": failure, "failed": True, "progress": -1}
        if step is None:
            self._job = None
            return {"progress": -1}
        if step.change:
            self._know(step.change)
        if not stop:
            return {"report": step.report, "progress": step.fraction}
        with closing(self._job):
            self._job = None
        return {"report": f"Stopped. {step.report}", "progress": -1}

    # How it is done.

    def _forget_report(self) -> dict[str, object]:
        """As in the panel: what the last job found, or why it failed, is of what was asked then."""
        return {} if self._job else {"report": "", "failed": False}

    def _asked(self) -> object:
        return self.lab.read(self.values)

    def _found(self, asked: object) -> object:
        return self._recorded.of(asked) if self._recorded else self.found

    def _view(self) -> dict[str, object]:
        asked = self._asked()
        view: View = self.lab.view(asked, self._found(asked))
        self._svg = view.picture
        return {"svg": view.picture, "meaning": view.meaning, "table": view.table, "mistake": ""}

    def _know(self, change: Change) -> None:
        self._move(change.values)
        if change.found is not None:
            self.found = change.found(self.found)

    def _move(self, values: Mapping[str, object]) -> None:
        for name in self.lab.fields:  # in their order: where one ends depends on those before it
            if name in values:
                self.values[name] = values[name]
                self._follow()

    def _follow(self) -> None:
        """Who stands at the end goes with it; names that cannot be read stay as they were."""
        for name, one in self.lab.fields.items():
            if isinstance(one, fields.Whole):
                before, self._ends[name] = self._ends[name], one.end(self.values)
                if self.values[name] >= min(before, self._ends[name]):
                    self.values[name] = self._ends[name]
            if isinstance(one, fields.Sizes):
                with suppress(ValueError):  # the lab says so
                    self._names[name] = list(one.names(self.values))


def _without_kernel(work: str | Callable) -> Callable:
    if isinstance(work, str):
        raise ValueError(NEEDS_A_KERNEL)
    return work


_hosts: dict[str, Host] = {}


def answer(name: str, message: str) -> str:
    """What the worker calls: a lab's name and a message, in JSON, to the answer in JSON."""
    if name not in _hosts:
        recorded = RECORDED / f"{name}.pickle"
        known = pickle.loads(recorded.read_bytes()) if recorded.exists() else None
        _hosts[name] = Host(labs.lab_named(name), known)
    return json.dumps(_hosts[name].answer(json.loads(message)))
