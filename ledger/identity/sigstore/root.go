// Package sigstore verifies Sigstore bundles with keyless certificates against trusted roots. It is
// the only package that uses sigstore-go, which links net/http and gRPC: ledger/identity is given its
// ParseRoot. It needs no network. Inputs are bounded, and a panic of the library is an error.
package sigstore

import (
	"crypto/x509"
	"errors"
	"fmt"

	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	prototrustroot "github.com/sigstore/protobuf-specs/gen/pb-go/trustroot/v1"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"

	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/internal/publickey"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// The limits of a trusted root.
const (
	maxAuthorities = 100 // in each of its lists
	maxChain       = 10  // certificates of an authority
)

// A trustedRoot has the certificate authorities, logs and timestamp authorities of Sigstore instances.
type trustedRoot struct {
	material *root.TrustedRoot
	verifier *verify.Verifier
}

// ParseRoot is an identity.RootParser.
func ParseRoot(document []byte) (r identity.BundleVerifier, err error) {
	if len(document) > identity.MaxTrustedRoot {
		return nil, fmt.Errorf("the trusted root has %d bytes: at most %d", len(document), identity.MaxTrustedRoot)
	}
	err = guard(func() error {
		r, err = parseRoot(document)
		return err
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

func parseRoot(document []byte) (*trustedRoot, error) {
	if n := text.CountDocuments(document); n > 1 {
		return nil, fmt.Errorf("%d trusted roots in one file: 'gh attestation trusted-root' prints those of the public good "+
			"instance and of GitHub, a line each (set each under a name of its own)", n)
	}
	parsed, err := root.NewTrustedRootProtobuf(document)
	if err != nil {
		return nil, fmt.Errorf("not a trusted root: %s", clip(err))
	}
	if parsed.GetMediaType() != root.TrustedRootMediaType01 {
		return nil, fmt.Errorf("mediaType: %s is not supported (use %s)", text.Quote(parsed.GetMediaType()),
			root.TrustedRootMediaType01)
	}
	if err := checkLists(parsed); err != nil {
		return nil, err
	}

	material, err := root.NewTrustedRootFromProtobuf(parsed)
	if err != nil {
		return nil, fmt.Errorf("not a trusted root: %s", clip(err))
	}
	verifier, err := verify.NewVerifier(material, required(parsed)...)
	if err != nil {
		return nil, fmt.Errorf("use the trusted root: %w", err)
	}
	return &trustedRoot{material, verifier}, nil
}

// required returns what a bundle must have: what the trusted root can verify.
func required(r *prototrustroot.TrustedRoot) []verify.VerifierOption {
	options := []verify.VerifierOption{verify.WithoutStatementPredicate()}
	if len(r.GetTlogs()) > 0 {
		// The time is that of the entry or, if the log does not sign one, of a timestamp authority.
		options = append(options, verify.WithTransparencyLog(1), verify.WithObserverTimestamps(1))
	} else {
		options = append(options, verify.WithSignedTimestamps(1))
	}
	if len(r.GetCtlogs()) > 0 {
		options = append(options, verify.WithSignedCertificateTimestamps(1))
	}
	return options
}

// checkLists checks the entries of a trusted root one by one, so that errors name them.
func checkLists(r *prototrustroot.TrustedRoot) error {
	if len(r.GetCertificateAuthorities()) == 0 {
		return errors.New("certificateAuthorities: required: without one, no certificate is valid")
	}
	if len(r.GetTlogs())+len(r.GetTimestampAuthorities()) == 0 {
		return errors.New("tlogs: required, or timestampAuthorities: without one, nothing proves when a bundle was signed")
	}

	for _, list := range []struct {
		field string
		logs  []*prototrustroot.TransparencyLogInstance
	}{{"tlogs", r.GetTlogs()}, {"ctlogs", r.GetCtlogs()}} {
		for i := range list.logs {
			logs, err := root.ParseTransparencyLogs(list.logs[i : i+1])
			for _, log := range logs {
				err = errors.Join(err, publickey.Check(log.PublicKey))
			}
			if err != nil {
				return fmt.Errorf("%s: %s", text.Entry(list.field, i), clip(err))
			}
		}
		if len(list.logs) > maxAuthorities {
			return fmt.Errorf("%s: %d entries: at most %d", list.field, len(list.logs), maxAuthorities)
		}
	}
	for _, list := range []struct {
		field       string
		authorities []*prototrustroot.CertificateAuthority
	}{{"certificateAuthorities", r.GetCertificateAuthorities()}, {"timestampAuthorities", r.GetTimestampAuthorities()}} {
		if err := checkAuthorities(list.field, list.authorities); err != nil {
			return err
		}
	}
	return nil
}

func checkAuthorities(field string, list []*prototrustroot.CertificateAuthority) error {
	if len(list) > maxAuthorities {
		return fmt.Errorf("%s: %d entries: at most %d", field, len(list), maxAuthorities)
	}
	for i, authority := range list {
		entry := text.Entry(field, i)
		if n := len(authority.GetCertChain().GetCertificates()); n > maxChain {
			return fmt.Errorf("%s.certChain: %d certificates: at most %d", entry, n, maxChain)
		}
		if _, err := root.ParseCertificateAuthority(authority); err != nil {
			return fmt.Errorf("%s: %s", entry, clip(err))
		}
		if err := checkChain(authority.GetCertChain().GetCertificates()); err != nil {
			return fmt.Errorf("%s.certChain: %s", entry, clip(err))
		}

		timestamps, err := root.ParseTimestampingAuthority(authority)
		if err != nil {
			return fmt.Errorf("%s: %s", entry, clip(err))
		}
		tsa, ok := timestamps.(*root.SigstoreTimestampingAuthority)
		if field == "timestampAuthorities" && ok && tsa.Root == nil {
			return fmt.Errorf("%s.certChain: it has no CA certificate", entry)
		}
	}
	return nil
}

// checkChain checks the keys of certificates.
func checkChain(list []*protocommon.X509Certificate) error {
	for _, raw := range list {
		cert, err := x509.ParseCertificate(raw.GetRawBytes())
		if err == nil {
			err = publickey.Check(cert.PublicKey)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
