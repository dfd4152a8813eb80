package identity

import (
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
)

// oidPayload is the OID of an extension that limits a certificate to one payload. Its value is an
// OCTET STRING with the SHA-256 of the payload. It is not critical: openssl and cosign refuse
// critical extensions that they do not know. For its arc, see package ca.
var oidPayload = asn1.ObjectIdentifier{2, 25, 1515595488, 2}

// ForPayload returns the extension that limits a certificate to the payload with a SHA-256.
func ForPayload(digest [sha256.Size]byte) (pkix.Extension, error) {
	if digest == [sha256.Size]byte{} {
		return pkix.Extension{}, errors.New("issue a certificate: it has no payload")
	}
	value, err := asn1.Marshal(digest[:])
	if err != nil {
		return pkix.Extension{}, fmt.Errorf("encode the payload of a certificate: %w", err)
	}
	return pkix.Extension{Id: oidPayload, Value: value}, nil
}

// checkPayload refuses a certificate that is limited to another payload.
func checkPayload(leaf *x509.Certificate, payload []byte) error {
	for _, e := range leaf.Extensions {
		if !e.Id.Equal(oidPayload) {
			continue
		}
		var want []byte
		rest, err := asn1.Unmarshal(e.Value, &want)
		digest := sha256.Sum256(payload)
		if err != nil || len(rest) > 0 || string(want) != string(digest[:]) {
			return errors.New("is limited to another statement: the digest in it is not that of this payload")
		}
	}
	return nil
}
