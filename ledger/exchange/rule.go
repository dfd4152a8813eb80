package exchange

import (
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/ca"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/internal/glob"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
	"github.com/ledgerd/ledgerd/ledger/where"
)

// The limits of rules.
const (
	MaxRules    = 1000 // of an org
	MaxMatched  = 20   // of an org for one repository of an issuer
	MaxTokens   = 1000 // of a rule, that are valid at the same time
	maxName     = 60   // characters
	maxNames    = 50   // in a list of events, refs, workflows or repos
	MaxLifetime = time.Hour
	lifetime    = 15 * time.Minute // by default
	minLifetime = time.Minute
)

// DefaultEvents returns the events that a rule without events allows. They only run code from
// people with write access to the repository.
func DefaultEvents() []string { return []string{"push", "workflow_dispatch", "schedule", "release"} }

// A NewRule is the body of a request to create a rule: which tokens of an issuer an org exchanges,
// and for what. A token must fulfil all conditions.
type NewRule struct {
	// Name is the name of the API tokens.
	Name string `json:"name"`
	// Issuer is the URL of the issuer.
	Issuer string `json:"issuer"`
	// RepositoryID is the repository on GitHub or Forgejo (claim repository_id), and ProjectID the
	// project on GitLab (claim project_id). A rule has one of them.
	RepositoryID string `json:"repository_id,omitzero"`
	ProjectID    string `json:"project_id,omitzero"`
	// Events are the events that may have started the run: the claim event_name, on GitLab
	// pipeline_source.
	Events []string `json:"events,omitzero"`
	// Refs are globs for branches, such as main or release/*, and tags, such as refs/tags/v*. Without
	// any, every ref matches.
	Refs []string `json:"refs,omitzero"`
	// Workflows are globs for the claim job_workflow_ref, which names a reusable workflow with its
	// version. Without any, every workflow matches.
	Workflows []string `json:"workflows,omitzero"`
	// Where is an expression (CEL) about the variable claims. If it is empty, the rule has no such
	// condition.
	Where string `json:"where,omitzero"`

	// Scope and Repos are what the API token permits.
	Scope ledger.Scope `json:"scope"`
	Repos []string     `json:"repos"`
	// DN is the name with which a job may sign. If it is empty, jobs may not sign.
	DN string `json:"dn,omitzero"`
	// Lifetime is how long the API token is valid; 0 means 15 minutes.
	Lifetime ledger.Duration `json:"lifetime,omitzero"`
}

// A Rule is a rule of an org.
type Rule struct {
	ID  string `json:"id"`
	Org string `json:"org"`
	NewRule
	// Warnings are the risks of the rule.
	Warnings  []string    `json:"warnings,omitzero"`
	CreatedAt ledger.Time `json:"created_at,omitzero"`
}

// Completed returns the rule with its defaults, and the DN in its canonical form. It returns a
// field error for the first field that is invalid.
func (n NewRule) Completed() (NewRule, error) {
	if len(n.Events) == 0 {
		n.Events = DefaultEvents()
	}
	if n.Lifetime == 0 {
		n.Lifetime = ledger.Duration(lifetime)
	}
	if err := n.checkConditions(); err != nil {
		return n, err
	}
	if err := n.checkGrant(); err != nil {
		return n, err
	}

	if n.DN == "" {
		return n, nil
	}
	dn, err := signerOf(n.DN)
	if err != nil {
		return n, invalidField("dn", "%v", err)
	}
	n.DN = dn.String()
	return n, nil
}

// signerOf parses the DN of a CI job, which a CA would certify.
func signerOf(s string) (identity.DN, error) {
	dn, err := identity.ParseDN(s)
	if err != nil {
		return dn, err
	}
	return dn, ca.Jobs.CheckDN(dn)
}

func invalidField(field, format string, args ...any) error {
	return ledger.FieldErrorf(ledger.CodeInvalidField, field, format, args...)
}

var (
	forgeID   = regexp.MustCompile(`^[0-9]{1,20}$`)
	eventName = regexp.MustCompile(`^[a-z_]{1,64}$`)
)

// checkConditions checks the fields that select tokens.
func (n NewRule) checkConditions() error {
	if err := checkIssuerURL(n.Issuer, true); err != nil {
		return invalidField("issuer", "%v", err)
	}
	switch {
	case n.RepositoryID != "" && n.ProjectID != "":
		return invalidField("project_id", "a rule is for a repository_id or a project_id, not for both")
	case n.RepositoryID == "" && n.ProjectID == "":
		return invalidField("repository_id", "required, or project_id for GitLab")
	case n.RepositoryID != "" && !forgeID.MatchString(n.RepositoryID):
		return invalidField("repository_id", "%s is not a number (names can change hands, IDs cannot)",
			text.Quote(n.RepositoryID))
	case n.ProjectID != "" && !forgeID.MatchString(n.ProjectID):
		return invalidField("project_id", "%s is not a number (names can change hands, IDs cannot)", text.Quote(n.ProjectID))
	case n.ProjectID != "" && len(n.Workflows) > 0:
		return invalidField("workflows", "GitLab has no job_workflow_ref (use where, e.g. claims.ci_config_ref_uri == …)")
	case len(n.Refs) > 0 && slices.Contains(n.Events, mergeRequest):
		return invalidField("refs", "the ref of a %s is chosen by the person who proposes it (leave out the event or refs)",
			mergeRequest)
	}

	for i, event := range n.Events {
		if !eventName.MatchString(event) {
			return invalidField(text.Entry("events", i), "%s is not an event (use e.g. push)", text.Quote(event))
		}
	}
	for field, list := range map[string][]string{"refs": n.Refs, "workflows": n.Workflows} {
		for i, pattern := range list {
			if err := glob.Check(pattern); err != nil {
				return invalidField(text.Entry(field, i), "%v", err)
			}
		}
	}
	if n.Where != "" {
		if _, err := where.CompileClaims(n.Where); err != nil {
			return invalidField("where", "%v", err)
		}
	}
	return nil
}

// checkGrant checks the fields of what a rule gives.
func (n NewRule) checkGrant() error {
	if !isName(n.Name) {
		return invalidField("name", "use 1 to %d printable characters, without spaces at either end", maxName)
	}
	for field, list := range map[string][]string{
		"events": n.Events, "refs": n.Refs, "workflows": n.Workflows, "repos": n.Repos,
	} {
		if len(list) > maxNames {
			return invalidField(field, "%d entries, at most %d", len(list), maxNames)
		}
	}

	switch life := time.Duration(n.Lifetime); {
	case n.Scope == 0:
		return invalidField("scope", "required (use read, write, maintain or admin)")
	case len(n.Repos) == 0:
		return invalidField("repos", "required: the repos that the API token is for")
	case life < minLifetime || life > MaxLifetime:
		return invalidField("lifetime", "%s is out of range (use %s to %s)", n.Lifetime, ledger.Duration(minLifetime),
			ledger.Duration(MaxLifetime))
	}
	for i, repo := range n.Repos {
		if ledger.CheckRepo(repo) != nil {
			return invalidField(text.Entry("repos", i), "%s is not a repo name", text.Quote(repo))
		}
	}
	return nil
}

func isName(s string) bool {
	if n := utf8.RuneCountInString(s); n == 0 || n > maxName || strings.TrimSpace(s) != s {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// Subject returns the ID of the repository or project that the rule is for.
func (n NewRule) Subject() string { return n.RepositoryID + n.ProjectID }

// mergeRequest is the event of GitLab for merge requests, also those from forks.
const mergeRequest = "merge_request_event"

// Warned returns the risks of the rule.
func (n NewRule) Warned() (warnings []string) {
	for _, event := range n.Events {
		switch event {
		case "pull_request_target", "workflow_run", "issue_comment":
			warnings = append(warnings, event+" runs with a trusted ref, but its jobs often check out the code of a pull "+
				"request, also of a fork: that code could then get this API token")
		case "pull_request", mergeRequest:
			warnings = append(warnings, event+" runs code that nobody has reviewed: it can get this API token")
		}
	}
	if n.DN != "" && len(n.Refs) == 0 && n.Where == "" {
		warnings = append(warnings, "the rule has no refs: jobs of every branch may sign as "+n.DN)
	}
	return warnings
}
