"""A certificate authority that lives as long as a test run, and a certificate for this machine."""

from dataclasses import dataclass
from pathlib import Path

from tests.servers.fetch.authority import authority, certificate


@dataclass(frozen=True)
class Certificates:
    """Files in the form of PEM."""

    authority: Path
    """What a client has to trust."""
    certificate: Path
    """Of `localhost`, with its key."""

    @property
    def trust(self) -> dict[str, str]:
        """The environment of a process, Python or Node, that trusts the authority. For Python it is the only one."""
        return {"SSL_CERT_FILE": str(self.authority), "NODE_EXTRA_CA_CERTS": str(self.authority)}


def make(folder: Path) -> Certificates:
    """Writes them into `folder`."""
    issuer = authority()
    shown = certificate(issuer, "localhost", "127.0.0.1").write(folder / "certificate.pem")
    return Certificates(issuer.write_public(folder / "authority.pem"), shown)
