package sigstore

import (
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	ct "github.com/google/certificate-transparency-go"
	"github.com/google/certificate-transparency-go/x509util"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/tlog"
	"github.com/sigstore/sigstore-go/pkg/verify"

	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// errStale is the error of a bundle for whose time the trusted root lacks a key, because it is too old
// or of another Sigstore instance.
var errStale = errors.New("the trusted root is stale, or of another Sigstore instance")

// explain says why a bundle does not verify, in the terms of the trusted root if it lacks what the
// bundle needs. reason is what the library says.
func explain(r *root.TrustedRoot, b *bundle.Bundle, leaf *x509.Certificate, reason error) error {
	entries, err := b.TlogEntries()
	if err != nil {
		return fmt.Errorf("%w: %s", identity.ErrMalformedBundle, clip(err))
	}
	for _, find := range []func() error{
		func() error { return lackedLog(r, entries, leaf) },
		func() error { return lackedCA(r, leaf) },
		func() error { return lackedTimestamp(r, b, entries, leaf) },
		func() error { return lackedCTLog(r, leaf) },
	} {
		if err := find(); err != nil {
			return err
		}
	}
	return fmt.Errorf("the bundle does not verify: %s", clip(reason))
}

// lackedCA returns an error if no authority of the trusted root issued a certificate.
func lackedCA(r *root.TrustedRoot, leaf *x509.Certificate) error {
	copied := *leaf // whose critical extensions sigstore-go handles
	copied.UnhandledCriticalExtensions = nil
	for _, ca := range r.FulcioCertificateAuthorities() {
		if _, err := ca.Verify(&copied, leaf.NotBefore); err == nil {
			return nil
		}
	}
	return fmt.Errorf("%w: it has no certificate authority that issued certificates as %s at %s", errStale,
		text.Quote(leaf.Issuer.String()), date(leaf.NotBefore))
}

// lackedLog returns an error if no entry is of a log whose key the trusted root has for its time.
func lackedLog(r *root.TrustedRoot, entries []*tlog.Entry, leaf *x509.Certificate) error {
	logs := r.RekorLogs()
	if len(logs) == 0 {
		return nil
	}
	if len(entries) == 0 {
		return errors.New("no log entry proves when it was signed: the trusted root lists transparency logs, and the " +
			"bundle has no entry of one")
	}

	var stale error
	for _, entry := range entries {
		id, at := hex.EncodeToString([]byte(entry.LogKeyID())), entry.IntegratedTime()
		if at.Unix() <= 0 { // newer logs do not sign a time
			at = leaf.NotBefore
		}
		key, ok := logs[id]
		switch {
		case !ok:
			stale = fmt.Errorf("%w: it has no key of the transparency log %.16s…, whose entry is from %s", errStale, id,
				date(at))
		case !isWithin(at, key):
			stale = fmt.Errorf("%w: its key of the transparency log %.16s… is not for %s, the time of the entry", errStale, id,
				date(at))
		default:
			return checkTime(leaf, at)
		}
	}
	return stale
}

func isWithin(at time.Time, key *root.TransparencyLog) bool {
	return !at.Before(key.ValidityPeriodStart) && (key.ValidityPeriodEnd.IsZero() || !at.After(key.ValidityPeriodEnd))
}

// lackedTimestamp returns an error if a bundle needs a timestamp of an authority, and has no valid
// one.
func lackedTimestamp(r *root.TrustedRoot, b *bundle.Bundle, entries []*tlog.Entry, leaf *x509.Certificate) error {
	for _, entry := range entries {
		if entry.HasInclusionPromise() && len(r.RekorLogs()) > 0 {
			return nil // the log signed the time
		}
	}
	signed, err := b.Timestamps()
	if err != nil {
		return fmt.Errorf("%w: %s", identity.ErrMalformedBundle, clip(err))
	}
	if len(signed) == 0 {
		return errors.New("no timestamp proves when it was signed: the bundle needs an RFC 3161 timestamp of an authority " +
			"in the trusted root")
	}

	verified, reasons, err := verify.VerifySignedTimestamp(b, r)
	if err != nil {
		return fmt.Errorf("%w: %s", identity.ErrMalformedBundle, clip(err))
	}
	for _, timestamp := range verified {
		if err := checkTime(leaf, timestamp.Time); err != nil {
			return err
		}
	}
	if len(verified) == 0 {
		return fmt.Errorf("no timestamp authority of the trusted root made the bundle's timestamp: the trusted root is "+
			"stale, or the timestamp is not of this signature (%s)", clip(errors.Join(reasons...)))
	}
	return nil
}

// lackedCTLog returns an error if no log of certificates in the trusted root can vouch for a
// certificate.
func lackedCTLog(r *root.TrustedRoot, leaf *x509.Certificate) error {
	logs := r.CTLogs()
	if len(logs) == 0 {
		return nil
	}
	list, err := x509util.ParseSCTsFromCertificate(leaf.Raw)
	if err != nil || len(list) == 0 {
		return errors.New("the certificate has no SCT, and the trusted root lists logs of certificates")
	}

	var stale error
	for _, sct := range list {
		id, at := hex.EncodeToString(sct.LogID.KeyID[:]), ct.TimestampToTime(sct.Timestamp)
		key, ok := logs[id]
		if ok && isWithin(at, key) {
			return nil
		}
		stale = fmt.Errorf("%w: it has no key of the log of certificates %.16s… for %s", errStale, id, date(at))
	}
	return stale
}

// checkTime returns an error unless a certificate is valid at a time for which a log or a timestamp
// authority vouches.
func checkTime(leaf *x509.Certificate, at time.Time) error {
	if at.Before(leaf.NotBefore) || at.After(leaf.NotAfter) {
		return fmt.Errorf("%w: it is valid from %s until %s, and signed at %s", identity.ErrExpiredCertificate,
			date(leaf.NotBefore), date(leaf.NotAfter), date(at))
	}
	return nil
}

func date(t time.Time) string { return t.UTC().Format(time.RFC3339) }
