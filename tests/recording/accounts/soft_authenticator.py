"""A passkey in software: it answers what a browser would, and lies on request."""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from fido2.cose import ES256
from fido2.utils import websafe_encode
from fido2.webauthn import (
    Aaguid,
    AttestationObject,
    AttestedCredentialData,
    AuthenticatorData,
)

ORIGIN = "https://signpost.example"
PRESENT = AuthenticatorData.FLAG.UP


@dataclass
class Device:
    """One key for one account, with a counter that grows with each use."""

    origin: str = ORIGIN
    host: str = "signpost.example"
    counter: int = 0
    credential_id: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    key: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )

    def _client_data(self, kind: str, options: dict[str, Any]) -> bytes:
        data = {
            "type": kind,
            "challenge": options["challenge"],
            "origin": self.origin,
        }
        return json.dumps(data).encode()

    def _answer(self, **response: bytes) -> str:
        raw_id = websafe_encode(self.credential_id)
        encoded = {name: websafe_encode(value) for name, value in response.items()}
        body = {"id": raw_id, "rawId": raw_id, "type": "public-key"}
        return json.dumps(body | {"response": encoded})

    def make(self, options: dict[str, Any]) -> str:
        """Answer navigator.credentials.create()."""
        public = ES256.from_cryptography_key(self.key.public_key())
        credential = AttestedCredentialData.create(
            Aaguid.NONE, self.credential_id, public
        )
        flags = PRESENT | AuthenticatorData.FLAG.AT
        made = AuthenticatorData.create(self._host_hash, flags, 0, credential)
        return self._answer(
            clientDataJSON=self._client_data("webauthn.create", options),
            attestationObject=AttestationObject.create("none", made, {}),
        )

    def sign(self, options: dict[str, Any]) -> str:
        """Answer navigator.credentials.get()."""
        self.counter += 1
        data = AuthenticatorData.create(self._host_hash, PRESENT, self.counter)
        client_data = self._client_data("webauthn.get", options)
        signed = data + hashlib.sha256(client_data).digest()
        return self._answer(
            clientDataJSON=client_data,
            authenticatorData=data,
            signature=self.key.sign(signed, ec.ECDSA(SHA256())),
        )

    @property
    def _host_hash(self) -> bytes:
        return hashlib.sha256(self.host.encode()).digest()
