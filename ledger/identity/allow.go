package identity

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// maxEntryField limits the fields of a SigstoreEntry, in bytes.
const maxEntryField = 512

func entryDigest(e ledger.SigstoreEntry) string {
	digest := sha256.Sum256(text.JSON(e))
	return hex.EncodeToString(digest[:])
}

// checkEntry validates an entry. It must name an issuer, and either one repository or whose
// certificates it admits, so that no entry admits every account of the issuer.
func checkEntry(e *ledger.SigstoreEntry) error {
	if err := CheckTrustedRootName(e.TrustedRoot); err != nil {
		return ledger.FieldErrorf(ledger.CodeInvalidField, "sigstore.trusted_root", "%v", err)
	}
	for _, f := range []struct {
		name, value string
		isGlob      bool
	}{
		{"issuer", e.Issuer, false}, {"subject", e.Subject, true}, {"repository_id", e.RepositoryID, false},
		{"ref", e.Ref, true}, {"environment", e.Environment, false}, {"workflow", e.Workflow, true},
	} {
		field := "sigstore." + f.name
		switch {
		case len(f.value) > maxEntryField:
			return ledger.FieldErrorf(ledger.CodeInvalidField, field, "too long: at most %d bytes", maxEntryField)
		case !f.isGlob && strings.Contains(f.value, "*"):
			return ledger.FieldErrorf(ledger.CodeInvalidField, field, "%s has a *, and must be exact", text.Quote(f.value))
		}
		if err := CheckVisible(f.value); err != nil {
			return ledger.FieldErrorf(ledger.CodeInvalidField, field, "%v", err)
		}
	}

	switch {
	case e.Issuer == "":
		return ledger.FieldErrorf(ledger.CodeInvalidField, "sigstore.issuer",
			"required (use e.g. https://token.actions.githubusercontent.com)")
	case e.Subject == "" && e.RepositoryID == "":
		return ledger.FieldErrorf(ledger.CodeInvalidField, "sigstore.subject",
			"required, or repository_id: otherwise the entry would admit every account of the issuer")
	case e.RepositoryID == "" && strings.Contains(e.Subject, "*") && !hasOwner(e.Subject):
		return ledger.FieldErrorf(ledger.CodeInvalidField, "sigstore.subject", "%s admits certificates of others: name the "+
			"host and the owner before the first * (use e.g. https://github.com/acme/*), or add repository_id",
			text.Quote(e.Subject))
	case e.Commit != "" && e.Commit != ledger.CommitAny:
		return ledger.FieldErrorf(ledger.CodeInvalidField, "sigstore.commit",
			"%s is not valid (use any, or leave it out: then statements must be about the certificate's commit)",
			text.Quote(e.Commit))
	}
	return nil
}

// hasOwner reports whether a pattern is of URLs with one host and one owner, the first part of the
// path.
func hasOwner(pattern string) bool {
	fixed, _, _ := strings.Cut(pattern, "*")
	_, rest, ok := strings.Cut(fixed, "://")
	parts := strings.SplitN(rest, "/", 3)
	return ok && len(parts) == 3 && parts[0] != "" && parts[1] != ""
}

// mismatch returns a field in which a certificate differs from an entry, with what the entry admits
// and what the certificate has, and how many fields before it match. The name is empty if all do.
func mismatch(e *ledger.SigstoreEntry, c *Certificate) (name, want, got string, matched int) {
	// The URL of a workflow ends in @ and a ref. A branch can have a name with an @, such as x@refs/heads/main.
	const beforeRef = "@"
	for _, f := range []struct{ name, want, got, unless string }{
		{"issuer", e.Issuer, c.Issuer, ""}, {"repository_id", e.RepositoryID, c.RepositoryID, ""},
		{"subject", e.Subject, c.Subject, beforeRef}, {"workflow", e.Workflow, c.Workflow, beforeRef},
		{"ref", e.Ref, c.Ref, ""}, {"environment", e.Environment, c.Environment, ""},
	} {
		if f.want == "" {
			continue
		}
		if f.got == "" || !parts(strings.Split(f.want, "*")).matchUnless(f.unless, f.got) {
			return f.name, f.want, f.got, matched
		}
		matched++
	}
	return "", "", "", matched
}
