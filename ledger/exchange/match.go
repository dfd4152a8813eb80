package exchange

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/glob"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
	"github.com/ledgerd/ledgerd/ledger/where"
)

// maxClaim is the maximum size of a claim that is matched against globs, in bytes.
const maxClaim = 1024

// Subject returns the ID of the repository or project for which the token was issued. It is empty
// if the token has neither ID or both: then no rule matches.
func (c Claims) Subject() string {
	if c.RepositoryID != "" && c.ProjectID != "" {
		return ""
	}
	return string(c.RepositoryID + c.ProjectID)
}

// describeIDs says which of the claims repository_id and project_id a token has.
func (c Claims) describeIDs() string {
	repository := "repository_id " + text.Quote(string(c.RepositoryID))
	project := "project_id " + text.Quote(string(c.ProjectID))
	switch {
	case c.RepositoryID != "" && c.ProjectID != "":
		return "has " + repository + " and " + project
	case c.RepositoryID != "":
		return "has " + repository
	case c.ProjectID != "":
		return "has " + project
	}
	return "has no repository_id and no project_id"
}

// describeID says which repository or project the rule is for.
func (n NewRule) describeID() string {
	if n.ProjectID != "" {
		return "project_id " + n.ProjectID
	}
	return "repository_id " + n.RepositoryID
}

// Match returns nil if a token with the claims fulfils all conditions of the rule. Otherwise the
// error names the first condition that is not fulfilled. The claim sub is not read: its form
// differs between issuers, and repositories can set it.
func (n NewRule) Match(c Claims) error {
	if c.Issuer != n.Issuer {
		return fmt.Errorf("the issuer is %s", text.Quote(c.Issuer))
	}
	if c.Subject() == "" || string(c.RepositoryID) != n.RepositoryID || string(c.ProjectID) != n.ProjectID {
		return fmt.Errorf("the token %s: the rule is for %s", c.describeIDs(), n.describeID())
	}
	if event := n.event(c); !slices.Contains(n.Events, event) {
		return fmt.Errorf("the event %s is not among %s", text.Quote(event), strings.Join(n.Events, ", "))
	}

	if len(n.Refs) > 0 && !matchesAny(qualified(n.Refs), n.ref(c)) {
		return fmt.Errorf("the ref %s (ref_type %s) is not among %s", text.Quote(c.Ref), text.Quote(c.RefType),
			strings.Join(n.Refs, ", "))
	}
	if len(n.Workflows) > 0 && !matchesAny(n.Workflows, c.Workflow) {
		return fmt.Errorf("job_workflow_ref %s is not among %s", text.Quote(c.Workflow), strings.Join(n.Workflows, ", "))
	}
	return n.matchWhere(c)
}

// event returns the event that started the run.
func (n NewRule) event(c Claims) string {
	if n.ProjectID != "" {
		return c.Source
	}
	return c.Event
}

// ref returns the full name of the ref that the run is for; empty if it is ambiguous. GitLab gives
// branches and tags the same form in the claim ref, so a tag can be named as a branch.
func (n NewRule) ref(c Claims) string {
	if n.ProjectID == "" {
		return c.Ref
	}
	switch {
	case c.Ref == "" || c.Source == mergeRequest:
		return ""
	case c.RefType == "branch":
		return branches + c.Ref
	case c.RefType == "tag":
		return tags + c.Ref
	}
	return ""
}

const (
	branches = "refs/heads/"
	tags     = "refs/tags/"
)

// qualified returns globs for the full names of refs.
func qualified(globs []string) []string {
	full := make([]string, len(globs))
	for i, g := range globs {
		if full[i] = g; !strings.HasPrefix(g, "refs/") {
			full[i] = branches + g
		}
	}
	return full
}

func matchesAny(globs []string, name string) bool {
	if name == "" || len(name) > maxClaim {
		return false
	}
	matches, sure := glob.AnyMatch(globs, []string{name}, glob.MaxMatching)
	return matches && sure
}

func (n NewRule) matchWhere(c Claims) error {
	if n.Where == "" {
		return nil
	}
	program, err := where.CompileClaims(n.Where)
	if err != nil {
		return fmt.Errorf("its expression is not valid: %w", err)
	}
	switch verdict := program.EvalClaims(where.ReadClaims(c.payload)); {
	case verdict.Error != "":
		return fmt.Errorf("its expression cannot be evaluated: %s", verdict.Error)
	case !verdict.True:
		return fmt.Errorf("its expression is false: %s", text.Clip(n.Where))
	}
	return nil
}

// Select returns the first of the rules, oldest first, that the claims fulfil and that gives at
// least the scope; with a signer if signing is set. Otherwise the error has CodeNoMatchingRule. It
// says why not only about rules for the repository of the token: others must not be disclosed to
// everyone who can get a token of the issuer.
func Select(rules []Rule, c Claims, scope ledger.Scope, signing bool) (Rule, error) {
	var reasons []string
	for _, r := range rules {
		if c.Issuer != r.Issuer || c.Subject() == "" || c.Subject() != r.Subject() {
			continue
		}
		err := r.allows(c, scope, signing)
		if err == nil {
			return r, nil
		}
		reasons = append(reasons, fmt.Sprintf("rule %s (%s): %v", r.ID, r.Name, err))
	}

	if len(reasons) == 0 {
		return Rule{}, ledger.Errorf(ledger.CodeNoMatchingRule,
			"the org has no rule for this token of the issuer %s: it %s", text.Quote(c.Issuer), c.describeIDs())
	}
	return Rule{}, ledger.Errorf(ledger.CodeNoMatchingRule, "no rule of the org is for this token: %s",
		text.JoinFirst(reasons, "; "))
}

// allows returns nil if the rule matches and gives what the caller requests. Otherwise the error
// says why not.
func (n NewRule) allows(c Claims, scope ledger.Scope, signing bool) error {
	if err := n.Match(c); err != nil {
		return err
	}
	switch {
	case scope > n.Scope:
		return fmt.Errorf("it gives the scope %s, not %s", n.Scope, scope)
	case signing && n.DN == "":
		return errors.New("it has no dn to sign as")
	}
	return nil
}
