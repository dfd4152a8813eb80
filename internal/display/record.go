package display

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
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
	t.Row("status", a.Result.Status)
	t.Row("duration", Milliseconds(a.Result.DurationMS))
	t.Row("recorded", a.RecordedAt)
	t.Row("payload", a.PayloadDigest)
	t.Row("event", a.Event)
	t.Flush()
}

// Repo prints a repo with its counts.
func Repo(w io.Writer, r ledger.Repo) {
	t := terminal.NewTable(w)
	t.Row("repo", r.Org+"/"+r.Name)
	t.Row("default branch", r.DefaultBranch)
	t.Row("policy version", r.PolicyVersion)
	t.Row("created", r.CreatedAt)
	t.Row("attestations", r.Attestations)
	var states []string
	for _, s := range ledger.States() {
		states = append(states, fmt.Sprintf("%d %s", r.Commits[s], s))
	}
	t.Row("commits", strings.Join(states, ", "))
	t.Flush()
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
	t.Row("created", token.CreatedAt)
	t.Row("last used", terminal.OrDash(token.LastUsedAt.String()))
	t.Row("expires", terminal.OrDash(token.ExpiresAt.String()))
	t.Flush()
}

// Milliseconds converts n Milliseconds to a duration.
func Milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// At returns ORG/REPO@SHA for a commit of a repo, with an abbreviated sha.
func At(repo, sha string) string { return repo + "@" + terminal.Short(sha) }
