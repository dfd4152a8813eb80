package contractfile

import (
	"fmt"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// Lines returns a contract as text: a line for each requirement and one for the radar.
func Lines(c policy.Contract) []string {
	var lines []string
	for _, r := range c.Requirements {
		lines = append(lines, requirementLine(r))
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
	if r.Threshold != 1 {
		line += fmt.Sprintf(" by %d", r.Threshold)
	}

	var signers []string
	for _, s := range r.Signers {
		signers = append(signers, s.String())
	}
	if len(signers) > 0 {
		line += " of " + strings.Join(signers, " or ")
	}

	if len(r.Accept) != 1 || r.Accept[0] != ledger.Pass {
		line += fmt.Sprintf(" accept=%v", r.Accept)
	}
	if r.MaxAge != 0 {
		line += " max_age=" + r.MaxAge.String()
	}
	if r.ExcludeAuthor {
		line += " exclude_author"
	}

	if len(r.Paths) > 0 {
		line += " paths=" + strings.Join(r.Paths, ",")
	}
	if len(r.Branches) > 0 {
		line += " branches=" + strings.Join(r.Branches, ",")
	}
	return line
}
