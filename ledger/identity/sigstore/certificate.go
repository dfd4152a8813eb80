package sigstore

import (
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"

	"github.com/sigstore/sigstore-go/pkg/fulcio/certificate"

	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

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

// oidEnvironment is the extension with the deployment environment, which sigstore-go does not parse
// (https://github.com/sigstore/fulcio/blob/main/docs/oid-info.md).
var oidEnvironment = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 23}

// oidNames is the extension with the alternative names (RFC 5280).
var oidNames = asn1.ObjectIdentifier{2, 5, 29, 17}

// CertificateOf reads a certificate, which may be invalid. It is an error if the certificate has no
// subject, several subjects or two issuers.
func CertificateOf(leaf *x509.Certificate) (c Certificate, err error) {
	err = guard(func() error {
		c, err = read(leaf)
		return err
	})
	return c, err
}

func read(leaf *x509.Certificate) (Certificate, error) {
	if err := checkSubjects(leaf); err != nil {
		return Certificate{}, err
	}
	s, err := certificate.SummarizeCertificate(leaf)
	if err != nil {
		return Certificate{}, fmt.Errorf("the certificate is not a Sigstore one: %w", err)
	}
	if err := checkIssuers(leaf, s.Issuer); err != nil {
		return Certificate{}, err
	}

	c := Certificate{
		Issuer: s.Issuer, Subject: s.SubjectAlternativeName, RepositoryID: s.SourceRepositoryIdentifier,
		Ref: s.SourceRepositoryRef, Commit: s.SourceRepositoryDigest, Workflow: s.BuildConfigURI, RunURL: s.RunInvocationURI,
	}
	// Certificates from before 2023 have only the extensions for GitHub, which are deprecated.
	if c.Commit == "" {
		c.Commit = s.GithubWorkflowSHA //nolint:staticcheck // the only one in old certificates
	}
	if c.Ref == "" {
		c.Ref = s.GithubWorkflowRef //nolint:staticcheck // the only one in old certificates
	}
	for _, e := range leaf.Extensions {
		if !e.Id.Equal(oidEnvironment) {
			continue
		}
		if rest, err := asn1.Unmarshal(e.Value, &c.Environment); err != nil || len(rest) > 0 {
			return Certificate{}, errors.New("the certificate's deployment environment is not a DER string")
		}
	}
	return c, nil
}

// checkSubjects returns an error if a certificate has several alternative names of any kinds: the
// library uses the first one of a kind that it knows.
func checkSubjects(leaf *x509.Certificate) error {
	for _, e := range leaf.Extensions {
		if !e.Id.Equal(oidNames) {
			continue
		}
		var names []asn1.RawValue
		if _, err := asn1.Unmarshal(e.Value, &names); err != nil {
			return fmt.Errorf("the certificate's alternative names are not valid: %w", err)
		}
		if len(names) > 1 {
			return fmt.Errorf("the certificate has %d subjects: want one", len(names))
		}
	}
	return nil
}

// checkIssuers returns an error if one of the two extensions with the OIDC provider has another than
// the given one. The library uses the last of them.
func checkIssuers(leaf *x509.Certificate, issuer string) error {
	for _, e := range leaf.Extensions {
		named := issuer
		switch {
		case e.Id.Equal(certificate.OIDIssuer): //nolint:staticcheck // the only one in old certificates
			named = string(e.Value)
		case e.Id.Equal(certificate.OIDIssuerV2):
			if err := certificate.ParseDERString(e.Value, &named); err != nil {
				return fmt.Errorf("the certificate's issuer: %w", err)
			}
		}
		if named != issuer {
			return fmt.Errorf("the certificate names two issuers, %s and %s", text.Quote(named), text.Quote(issuer))
		}
	}
	return nil
}
