package identity

import (
	"cmp"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// oidFulcio is the arc of the extensions in which Fulcio writes who asked for a certificate. The
// constants are what follows it (https://github.com/sigstore/fulcio/blob/main/docs/oid-info.md).
var oidFulcio = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1}

const (
	// The extensions of certificates from before 2023 are bare strings.
	fulcioOldIssuer = 1
	fulcioOldCommit = 3
	fulcioOldRef    = 6

	fulcioOtherName = 7 // no extension, but the kind of an alternative name

	// Later ones are DER strings.
	fulcioIssuer       = 8
	fulcioCommit       = 13
	fulcioRef          = 14
	fulcioRepositoryID = 15
	fulcioWorkflow     = 18
	fulcioRunURL       = 21
	fulcioEnvironment  = 23
)

// oidNames is the extension with the alternative names (RFC 5280, section 4.2.1.6).
var oidNames = asn1.ObjectIdentifier{2, 5, 29, 17}

// A Certificate is what Fulcio wrote into a certificate about its signer. Fields that the certificate
// lacks are empty.
type Certificate struct {
	// Issuer is the URL of the OIDC provider.
	Issuer string
	// Subject is the alternative name: a URL or an e-mail address.
	Subject string
	// RepositoryID is the immutable number of the source repository.
	RepositoryID string
	// Ref is the git ref that was built, and Commit the ID of its commit.
	Ref, Commit string
	// Environment is the deployment environment of the job.
	Environment string
	// Workflow is the URL of the top-level build configuration, with its ref.
	Workflow string
	// RunURL is the address of the run.
	RunURL string
}

// IsKeyless reports whether Fulcio, or a CA like it, issued a certificate. It does not show that its
// holder may sign: anyone with an account at an identity provider can get one.
func IsKeyless(cert *x509.Certificate) bool { return slices.ContainsFunc(cert.Extensions, isFulcio) }

func isFulcio(e pkix.Extension) bool {
	return len(e.Id) > len(oidFulcio) && e.Id[:len(oidFulcio)].Equal(oidFulcio)
}

// KeylessCertificate returns what a keyless certificate says of its signer; nil for any other
// certificate. It does not verify the certificate.
func KeylessCertificate(cert *x509.Certificate) *ledger.SigstoreCertificate {
	if !IsKeyless(cert) {
		return nil
	}
	c, err := CertificateOf(cert)
	if err != nil {
		return nil
	}
	return &ledger.SigstoreCertificate{Subject: c.Subject, Issuer: c.Issuer, RunURL: c.RunURL}
}

// CertificateOf reads a certificate, which may be invalid. It is an error if the certificate has no
// subject, several subjects or two issuers.
func CertificateOf(leaf *x509.Certificate) (Certificate, error) {
	subject, err := subjectOf(leaf)
	if err != nil {
		return Certificate{}, err
	}
	values := make(map[int]string)
	for _, e := range leaf.Extensions {
		if !isFulcio(e) || len(e.Id) != len(oidFulcio)+1 {
			continue
		}
		n := e.Id[len(oidFulcio)]
		switch {
		case n < fulcioOtherName:
			values[n] = string(e.Value)
		case n >= fulcioIssuer && n <= fulcioEnvironment:
			if values[n], err = derString(e.Value); err != nil {
				return Certificate{}, fmt.Errorf("the certificate's extension %v: %w", e.Id, err)
			}
		}
	}

	issuer, isNew := values[fulcioIssuer]
	old, isOld := values[fulcioOldIssuer]
	if isNew && isOld && issuer != old {
		return Certificate{}, fmt.Errorf("the certificate names two issuers, %s and %s", text.Quote(old), text.Quote(issuer))
	}
	return Certificate{
		Issuer: cmp.Or(issuer, old), Subject: subject, RepositoryID: values[fulcioRepositoryID],
		Ref:         cmp.Or(values[fulcioRef], values[fulcioOldRef]),
		Commit:      cmp.Or(values[fulcioCommit], values[fulcioOldCommit]),
		Environment: values[fulcioEnvironment], Workflow: values[fulcioWorkflow], RunURL: values[fulcioRunURL],
	}, nil
}

// subjectOf returns the only alternative name of a certificate: a URL, an e-mail address, or a name as
// Fulcio writes it for accounts that have neither.
func subjectOf(leaf *x509.Certificate) (subject string, err error) {
	var names []asn1.RawValue
	for _, e := range leaf.Extensions {
		if !e.Id.Equal(oidNames) {
			continue
		}
		if _, err := asn1.Unmarshal(e.Value, &names); err != nil {
			return "", fmt.Errorf("the certificate's alternative names are not valid: %w", err)
		}
	}

	switch {
	case len(names) > 1:
		return "", fmt.Errorf("the certificate has %d subjects: want one", len(names))
	case len(leaf.URIs) > 0:
		subject = leaf.URIs[0].String()
	case len(leaf.EmailAddresses) > 0:
		subject = leaf.EmailAddresses[0]
	case len(names) > 0 && names[0].Tag == 0:
		subject, err = otherName(names[0].FullBytes)
	}
	if subject == "" && err == nil {
		err = errors.New("the certificate is not a Sigstore one: it names no subject")
	}
	return subject, err
}

// otherName returns an alternative name of Fulcio's own kind; "" if it is of another kind.
func otherName(der []byte) (string, error) {
	var name struct {
		ID    asn1.ObjectIdentifier
		Value string `asn1:"utf8,explicit,tag:0"`
	}
	if _, err := asn1.UnmarshalWithParams(der, &name, "tag:0"); err != nil {
		return "", fmt.Errorf("the certificate's subject: %w", err)
	}
	if !name.ID.Equal(append(slices.Clone(oidFulcio), fulcioOtherName)) {
		return "", nil
	}
	return name.Value, nil
}

func derString(der []byte) (s string, err error) {
	rest, err := asn1.Unmarshal(der, &s)
	if err == nil && len(rest) > 0 {
		err = errors.New("more follows its value")
	}
	return s, err
}
