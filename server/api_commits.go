package server

import (
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/lineage"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store"
)

func (s *Server) listCommits(c *call) (*reply, error) {
	f, err := c.commitFilter()
	if err != nil {
		return nil, err
	}
	page, err := s.store.Commits(c.ctx(), c.org(), c.repo(), f)
	return listed(c, page, err)
}

func (c *call) commitFilter() (f store.CommitFilter, err error) {
	if f.Query, err = c.page(); err != nil {
		return f, err
	}
	state, err := parse(c, "state", ledger.ParseState)
	if err != nil {
		return f, err
	}
	if c.query.Has("state") {
		f.State = &state
	}
	f.Branch, f.Author = c.query.Get("branch"), c.query.Get("author")
	if f.Text, err = parse(c, "text", searchText); err != nil {
		return f, err
	}
	if f.InFlight, err = parse(c, "in_flight", onlyTrue); err != nil {
		return f, err
	}
	f.Standing, err = parse(c, "standing", onlyTrue)
	return f, err
}

// maxSearch is the maximum length of a text to search for, in bytes.
const maxSearch = 200

// searchText parses a text to search for.
func searchText(s string) (string, error) {
	if len(s) > maxSearch {
		return "", fmt.Errorf("too long: at most %d bytes", maxSearch)
	}
	return s, nil
}

// onlyTrue parses a parameter that is either true or omitted.
func onlyTrue(s string) (bool, error) {
	if s != "true" {
		return false, fmt.Errorf("%q is not valid (use true or omit it)", s)
	}
	return true, nil
}

// checkSHA returns an error unless the path has a commit id or a prefix of one.
func (c *call) checkSHA() error {
	if ledger.IsCommitPrefix(c.sha()) {
		return nil
	}
	return ledger.Errorf(ledger.CodeNotFound, "%q is not a commit ID (use 40 or 64 lower-case hex digits, or at least "+
		"the first 7)", c.sha())
}

func (s *Server) getCommit(c *call) (*reply, error) {
	if err := c.checkSHA(); err != nil {
		return nil, err
	}
	target, err := parse(c, "target", ledger.ParseBranch)
	if err != nil {
		return nil, err
	}
	environment, err := parse(c, "env", ledger.ParseEnvironment)
	if err != nil {
		return nil, err
	}
	commit, err := s.store.CommitFor(c.ctx(), c.org(), c.repo(), c.sha(), target, environment)
	return single(c.linked(commit), err)
}

// getCommitGate answers whether a commit has reached a state.
func (s *Server) getCommitGate(c *call) (*reply, error) {
	if err := c.checkSHA(); err != nil {
		return nil, err
	}
	state, err := requiredState(c)
	if err != nil {
		return nil, err
	}
	q := store.DecisionQuery{Org: c.org(), Repo: c.repo(), Commit: c.sha(), State: &state}
	if q.Target, err = parse(c, "target", ledger.ParseBranch); err != nil {
		return nil, err
	}
	if q.Environment, err = parse(c, "env", ledger.ParseEnvironment); err != nil {
		return nil, err
	}
	return single(s.store.Gate(c.ctx(), q))
}

// requiredState returns the state that a gate asks for.
func requiredState(c *call) (ledger.State, error) {
	if !c.query.Has("state") {
		return 0, invalidParameter("state", "required (use ATTESTED, PROMOTABLE or DEPLOYED)")
	}
	return parse(c, "state", ledger.ParseState)
}

func (s *Server) putCommit(c *call) (*reply, error) {
	if !ledger.IsCommit(c.sha()) {
		return nil, ledger.FieldErrorf(
			ledger.CodeInvalidField, "sha", "%q is not a full commit ID (use 40 or 64 lower-case hex digits)", c.sha())
	}
	var r ledger.Registration
	if err := c.decodeValid(&r, s.config.Limits.MaxBody); err != nil {
		return nil, err
	}
	commit, isNew, err := s.store.Register(c.ctx(), c.org(), c.repo(), c.sha(), r)
	if err != nil {
		return nil, err
	}
	if isNew {
		return created(c.linked(commit), commitURL(commit.Org, commit.Repo, commit.SHA)), nil
	}
	return &reply{status: http.StatusOK, record: c.linked(commit)}, nil
}

// addObjects records objects of commits, and says which are unknown.
func (s *Server) addObjects(c *call) (*reply, error) {
	var o lineage.Objects
	if err := c.decodeValid(&o, s.config.Limits.MaxBody); err != nil {
		return nil, err
	}
	unknown, err := s.store.AddObjects(c.ctx(), c.org(), c.repo(), o)
	if unknown == nil {
		unknown = []string{}
	}
	return single(lineage.UnknownObjects{Unknown: unknown}, err)
}

// A correction is the body of a request to correct a commit.
type correction struct {
	Targets *[]string     `json:"targets"`
	Changes changesOrNull `json:"changes"`
}

// changesOrNull is a member that distinguishes null from a missing member.
type changesOrNull struct {
	isGiven bool
	changes []radar.Change // nil for null
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (c *changesOrNull) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	c.isGiven = true
	return json.UnmarshalDecode(dec, &c.changes)
}

// correctCommit replaces what registrations have claimed of a commit.
func (s *Server) correctCommit(c *call) (*reply, error) {
	if err := c.checkSHA(); err != nil {
		return nil, err
	}
	var body correction
	if err := c.decode(&body, s.config.Limits.MaxBody); err != nil {
		return nil, err
	}
	change := ledger.CommitCorrection{Targets: body.Targets}
	if body.Changes.isGiven {
		change.Changes = &body.Changes.changes
	}
	if err := change.Check(); err != nil {
		return nil, err
	}

	commit, done, err := s.store.Correct(c.ctx(), c.org(), c.repo(), c.sha(), change, c.caller.name())
	if err != nil {
		return nil, err
	}
	for _, d := range done {
		s.log.InfoContext(c.ctx(), "commit corrected", "org", commit.Org, "repo", commit.Repo, "commit", commit.SHA,
			"by", d.By, "field", d.Field, "before", d.Before, "after", d.After)
	}
	return &reply{status: http.StatusOK, record: c.linked(commit)}, nil
}

func (s *Server) listTransitions(c *call) (*reply, error) {
	if err := c.checkSHA(); err != nil {
		return nil, err
	}
	q, err := c.page()
	if err != nil {
		return nil, err
	}
	page, err := s.store.Transitions(c.ctx(), c.org(), c.repo(), c.sha(), q)
	return listed(c, page, err)
}

// linked returns the commit with the URLs of all its attestations and transitions.
func (c *call) linked(commit ledger.Commit) ledger.Commit {
	commit.TransitionsURL = c.base + commitURL(commit.Org, commit.Repo, commit.SHA) + "/transitions"
	commit.AttestationsURL = c.base + attestationsURL(commit.Org, commit.Repo) + "?commit=" + commit.SHA
	return commit
}
