package demo

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/cmd/internal/signing"
	"github.com/ledgerd/ledgerd/internal/buildinfo"
	"github.com/ledgerd/ledgerd/internal/service"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// A stage is where the story happens: an org on a running server, with those who sign. It
// uses the public API.
type stage struct {
	*clock
	running *service.Instance
	org     string

	admin   *client.Client
	writer  *client.Client
	visitor ledger.Token // for the person who watches, with its secret
	signers map[signer]*signing.Signer

	hooks     []*hook
	observers *observers
	logs      *logServer

	attestations int // recorded so far
}

func (g signer) dn(org string) identity.DN { return identity.DN{CN: g.name, OU: g.unit, O: org} }

// These sign in addition to the people who write commits.
func ci() signer       { return signer{"ci", "build", ""} }
func deployer() signer { return signer{"deploy-bot", "platform", ""} }
func security() signer { return signer{"Sofia Okafor", "security", "sofia@parcels.example"} }

func developer(a ledger.Author) signer { return signer{a.Name, "dev", a.Email} }

// setUp creates the org and its tokens, and trusts the signers.
func (st *stage) setUp(ctx context.Context, signers []signer) error {
	host, err := st.running.Host()
	if err != nil {
		return err
	}
	if _, err := host.CreateOrg(ctx, ledger.NewOrg{Name: st.org}); err != nil {
		return err
	}

	for _, token := range []struct {
		name   string
		scope  ledger.Scope
		client **client.Client
	}{{"you", ledger.Admin, &st.admin}, {"ci", ledger.Write, &st.writer}} {
		created, err := host.CreateToken(ctx, st.org, ledger.NewToken{Name: token.name, Scope: token.scope})
		if err != nil {
			return err
		}
		if *token.client, err = st.client(created.Secret); err != nil {
			return err
		}
		if token.scope == ledger.Admin {
			st.visitor = created
		}
	}

	st.signers = make(map[signer]*signing.Signer)
	for _, g := range signers {
		if err := st.trust(ctx, g); err != nil {
			return fmt.Errorf("trust %s: %w", g.name, err)
		}
	}
	return nil
}

func (st *stage) client(token string) (*client.Client, error) {
	return client.New(st.running.URL, client.Options{Token: token, UserAgent: buildinfo.UserAgent()})
}

// trust creates a key for a signer and adds it to the org's keyring.
func (st *stage) trust(ctx context.Context, g signer) error {
	const days = 90
	pair, err := signing.NewKeyPair(g.dn(st.org), g.email, st.now(), days)
	if err != nil {
		return err
	}
	st.signers[g] = pair.Signer()
	n := identity.NewIdentity{Kind: identity.KeyIdentity, PEM: string(pair.CertPEM())}
	_, err = st.admin.AddIdentity(ctx, st.org, n)
	return err
}

func (st *stage) register(ctx context.Context, c *commit) (ledger.Commit, error) {
	registered, _, err := st.writer.Register(ctx, st.org, c.in.name, c.sha, c.read.Registration)
	return registered, err
}

// attest signs and records evidence.
func (st *stage) attest(ctx context.Context, c *commit, e evidence) error {
	now := st.now()
	annotations := map[string]string{"made-up-by": "ledgerd demo"}
	maps.Copy(annotations, e.annotations)
	if e.job != "" {
		annotations[attestation.RunURL] = st.logs.add(e.job, c.subject, e)
	}
	predicate := attestation.ResultPredicate{
		Predicate:   e.predicate,
		Result:      ledger.Result{Status: e.status, DurationMS: e.duration.Milliseconds()},
		Repo:        st.org + "/" + c.in.name,
		FinishedOn:  ledger.TimeOf(now),
		Annotations: annotations,
	}
	if e.duration > 0 {
		predicate.StartedOn = ledger.TimeOf(now.Add(-e.duration))
	}
	statement, err := attestation.NewStatement(predicate.Repo, c.sha, predicate)
	if err != nil {
		return err
	}
	return st.record(ctx, c, e.by, statement)
}

// record signs and records a statement.
func (st *stage) record(ctx context.Context, c *commit, by signer, statement []byte) error {
	envelope, err := st.signers[by].Sign(statement)
	if err != nil {
		return err
	}
	st.attestations++
	_, _, err = st.writer.Record(ctx, st.org, c.in.name, envelope)
	return err
}

// grant records an exception of the security team until a time.
func (st *stage) grant(ctx context.Context, c *commit, requirement, reason string, until time.Time) error {
	statement, err := attestation.NewExceptionStatement(c.sha, attestation.Exception{
		Repo: st.org + "/" + c.in.name, Requirement: requirement, Reason: reason,
		Until: ledger.TimeOf(until), IssuedOn: ledger.TimeOf(st.now()),
	})
	if err != nil {
		return err
	}
	return st.record(ctx, c, security(), statement)
}

// apply makes a contract the active one of a repo, and waits for its effects. ORG stands for
// the org.
func (st *stage) apply(ctx context.Context, repo, contract string) error {
	_, etag, err := st.admin.Policy(ctx, st.org, repo)
	if err != nil {
		return err
	}
	contract = strings.ReplaceAll(contract, "ORG", st.org)
	if _, err := st.admin.SetPolicy(ctx, st.org, repo, []byte(contract), etag); err != nil {
		return err
	}
	return st.running.Settle(ctx)
}
