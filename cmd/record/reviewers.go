package record

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attention"
	"github.com/ledgerd/ledgerd/ledger/facts"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/policy/candidate"
)

// maxSigners is how many identities of an org are read.
const maxSigners = 500

// The reviewers of an org are those who may attest reviews of its commits.
type reviewers struct {
	client    *client.Client
	org       string
	trusted   []identity.Identity
	signers   *identity.Signers        // who is the same person
	contracts map[string]policy.Policy // by repo
}

// readReviewers reads the first identities of an org.
func readReviewers(ctx context.Context, c *client.Client, org string) (*reviewers, error) {
	r := &reviewers{client: c, org: org, signers: identity.NewSigners(), contracts: make(map[string]policy.Policy)}
	read := 0
	for i, err := range c.Identities(ctx, org) {
		if err != nil {
			return nil, err
		}
		if i.RevokedAt == 0 && (i.NotAfter == 0 || i.NotAfter.Std().After(time.Now())) {
			r.trusted = append(r.trusted, i)
		}
		if err := r.add(i); err != nil {
			return nil, err
		}
		if read++; read == maxSigners {
			break
		}
	}
	return r, nil
}

// add adds the names and the key of an identity.
func (r *reviewers) add(i identity.Identity) error {
	e, err := i.Logged(ledger.IdentityKnown)
	if err != nil {
		return err
	}
	if err := r.signers.Trust(e); err != nil || i.Kind != identity.KeyIdentity || !i.Distinct {
		return err
	}
	return r.signers.Trust(ledger.IdentityEvent{Kind: ledger.KindSigner, DN: i.DN, Distinct: true})
}

// could returns the names of those whose approval a commit needs and would count.
func (r *reviewers) could(ctx context.Context, i attention.Item) ([]string, error) {
	names := []string{}
	commit, err := r.client.Commit(ctx, r.org, i.Repo, i.Commit)
	if err != nil {
		return nil, err
	}
	contract, err := r.contract(ctx, i.Repo, commit.PolicyVersion)
	if err != nil {
		return nil, err
	}
	need := i.Review
	n := slices.IndexFunc(commit.Requirements, func(s ledger.RequirementStatus) bool {
		return s.Applies && !s.Met && s.Predicate == need.Predicate
	})
	if n < 0 || n >= len(contract.Requirements) { // it was met just now
		return names, nil
	}

	known := r.factsOf(&commit)
	for _, i := range r.trusted {
		isName := i.Kind == identity.RootIdentity && i.DNPattern != ""
		name := i.DN
		if isName {
			name = i.DNPattern
		}
		if !mayReview(i, need) || need.IsReviewedBy(name) || slices.Contains(names, name) {
			continue
		}
		if isName || candidate.WouldCount(&contract.Contract, known, commit.Requirements, n, name, r.evidence) {
			names = append(names, name)
		}
	}
	return names, nil
}

// mayReview reports whether an identity may attest what a commit needs.
func mayReview(i identity.Identity, need *attention.ReviewNeed) bool {
	prefix, isPrefix := strings.CutSuffix(need.Predicate, "*")
	return i.May.Match(need.Predicate) || isPrefix && i.May.MatchSome(prefix)
}

// contract returns a version of the contract of a repo. It does not ask whether authors are known to the org: the
// names of members are not read here.
func (r *reviewers) contract(ctx context.Context, repo string, version int) (policy.Policy, error) {
	if p, ok := r.contracts[repo]; ok && p.Version == version {
		return p, nil
	}
	p, err := r.client.PolicyVersion(ctx, r.org, repo, version)
	for i := range p.Requirements {
		p.Requirements[i].ExcludeAuthor = min(p.Requirements[i].ExcludeAuthor, policy.ProvenAuthorExcluded)
	}
	r.contracts[repo] = p
	return p, err
}

// factsOf returns who wrote a commit.
func (r *reviewers) factsOf(c *ledger.Commit) policy.Facts {
	known := facts.Of(c)
	f := known.Policy(policy.AllTargets, "")
	for _, s := range c.Requirements {
		for _, name := range s.SignersCounted {
			if dn, err := identity.ParseDN(name); err == nil {
				r.signers.Name(dn)
			}
		}
	}
	f.AuthorPeople, f.KnownAuthors = r.signers.Authors(f.Authors, f.SigningKeys)
	return f
}

// evidence returns who the signer with a DN is.
func (r *reviewers) evidence(name string) (e policy.Evidence) {
	var err error
	if e.Signer, err = identity.ParseDN(name); err != nil {
		return e
	}
	e.Person = r.signers.Person(e.Signer)
	e.Individual = r.signers.Individual(e.Person)
	for _, i := range r.trusted {
		if i.DN == name {
			e.Emails = append(e.Emails, i.AuthorNames()...)
		}
	}
	return e
}
