package display

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// Attestation prints the record of an attestation.
func Attestation(w io.Writer, a ledger.AttestationRecord) {
	t := terminal.NewTable(w)
	t.Row("id", a.ID)
	t.Row("commit", a.Commit)
	t.Row("predicate", a.Predicate)
	t.Row("predicate type", a.PredicateType)
	if a.Slot != "" {
		t.Row("slot", a.Slot)
	}
	t.Row("signed by", a.Identity)
	t.Row("status", StatusOf(a))
	if a.Reason != "" {
		t.Row("reason", terminal.OneLine(a.Reason))
	}
	t.Row("duration", Milliseconds(a.Result.DurationMS))
	t.Row("recorded", a.RecordedAt)

	if a.Distrusted {
		t.Row("distrusted", "it does not count: the key was compromised")
	}
	t.Row("payload", a.PayloadDigest)
	if a.Verification != nil && a.Verification.EnvelopePruned {
		t.Row("envelope", "pruned: only its digest is kept")
	}
	t.Row("event", a.Event)
	t.Flush()
}

// Repo prints a repo with its counts.
func Repo(w io.Writer, r ledger.Repo) {
	t := terminal.NewTable(w)
	t.Row("repo", r.Org+"/"+r.Name)
	if r.ArchivedAt != 0 {
		t.Row("archived", r.ArchivedAt)
	}
	if r.DeletedAt != 0 {
		t.Row("deleted", r.DeletedAt)
	}
	if r.PurgedAt != 0 {
		t.Row("purged", r.PurgedAt)
	}
	if len(r.FormerNames) > 0 {
		t.Row("former names", FormerNames(r.FormerNames))
	}

	t.Row("default branch", r.DefaultBranch)
	if r.WebURL != "" {
		t.Row("web url", r.WebURL)
		t.Row("forge", r.Forge)
	}
	if r.Retention != (ledger.Retention{}) {
		t.Row("keeps", retention(r.Retention))
	}
	t.Row("policy version", r.PolicyVersion)
	t.Row("created", r.CreatedAt)
	t.Row("attestations", r.Attestations)
	var states []string
	for _, s := range ledger.States() {
		states = append(states, fmt.Sprintf("%d %s", r.Commits[s], s))
	}
	t.Row("commits", strings.Join(states, ", "))
	t.Row("open violations", r.OpenViolations)
	t.Flush()
}

// retention returns how long a repo keeps what it does not keep without a limit.
func retention(r ledger.Retention) string {
	var list []string
	for _, kept := range []struct {
		what string
		time ledger.Duration
	}{{"envelopes", r.Envelopes}, {"events", r.Events}, {"deliveries", r.Deliveries}} {
		if kept.time != 0 {
			list = append(list, fmt.Sprintf("%s %s", kept.what, kept.time))
		}
	}
	return strings.Join(list, ", ")
}

// FormerNames returns former names as a list.
func FormerNames(former []ledger.FormerName) string {
	names := make([]string, len(former))
	for i, f := range former {
		names[i] = f.Name
	}
	return strings.Join(names, ", ")
}

// Identity prints an identity, without its PEM.
func Identity(w io.Writer, i identity.Identity) {
	t := terminal.NewTable(w)
	t.Row("id", i.ID)
	t.Row("org", i.Org)
	t.Row("kind", i.Kind)
	t.Row("dn", i.DN)
	t.Row("email", terminal.OrDash(strings.Join(i.Addresses(), ", ")))
	if len(i.Logins) > 0 {
		t.Row("logins", strings.Join(i.Logins, ", "))
	}
	if i.Distinct {
		t.Row("counts", "as another person than all others with the same names")
	}
	t.Row("may attest", cmp.Or(strings.Join(i.May, ","), "*"))
	if i.Kind == identity.RootIdentity {
		t.Row("certifies", cmp.Or(i.DNPattern, "every DN"))
	}
	if i.Sigstore != nil {
		keylessEntry(t, *i.Sigstore)
	}

	t.Row("fingerprint", i.Fingerprint)
	t.Row("expires", i.NotAfter)
	t.Row("created", i.CreatedAt)
	t.Row("revoked", i.RevokedAt)
	if i.DistrustedSince != 0 {
		t.Row("distrusted", terminal.Parts{"what was recorded since ", i.DistrustedSince, " does not count"})
	}
	t.Flush()
}

// keylessEntry prints which certificates an entry for keyless signers admits.
func keylessEntry(t *terminal.Table, e ledger.SigstoreEntry) {
	t.Row("trusted root", e.TrustedRoot)
	for _, f := range []struct{ name, value string }{
		{"issuer", e.Issuer}, {"subject", e.Subject}, {"repository id", e.RepositoryID}, {"ref", e.Ref},
		{"environment", e.Environment}, {"workflow", e.Workflow},
	} {
		t.Row(f.name, cmp.Or(f.value, "any"))
	}
	t.Row("commit", cmp.Or(e.Commit, "that of the certificate"))
}

// Revoked returns a cell that says when an identity was revoked, and since when it is
// distrusted.
func Revoked(i identity.Identity) any {
	if i.DistrustedSince == 0 {
		return i.RevokedAt
	}
	return terminal.Parts{i.RevokedAt, " (distrusted since ", i.DistrustedSince, ")"}
}

// StatusOf returns a cell with the status of an attestation, marked if it is distrusted or a failed
// attempt to deploy.
func StatusOf(a ledger.AttestationRecord) any {
	if a.Distrusted {
		return string(a.Result.Status) + " (distrusted)"
	}
	if a.Rollout != "" {
		return "attempt failed"
	}
	return a.Result.Status
}

// Token prints a token, without its secret.
func Token(w io.Writer, token ledger.Token) {
	if token.Scope == ledger.Host {
		fmt.Fprintln(w, "no token: administrator of this host, with all permissions")
		return
	}
	t := terminal.NewTable(w)
	t.Row("id", token.ID)
	t.Row("org", token.Org)
	t.Row("name", token.Name)
	t.Row("scope", token.Scope)
	if len(token.Repos) > 0 {
		t.Row("repos", strings.Join(token.Repos, ","))
	}
	if token.IsExchanged() {
		t.Row("rule", token.Rule)
		t.Row("may sign as", terminal.OrDash(token.DN))
	}
	t.Row("created", token.CreatedAt)
	t.Row("last used", token.LastUsedAt)
	t.Row("expires", token.ExpiresAt)
	t.Flush()
}

// Milliseconds converts n Milliseconds to a duration.
func Milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// At returns ORG/REPO@SHA for a commit of a repo, with an abbreviated sha.
func At(repo, sha string) string { return repo + "@" + ledger.Short(sha) }
