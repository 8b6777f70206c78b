"""A certificate authority that lives as long as a test run, and a certificate for this machine."""

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

LIFETIME = timedelta(days=2)


@dataclass(frozen=True)
class Certificates:
    """Files in the form of PEM."""

    authority: Path
    """What a client has to trust."""
    certificate: Path
    """Of `localhost`."""
    key: Path

    @property
    def trust(self) -> dict[str, str]:
        """The environment of a process, Python or Node, that trusts the authority. For Python it is the only one."""
        return {"SSL_CERT_FILE": str(self.authority), "NODE_EXTRA_CA_CERTS": str(self.authority)}


def make(folder: Path) -> Certificates:
    """Writes them into `folder`."""
    root, leaf = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer, subject = _named("an authority for tests"), _named("localhost")
    authority = _certificate(issuer, issuer, root, root, _authority_extensions(root))
    certificate = _certificate(issuer, subject, root, leaf, _leaf_extensions(root))
    made = Certificates(folder / "authority.pem", folder / "certificate.pem", folder / "key.pem")
    made.authority.write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    made.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    made.key.write_bytes(
        leaf.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return made


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def _certificate(
    issuer: x509.Name,
    subject: x509.Name,
    signing: ec.EllipticCurvePrivateKey,
    of: ec.EllipticCurvePrivateKey,
    extensions: list[tuple[x509.ExtensionType, bool]],
) -> x509.Certificate:
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(
        issuer, subject, of.public_key(), x509.random_serial_number(), now - LIFETIME, now + LIFETIME
    )
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical)
    return builder.sign(signing, hashes.SHA256())


def _authority_extensions(root: ec.EllipticCurvePrivateKey) -> list[tuple[x509.ExtensionType, bool]]:
    usage = dict.fromkeys(
        ["digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement"], False
    )
    signs = x509.KeyUsage(**usage, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False)
    return [
        (x509.BasicConstraints(ca=True, path_length=0), True),
        (signs, True),
        (x509.SubjectKeyIdentifier.from_public_key(root.public_key()), False),
    ]


def _leaf_extensions(root: ec.EllipticCurvePrivateKey) -> list[tuple[x509.ExtensionType, bool]]:
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    return [
        (x509.BasicConstraints(ca=False, path_length=None), True),
        (x509.SubjectAlternativeName(names), False),
        (x509.ExtendedKeyUsage([x509.ExtendedKeyUsageOID.SERVER_AUTH]), False),
        (x509.AuthorityKeyIdentifier.from_issuer_public_key(root.public_key()), False),
    ]
