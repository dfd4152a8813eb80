package attestation

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// parseCollection parses an attestation collection of witness, or of cilock, which has the same form:
// https://witness.dev/docs/. It fails if any member states a bad outcome, and passes if one states a good one.
func parseCollection(predicate []byte) (body, error) {
	var p struct {
		Name         string       `json:"name"`
		Attestations []memberJSON `json:"attestations"`
		Other        otherMembers `json:",embed"`
	}
	if err := decodePredicate(predicate, &p); err != nil {
		return body{}, err
	}

	b := body{predicate: outcomeName("witness", labelOf(p.Name)), result: ledger.Result{Status: ledger.Recorded}}
	for i := range p.Attestations {
		m := &p.Attestations[i]
		status, err := m.status(predicate, fmt.Sprintf("predicate.attestations[%d].attestation", i))
		if err != nil {
			return body{}, err
		}
		b.result.Status = worse(b.result.Status, status)
		if m.kind() == commandRun {
			b.result.DurationMS = min(b.result.DurationMS+durationMS(m.StartTime, m.EndTime), maxDurationMS)
			b.finishedAt = max(b.finishedAt, m.EndTime.time())
		}
	}
	return b, nil
}

// A memberJSON is an attestation in a collection.
type memberJSON struct {
	Type        string       `json:"type"`
	Attestation byteRange    `json:"attestation"`
	StartTime   moment       `json:"starttime"`
	EndTime     moment       `json:"endtime"`
	Other       otherMembers `json:",embed"`
}

// kind returns the name in the type of a member, such as testresults for
// https://aflock.ai/attestations/test-results/v0.1.
func (m *memberJSON) kind() string {
	uri := withoutVersion(strings.ToLower(m.Type))
	name := uri[strings.LastIndexByte(uri, '/')+1:]
	return strings.NewReplacer("-", "", "_", "").Replace(name)
}

// commandRun is the kind of member that says how a command has ended.
const commandRun = "commandrun"

// status returns the outcome that a member states; ledger.Recorded if it states none.
func (m *memberJSON) status(predicate []byte, field string) (ledger.Status, error) {
	value := predicate[m.Attestation.start:m.Attestation.end]
	if parse := stating[m.Type]; parse != nil {
		b, err := parse(value)
		return b.result.Status, err
	}

	paths, ok := outcomes[m.kind()]
	switch {
	case !ok:
		return ledger.Recorded, nil
	case !isObject(value):
		return "", ledger.FieldErrorf(ledger.CodeInvalidStatement, field, "must be a JSON object")
	}
	var object map[string]any
	if err := decodeStatement(value, &object, field); err != nil {
		return "", err
	}
	status := ledger.Recorded
	for _, p := range paths {
		stated, err := p.status(object, field)
		if err != nil {
			return "", err
		}
		status = worse(status, stated)
	}
	if m.kind() != commandRun || status != ledger.Recorded {
		return status, nil
	}
	if strings.HasSuffix(m.Type, "/v0.2") {
		return ledger.Pass, nil // it leaves out a 0
	}
	return "", ledger.FieldErrorf(ledger.CodeInvalidStatement, field+".exitcode", "required")
}

// stating parses the types of statements that state an outcome and can be members.
var stating = map[string]func([]byte) (body, error){
	"https://in-toto.io/Link/v0.2":                    parseLink,
	"https://in-toto.io/attestation/link/v0.3":        parseLink,
	"https://in-toto.io/attestation/test-result/v0.1": parseTestResult,
	"https://slsa.dev/verification_summary/v0.2":      parseVerificationSummary,
	"https://slsa.dev/verification_summary/v1":        parseVerificationSummary,
}

// worse returns the worse of two outcomes. Any is worse than none.
func worse(a, b ledger.Status) ledger.Status {
	for _, s := range []ledger.Status{ledger.Fail, ledger.Warn, ledger.Pass} {
		if a == s || b == s {
			return s
		}
	}
	return ledger.Recorded
}

// An outcomePath is where a member states what went wrong: the names of JSON members, joined by dots. At its end is
// the number of failures or an exit code, where 0 is good; a list of failures, which is good if it is empty; or a truth
// value, where true is good. A name that ends in [] is a list, whose entries are all looked at: at the end of the path,
// they are results of SARIF.
type outcomePath string

// outcomes are the paths of the kinds of members that state an outcome: those of
// https://github.com/in-toto/witness/tree/main/docs/attestors, and of cilock.
var outcomes = map[string][]outcomePath{
	commandRun: {"exitcode"},
	"testresults": {"predicate.summary.failed", "predicate.summary.errors", "predicate.failedTests",
		"summary.failed", "summary.errors", "failedTests"},
	"sarif":        {"report.runs[].results[]", "report.runs[].invocations[].executionSuccessful"},
	"secretscan":   {"findings"},
	"govulncheck":  {"summary.totalFindings", "summary.findings"},
	"trivy":        {"summary.vulnCount", "summary.misconfigCount", "summary.secretCount", "summary.failedFindings"},
	"inspec":       {"scanSummary.failedControls", "scanSummary.failedDetails"},
	"kubebench":    {"summary.total_fail", "summary.failed_checks"},
	"dockerbench":  {"summary.total_warn", "summary.failed_checks"},
	"prowler":      {"summary.failCount", "summary.failedChecks"},
	"oscap":        {"scanSummary.failCount", "scanSummary.errorCount", "scanSummary.failedRules"},
	"githubaction": {"exitcode"},
	"asff":         {"summary.failedFindings"},
	"awsconfig":    {"summary.nonCompliantCount", "summary.nonCompliantResources"},
	"linkerdcheck": {"check_summary.error", "check_summary.overall_success"},
	"nessus": {"scanSummary.vulnerabilities.critical", "scanSummary.vulnerabilities.high",
		"scanSummary.vulnerabilities.medium", "scanSummary.vulnerabilities.low"},
}

// status returns the outcome at the path in an object; ledger.Recorded if there is none.
func (p outcomePath) status(object map[string]any, field string) (ledger.Status, error) {
	name, rest, isInner := strings.Cut(string(p), ".")
	name, isList := strings.CutSuffix(name, "[]")
	if found := variantIn(object, []string{name}); found != nil {
		return "", found.refuse(ledger.CodeInvalidStatement, field)
	}
	value, ok := object[name]
	if !ok || value == nil {
		return ledger.Recorded, nil
	}
	field += "." + name

	switch value := value.(type) {
	case map[string]any:
		if isInner && !isList {
			return outcomePath(rest).status(value, field)
		}
	case []any:
		if isList {
			return outcomePath(rest).ofEntries(value, field)
		}
		if !isInner {
			return goodIf(len(value) == 0), nil
		}
	case float64:
		if !isInner {
			return goodIf(value == 0), nil
		}
	case bool:
		if !isInner {
			return goodIf(value), nil
		}
	}
	return "", ledger.FieldErrorf(ledger.CodeInvalidStatement, field, "%s is not an outcome that is known",
		text.Clip(fmt.Sprint(value)))
}

func goodIf(good bool) ledger.Status {
	if good {
		return ledger.Pass
	}
	return ledger.Fail
}

// ofEntries returns the worst outcome in the entries of a list.
func (p outcomePath) ofEntries(list []any, field string) (ledger.Status, error) {
	if p == "" {
		return goodIf(!slices.ContainsFunc(list, isFinding)), nil
	}
	status := ledger.Recorded
	for i, entry := range list {
		at := text.Entry(field, i)
		object, ok := entry.(map[string]any)
		if !ok {
			return "", ledger.FieldErrorf(ledger.CodeInvalidStatement, at, "must be a JSON object")
		}
		stated, err := p.status(object, at)
		if err != nil {
			return "", err
		}
		status = worse(status, stated)
	}
	return status, nil
}

// isFinding reports whether a result of SARIF 2.1.0 says that something was found, which is its default (section
// 3.27): not that of another kind, of the level none, one that was accepted, or one that is gone.
func isFinding(result any) bool {
	r, ok := result.(map[string]any)
	if !ok {
		return true
	}
	suppressions, _ := r["suppressions"].([]any)
	isAccepted := slices.ContainsFunc(suppressions, func(s any) bool {
		object, ok := s.(map[string]any)
		return ok && (object["status"] == nil || object["status"] == "accepted")
	})
	return (r["kind"] == nil || r["kind"] == "fail") && r["level"] != "none" && r["baselineState"] != "absent" &&
		!isAccepted
}
