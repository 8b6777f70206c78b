"""A certificate authority for tests, and TLS servers with its certificates."""

import hashlib
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import RequestReceived

from tests.servers.fetch.reaching import ANSWER, PATIENCE

HOST = "secure.test"
DAY = timedelta(days=1)
NOW = datetime.now(UTC)
SHA_256_WITH_RSA = bytes.fromhex("06092a864886f70d01010b")
SHA_1_WITH_RSA = bytes.fromhex("06092a864886f70d010105")
SHA_1_DIGEST = bytes.fromhex("3021300906052b0e03021a05000414")


class Certificate(NamedTuple):
    """An X.509 certificate and its private key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey

    def write(self, path: Path) -> Path:
        key = self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        path.write_bytes(self.certificate.public_bytes(Encoding.PEM) + key)
        return path

    def write_public(self, path: Path) -> Path:
        path.write_bytes(self.certificate.public_bytes(Encoding.PEM))
        return path


def authority(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | None = None) -> Certificate:
    key = key or ec.generate_private_key(ec.SECP256R1())
    usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
    builder = _builder("Test authority", "Test authority", key, NOW - 400 * DAY, NOW + 400 * DAY)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    builder = builder.add_extension(usage, critical=True)
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    return Certificate(builder.sign(key, hashes.SHA256()), key)


def certificate(
    issuer: Certificate | None, *hosts: str, starts: datetime = NOW - DAY, ends: datetime = NOW + DAY
) -> Certificate:
    """Makes a certificate for the hosts; without an issuer it is self-signed."""
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder("Test site", "Test authority" if issuer else "Test site", key, starts, ends)
    names = [x509.IPAddress(ip_address(one)) if one[0].isdigit() else x509.DNSName(one) for one in hosts or (HOST,)]
    builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    signing = issuer.key if issuer else key
    known = x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key())
    return Certificate(builder.add_extension(known, critical=False).sign(signing, hashes.SHA256()), key)


def signed_with_sha_1(issuer: Certificate) -> Certificate:
    """Makes a certificate with a SHA-1 signature, which no library offers any more. The issuer needs an RSA key.

    It takes a SHA-256 certificate, replaces the name of the algorithm, and computes the signature (RFC 8017, 8.2.1).
    """
    shown = certificate(issuer)
    tbs = shown.certificate.tbs_certificate_bytes.replace(SHA_256_WITH_RSA, SHA_1_WITH_RSA)
    numbers = issuer.key.private_numbers()
    size = (numbers.public_numbers.n.bit_length() + 7) // 8
    digest = SHA_1_DIGEST + hashlib.sha1(tbs).digest()
    padded = b"\x00\x01" + b"\xff" * (size - 3 - len(digest)) + b"\x00" + digest
    signature = pow(int.from_bytes(padded), numbers.d, numbers.public_numbers.n).to_bytes(size)
    method = b"\x30\x0d" + SHA_1_WITH_RSA + b"\x05\x00"
    body = tbs + method + b"\x03\x82" + (size + 1).to_bytes(2) + b"\x00" + signature
    der = b"\x30\x82" + len(body).to_bytes(2) + body
    return Certificate(x509.load_der_x509_certificate(der), shown.key)


def _builder(
    subject: str, issuer: str, key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey, starts: datetime, ends: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(starts)
        .not_valid_after(ends)
    )


def server_context(shown: Certificate, folder: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.load_cert_chain(shown.write(folder / "site.pem"))
    return context


@contextmanager
def secure_site(context: ssl.SSLContext) -> Iterator[int]:
    """Runs a TLS server that answers one request, and yields its port.

    It uses blocking sockets, because those of event loops do not say why a handshake failed.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE)
        thread = threading.Thread(target=_serve, args=(listener, context))
        thread.start()
        yield listener.getsockname()[1]
        thread.join()


def _serve(listener: socket.socket, context: ssl.SSLContext) -> None:
    plain, _ = listener.accept()
    plain.settimeout(PATIENCE)
    kept = plain.dup()
    try:
        with plain, context.wrap_socket(plain, server_side=True) as secure:
            if secure.selected_alpn_protocol() == "h2":
                _answer_as_http_2(secure)
            else:
                secure.recv(65_536)
                secure.sendall(ANSWER)
    except OSError:
        # The client has to read the TLS alert first: after an early close it would see only a reset.
        with suppress(OSError):
            while kept.recv(65_536):
                pass
    finally:
        kept.close()


def _answer_as_http_2(secure: ssl.SSLSocket) -> None:
    connection = H2Connection(H2Configuration(client_side=False))
    connection.initiate_connection()
    while received := secure.recv(65_536):
        for event in connection.receive_data(received):
            if isinstance(event, RequestReceived):
                connection.send_headers(event.stream_id, [(":status", "200")])
                connection.send_data(event.stream_id, b"hello", end_stream=True)
        secure.sendall(connection.data_to_send())
