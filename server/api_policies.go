package server

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/server/internal/wire"
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
		return 0, fmt.Errorf("%q is not a version: those are counted from 1", s)
	}
	return version, nil
}

// policyTag returns the ETag of a version: it can be read, and told apart from
// the same number in a ledger that was restored from an older copy.
func policyTag(p policy.Policy) string {
	digest := strings.TrimPrefix(p.Digest, "sha256:")
	return fmt.Sprintf(`"v%d-%s"`, p.Version, digest[:min(len(digest), 12)])
}

func (s *Server) putPolicy(c *call) (*reply, error) {
	wanted := c.r.Header["If-Match"]
	if len(wanted) == 0 {
		return nil, ledger.Errorf(ledger.CodePreconditionRequired,
			"send If-Match with the ETag of the policy that this one replaces, or * to replace any")
	}
	contract, err := c.contract()
	if err != nil {
		return nil, err
	}
	active, err := s.store.Policy(c.ctx(), c.org(), c.repo(), 0)
	if err != nil {
		return nil, err
	}
	if _, ok := wire.TagIn(wanted, policyTag(active)); !ok {
		return nil, ledger.Errorf(ledger.CodePreconditionFailed, "the active policy has the ETag %s, not %s: read it again",
			policyTag(active), strings.Join(wanted, ", "))
	}
	policy, err := s.store.SetPolicy(c.ctx(), c.org(), c.repo(), contract, active.Version, c.caller.name())
	if err != nil {
		return nil, err
	}
	return &reply{status: http.StatusOK, record: policy, tagged: true, etag: policyTag(policy)}, nil
}

// contract reads a policy contract. The members that a policy has beside its
// contract's are passed over, so that what was read can be edited and sent back.
func (c *call) contract() (policy.Contract, error) {
	body, err := c.body(smallBody, typeJSON)
	if err != nil {
		return policy.Contract{}, err
	}
	var members map[string]jsontext.Value
	if ledger.DecodeStrict(body, &members) != nil {
		return policy.Parse(body) // which says what is wrong with it
	}
	for _, name := range policy.RecordFields() {
		delete(members, name)
	}
	if body, err = json.Marshal(members, json.Deterministic(true)); err != nil {
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
	simulation, err := s.store.Simulate(c.ctx(), c.org(), c.repo(), draft)
	if err != nil {
		return nil, err
	}
	return &reply{status: http.StatusOK, record: simulation}, nil
}
