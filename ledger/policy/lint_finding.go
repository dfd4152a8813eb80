package policy

import "fmt"

// A Finding is a part of a contract that probably does not mean what its author wants.
type Finding struct {
	Code FindingCode `json:"code"`
	// Field is the path of the member, such as requirements[2].signers.
	Field   string `json:"field"`
	Message string `json:"message"`
	Fix     string `json:"fix"`
}

// A FindingCode is the kind of a finding.
type FindingCode string

// The kinds of findings.
const (
	FindingAnySigner         FindingCode = "any_signer"          // every trusted identity satisfies it alone
	FindingToolWithoutSigner FindingCode = "tool_without_signer" // any signer can claim to be the tool
	FindingNoRequirements    FindingCode = "no_requirements"     // a state is reached without any evidence
	FindingNoDeployment      FindingCode = "no_deployment"       // no commit becomes DEPLOYED
	FindingNoIdentities      FindingCode = "no_identities"       // the org trusts nobody
	FindingNobodyMatches     FindingCode = "nobody_matches"      // no trusted identity can sign it
	FindingThresholdTooHigh  FindingCode = "threshold_too_high"  // fewer people can sign it than needed
	FindingTooFewPeople      FindingCode = "too_few_people"      // distinct_from asks for more people than match
	FindingNeverSigned       FindingCode = "never_signed"        // no such evidence was ever recorded
	FindingNeverCounts       FindingCode = "never_counts"        // such evidence never has an accepted status
	FindingMixedEnvironments FindingCode = "mixed_environments"  // counts deployments to other environments
	FindingClaimedTargets    FindingCode = "claimed_targets"     // anyone who registers a commit decides what applies
)

// A Review is the result of Lint.
type Review struct {
	Findings []Finding `json:"findings"`
	// Truncated counts the findings beyond MaxFindings.
	Truncated int `json:"truncated,omitzero"`
	// Unchecked says what was not checked, and why. It is empty if everything was.
	Unchecked string `json:"unchecked,omitzero"`
}

// MaxFindings is the maximum number of findings that a Review lists.
const MaxFindings = 200

// A linter collects the findings about a contract.
type linter struct {
	Contract
	facts   LintFacts
	signers *lintSigners // nil if it is not known who can sign what
	review  Review
}

func (l *linter) add(code FindingCode, field, fix, format string, args ...any) {
	if len(l.review.Findings) == MaxFindings {
		l.review.Truncated++
		return
	}
	l.review.Findings = append(l.review.Findings, Finding{code, field, fmt.Sprintf(format, args...), fix})
}
