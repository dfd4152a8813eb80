package attestation

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"errors"
	"reflect"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation/foreign"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// StatementType is the DSSE payload type of an in-toto statement, the only supported
// one.
const StatementType = "application/vnd.in-toto+json"

// EnvelopeType is the media type of a DSSE envelope.
const EnvelopeType = "application/vnd.dsse.envelope.v1+json"

// BundleType is the media type of a Sigstore bundle.
const BundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"

// bundleTypes are the media types of bundles that are accepted. Their envelopes, key hints and
// certificates have the same form.
var bundleTypes = []string{
	BundleType,
	"application/vnd.dev.sigstore.bundle+json;version=0.3",
	"application/vnd.dev.sigstore.bundle+json;version=0.2",
	"application/vnd.dev.sigstore.bundle+json;version=0.1",
}

// An Envelope is a signed in-toto statement that has not been verified.
type Envelope struct{ identity.Signed }

// PAE returns the pre-authentication encoding of a payload and its type, which is what
// DSSE signs.
func PAE(payloadType string, payload []byte) []byte {
	return append(appendPAEHeader(nil, payloadType, len(payload)), payload...)
}

func appendPAEHeader(b []byte, payloadType string, n int) []byte {
	b = slices.Grow(b, len("DSSEv1")+len(payloadType)+n+44)
	b = strconv.AppendInt(append(b, "DSSEv1 "...), int64(len(payloadType)), 10)
	b = append(append(b, ' '), payloadType...)
	b = strconv.AppendInt(append(b, ' '), int64(n), 10)
	return append(b, ' ')
}

// ParseEnvelope parses a DSSE envelope, optionally with certificates as witness adds
// them, or a Sigstore bundle. It ignores unknown members, because others may extend both
// formats.
func ParseEnvelope(body []byte) (*Envelope, error) {
	var doc documentJSON
	if err := ledger.DecodeForeign(body, &doc, ledger.CodeInvalidEnvelope, ""); err != nil {
		if n := text.CountDocuments(body); n > 1 {
			return nil, ledger.Errorf(ledger.CodeInvalidJSON,
				"the body has %d JSON documents, as JSON Lines files do (send them as application/x-ndjson)", n)
		}
		if fault, ok := errors.AsType[*ledger.Error](err); ok {
			err = cmp.Or(foreignError(body, fault.Code), err)
		}
		return nil, err
	}
	if !doc.hasContent() {
		if err := foreignError(body, ledger.CodeInvalidEnvelope); err != nil {
			return nil, err
		}
	}
	if err := doc.checkKind(); err != nil {
		return nil, err
	}
	if err := checkMembers(reflect.ValueOf(&doc), ledger.CodeInvalidEnvelope, ""); err != nil {
		return nil, err
	}
	if unsigned := len(body) - doc.payloadSize(); unsigned > maxUnsigned {
		return nil, ledger.Errorf(ledger.CodeInvalidEnvelope,
			"the members of the envelope without the payload take %d bytes: at most %d (no signature covers them)",
			unsigned, maxUnsigned)
	}

	if doc.isBundle() {
		env, err := doc.bundle()
		if err == nil {
			env.Bundle = body
		}
		return env, err
	}
	return doc.envelope("")
}

// Payload returns the payload of an envelope or bundle that was accepted before, also by
// earlier rules. It does not verify the envelope. The payload of a commit object is itself.
func Payload(body []byte) ([]byte, error) {
	if IsCommitObject(body) {
		return body, nil
	}
	var doc documentJSON
	if err := ledger.DecodeForeign(body, &doc, ledger.CodeInvalidEnvelope, ""); err != nil {
		return nil, err
	}
	text := doc.Payload
	if doc.DSSE != nil {
		text = doc.DSSE.Payload
	}
	return text.payload(), nil
}

// MediaType returns the media type of an envelope or bundle that was accepted before. It is empty
// for a commit object.
func MediaType(body []byte) string {
	if IsCommitObject(body) {
		return ""
	}
	var bundle struct {
		MediaType string `json:"mediaType"`
	}
	if err := ledger.DecodeOpen(body, &bundle); err != nil || bundle.MediaType == "" {
		return EnvelopeType
	}
	return bundle.MediaType
}

// maxUnsigned is the maximum size of an envelope or bundle without its payload, in bytes.
const maxUnsigned = 64 << 10

// foreignError returns an error with the code for a document that is not an envelope, or nil if the document
// is not known.
func foreignError(document []byte, code ledger.Code) error {
	if what := foreign.Describe(document); what != "" {
		return ledger.Errorf(code, "the document is %s", what)
	}
	return nil
}

// hasContent reports whether the document has a payload, an envelope or the signature of a blob.
func (d *documentJSON) hasContent() bool {
	return d.Payload.pae != nil || d.DSSE != nil || d.Message != nil
}

// checkKind refuses documents that people send instead of an envelope or a bundle.
func (d *documentJSON) checkKind() error {
	switch {
	case d.StatementType != "" && d.Payload.pae == nil:
		return ledger.Errorf(ledger.CodeInvalidEnvelope,
			"the body is a statement without a signature (sign it, for example with cosign attest-blob --statement)")
	case d.Attestations != nil:
		return ledger.Errorf(ledger.CodeInvalidEnvelope,
			"the document is a list of attestations, not an envelope (send the list on its own, as application/json)")
	case d.OldCosign != "" || d.OldCosignSET != "":
		return ledger.Errorf(ledger.CodeInvalidEnvelope,
			"cosign's old bundle format is not supported (use --new-bundle-format, or post the DSSE envelope)")
	}
	return nil
}

// payloadSize returns the size of the payload in the body.
func (d *documentJSON) payloadSize() int {
	size := d.Payload.raw
	if d.DSSE != nil {
		size += d.DSSE.Payload.raw
	}
	return size
}

// A documentJSON is a DSSE envelope or a Sigstore bundle. Its members show which. One
// type for both means that the document is decoded once.
type documentJSON struct {
	dsseJSON
	MediaType string        `json:"mediaType"`
	Material  *materialJSON `json:"verificationMaterial"`
	DSSE      *dsseJSON     `json:"dsseEnvelope"`
	Message   *struct{}     `json:"messageSignature"`

	// The members of documents that are refused.
	StatementType string    `json:"_type"`
	Attestations  []skipped `json:"attestations"`
	OldCosign     string    `json:"base64Signature"`
	OldCosignSET  string    `json:"SignedEntryTimestamp"`
}

type dsseJSON struct {
	PayloadType string          `json:"payloadType"`
	Payload     paeText         `json:"payload"`
	Signatures  []signatureJSON `json:"signatures"`
	Other       otherMembers    `json:",embed"`
}

type signatureJSON struct {
	KeyID         string            `json:"keyid"`
	Sig           base64Text        `json:"sig"`
	Certificate   certificateText   `json:"certificate"`
	Intermediates []certificateText `json:"intermediates"`
	Cert          string            `json:"cert"` // not supported
	Other         otherMembers      `json:",embed"`
}

type materialJSON struct {
	Certificate *rawBytesJSON `json:"certificate"`
	Chain       *struct {
		Certificates []rawBytesJSON `json:"certificates"`
		Other        otherMembers   `json:",embed"`
	} `json:"x509CertificateChain"`
	PublicKey *struct {
		Hint  string       `json:"hint"`
		Other otherMembers `json:",embed"`
	} `json:"publicKey"`
	Other otherMembers `json:",embed"`
}

type rawBytesJSON struct {
	RawBytes certificateText `json:"rawBytes"`
	Other    otherMembers    `json:",embed"`
}

func (d *documentJSON) isBundle() bool {
	return d.MediaType != "" || d.Material != nil || d.DSSE != nil || d.Message != nil
}

func (d *documentJSON) bundle() (*Envelope, error) {
	if !slices.Contains(bundleTypes, d.MediaType) {
		return nil, ledger.FieldErrorf(ledger.CodeInvalidEnvelope, "mediaType",
			"unsupported bundle type %q (use %s)", text.Clip(d.MediaType), BundleType)
	}
	if d.Message != nil {
		return nil, ledger.FieldErrorf(ledger.CodeInvalidEnvelope, "messageSignature",
			"the bundle signs a blob, not a statement (use cosign attest-blob instead of sign-blob)")
	}
	if field := d.firstMember(); field != "" {
		return nil, ledger.FieldErrorf(ledger.CodeInvalidEnvelope, field, "the document is both a bundle and an envelope "+
			"(in a bundle, the envelope belongs in dsseEnvelope)")
	}
	if d.DSSE == nil {
		return nil, ledger.FieldErrorf(ledger.CodeInvalidEnvelope, "dsseEnvelope", "required in a bundle")
	}

	env, err := d.DSSE.envelope("dsseEnvelope.")
	if err != nil || d.Material == nil {
		return env, err
	}
	if err := d.Material.addTo(env); err != nil {
		return nil, err
	}
	return env, nil
}

func (m *materialJSON) addTo(env *Envelope) error {
	const field = "verificationMaterial"
	var raw []certificateText
	count := 0
	if m.PublicKey != nil {
		count++
		env.Hint, env.Certificates = m.PublicKey.Hint, nil
	}
	if m.Certificate != nil {
		count++
		raw = []certificateText{m.Certificate.RawBytes}
	}
	if m.Chain != nil {
		count++
		for _, c := range m.Chain.Certificates {
			raw = append(raw, c.RawBytes)
		}
	}

	if count > 1 {
		return ledger.FieldErrorf(ledger.CodeInvalidEnvelope, field,
			"use only one of certificate, x509CertificateChain and publicKey")
	}
	if raw == nil {
		return nil
	}
	certs, err := parseChain(field, raw)
	env.Certificates = certs
	return err
}

// firstMember returns the name of the first member that is set, or "".
func (d *dsseJSON) firstMember() string {
	switch {
	case d.PayloadType != "":
		return "payloadType"
	case d.Payload.pae != nil:
		return "payload"
	case d.Signatures != nil:
		return "signatures"
	}
	return ""
}

// envelope returns the envelope. The prefix is the path of its members, for errors.
func (d *dsseJSON) envelope(prefix string) (*Envelope, error) {
	if d.PayloadType == "" {
		return nil, ledger.FieldErrorf(ledger.CodeInvalidEnvelope, prefix+"payloadType",
			"required (send a DSSE envelope or a Sigstore bundle)")
	}
	if d.PayloadType != StatementType {
		return nil, ledger.FieldErrorf(ledger.CodeUnsupportedPayloadType, prefix+"payloadType",
			"unsupported payload type %q (use %s)", text.Clip(d.PayloadType), StatementType)
	}
	if d.Payload.pae == nil {
		return nil, ledger.FieldErrorf(ledger.CodeInvalidEnvelope, prefix+"payload", "required")
	}
	switch len(d.Signatures) {
	case 0:
		return nil, ledger.FieldErrorf(ledger.CodeInvalidEnvelope, prefix+"signatures", "required")
	case 1:
	default:
		return nil, ledger.FieldErrorf(ledger.CodeSeveralSignatures, prefix+"signatures",
			"%d signatures: only one is allowed (post one envelope per signer)", len(d.Signatures))
	}

	sig := &d.Signatures[0]
	field := prefix + "signatures[0]"
	if len(sig.Sig) == 0 {
		return nil, ledger.FieldErrorf(ledger.CodeInvalidEnvelope, field+".sig", "required")
	}
	env := &Envelope{identity.Signed{
		Message: d.Payload.pae, Payload: d.Payload.payload(), Signature: sig.Sig, Hint: sig.KeyID,
	}}

	if len(sig.Certificate) == 0 && sig.Cert != "" {
		return nil, refuseCert(field+".cert", sig.Cert)
	}
	if len(sig.Certificate) == 0 {
		return env, nil
	}
	var err error
	env.Certificates, err = parseChain(field, append([]certificateText{sig.Certificate}, sig.Intermediates...))
	if err != nil {
		return nil, err
	}
	return env, nil
}

// refuseCert returns the error of a certificate in the member cert.
func refuseCert(field, pem string) error {
	certs, err := identity.ParseCertificates([]byte(pem))
	if err == nil && len(certs) > 0 && identity.IsKeyless(certs[0]) {
		return ledger.FieldErrorf(ledger.CodeInvalidEnvelope, field, "the keyless certificate was valid for minutes, and no "+
			"log entry here proves that it signed then (send the Sigstore bundle, which has one)")
	}
	return ledger.FieldErrorf(ledger.CodeInvalidEnvelope, field,
		"a certificate here is not supported (send the Sigstore bundle, or put the certificate in certificate)")
}

func parseChain(field string, raw []certificateText) ([]*x509.Certificate, error) {
	if len(raw) == 0 {
		return nil, ledger.FieldErrorf(ledger.CodeInvalidEnvelope, field, "the certificate is missing")
	}
	var certs []*x509.Certificate
	for _, text := range raw {
		more, err := text.parse()
		if err != nil {
			return nil, ledger.FieldErrorf(ledger.CodeInvalidEnvelope, field, "cannot parse a certificate: %v", err)
		}
		if certs = append(certs, more...); len(certs) > identity.MaxChain {
			return nil, ledger.FieldErrorf(ledger.CodeInvalidEnvelope, field, "too many certificates: at most %d",
				identity.MaxChain)
		}
	}
	return certs, nil
}

// base64Text is base64 as DSSE allows it: in the standard or the URL alphabet, with or
// without padding.
type base64Text []byte

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *base64Text) UnmarshalText(encoded []byte) error {
	encoded, encoding, err := text.TrimBase64(encoded)
	if err != nil {
		return err
	}
	*b, err = text.AppendBase64(make([]byte, 0, encoding.DecodedLen(len(encoded))), encoded, encoding)
	return err
}

// A paeText is a base64 payload that is decoded in place for verification: after the
// header of its PAE. The header assumes StatementType, the only payload type that is
// accepted, because the actual one may come later in the document.
type paeText struct {
	pae  []byte
	size int // of the payload
	raw  int // of the text in the document
}

func (p *paeText) payload() []byte { return p.pae[len(p.pae)-p.size:] }

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (p *paeText) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	value, err := dec.ReadValue()
	if err != nil {
		return err
	}
	if value.Kind() == jsontext.KindNull {
		return nil
	}
	if value.Kind() != jsontext.KindString {
		return errNotText
	}
	p.raw = len(value)

	text := value[1 : len(value)-1]
	if bytes.IndexByte(text, '\\') >= 0 {
		if text, err = jsontext.AppendUnquote(nil, value); err != nil {
			return err
		}
	}
	return p.decode(text)
}

var errNotText = errors.New("JSON value must be string type")

func (p *paeText) decode(encoded []byte) error {
	encoded, encoding, err := text.TrimBase64(encoded)
	if err != nil {
		return err
	}
	p.size = encoding.DecodedLen(len(encoded))
	p.pae, err = text.AppendBase64(appendPAEHeader(nil, StatementType, p.size), encoded, encoding)
	return err
}

// A certificateText is a certificate in DER or PEM. Witness writes base64 of PEM, bundles
// have base64 of DER, and people write plain PEM.
type certificateText []byte

const pemBegin = "-----BEGIN"

// UnmarshalText implements encoding.TextUnmarshaler.
func (c *certificateText) UnmarshalText(text []byte) error {
	if bytes.HasPrefix(text, []byte(pemBegin)) {
		*c = bytes.Clone(text)
		return nil
	}
	return (*base64Text)(c).UnmarshalText(text)
}

func (c certificateText) parse() ([]*x509.Certificate, error) {
	if bytes.HasPrefix(c, []byte(pemBegin)) {
		return identity.ParseCertificates(c)
	}
	cert, err := x509.ParseCertificate(c)
	return []*x509.Certificate{cert}, err
}
