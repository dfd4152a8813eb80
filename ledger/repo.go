package ledger

import (
	"time"

	"github.com/ledgerd/ledgerd/ledger/forge"
)

// A Repo is one git repository whose commits are attested.
type Repo struct {
	Org           string `json:"org"`
	Name          string `json:"name"`
	DefaultBranch string `json:"default_branch"`
	// WebURL is where people see the repo in a browser, and Forge the kind of forge there,
	// by which its links are formed. Both are empty if that is not known.
	WebURL        string     `json:"web_url,omitzero"`
	Forge         forge.Kind `json:"forge,omitzero"`
	PolicyVersion int        `json:"policy_version"`
	CreatedAt     Time       `json:"created_at"`
	// ArchivedAt is when it was archived. An archived repo can only be read.
	ArchivedAt Time `json:"archived_at,omitzero"`
	// DeletedAt is when it was deleted. FormerNames has the names that it had, oldest first.
	DeletedAt   Time         `json:"deleted_at,omitzero"`
	FormerNames []FormerName `json:"former_names,omitzero"`
	// PurgedAt is when the deletion became final: nothing of it is kept that can be pruned.
	PurgedAt Time `json:"purged_at,omitzero"`
	// Retention is how long the repo keeps what it has recorded.
	Retention Retention `json:"retention,omitzero"`
	// Commits counts the repo's commits by state; every state is present.
	Commits map[State]int64 `json:"commits"`
	// Attestations counts the repo's attestations.
	Attestations int64 `json:"attestations"`
	// OpenViolations counts the repo's open violations.
	OpenViolations int64 `json:"open_violations"`
	// Unsettled says that states of commits are still to be derived again; nil if that has not waited for
	// UnsettledAfter. Lists of repos do not have it.
	Unsettled *Unsettled `json:"unsettled,omitzero"`
}

// UnsettledAfter is how long states are to be derived again before a repo says so.
const UnsettledAfter = 5 * time.Second

// An Unsettled says since when states of a repo's commits are to be derived again, 0 if that is not known, and
// whether that has failed.
type Unsettled struct {
	Since   Time `json:"since,omitzero"`
	Failing bool `json:"failing"`
}

// Site returns the forge of the repo, which forms links to its pages. If the repo has no
// web URL, it is the zero Site.
func (r Repo) Site() forge.Site { return forge.New(r.WebURL, r.Forge) }

// A NewRepo is the body of a request to create a repo.
type NewRepo struct {
	Name          string `json:"name"`
	DefaultBranch string `json:"default_branch,omitzero"`
	WebURL        string `json:"web_url,omitzero"`
	// Forge is by default the kind that the host of WebURL names.
	Forge forge.Kind `json:"forge,omitzero"`
}

// Check returns a field error for the first invalid field. It puts WebURL into its
// canonical form and sets Forge to its default.
func (n *NewRepo) Check() error {
	if err := CheckRepo(n.Name); err != nil {
		return err
	}
	if err := checkRef("default_branch", n.DefaultBranch); err != nil {
		return err
	}
	return checkSite(&n.WebURL, &n.Forge)
}

// A RepoChange is the body of a request to update a repo. Nil fields are not changed.
type RepoChange struct {
	// Name renames the repo, or restores it if it is deleted.
	Name *string `json:"name,omitzero"`
	// Archived archives the repo, or ends that.
	Archived *bool `json:"archived,omitzero"`
	// WebURL is removed, with Forge, if it is empty.
	WebURL *string `json:"web_url,omitzero"`
	// Forge is set to its default if it is nil and WebURL is not, or if it is empty.
	Forge *forge.Kind `json:"forge,omitzero"`
	// Retention changes the lengths of time that are not nil in it.
	Retention *RetentionChange `json:"retention,omitzero"`
}

// IsEmpty reports whether the change sets no field but Name and Archived.
func (c RepoChange) IsEmpty() bool { return c.WebURL == nil && c.Forge == nil && c.Retention == nil }

// Apply returns the changed repo, or a field error for the first invalid field.
// It applies neither Name nor Archived.
func (c RepoChange) Apply(r Repo) (Repo, error) {
	if c.Name != nil {
		if err := CheckRepo(*c.Name); err != nil {
			return r, err
		}
	}
	if c.Retention != nil {
		var err error
		if r.Retention, err = c.Retention.apply(r.Retention); err != nil {
			return r, err
		}
	}

	if c.WebURL != nil {
		r.WebURL, r.Forge = *c.WebURL, ""
	}
	if c.Forge != nil {
		r.Forge = *c.Forge
	}
	if c.WebURL == nil && c.Forge == nil {
		return r, nil
	}
	return r, checkSite(&r.WebURL, &r.Forge)
}

// checkSite returns a field error if a web URL or its kind of forge is invalid. It puts
// the URL into its canonical form and sets the kind to its default if it is empty.
func checkSite(webURL *string, kind *forge.Kind) error {
	if *kind != "" {
		if _, err := forge.ParseKind(string(*kind)); err != nil {
			return FieldErrorf(CodeInvalidField, "forge", "%v", err)
		}
	}
	if *webURL == "" && *kind != "" {
		return FieldErrorf(CodeInvalidField, "forge", "it says how links to web_url are formed: give web_url too")
	}
	if *webURL == "" {
		return nil
	}

	canonical, err := forge.CheckURL(*webURL)
	if err != nil {
		return FieldErrorf(CodeInvalidField, "web_url", "%v", err)
	}
	*webURL = canonical
	if *kind == "" {
		*kind = forge.Detect(canonical)
	}
	return nil
}

// A Retention is how long a repo keeps what it has recorded. Zero keeps it without a limit, or, for
// deliveries, as long as the server is configured to.
type Retention struct {
	// Envelopes is counted from the recording of an attestation. Its record, with the digests,
	// stays.
	Envelopes Duration `json:"envelopes,omitzero"`
	// Events is for the bodies of the events that [EventType.IsPrunable] names, from their time. Their leaves
	// in the log stay.
	Events Duration `json:"events,omitzero"`
	// Deliveries is for the log of webhook deliveries, from their end.
	Deliveries Duration `json:"deliveries,omitzero"`
}

// A RetentionChange is a change of a Retention. Nil fields are not changed, and zero removes the
// limit.
type RetentionChange struct {
	Envelopes  *Duration `json:"envelopes,omitzero"`
	Events     *Duration `json:"events,omitzero"`
	Deliveries *Duration `json:"deliveries,omitzero"`
}

// MinRetention is the shortest time that a repo keeps something.
const MinRetention = Duration(day)

// apply returns the changed lengths of time, or a field error.
func (c RetentionChange) apply(r Retention) (Retention, error) {
	for _, field := range []struct {
		name   string
		change *Duration
		value  *Duration
	}{
		{"envelopes", c.Envelopes, &r.Envelopes},
		{"events", c.Events, &r.Events},
		{"deliveries", c.Deliveries, &r.Deliveries},
	} {
		if field.change == nil {
			continue
		}
		if d := *field.change; d != 0 && d < MinRetention {
			return r, FieldErrorf(CodeInvalidField, "retention."+field.name,
				"%s is too short: at least 1d, or 0s to keep them without a limit", d)
		}
		*field.value = *field.change
	}
	return r, nil
}

// IsPrunable reports whether the bodies of events of a type are pruned by the retention of their
// repo. Those of others say what is needed to derive states, or what administrators did.
func (t EventType) IsPrunable() bool {
	switch t {
	case EventAttestation, EventState, EventStanding, EventRadar, EventViolation:
		return true
	}
	return false
}
