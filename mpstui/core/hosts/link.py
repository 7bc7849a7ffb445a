"""The near end: one line at a time to one machine, reopened whenever it breaks, and what was received over it.

When the line breaks, what was received stays, with the time when the machine was last heard. A call that waits for its
answer is sent again on the next line under the same id; one that nobody waits for any more is cancelled, and its
result is reported. So, whatever happens to a line, a key acts once or not at all, and the user learns which.
"""

from __future__ import annotations

import secrets
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Event, Lock, Thread
from typing import Any, TypeVar

from ..model.errors import OperationError, ReportedError, UsageError
from ..present import duration
from .channels import Hearer
from .codec import form_of
from .desk import Signature, signature_of
from .forms import Rules, Tree
from .reopening import Knock, Reopening, Wakefulness, unknown
from .session import LineLike, NearSession
from .view import KINDS, Greeting, View

T = TypeVar("T")
PING_SECONDS = 2.0
LATE_SECONDS = 5.0
"""After this long without a message, what is known is shown with its age."""
CUT_SECONDS = 12.0
"""After this long without a message, the line is given up."""
LOOK_PATIENCE, ACT_PATIENCE = 8.0, 20.0
"""How many seconds a question, and an action, waits for its answer."""
AWAKE_SECONDS = 2.0
"""How long a line may take to be heard again after this machine slept."""
CLOCKS_AGREE_SECONDS = 2.0
"""Clocks that differ by less count as equal: a line cannot measure the difference more exactly."""


Connect = Callable[[], LineLike]


@dataclass(slots=True)
class _Call:
    id: str
    method: str
    arguments: dict[str, Any]
    signature: Signature
    about: str
    came: Event = field(default_factory=Event)
    answer: dict[str, Any] | None = None


class Link:
    """The connection to one machine. Its thread starts with :meth:`start`; any thread may ask."""

    def __init__(
        self,
        host: str,
        connect: Connect,
        news: Callable[[], object] = lambda: None,
        clock: Callable[[], float] = time.time,
        knock: Knock = unknown,
    ) -> None:
        """``news`` is called, from any thread, when something has changed."""
        self.host, self._connect, self.news, self._clock = host, connect, news, clock
        self.values: dict[str, Any] = {}
        """The value of each channel, as last received."""
        self.greeting: Greeting | None = None
        self.ahead = 0.0
        """Seconds by which the clock there is ahead of ours."""
        self.notices: deque[str] = deque(maxlen=20)
        """Results of calls that nobody waits for any more."""
        self.trouble = ""
        """Why there is no line, in a sentence; empty while there is one."""
        self._heard_at: float | None = None
        """When something was last heard, Unix seconds."""
        self._session: NearSession | None = None
        self._greeted = False
        self._view = View()
        self._lock = Lock()
        self._calls: dict[str, _Call] = {}
        self._left: dict[str, _Call] = {}
        """Calls that nobody waits for any more, and whose result is unknown."""
        self._stopped, self._reopening = Event(), Reopening(knock, clock)
        self._thread = Thread(target=self._run, name=f"mpstui-link {host}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Close the line; the far process ends with it."""
        self._stopped.set()
        self._reopening.stop()
        session = self._session
        if session is not None:
            session.end("closed")
        with self._lock:
            for call in self._calls.values():
                call.came.set()  # nobody waits any more
        if self._thread.is_alive():
            self._thread.join(3.0)

    @property
    def live(self) -> bool:
        """True if the machine has been heard lately."""
        session = self._session
        return session is not None and self._greeted and time.monotonic() - session.heard_at < LATE_SECONDS

    @property
    def current(self) -> bool:
        """True if its runs are up to date: a line may be back, or answer, while nothing over there reads the runs."""
        session = self._session
        return session is not None and session.told_list and session.behind_seconds < LATE_SECONDS and self.live

    @property
    def heard_at(self) -> float | None:
        """When the runs over there were as they are known here, Unix seconds; None if nothing is known."""
        session = self._session
        if session is not None and session.told_list:
            return self._clock() - (time.monotonic() - session.heard_at) - session.behind_seconds
        return self._heard_at

    @property
    def sentence(self) -> str:
        """What is wrong with the line now, and for how long; empty if nothing is."""
        if self.current:
            return ""
        heard, session = self.heard_at, self._session
        age = "" if heard is None else duration(self._clock() - heard)
        if self.live:
            return f"{self.host}: its runs were last read {age} ago" if age else f"{self.host}: reading its runs …"
        if session is not None and self._greeted:
            return f"{self.host}: not heard for {age}" if age else f"{self.host}: not heard any more"
        why = self.trouble.removeprefix(f"{self.host}: ")
        if not age:
            return f"{self.host}: {why}, trying again" if why else f"{self.host}: connecting …"
        return f"{self.host}: {why or 'connection lost'}, not heard for {age}, trying again"

    # -- looking and asking

    def look(self, view: View) -> None:
        """Set what is looked at from now on."""
        if view != self._view:
            self._view = view
            session = self._session
            if session is not None and self._greeted:
                session.send(["view", form_of(View).encode(view, Rules())])
            self._reopening.hurry()  # somebody is looking there
            looked_at = {
                *(f"log:{path}" for path in view.logs),
                *(f"run:{run}" for run in (view.focus, *view.compared)),
            }
            for name in [one for one in self.values if one.partition(":")[1] and one not in looked_at]:
                self.values.pop(name, None)

    def ask(
        self,
        method: Callable[..., T],
        *,
        about: str = "",
        patience: float | None = None,
        call: str = "",
        **arguments: Any,
    ) -> T:
        """Ask one of the questions of :class:`.desk.Desk`, and wait for the answer.

        Args:
            about: what it does, for a sentence: ``stop of resnet``.
            call: its id, if it has one already.

        Raises:
            ReportedError: it could not be done, or the line broke; the sentence says which.
        """
        signature = signature_of(method.__name__)
        acting = signature.acts
        if not self.live:
            self._reopening.hurry()
            why = self.sentence or f"{self.host}: connection lost"
            raise OperationError(f"{why}; {'nothing was sent' if acting else 'it will be shown when it is back'}")
        rules = Rules(ahead=self.ahead)
        forms = dict(signature.arguments)
        told = {name: forms[name].encode(value, rules) for name, value in arguments.items()}
        made = _Call(call or secrets.token_hex(12), method.__name__, told, signature, about or method.__name__)
        with self._lock:
            self._calls[made.id] = made
            session = self._session
        if session is not None:
            session.send(["call", made.id, made.method, made.arguments])
        made.came.wait(patience or (ACT_PATIENCE if acting else LOOK_PATIENCE))
        answer = self._answer_to(made)
        if answer is not None:
            return _read_answer(self.host, answer, signature, rules)  # type: ignore[no-any-return]
        if not acting:
            raise OperationError(f"{self.host}: no answer yet", "the connection is slow or failing: try again")
        session = self._session
        if session is not None:
            session.send(["off", made.id])
        sentence = f"{self.host}: no answer to {made.about}; whether it was done will be shown when it answers"
        raise OperationError(sentence, "what is on its way is withdrawn")

    def _answer_to(self, call: _Call) -> dict[str, Any] | None:
        """The result of a call; None if there is none yet: whether an action was done must then be found out later."""
        with self._lock:
            self._calls.pop(call.id, None)
            if call.answer is None and call.signature.acts:
                self._left[call.id] = call
            return call.answer

    # -- the line

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                line = self._connect()
            except ReportedError as error:
                self.trouble = error.sentence
                self._reopening.ended(0.0, getattr(error, "kind", ""))
                self.news()
            except Exception as error:  # noqa: BLE001 - whatever it is, it is reported, and tried again
                self.trouble = f"{self.host}: {type(error).__name__}: {error}"
                self._reopening.ended(0.0)
                self.news()
            else:
                session = NearSession(line, self._hear)
                self._attend(session)
                self._reopening.ended(session.spoken_seconds, "frozen" if session.hung else "")
                line.close(0.0)
            self._reopening.pause()

    def _attend(self, session: NearSession) -> None:
        """Look after a line until it ends."""
        self._session = session
        session.start()
        awake, asked_at = Wakefulness(self._clock), time.monotonic()
        session.send(["ping", asked_at])
        was_current, cut_from = False, 0.0
        while not session.ended.wait(PING_SECONDS / 8) and not self._stopped.is_set():
            now, slept = time.monotonic(), awake.slept()
            if slept:
                session.heard_at -= awake.unseen
                cut_from = now + AWAKE_SECONDS
            if now - session.heard_at > CUT_SECONDS and now > cut_from:
                session.hung = True
                session.end(f"{self.host}: the connection hangs")
            elif slept or now - max(asked_at, session.heard_at) > PING_SECONDS or now - asked_at > 2 * PING_SECONDS:
                asked_at = now
                session.send(["ping", now])
            if was_current != self.current or not self.current:
                was_current = self.current
                self.news()
        self._heard_at = self.heard_at
        with self._lock:
            self._session, self._greeted = None, False
        session.end("closed")
        self.trouble = session.why
        self.news()

    def _hear(self, session: NearSession, message: Tree) -> None:
        what, *rest = message
        if what == "came":
            self._came(rest[0], rest[1])
        elif session is not self._session:
            return  # a line that was given up may send old messages for a moment
        elif what == "told" and session.hearer is not None:
            name, patch = rest
            self.values[name] = session.hearer.hear(name, KINDS[name.partition(":")[0]], patch)
            session.told_list = session.told_list or name == "list"
            self.news()
        elif what == "gone" and session.hearer is not None:
            session.hearer.drop(rest[0])
        elif what == "hello":
            self.greeting = form_of(Greeting).decode(rest[0], Rules())
        elif what == "pong":
            asked, there, session.behind_seconds = map(float, rest)
            taken = time.monotonic() - asked
            ahead = there - (self._clock() - taken / 2)
            if session.hearer is None:
                session.answered_at = session.heard_at
                self._begin(session, ahead, taken)
            elif abs(ahead - session.clocks_apart) > max(CLOCKS_AGREE_SECONDS, taken) + CLOCKS_AGREE_SECONDS:
                session.end(f"{self.host}: one of the two clocks was set")  # all times are sent again

    def _begin(self, session: NearSession, ahead: float, taken: float) -> None:
        """The first answer: the clocks' difference is known now, so the other side can be told what to look at."""
        session.clocks_apart = ahead
        self.ahead = ahead if abs(ahead) > max(CLOCKS_AGREE_SECONDS, taken) else 0.0
        session.hearer = Hearer(Rules(ahead=self.ahead))
        session.send(["view", form_of(View).encode(self._view, Rules())])
        with self._lock:
            self._greeted, self.trouble = True, ""
            waiting: Sequence[_Call] = list(self._calls.values())
            left: Sequence[str] = list(self._left)
        for call in waiting:
            session.send(["call", call.id, call.method, call.arguments])
        for call_id in left:
            session.send(["off", call_id])
        self.news()

    def _came(self, call_id: str, answer: dict[str, Any]) -> None:
        with self._lock:
            call, left = self._calls.get(call_id), self._left.get(call_id)
            if left is not None and "begun" in answer and self._session is not None:
                self._session.send(["call", left.id, left.method, left.arguments])  # its process died half-way
                return
            self._left.pop(call_id, None)
            if call is not None:
                call.answer = answer
        if call is not None:
            call.came.set()
        elif left is not None:
            self.notices.append(f"{self.host}: {left.about} {_ending(answer)}")
            self.news()


def _ending(answer: dict[str, Any]) -> str:
    if "never" in answer:
        return "did not get there before the connection was lost: nothing was done"
    failed = answer.get("fail")
    return f"could not be done: {failed['sentence']}" if failed else "was done before the connection was lost"


def _read_answer(host: str, answer: dict[str, Any], signature: Signature, rules: Rules) -> Any:
    try:
        failed = answer.get("fail")
        if failed is None:
            return signature.answer.decode(answer.get("ok"), rules)
        kind = UsageError if failed["usage"] else OperationError
        told = kind(f"{host}: {failed['sentence']}", failed["hint"], field=failed["field"], near=failed["near"])
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise OperationError(
            f"{host}: its answer cannot be read: {error}", "both sides need the same mpstui"
        ) from error
    raise told
