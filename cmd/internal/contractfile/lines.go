package contractfile

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// Lines returns a contract as text: a line for each requirement, and one for each group of
// settings.
func Lines(c policy.Contract) []string {
	var lines []string
	for _, r := range c.Requirements {
		lines = append(lines, requirementLine(r))
	}
	lines = append(lines, "targets "+string(c.Targets))
	if e := c.Exceptions; len(e.Signers) > 0 {
		lines = append(lines, "exceptions by "+alternatives(e.Signers)+" max_duration="+e.MaxDuration.String())
	}
	if a := c.Artifacts; len(a.Signers) > 0 {
		lines = append(lines, "artifacts linked by "+alternatives(a.Signers))
	}

	if c.Rules > 0 {
		lines = append(lines, fmt.Sprintf("rules %d (without artifacts.signers, only builds by identities with --may "+
			"build:… "+
			"link artifacts)", c.Rules))
	}
	r := c.Radar
	line := fmt.Sprintf("radar enabled=%t notify=%s block=%s max_age=%s", r.Enabled, r.Notify, r.Block, r.MaxAge)
	if len(r.Ignore) > 0 {
		line += " ignore=" + strings.Join(r.Ignore, ",")
	}
	return append(lines, line)
}

// requirementLine returns a requirement as a line of text, without its defaults.
func requirementLine(r policy.Requirement) string {
	line := fmt.Sprintf("%s needs %s", r.State, r.Predicate)
	if r.Type != "" {
		line = fmt.Sprintf("%s needs type %s", r.State, r.Type)
	}
	if r.Name != "" {
		line = r.Name + ": " + line
	}
	if r.Threshold != 1 {
		line += fmt.Sprintf(" by %d", r.Threshold)
	}

	if len(r.Signers) > 0 {
		line += " of " + alternatives(r.Signers)
	}

	if len(r.Accept) != 1 || r.Accept[0] != ledger.Pass {
		line += fmt.Sprintf(" accept=%v", r.Accept)
	}
	if r.MaxAge != 0 {
		line += " max_age=" + r.MaxAge.String()
	}
	switch r.ExcludeAuthor {
	case policy.AuthorExcluded:
		line += " exclude_author"
	case policy.ProvenAuthorExcluded:
		line += " exclude_author=proven"
	case policy.KnownAuthorExcluded:
		line += " exclude_author=known"
	}
	if len(r.DistinctFrom) > 0 {
		line += fmt.Sprintf(" distinct_from=%v", r.DistinctFrom)
	}
	if r.Covers != policy.CoversTree {
		line += " covers=" + string(r.Covers)
	}
	if r.Delivery {
		line += " delivery"
	}
	line += carryText(r)
	if len(r.Levels) > 0 {
		line += fmt.Sprintf(" levels=%v", r.Levels)
	}
	if r.Where != "" {
		line += " where=" + strconv.Quote(r.Where)
	}
	if r.Passkey {
		line += " passkey"
	}

	if len(r.Paths) > 0 {
		line += " paths=" + strings.Join(r.Paths, ",")
	}
	if len(r.Branches) > 0 {
		line += " branches=" + strings.Join(r.Branches, ",")
	}
	return line
}

// carryText says how evidence carries to a requirement. It is empty if it does not.
func carryText(r policy.Requirement) (text string) {
	var ways []string
	if r.Carry&policy.CarryTree != 0 {
		ways = append(ways, "tree")
	}
	if r.Carry&policy.CarryMerge != 0 {
		ways = append(ways, "merge")
	}
	if ways != nil {
		text = " carry=" + strings.Join(ways, ",")
	}
	if len(r.CarrySigners) > 0 {
		text += " claimed by " + alternatives(r.CarrySigners)
	}
	return text
}

// alternatives joins patterns of signers.
func alternatives(patterns []identity.Pattern) string {
	texts := make([]string, len(patterns))
	for i, p := range patterns {
		texts[i] = p.String()
	}
	return strings.Join(texts, " or ")
}
