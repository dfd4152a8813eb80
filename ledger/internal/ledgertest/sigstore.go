package ledgertest

import (
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/digitorus/timestamp"
	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger/identity"
)

// SigstoreFile returns a file in testdata/sigstore, for tests in the given folder below ledger.
func SigstoreFile(toLedger, name string) []byte {
	return Must(os.ReadFile(filepath.Join(toLedger, "testdata", "sigstore", name)))
}

// A Sigstore is an instance of Sigstore without transparency logs: a CA and a timestamp authority.
type Sigstore struct {
	CA, TSA *Party
	tsaRoot *Party
}

// NewSigstore returns a new instance.
func NewSigstore() *Sigstore {
	// The library writes the present time into timestamps, too.
	always := func(c *x509.Certificate) { c.NotBefore, c.NotAfter = time.Unix(0, 0), Now.Std().Add(1<<18*time.Hour) }
	root := NewCert(nil, pkix.Name{CommonName: "tsa root"}, NewP256(), func(c *x509.Certificate) {
		AsCA(c)
		always(c)
	})
	tsa := NewCert(root, pkix.Name{CommonName: "tsa"}, NewP256(), func(c *x509.Certificate) {
		usage := Must(asn1.Marshal([]asn1.ObjectIdentifier{{1, 3, 6, 1, 5, 5, 7, 3, 8}}))
		always(c)
		c.KeyUsage = x509.KeyUsageDigitalSignature
		c.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 37}, Critical: true, Value: usage}}
	})
	return &Sigstore{NewRoot(), tsa, root}
}

// TrustedRoot returns the instance's trusted root. The change function, unless it is nil, adjusts its
// members.
func (s *Sigstore) TrustedRoot(change func(members map[string]any)) []byte {
	authority := func(chain ...*Party) map[string]any {
		var certificates []map[string]any
		for _, c := range chain {
			certificates = append(certificates, map[string]any{"rawBytes": c.Cert.Raw})
		}
		return map[string]any{"uri": "https://sigstore.example", "certChain": map[string]any{"certificates": certificates},
			"validFor": map[string]any{"start": "2020-01-01T00:00:00Z"}}
	}
	members := map[string]any{
		"mediaType":              "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
		"certificateAuthorities": []any{authority(s.CA)},
		"timestampAuthorities":   []any{authority(s.TSA, s.tsaRoot)},
	}
	if change != nil {
		change(members)
	}
	return Must(json.Marshal(members))
}

// Fulcio returns a function that turns a certificate template into a keyless one with the given
// subject, a URL, and extensions, by the last number of their OIDs.
func Fulcio(subject string, extensions map[int]string) func(*x509.Certificate) {
	return func(c *x509.Certificate) {
		AsSigner(c)
		c.EmailAddresses, c.URIs = nil, []*url.URL{Must(url.Parse(subject))}
		for number, value := range extensions {
			c.ExtraExtensions = append(c.ExtraExtensions, pkix.Extension{
				Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, number}, Value: Must(asn1.MarshalWithParams(value, "utf8"))})
		}
	}
}

// Leaf returns a keyless certificate of the instance, which is valid for ten minutes around Now.
func (s *Sigstore) Leaf(subject string, extensions map[int]string) *Party {
	return NewCert(s.CA, pkix.Name{}, NewP256(), func(c *x509.Certificate) {
		Fulcio(subject, extensions)(c)
		c.NotBefore, c.NotAfter = Now.Std().Add(-5*time.Minute), Now.Std().Add(5*time.Minute)
	})
}

// Timestamp returns a timestamp of a signature.
func (s *Sigstore) Timestamp(signature []byte, at time.Time) []byte {
	digest := sha256.Sum256(signature)
	t := &timestamp.Timestamp{HashAlgorithm: crypto.SHA256, HashedMessage: digest[:], Time: at, AddTSACertificate: true,
		Policy: asn1.ObjectIdentifier{1, 2, 3, 4}}
	return Must(t.CreateResponseWithOpts(s.TSA.Cert, s.TSA.Key, crypto.SHA256))
}

// A Bundle is a Sigstore bundle of a statement.
type Bundle struct {
	Leaf                    *Party
	Payload, PAE, Signature []byte
	Timestamps              [][]byte
	MediaType               string
	TlogEntry               any // the entries of transparency logs; may be nil
}

// Bundle returns a bundle of a payload, whose signature has a timestamp. pae is what is signed.
func (s *Sigstore) Bundle(leaf *Party, payload, pae []byte, at time.Time) *Bundle {
	signature := Must(identity.Sign(leaf.Key, pae))
	return &Bundle{Leaf: leaf, Payload: payload, PAE: pae, Signature: signature,
		Timestamps: [][]byte{s.Timestamp(signature, at)}, MediaType: "application/vnd.dev.sigstore.bundle.v0.3+json"}
}

// JSON returns the bundle as JSON.
func (b *Bundle) JSON() []byte {
	var timestamps []map[string]any
	for _, t := range b.Timestamps {
		timestamps = append(timestamps, map[string]any{"signedTimestamp": t})
	}
	material := map[string]any{"certificate": map[string]any{"rawBytes": b.Leaf.Cert.Raw},
		"timestampVerificationData": map[string]any{"rfc3161Timestamps": timestamps}}
	if b.TlogEntry != nil {
		material["tlogEntries"] = b.TlogEntry
	}
	return Must(json.Marshal(map[string]any{
		"mediaType": b.MediaType, "verificationMaterial": material,
		"dsseEnvelope": map[string]any{"payload": b.Payload, "payloadType": "application/vnd.in-toto+json",
			"signatures": []map[string]any{{"sig": b.Signature}}},
	}))
}
