"""Addresses of repositories and names of revisions: what git is asked at all, and what messages say of it."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.sources.repository.address import check_revision, parse_address, redacted
from reconciler.sources.repository.process import Credentials, credentials_for, fetching
from reconciler.sources.walk import Refused

HERE = parse_address("repository")


@pytest.mark.parametrize(
    ("text", "transport", "location"),
    [
        ("repository", "path", "repository"),
        ("/srv/my repository.git", "path", "/srv/my repository.git"),
        ("./host:path", "path", "./host:path"),
        ("https://example.com/team/policies.git", "https", "https://example.com/team/policies.git"),
        ("https://example.com:8443/x", "https", "https://example.com:8443/x"),
        ("https://[2001:db8::1]/x", "https", "https://[2001:db8::1]/x"),
        ("ssh://git@example.com:22/team/policies", "ssh", "ssh://git@example.com:22/team/policies"),
        ("git@example.com:team/policies.git", "ssh", "git@example.com:team/policies.git"),
        ("example.com:/srv/policies.git", "ssh", "example.com:/srv/policies.git"),
    ],
)
def test_folders_https_and_ssh_are_read_from(text: str, transport: str, location: str) -> None:
    address = parse_address(text)
    assert (address.transport, address.location, address.shown) == (transport, location, text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ext::sh -c touch%20/tmp/x",
        "fd::17",
        "--upload-pack=touch x",
        "-u touch x",
        "-",
        "file:///srv/policies",
        "file:///srv/policies --upload-pack=x",
        "http://example.com/x",
        "git://example.com/x",
        "ftp://example.com/x",
        "https://example.com",
        "https:///x",
        "https://-example.com/x",
        "https://example.com/x y",
        "https://example.com/x\nhost: other",
        "https://example.com/x?service=y",
        "https://example.com/x#y",
        "https://example.com/x\\@other",
        "ssh://-oProxyCommand=touch/x",
        "ssh://git@-oProxyCommand=touch/x",
        "ssh://-l@example.com/x",
        "ssh://example.com/-x",
        "-oProxyCommand=touch:x",
        "git@-oProxyCommand=touch:x",
        "git@example.com:-x",
        "git@example.com:x y",
        "x\x00y",
        "x\x1b[2Jy",
        "x" * 3_000,
    ],
)
def test_what_could_run_or_send_something_else_is_refused(text: str) -> None:
    with pytest.raises(Refused) as refused:
        parse_address(text)
    problem = refused.value.problem
    assert problem.code == "RC511"
    assert problem.remedy
    assert problem.sentence.isprintable()


@pytest.mark.parametrize("revision", ["main", "HEAD", "HEAD~2", "v1.2^", "team/topic-3", "fix#12", "f" * 40, "höhe"])
def test_branches_tags_commits_and_steps_from_them_are_revisions(revision: str) -> None:
    check_revision(revision, HERE)


@pytest.mark.parametrize(
    "revision",
    [
        "", "--output=F", "-n1", "^main", "+main", "a..b", "a...b", "main@{1}", "@{u}", "main:policies", ":/text",
        "main^{/text}", "a b", "a\tb", "a\nb", "a\0b", "refs/heads/*", "a?", "a[b]", "a\\b", "a" * 300,
    ],
)  # fmt: skip
def test_options_ranges_logs_searches_and_files_are_no_revisions(revision: str) -> None:
    with pytest.raises(Refused) as refused:
        check_revision(revision, HERE)
    assert refused.value.problem.code == "RC512"
    assert refused.value.problem.sentence.isprintable()


def test_steps_back_are_refused_for_a_remote() -> None:
    with pytest.raises(Refused, match="counts back"):
        check_revision("main~1", parse_address("git@example.com:x"))


def test_credentials_are_taken_out_of_an_address() -> None:
    address = parse_address("https://me:pass%40word@example.com/x")
    assert address.location == "https://example.com/x"
    assert address.shown == "https://***@example.com/x"
    assert "word" not in repr(address)
    found = credentials_for(address, Credentials("other"))
    assert (found.username, found.token) == ("me", "pass@word")
    assert credentials_for(parse_address("https://TOKEN@example.com/x"), Credentials()).token == "TOKEN"
    named = credentials_for(parse_address("https://me@example.com/x"), Credentials("t"))
    assert (named.username, named.token) == ("me", "t")
    assert credentials_for(parse_address("git@example.com:x"), Credentials("t")).username == "token"


def test_credentials_are_not_printed() -> None:
    assert "secret" not in f"{Credentials('secret')} {Credentials('secret')!r}"


def test_a_token_is_for_its_host_alone() -> None:
    address = parse_address("https://example.com:8443/x")
    environment = fetching("/repository", address, Credentials("secret"))
    keys = [value for name, value in environment.items() if name.startswith("GIT_CONFIG_KEY")]
    assert "http.https://example.com:8443/.extraHeader" in keys
    assert "secret" not in str(sorted(environment.items()))


def test_an_environment_has_nothing_inherited_that_git_would_run(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GIT_DIR", "GIT_SSH_COMMAND", "GIT_CONFIG_PARAMETERS", "GIT_EXTERNAL_DIFF", "GIT_PROXY_COMMAND"):
        monkeypatch.setenv(name, "canary")
    environment = fetching("/repository", parse_address("git@example.com:x"), Credentials(ssh_key="/a key"))
    assert "canary" not in environment.values()
    assert environment["GIT_SSH_COMMAND"].startswith("ssh -F /dev/null -oBatchMode=yes")
    assert "'-oIdentityFile=/a key'" in environment["GIT_SSH_COMMAND"]


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("cannot reach 'https://me:pw@example.com/x'", "cannot reach 'https://***@example.com/x'"),
        ("https://me:p/w@example.com/x", "https://***@example.com/x"),
        ("https://example.com/x?private_token=abc", "https://example.com/x?***"),
        ("me:pw@example.com:x", "***@example.com:x"),
        ("ssh://git@example.com/x", "ssh://git@example.com/x"),
        ("git@example.com:x", "git@example.com:x"),
        ("/srv/me@work/x", "/srv/me@work/x"),
        ("told\x1b[2J", r"told\x1b[2J"),
    ],
)
def test_messages_say_addresses_without_what_opens_them(said: str, shown: str) -> None:
    assert redacted(said) == shown


# Begun with what no message has of itself: a drawn secret may be a word that messages are made of.
SECRET = st.text(
    st.characters(codec="ascii", categories=["L", "N", "P", "S", "Zs", "Cc"]), min_size=8, max_size=3_000
).map(lambda drawn: f"zq7{drawn}")


@given(scheme=st.sampled_from(["https", "http", "ssh", "git+ssh", "ftp"]), secret=SECRET)
def test_no_password_in_an_address_is_ever_said(scheme: str, secret: str) -> None:
    url = f"{scheme}://me:{secret}@example.com/x"
    try:
        address = parse_address(url)
        said = [address.shown, address.location, repr(address)]
    except Refused as refused:
        said = [str(refused), repr(refused.problem)]
    if not re.search(r"\s", secret):
        said.append(redacted(f"fatal: unable to access '{url}': no"))
    assert not any(secret in one or secret[:8] in one for one in said)
