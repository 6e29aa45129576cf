"""Keys and certificates of a local control plane: one CA, the servers' certificate, an administrator's, a signing key.

Elliptic-curve keys: five of them take milliseconds, RSA would take a second of every start.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAYS = 365


def _key_bytes(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _write(path: Path, content: bytes, mode: int = 0o600) -> None:
    path.touch(mode=mode)
    path.write_bytes(content)


def _subject(name: str, group: str | None) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group)] if group else []
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, name)])


class Authority:
    """A certificate authority that lives as long as the object; only its certificate is written, never its key."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _subject("gpufleet-twin-ca", None)
        certificate = (
            self._builder(self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(sign=True), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        _write(folder / "ca.crt", certificate.public_bytes(serialization.Encoding.PEM), 0o644)

    def _builder(self, subject: x509.Name, public: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = dt.datetime.now(dt.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(hours=1))
            .not_valid_after(now + dt.timedelta(days=DAYS))
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )

    def issue(self, file: str, name: str, *, group: str | None = None, addresses: Sequence[str] = ()) -> None:
        """Write ``file.key`` and ``file.crt``: a server's when it has addresses (names or IPs), else a client's.

        A client is known to Kubernetes as user ``name`` in group ``group``.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            self._builder(_subject(name, group), key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(sign=False), critical=True)
        )
        if addresses:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_general(a) for a in addresses]), critical=False
            )
        purpose = ExtendedKeyUsageOID.SERVER_AUTH if addresses else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        _write(self.folder / f"{file}.key", _key_bytes(key))
        certificate = builder.sign(self._key, hashes.SHA256())
        _write(self.folder / f"{file}.crt", certificate.public_bytes(serialization.Encoding.PEM), 0o644)


def _usage(*, sign: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=sign,
        crl_sign=sign,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general(address: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(address))
    except ValueError:
        return x509.DNSName(address)


def write_signing_key(folder: Path) -> None:
    """Write ``sa.key`` and ``sa.pub``: the pair that signs and checks service-account tokens."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    _write(folder / "sa.key", _key_bytes(key))
    _write(folder / "sa.pub", public, 0o644)


def create(folder: Path, service_address: str) -> None:
    """Write everything that a control plane on 127.0.0.1 needs into folder (mode 0700)."""
    authority = Authority(folder)
    names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "127.0.0.1", service_address]
    authority.issue("server", "kube-apiserver", addresses=names)
    authority.issue("admin", "twin-admin", group="system:masters")
    write_signing_key(folder)
