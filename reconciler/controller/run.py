"""`run`: a replica of the controller. A Running owns its threads and its planner process.

Besides the main thread, which serves HTTP and owns the desks, there is a thread per watched kind, one for policies, one
for leadership, one for the loop, and writer threads while a plan is carried out; with the webhook, the extender or
agents, one for certificates, and threads that read claims and keys and bind pods. On SIGTERM, in this order: no more
requests are sent, pending requests are awaited, and the Lease is released. The next replica then leads at once, and
never writes concurrently.
"""

import asyncio
import gc
import resource
import signal
import socket
import sys
import uuid
from collections.abc import Sequence
from pathlib import Path

import msgspec

from reconciler.controller import planner_process
from reconciler.controller.agents import AgentsEndpoint, AgentSettings, PermitKeyKeeper
from reconciler.controller.certificates import CertificateKeeper, CertificateUses, IssuedCertificates
from reconciler.controller.claim_statuses import ClaimStatusPublisher
from reconciler.controller.cluster import current_instant
from reconciler.controller.desk_feed import DeskLoop
from reconciler.controller.extender import SchedulerExtender
from reconciler.controller.loop_thread import LoopThread, WakingClock
from reconciler.controller.notices import Notices
from reconciler.controller.policies import Origins, PolicyCache, Question, watch
from reconciler.controller.publishers import Format, Log, SetAsidePublisher, StatusPublisher
from reconciler.controller.webhook import LOOKUP_TIMEOUTS, SharedPolicies, WebhookEndpoint
from reconciler.kube.apply.execute import Executor
from reconciler.kube.binding import PodBinder
from reconciler.kube.certificate_objects import CertificateObjects
from reconciler.kube.client import connect
from reconciler.kube.cluster import LiveCluster
from reconciler.kube.connections import Timeouts
from reconciler.kube.leader import Candidacy, Leader
from reconciler.kube.memory_store import ConfigMapMemory
from reconciler.kube.observe import ObservedScope, Observer
from reconciler.kube.policies import ResourcePolicies
from reconciler.kube.secrets import Secrets
from reconciler.kube.watch.changes import Change
from reconciler.loop.child import ChildPlanner
from reconciler.loop.cycle import Cycle, LoopDependencies
from reconciler.model import names
from reconciler.model.cluster.observed import Observed
from reconciler.model.instant import Instant
from reconciler.model.plan.inputs import ClaimScheduler
from reconciler.ports import Publisher
from reconciler.protocol.desk import Desk
from reconciler.protocol.leadership import pace_of
from reconciler.protocol.pressure_desk import PressureDesk
from reconciler.serve.agent_metrics import AgentMetrics, PressureMetrics
from reconciler.serve.claim_metrics import ClaimMetrics
from reconciler.serve.extender import LIMITS as EXTENDER_LIMITS
from reconciler.serve.extender import extender_routes
from reconciler.serve.metrics import Metrics
from reconciler.serve.server import Answers, ListenAddress, Server, application, probes
from reconciler.serve.tls import BadCertificate, CertificatePair, TlsContext
from reconciler.serve.webhook import WebhookMetrics
from reconciler.sources.watched import WatchedSource

# Ten seconds of writes at the rate limit: the maximum delay until a freeze or a revert takes effect.
MOST_AT_ONCE = 200
# The main thread answers kube-scheduler between threads that decode and write: by default, it would wait 5 ms for each.
SWITCH_SECONDS = 0.0005
LAST_STEP_SECONDS = 2.0  # for pending requests; afterwards the Lease is left to expire


class ExtenderFiles(msgspec.Struct, frozen=True):
    """The extender's certificate, and the authority of the scheduler's certificate."""

    certificate: Path
    key: Path
    client_authority: Path


class ExtenderSettings(msgspec.Struct, frozen=True):
    """Where the scheduler extender listens; without files, with certificates that the replicas make."""

    address: ListenAddress
    files: ExtenderFiles | None = None

    def context(self) -> TlsContext:
        """Only the scheduler is served. Raises OSError and BadCertificate."""
        if self.files is None:
            return TlsContext(client_name=names.GPU_SCHEDULER)
        context = TlsContext(self.files.client_authority.read_bytes(), names.GPU_SCHEDULER)
        context.load(CertificatePair(self.files.certificate.read_bytes(), self.files.key.read_bytes()))
        return context


class Settings(msgspec.Struct, frozen=True):
    question: Question
    address: ListenAddress = ListenAddress("127.0.0.1", 8080)
    probe_address: ListenAddress | None = None
    extender: ExtenderSettings | None = None
    agents: AgentSettings | None = None
    scheduler: ClaimScheduler = "external"
    webhook_address: ListenAddress | None = None
    webhook_client_ca: Path | None = None
    history: Path | None = None
    lease_seconds: int = 15
    log_format: Format = "text"

    @property
    def namespace(self) -> str:
        return self.question.place.namespace


class Running:
    """One replica. Raises Unreachable if there is no cluster."""

    def __init__(self, settings: Settings) -> None:
        pace = pace_of(settings.lease_seconds)
        question, context = settings.question, settings.question.place.context
        self._log = Log(settings.log_format)
        self._metrics = Metrics()
        self._clock = WakingClock()
        self._client = connect(context)
        # Timeouts well below the lease duration, to allow a second try.
        self._lease_client = connect(context, Timeouts(pace.renew_ms / 3_000, pace.renew_ms / 2_000))
        self._serves_extender = settings.extender is not None
        desk, self._pressure = Desk(), PressureDesk()
        self.extender = SchedulerExtender(desk, PodBinder(self._client), self._claim_metrics(), self._pressure)
        scope = ObservedScope(settings.namespace)
        self._observer = Observer(self._client, scope, on_change=self._changed, on_taken=self._pass_on)
        wishes = PolicyCache(question.environment)
        self._policies = self._followed(question.origins, wishes)
        applying = Executor(self._client)
        cluster = LiveCluster(self._observer.observe, applying)
        me = f"{socket.gethostname()}_{uuid.uuid4()}"
        candidacy = Candidacy(me, settings.namespace, pace=pace)
        self._leader = Leader(self._lease_client, candidacy, self._on_leadership, cluster.seen_at)
        self._agents = self._agents_endpoint(settings)
        self._desk_loop = self._desks(desk)
        self._planner = ChildPlanner(planner_process.command(settings.history))
        term = self._leader.term
        self._statuses = StatusPublisher(cluster, self._clock, term, question.origins.resources, settings.namespace)
        self._notices, aside = Notices(), SetAsidePublisher(applying.events.tell, term)
        own: tuple[Publisher, ...] = (self._log, self._metrics, self._notices, self._statuses)
        publishers = (*own, aside, ClaimStatusPublisher(cluster, self._clock, term))
        self._shared = SharedPolicies(wishes, self._observer.observe, self._desk_loop.set_policies)
        self._webhook = self._webhook_endpoint(settings)
        self._extender_tls = settings.extender.context() if settings.extender is not None else None
        self._issues_extender = settings.extender is not None and settings.extender.files is None
        self._certificates = self._certificate_keeper(settings)
        self._cycle = Cycle(self._loop_dependencies(settings, cluster, publishers))
        self._looping = LoopThread(self._clock, self._log, self._once)
        self._is_synced = self._led = False

    def _loop_dependencies(
        self, settings: Settings, cluster: LiveCluster, publishers: tuple[Publisher, ...]
    ) -> LoopDependencies:
        memory = ConfigMapMemory(self._client, settings.namespace)
        parts = LoopDependencies(self._shared, cluster, memory, self._planner, self._clock, publishers)
        parts = msgspec.structs.replace(parts, scheduler=settings.scheduler, most_at_once=MOST_AT_ONCE)
        if self._agents is None:
            return parts
        publishers = (*publishers, self._agents)
        return msgspec.structs.replace(parts, publishers=publishers, pressure=self._agents.planning_state)

    def start(self, address: ListenAddress) -> None:
        self._log.tell("started", f"reconciler runs as {self._leader.me} and listens on {address}")
        if self._serves_extender or self._agents is not None:
            self._desk_loop.start(self._observer.take)
        if self._agents is not None:
            self._agents.start(self._clock.wake)
        self._policies.start()
        self._observer.start()
        self._leader.start()
        self._looping.start()
        if self._certificates is not None:
            call_soon = asyncio.get_running_loop().call_soon_threadsafe
            self._certificates.start(lambda issued: call_soon(self._load, issued))

    def secured_servers(self, settings: Settings) -> list[Server]:
        """The servers of the extender, of the webhook and of agents, as far as there are any. Raises OSError."""
        servers = []
        if settings.extender is not None:
            routes = extender_routes(self.extender, self.extender.bind)
            servers.append(Server(settings.extender.address, routes, EXTENDER_LIMITS, self._extender_tls))
        if self._webhook is not None and settings.webhook_address is not None:
            servers.append(self._webhook.server(settings.webhook_address, WebhookMetrics(self._metrics.registry)))
        if self._agents is not None:
            PressureMetrics(self._agents.desk.figures, self._metrics.registry)
            servers.append(self._agents.server(AgentMetrics(self._metrics.registry)))
        return servers

    def _claim_metrics(self) -> ClaimMetrics:
        return ClaimMetrics(self._metrics.registry if self._serves_extender else None)

    def _desks(self, desk: Desk) -> DeskLoop:
        """Only desks that answer somebody are fed."""
        agents = self._agents.desk if self._agents is not None else None
        return DeskLoop(desk if self._serves_extender else None, agents)

    def stop(self) -> bool:
        """Stops in about two seconds. Returns whether all pending requests were answered."""
        self._log.tell("stopping", "no more writes")
        self._leader.resign()
        self._planner.close()
        has_answers = self._looping.stop(LAST_STEP_SECONDS)
        if has_answers:
            self._leader.release()
        self.extender.close()
        self._policies.stop()
        self._observer.stop()
        if self._certificates is not None:
            self._certificates.stop()
        for endpoint in (self._webhook, self._agents):
            if endpoint is not None:
                endpoint.stop()
        for client in (self._client, self._lease_client):
            client.close()
        if not has_answers:
            self._looping.stop(LAST_STEP_SECONDS)  # the closed connections have ended its requests
        given_back = "released" if has_answers else "not released, because a write was not answered; the Lease expires"
        self._log.tell("stopped", f"leadership {given_back}" if self._led else "this replica did not lead")
        return has_answers

    def why_unready(self) -> str:
        """Why the replica is not ready. A standby replica can be ready too."""
        if not self._policies.has_read:
            return "the policies have not been read yet"
        if not self._is_synced:
            self._is_synced = self._observer.is_synced()
            if not self._is_synced:
                return "the cluster has not been read yet"
            gc.collect()
            gc.freeze()  # the first objects live long
        return ""

    def why_not_ready(self) -> str:
        """The same for probes: without a leader, every replica is unready."""
        certificates = self._certificates.why_unready if self._certificates is not None else ""
        extender = self.extender if self._serves_extender else None
        silent = why_silent(self._shared, extender) if self._webhook is not None or extender is not None else ""
        return self.why_unready() or certificates or silent or self._leader.why_leaderless

    def notices(self) -> tuple[str, ...]:
        return self._notices.told

    def why_unhealthy(self) -> str:
        if not self._looping.is_alive:
            return "the loop has ended"
        return "" if self._leader.is_alive else "leader election has ended"

    def metrics(self) -> bytes:
        self._metrics.leaderless(bool(self._leader.why_leaderless))
        return self._metrics.text()

    def _once(self) -> Instant | None:
        """One cycle, if this replica leads and has inputs. Returns when to run again."""
        term = self._leader.term()
        if term is None or self.why_unready():
            # A standby keeps up: otherwise watches would lag, and the next leader would begin with old data. Good
            # policies are taken over too: when the leader ends, the current policies may be incomplete.
            observed = self._observer.observe()
            if self.why_unready():
                self._policies.latest()
            else:
                self._shared.wish(observed.cluster_uid)
            return None
        cycled = self._cycle.once(term)
        for text in cycled.unpublished:
            self._log.tell("fault", text, "error")
        return cycled.wake_at

    def _webhook_endpoint(self, settings: Settings) -> WebhookEndpoint | None:
        if settings.webhook_address is None:
            return None
        client = connect(settings.question.place.context, LOOKUP_TIMEOUTS)
        return WebhookEndpoint(client, self._shared, settings.webhook_client_ca)

    def _certificate_keeper(self, settings: Settings) -> CertificateKeeper | None:
        """None if no endpoint needs certificates of our own."""
        uses = CertificateUses(self._webhook is not None, self._issues_extender, self._agents is not None)
        if uses == CertificateUses():
            return None
        objects = CertificateObjects(self._client, settings.namespace)
        return CertificateKeeper(objects, settings.namespace, uses, self._log, current_instant)

    def _agents_endpoint(self, settings: Settings) -> AgentsEndpoint | None:
        if settings.agents is None:
            return None
        stored = Secrets(self._client, settings.namespace, "deploy/pressure/rbac.yaml has")
        keeper = PermitKeyKeeper(stored, self._leader.term, self._log)
        client = connect(settings.question.place.context, LOOKUP_TIMEOUTS)
        return AgentsEndpoint(settings.agents, self._pressure, client, self._leader, keeper)

    def _load(self, issued: IssuedCertificates) -> None:
        """Called on the main thread, which serves."""
        try:
            for endpoint in (self._webhook, self._agents):
                if endpoint is not None:
                    endpoint.load(issued)
            if self._extender_tls is not None and self._issues_extender:
                self._extender_tls.load(issued.serving, issued.authorities)
        except BadCertificate as fault:
            self._log.tell("certificates", str(fault), "error")

    def _pass_on(self, changes: Sequence[Change]) -> None:
        """Called on any thread, in the order of the changes."""
        self._desk_loop.pass_on(changes)

    def _changed(self) -> None:
        """Called on a thread of the observer."""
        self._clock.wake()
        self._desk_loop.wake()

    def _followed(self, origins: Origins, wishes: PolicyCache) -> WatchedSource | ResourcePolicies:
        source: WatchedSource | ResourcePolicies
        if origins.resources:
            source = ResourcePolicies(self._observer.observe, wishes.judge, self._receive)
        else:
            source = watch(origins, self._clock.wake, wishes.judge)
        wishes.source = source
        return source

    def _receive(self, observed: Observed) -> None:
        self._statuses.receive(observed)

    def _on_leadership(self) -> None:
        leads = self._leader.term() is not None
        self._metrics.lead(leads)
        if leads != self._led:
            self._led = leads
            self._notices.forget()
            self._log.tell("leadership", "this replica leads" if leads else "this replica no longer leads")
            self._desk_loop.renew_term()
            if self._agents is not None:
                self._agents.wake()
        if trouble := self._leader.trouble:
            self._log.tell("leadership", trouble, "warning")
        self._clock.wake()


def why_silent(policies: SharedPolicies, extender: SchedulerExtender | None) -> str:
    """Why the webhook and the extender cannot answer yet. Without valid policies, they answer that."""
    return policies.why_unready or (
        extender.why_unready if extender is not None and policies.last_seen is not None else ""
    )


class End(msgspec.Struct, frozen=True):
    """How the replica ended: the signal, and whether threads still wait for answers."""

    signal: int
    is_stuck: bool


def run(settings: Settings) -> End:
    """Runs until SIGTERM or Ctrl-C. Raises Unreachable, OSError."""
    sys.setswitchinterval(SWITCH_SECONDS)
    if settings.agents is not None:
        _allow_open_files()
    running = Running(settings)
    answers = Answers(running.why_unhealthy, running.why_not_ready, running.metrics, running.notices)
    servers = [Server(settings.address, application(answers))]
    if settings.probe_address is not None:
        servers.append(Server(settings.probe_address, probes(answers)))
    servers += running.secured_servers(settings)
    return asyncio.run(_serve(running, servers))


def _allow_open_files() -> None:
    """As many as the process may open: each agent keeps a connection."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


async def _serve(running: Running, servers: Sequence[Server]) -> End:
    stopped_by: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    for each in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(each, _settle, stopped_by, each)
    serving = asyncio.gather(*(each.serve() for each in servers))
    running.start(servers[0].address)
    has_answers = False
    try:
        await asyncio.wait((stopped_by, serving), return_when=asyncio.FIRST_COMPLETED)
    finally:
        has_answers = await asyncio.to_thread(running.stop)
        for server in servers:
            server.stop()
        await serving
    return End(stopped_by.result() if stopped_by.done() else 0, not has_answers)


def _settle(stopped_by: asyncio.Future[int], number: int) -> None:
    """Sets the result once; a second signal has no effect."""
    if not stopped_by.done():
        stopped_by.set_result(number)
