"""Asks of agents in a replica: who asks, whether this replica may answer, and the keys that sign permits.

Theory of operation. The pressure desk is fed on every replica, and answers while its term has begun. A term of the desk
begins once this replica leads, has read the permit keys after it began to lead, has read nodes and pods, and knows the
policies. Each ask compares the term with that of the leader, so nothing is permitted after the leadership has ended.
"""

import asyncio
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future

import msgspec

from reconciler.controller.certificates import IssuedCertificates
from reconciler.controller.cluster import current_instant
from reconciler.controller.publishers import Log
from reconciler.kube.client import Client
from reconciler.kube.leader import Leader, LeaderFence
from reconciler.kube.secrets import Secrets
from reconciler.kube.token_keys import TokenKeys
from reconciler.model import names
from reconciler.model.desired import Declared
from reconciler.model.instant import Instant
from reconciler.model.plan.inputs import CycleResult
from reconciler.model.plan.pressure import PressureState
from reconciler.model.policy.scaling import PressurePolicy
from reconciler.plan.pressure.memory import MigrationMemory
from reconciler.plan.pressure.reasons import PLANNER
from reconciler.ports import Stale, Unavailable
from reconciler.protocol.agent_identity import (
    NOT_SIGNED,
    AgentIdentity,
    AgentsAccount,
    is_own_pod,
    read_identity,
    read_token,
    why_no_state,
    why_not_for,
)
from reconciler.protocol.asks import AskAnswer, AskMessage, Refusal, read_ask
from reconciler.protocol.permits import (
    KEY_BYTES,
    PermitKeys,
    is_rotation_due,
    permit_keys,
    read_keys,
    rotated,
    written_keys,
)
from reconciler.protocol.pressure_desk import NO_LEADER, RETRY_SECONDS, Destination, PressureDesk
from reconciler.protocol.pressure_state import LedgerDump, PressureFigures, pool_figures
from reconciler.serve.agent_metrics import AgentMetrics
from reconciler.serve.agents import LIMITS, agent_routes
from reconciler.serve.server import ListenAddress, Server
from reconciler.serve.tls import TlsContext

STATE_SECONDS = 5.0
KEY_READ_SECONDS = 1.0  # keys of the API server are read at most this often
_NOT_BEGUN = Refusal(
    503, "this replica has begun to lead and has not read everything that it needs yet: ask again", RETRY_SECONDS
)


class LeaderTerm(msgspec.Struct, frozen=True):
    """The leadership of this replica."""

    fence: Callable[[], LeaderFence | None]
    epoch: Callable[[], int]


# --- Who asks.


class AgentAuthenticator:
    """Verifies tokens on the event loop. Reads the keys on a thread; all requests with unknown keys share a read."""

    def __init__(self, keys: TokenKeys, now: Callable[[], Instant] = current_instant) -> None:
        self._keys, self._now = keys, now
        self._reading: asyncio.Task[str] | None = None
        self._read_at = float("-inf")

    async def authenticate(self, authorization: str) -> AgentIdentity | Refusal:
        """The bearer of the token in an Authorization header."""
        token = read_token(authorization)
        if isinstance(token, Refusal):
            return token
        is_signed = self._keys.is_signed(token)
        if is_signed is None:
            if trouble := await self._read_keys():
                return Refusal(503, trouble, RETRY_SECONDS)
            is_signed = self._keys.is_signed(token)
        return read_identity(token.claims, self._now()) if is_signed else NOT_SIGNED

    async def _read_keys(self) -> str:
        """Why the keys cannot be read."""
        if self._reading is None or self._reading.done():
            if time.monotonic() - self._read_at < KEY_READ_SECONDS:
                return self._reading.result() if self._reading is not None else ""
            self._read_at = time.monotonic()
            self._reading = asyncio.create_task(self._read_on_thread())
        return await asyncio.shield(self._reading)

    async def _read_on_thread(self) -> str:
        try:
            await asyncio.to_thread(self._keys.read_again)
        except Unavailable as error:
            return str(error)
        except Exception as error:  # noqa: BLE001 - an ask must have an answer
            return f"the keys of the API server could not be read because of a bug: {type(error).__name__}"
        return ""


# --- Whether this replica may answer.


class AgentDesk:
    """The pressure desk of a replica, with its term. Called on the main thread, which owns the desk."""

    def __init__(
        self,
        desk: PressureDesk,
        authenticator: AgentAuthenticator,
        leader: LeaderTerm,
        account: AgentsAccount | None,
        now: Callable[[], Instant] = current_instant,
    ) -> None:
        """`account`: of the agents of nodes."""
        self.desk = desk
        self._authenticator = authenticator
        self._leader = leader
        self._account = account
        self._now = now
        self.on_change: Callable[[], None] = lambda: None  # permits or capacity pressure
        self._has_policies = False
        self._keyed: LeaderFence | None = None  # the term for which the permit keys have been read
        self._begun: LeaderFence | None = None  # the term of the desk

    async def authenticate(self, authorization: str) -> AgentIdentity | Refusal:
        return await self._authenticator.authenticate(authorization)

    def ask(self, identity: AgentIdentity, message: AskMessage) -> AskAnswer | Refusal:
        """A permit, or why nothing was changed."""
        if (refusal := self._why_silent()) is not None:
            return refusal
        ask = read_ask(message)
        if isinstance(ask, Refusal):
            return ask
        if (refusal := why_not_for(identity, ask.pod, self.desk.node_of(ask.pod), self._account)) is not None:
            return refusal
        changes = self.desk.changes
        answer = self.desk.ask(ask, self._now(), identity.pod_uid if is_own_pod(identity, ask.pod) else "")
        if self.desk.changes != changes:
            self.on_change()
        return answer

    def state(self, identity: AgentIdentity) -> LedgerDump | Refusal:
        """All ledgers, for the account of the agents of nodes."""
        return why_no_state(identity, self._account) or self._why_silent() or self.desk.state()

    def figures(self) -> Mapping[tuple[str, str], PressureFigures]:
        """Sums by pool and resource; none while this replica does not lead."""
        self.renew_term()
        return pool_figures(self.desk.pool_ledgers) if self._begun is not None else {}

    def planning_state(self) -> PressureState | None:
        """What has been reserved, for a plan; None while this replica does not answer agents."""
        self.renew_term()
        return self.desk.planning_state() if self._begun is not None else None

    def set_policies(self, policies: Sequence[Declared[PressurePolicy]]) -> None:
        """The policies in force."""
        self.desk.set_policies(policies)
        self._has_policies = True
        self.renew_term()

    def take_keys(self, keys: PermitKeys, term: LeaderFence) -> None:
        """The permit keys, read during a term."""
        self.desk.keys, self._keyed = keys, term
        self.renew_term()

    def renew_term(self) -> None:
        """Begins or ends the term of the desk if it is time."""
        term = self._leader.fence()
        if term is self._begun:
            return
        if self._begun is not None:
            self.desk.end_term()
            self._begun = None
        if term is not None and term is self._keyed and self.desk.is_read and self._has_policies:
            self.desk.begin_term(self._leader.epoch())
            self._begun = term

    def _why_silent(self) -> Refusal | None:
        self.renew_term()
        if self._begun is not None:
            return None
        return NO_LEADER if self._leader.fence() is None else _NOT_BEGUN


# --- The keys that sign permits.

LOOK_SECONDS = 30.0
_AFTER_A_FAULT_SECONDS = 2.0
STOP_SECONDS = 2.0


class PermitKeyKeeper:
    """Reads the permit keys when this replica begins to lead, makes them and rotates them. Owns its thread."""

    def __init__(
        self,
        stored: Secrets,
        term: Callable[[], LeaderFence | None],
        log: Log,
        now: Callable[[], Instant] = current_instant,
    ) -> None:
        self._stored, self._term, self._log, self._now = stored, term, log, now
        self._hand: Callable[[PermitKeys, LeaderFence], object] = lambda *_: None
        self._handed: tuple[PermitKeys, LeaderFence] | None = None
        self._happened, self._stop = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="permit-keys", daemon=True)
        self._trouble = ""

    def start(self, hand: Callable[[PermitKeys, LeaderFence], object]) -> None:
        """`hand` is called on the keeper's thread."""
        self._hand = hand
        self._thread.start()

    def wake(self) -> None:
        """Leadership may have changed. Called on any thread."""
        self._happened.set()

    def stop(self) -> None:
        self._stop.set()
        self._happened.set()
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS)

    def step(self) -> None:
        """Looks once. Only the leader reads and writes. Raises Stale, Unavailable."""
        term = self._term()
        if term is None:
            return
        secret = self._stored.read(names.PERMIT_KEYS)
        keys, now = read_keys(secret.content), self._now()
        if is_rotation_due(keys, now):
            keys = rotated(keys, secrets.token_bytes(KEY_BYTES), now)
            self._stored.write(names.PERMIT_KEYS, written_keys(keys), secret.version)
        handed = permit_keys(keys), term
        if self._handed is None or handed[0] != self._handed[0] or term is not self._handed[1]:
            self._hand(*handed)
            self._handed = handed

    def _run(self) -> None:
        wait_seconds = 0.0
        while not self._stop.is_set():
            self._happened.wait(wait_seconds)
            self._happened.clear()
            wait_seconds, trouble = _AFTER_A_FAULT_SECONDS, ""
            try:
                if not self._stop.is_set():
                    self.step()
                wait_seconds = LOOK_SECONDS
            except Stale:
                wait_seconds = 0.0  # another replica wrote first: read what it wrote
            except Unavailable as error:
                trouble = str(error)
            except Exception as error:  # noqa: BLE001 - a thread that ends would leave agents without permits
                trouble = f"the permit keys could not be read because of a bug: {type(error).__name__}"
            if trouble and trouble != self._trouble:
                self._log.tell("permit-keys", trouble, "warning")
            self._trouble = trouble


# --- The endpoint of a replica.


class AgentSettings(msgspec.Struct, frozen=True):
    """Where agents are answered, and the account of the agents of nodes."""

    address: ListenAddress
    account: AgentsAccount | None = None


class AgentsEndpoint:
    """Owns the TLS context, the client and the keeper of the permit keys."""

    def __init__(
        self, settings: AgentSettings, desk: PressureDesk, client: Client, leader: Leader, keeper: PermitKeyKeeper
    ) -> None:
        """`client`: for the keys of the API server; its timeouts are below those of an exchange."""
        self._settings, self._client, self._keeper = settings, client, keeper
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tls = TlsContext()
        term = LeaderTerm(leader.term, lambda: leader.epoch)
        self.desk = AgentDesk(desk, AgentAuthenticator(TokenKeys(client)), term, settings.account)

    def server(self, metrics: AgentMetrics) -> Server:
        """Binds the address. Raises OSError."""
        return Server(self._settings.address, agent_routes(self.desk, metrics), LIMITS, self._tls)

    def start(self, on_change: Callable[[], None]) -> None:
        """Called on the event loop. `on_change`: called when an ask has changed what is reserved or lacks."""
        self._loop = asyncio.get_running_loop()
        self.desk.on_change = on_change
        call_soon = self._loop.call_soon_threadsafe
        self._keeper.start(lambda keys, term: call_soon(self.desk.take_keys, keys, term))

    def wake(self) -> None:
        """Leadership may have changed. Called on any thread."""
        self._keeper.wake()

    def planning_state(self) -> PressureState | None:
        """What has been reserved. Called on the thread of the loop; the desk belongs to the event loop."""
        if self._loop is None:
            return None
        found: Future[PressureState | None] = Future()
        self._loop.call_soon_threadsafe(lambda: found.set_result(self.desk.planning_state()))
        try:
            return found.result(STATE_SECONDS)
        except TimeoutError:
            return None  # the event loop has ended

    def publish(self, cycled: CycleResult) -> None:
        """A Publisher: the migrations of the last plan."""
        if self._loop is None or cycled.plan is None:
            return
        found = cycled.plan.memory.section(PLANNER, MigrationMemory).migrations
        migrations = {each.uid: Destination(each.destination, each.pod, each.amounts) for each in found}
        self._loop.call_soon_threadsafe(self.desk.desk.set_migrations, migrations)

    def load(self, issued: IssuedCertificates) -> None:
        """Serves with a new certificate. Called on the thread that serves. Raises BadCertificate."""
        self._tls.load(issued.serving)

    def stop(self) -> None:
        self._keeper.stop()
        self._client.close()
