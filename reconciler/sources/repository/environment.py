"""What a git process is told besides its arguments: nothing from the user's or the system's settings, no one to ask.

The environment is made from nothing, since what is inherited can name programs (GIT_SSH, GIT_CONFIG_PARAMETERS) or
another repository (GIT_DIR, as every hook sets it). Settings given here win over those of a repository. A token travels
in the environment, which only the same user can read, and never as an argument.
"""

import base64
import os
import shlex
from urllib.parse import quote, urlsplit

import msgspec

from reconciler.sources.repository.address import RepositoryAddress

# Where programs, proxies and certificate authorities are found; none of these is for git to run.
INHERITED = (
    "PATH", "LD_LIBRARY_PATH", "TMPDIR", "SSH_AUTH_SOCK",
    "https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH",
)  # fmt: skip

ALWAYS = {
    "HOME": os.devnull,  # no settings, no .netrc
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "",  # set but empty: not even the program that a repository names
    "SSH_ASKPASS": "",
    "SSH_ASKPASS_REQUIRE": "never",
    "GIT_NO_REPLACE_OBJECTS": "1",  # a revision is what its id says
    "GIT_NO_LAZY_FETCH": "1",  # what is missing stays missing
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PROTOCOL_FROM_USER": "0",
    "GIT_PAGER": "cat",
}

SETTINGS = (
    ("core.fsmonitor", "false"),
    ("core.hooksPath", os.devnull),
    ("core.attributesFile", os.devnull),
    ("core.askPass", ""),
    ("core.commitGraph", "false"),  # a cache beside the commits, which may say other than they do
    ("core.bigFileThreshold", "1m"),  # what is larger is copied in pieces, not held in memory
    ("credential.helper", ""),  # empties the list
    ("protocol.allow", "never"),
    ("protocol.ext.allow", "never"),
    ("protocol.file.allow", "never"),
    ("http.followRedirects", "false"),  # a token goes to the host it was given for
    ("http.sslVerify", "true"),
    ("transfer.bundleURI", "false"),
    ("fetch.recurseSubmodules", "false"),
    ("fetch.unpackLimit", "1"),
    ("submodule.recurse", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
)

# Without -F, a file of the user's could name programs to run on the way.
SSH = (
    "ssh", "-F", os.devnull, "-oBatchMode=yes", "-oStrictHostKeyChecking=yes", "-oPermitLocalCommand=no",
    "-oForwardAgent=no", "-oForwardX11=no", "-oClearAllForwardings=yes", "-oControlMaster=no",
)  # fmt: skip


class Credentials(msgspec.Struct, frozen=True):
    """What opens a remote: a token for https, files for SSH (else the user's default keys and known hosts)."""

    token: str = ""
    username: str = "token"  # most hosts look at the token alone
    ssh_key: str = ""
    known_hosts: str = ""

    def __repr__(self) -> str:
        return f"Credentials({self.username}, token {'given' if self.token else 'not given'})"

    @property
    def basic(self) -> str:
        """As HTTP says it."""
        return base64.b64encode(f"{self.username}:{self.token}".encode()).decode()

    @property
    def secrets(self) -> tuple[str, ...]:
        """Every form in which a message could give the token away."""
        return (self.token, quote(self.token, safe=""), self.basic) if self.token else ()


def credentials_for(address: RepositoryAddress, given: Credentials) -> Credentials:
    """Those in the address, if it has any, else those that were given."""
    if address.password:
        return Credentials(address.password, address.user)
    if address.user and given.token:
        return Credentials(given.token, address.user)
    if address.user and address.transport == "https":
        return Credentials(address.user)  # https://TOKEN@host, as some hosts write it
    return given


def reading(git_dir: str) -> dict[str, str]:
    """For a process that reads a repository on disk and can speak to no other."""
    return _environment(git_dir, "none", SETTINGS)


def fetching(git_dir: str, address: RepositoryAddress, credentials: Credentials) -> dict[str, str]:
    """For a process that fills a repository from a remote, which it knows as origin."""
    settings = [*SETTINGS, (f"protocol.{address.transport}.allow", "always"), ("remote.origin.url", address.location)]
    if address.transport == "https" and credentials.token:
        host = urlsplit(address.location).netloc
        settings.append((f"http.https://{host}/.extraHeader", f"Authorization: Basic {credentials.basic}"))
    environment = _environment(git_dir, address.transport, settings)
    environment["GIT_SSH_VARIANT"] = "ssh"
    environment["GIT_SSH_COMMAND"] = shlex.join([*SSH, *_ssh_files(credentials)])
    return environment


def _ssh_files(credentials: Credentials) -> list[str]:
    key = ["-oIdentitiesOnly=yes", f"-oIdentityFile={credentials.ssh_key}"] if credentials.ssh_key else []
    return [*key, *([f"-oUserKnownHostsFile={credentials.known_hosts}"] if credentials.known_hosts else [])]


def _environment(
    git_dir: str, allowed: str, settings: tuple[tuple[str, str], ...] | list[tuple[str, str]]
) -> dict[str, str]:
    environment = {name: os.environ[name] for name in INHERITED if name in os.environ} | ALWAYS
    environment |= {"GIT_DIR": git_dir, "GIT_ALLOW_PROTOCOL": allowed, "GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings):
        environment[f"GIT_CONFIG_KEY_{number}"] = key
        environment[f"GIT_CONFIG_VALUE_{number}"] = value
    return environment
