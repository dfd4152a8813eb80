package server

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/policy/lint"
	"github.com/ledgerd/ledgerd/server/internal/wire"
	"github.com/ledgerd/ledgerd/store"
)

func (s *Server) getPolicy(c *call) (*reply, error) {
	version, err := parse(c, "version", policyVersion)
	if err != nil {
		return nil, err
	}
	policy, err := s.store.Policy(c.ctx(), c.org(), c.repo(), version)
	if err != nil {
		return nil, err
	}
	return &reply{status: http.StatusOK, record: policy, tagged: true, etag: policyTag(policy)}, nil
}

func policyVersion(s string) (int, error) {
	version, err := strconv.Atoi(s)
	if err != nil || version < 1 {
		return 0, fmt.Errorf("%q is not a version (use a number from 1)", s)
	}
	return version, nil
}

// policyTag returns the ETag of a policy: its version, which people can read, and
// its digest, which differs if a ledger was restored from an older backup and
// reached the same version again.
func policyTag(p policy.Policy) string {
	digest := strings.TrimPrefix(p.Digest, "sha256:")
	return fmt.Sprintf(`"v%d-%s"`, p.Version, digest[:min(len(digest), 12)])
}

func (s *Server) putPolicy(c *call) (*reply, error) {
	ifMatch := c.r.Header["If-Match"]
	if len(ifMatch) == 0 {
		return nil, ledger.Errorf(ledger.CodePreconditionRequired,
			"If-Match is required: send the ETag of the policy to replace, or * to replace any")
	}

	contract, err := c.contract()
	if err != nil {
		return nil, err
	}
	active, err := s.store.Policy(c.ctx(), c.org(), c.repo(), 0)
	if err != nil {
		return nil, err
	}
	if _, ok := wire.MatchETag(ifMatch, policyTag(active)); !ok {
		return nil, ledger.Errorf(ledger.CodePreconditionFailed, "the active policy has the ETag %s, not %s (get it again)",
			policyTag(active), strings.Join(ifMatch, ", "))
	}

	policy, err := s.store.SetPolicy(c.ctx(), c.org(), c.repo(), contract, active.Version, c.caller.name())
	if err != nil {
		return nil, err
	}
	return &reply{status: http.StatusOK, record: policy, tagged: true, etag: policyTag(policy)}, nil
}

// contract reads a policy contract from the body.
func (c *call) contract() (policy.Contract, error) {
	body, err := c.body(smallBody, typeJSON)
	if err != nil {
		return policy.Contract{}, err
	}
	return parseContract(body)
}

// parseContract parses a policy contract. It ignores the fields that a policy has in
// addition to its contract's, so that a client can edit the response of getPolicy and
// send it back.
func parseContract(body []byte) (policy.Contract, error) {
	var members map[string]jsontext.Value
	if ledger.DecodeStrict(body, &members) != nil {
		return policy.Parse(body) // returns the detailed error
	}
	for _, name := range policy.RecordFields() {
		delete(members, name)
	}
	body, err := json.Marshal(members, json.Deterministic(true))
	if err != nil {
		return policy.Contract{}, fmt.Errorf("encode the contract: %w", err)
	}
	return policy.Parse(body)
}

func (s *Server) listPolicies(c *call) (*reply, error) {
	q, err := c.page()
	if err != nil {
		return nil, err
	}
	page, err := s.store.Policies(c.ctx(), c.org(), c.repo(), q)
	return listed(c, page, err)
}

func (s *Server) simulatePolicy(c *call) (*reply, error) {
	draft, err := c.contract()
	if err != nil {
		return nil, err
	}
	if err := c.beginRead(); err != nil {
		return nil, err
	}
	return shown(s.store.Simulate(c.ctx(), c.org(), c.repo(), draft))
}

// lintPolicy reviews the contract in the body. An empty body means the active contract.
func (s *Server) lintPolicy(c *call) (*reply, error) {
	contract, err := s.contractToLint(c)
	if err != nil {
		return nil, err
	}
	lease := s.budgets.reviews.Lease(c.org())
	defer lease.Release()
	if err := lease.Grow(c.ctx(), 1); err != nil {
		return nil, err
	}
	if err := c.beginRead(); err != nil {
		return nil, err
	}
	facts, err := s.store.LintFacts(c.ctx(), c.org(), c.repo(), contract)
	if err != nil {
		return nil, err
	}
	return &reply{status: http.StatusOK, record: lint.Check(contract, facts)}, nil
}

func (s *Server) contractToLint(c *call) (policy.Contract, error) {
	body, err := c.readBody(smallBody)
	if err != nil {
		return policy.Contract{}, err
	}
	if len(bytes.TrimSpace(body)) == 0 {
		active, err := s.store.Policy(c.ctx(), c.org(), c.repo(), 0)
		return active.Contract, err
	}
	if err := checkMediaType(c.r.Header, []string{typeJSON}); err != nil {
		return policy.Contract{}, err
	}
	return parseContract(body)
}

// listViolations returns the violations of an org, or of the repo in the path.
func (s *Server) listViolations(c *call) (*reply, error) {
	f, err := c.violationFilter()
	if err != nil {
		return nil, err
	}
	page, err := s.store.Violations(c.ctx(), c.org(), f)
	return listed(c, page, err)
}

func (c *call) violationFilter() (f store.ViolationFilter, err error) {
	if f.Query, err = c.page(); err != nil {
		return f, err
	}
	if f.Status, err = parse(c, "status", ledger.ParseViolationStatus); err != nil {
		return f, err
	}
	f.Repo, f.Predicate = c.repo(), c.query.Get("predicate")
	if f.Repo == "" {
		f.Repo = c.query.Get("repo")
	}
	if f.Commit, err = parse(c, "commit", commitPrefix); err != nil {
		return f, err
	}
	if f.Commit != "" && f.Repo == "" {
		return f, invalidParameter("commit", "only valid with repo: a commit id is looked up in one repo")
	}
	return f, nil
}

// listEnvironments returns what runs in the environments of an org.
func (s *Server) listEnvironments(c *call) (*reply, error) {
	query, err := c.page()
	if err != nil {
		return nil, err
	}
	f := store.EnvironmentFilter{Query: query, Repo: c.query.Get("repo"), Name: c.query.Get("environment")}
	page, err := s.store.Environments(c.ctx(), c.org(), f)
	return listed(c, page, err)
}
