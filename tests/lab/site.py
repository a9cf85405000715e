"""Where one lab stands: its folder, its certificates, its addresses, and the kubeconfig files it hands out."""

from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.lab.api import Api, Credential
from tests.lab.build import Built
from tests.lab.certificates import Authority


@dataclass(frozen=True)
class Site:
    """All that the parts of one lab need to know of one another."""

    folder: Path
    built: Built
    authority: Authority
    etcd_port: int
    api_port: int

    @property
    def etcd_url(self) -> str:
        return f"https://127.0.0.1:{self.etcd_port}"

    @property
    def api_url(self) -> str:
        return f"https://127.0.0.1:{self.api_port}"

    @property
    def audit_log(self) -> Path:
        return self.folder / "audit.log"

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def api(self, user: str, *groups: str) -> Api:
        """A client that shows a certificate for this user."""
        return Api(self.api_url, self.authority.certificate, Credential(pair=self.authority.client(user, groups)))

    def kubeconfig(self, name: str, api: Api) -> Path:
        """A kubeconfig file with which other programs become the identity of `api`."""
        credential = api.credential
        user: dict[str, str] = {"token": credential.token} if credential.token else {}
        if credential.pair:
            user = {"client-certificate": str(credential.pair.certificate), "client-key": str(credential.pair.key)}
        cluster = {"server": api.url, "certificate-authority": str(api.authority)}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "lab", "cluster": cluster}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": name}}],
            "current-context": "lab",
        }
        path = self.folder / f"{name}.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(content))
        return path
