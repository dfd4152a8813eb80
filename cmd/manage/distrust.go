package manage

import (
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// An evidence counts attestations by a signer.
type evidence struct {
	attestations int
	commits      map[string]bool
	more         bool // there may be more
}

// String returns the counts, such as "3 attestations of 2 commits".
func (e evidence) String() string {
	text := fmt.Sprintf("%s of %s", terminal.Plural(int64(e.attestations), "attestation"),
		terminal.Plural(int64(len(e.commits)), "commit"))
	if e.more {
		return "at least " + text
	}
	return text
}

// The limits of what is counted.
const (
	maxCountedRepos = 20
	maxCounted      = 1000 // attestations of a repo
)

// recordedSince counts the attestations with the DN of an identity that were recorded since a
// time. With distrusted, it counts only those that do not count.
func recordedSince(
	ctx context.Context, c *cli.Connection, org string, i identity.Identity, since ledger.Time, distrusted bool,
) (e evidence, err error) {
	repos, err := client.Collect(c.Repos(ctx, org), maxCountedRepos+1)
	if err != nil {
		return e, err
	}
	if e.more = len(repos) > maxCountedRepos; e.more {
		repos = repos[:maxCountedRepos]
	}

	e.commits = make(map[string]bool)
	for _, repo := range repos {
		n := 0
		for a, err := range c.Attestations(ctx, org, repo.Name, client.AttestationFilter{Identity: i.DN, Since: since}) {
			if err != nil {
				return e, err
			}
			if a.Distrusted || !distrusted {
				e.attestations++
				e.commits[repo.Name+"@"+a.Commit] = true
			}
			if n++; n == maxCounted {
				e.more = true
				break
			}
		}
	}
	return e, nil
}

// revokeQuestion asks whether to revoke an identity, and says what that affects.
func revokeQuestion(
	ctx context.Context, c *cli.Connection, org, id string, since ledger.Time,
) (question string, err error) {
	i, err := c.Identity(ctx, org, id)
	if err != nil {
		return "", err
	}
	if since == 0 {
		return fmt.Sprintf("Revoke %s of %s? What it has signed still counts.", i.DN, org), nil
	}
	if i.Kind == identity.RootIdentity {
		return fmt.Sprintf("Revoke %s of %s, and distrust what its certificates have signed since %s?", i.DN, org, since), nil
	}
	e, err := recordedSince(ctx, c, org, i, since, false)
	return fmt.Sprintf("Revoke %s of %s, and distrust %s since %s? This cannot be undone.", i.DN, org, e, since), err
}

// printDistrust prints what does not count any more because an identity was revoked. The
// counts are left out if they cannot be read: the identity is revoked.
func printDistrust(ctx context.Context, p *cli.Program, c *cli.Connection, i identity.Identity) {
	terminal.Printf(p.Stdout, "What was recorded with it since %s does not count any more; what it replaced counts "+
		"again.\n",
		i.DistrustedSince)
	if i.Kind == identity.RootIdentity {
		return
	}
	e, err := recordedSince(ctx, c, i.Org, i, i.DistrustedSince, true)
	if err != nil || e.attestations == 0 {
		return
	}
	terminal.Printf(p.Stdout, "It concerns %s. To list them, run "+
		"'ledgerd attestation list %s/REPO --identity %s --since %s'.\n", e, i.Org,
		terminal.QuoteShell(terminal.Printable(i.DN)), i.DistrustedSince)
}
