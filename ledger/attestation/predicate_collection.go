package attestation

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

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
		stated, err := m.read(predicate, fmt.Sprintf("predicate.attestations[%d].attestation", i))
		if err != nil {
			return body{}, err
		}
		b.result.Status = worse(b.result.Status, stated.result.Status)
		b.verified = append(b.verified, stated.verified...)
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

// read returns what a member states: an outcome, or ledger.Recorded if it states none.
func (m *memberJSON) read(predicate []byte, field string) (b body, err error) {
	value := predicate[m.Attestation.start:m.Attestation.end]
	if parse := stating[m.Type]; parse != nil {
		if b, err = parse(value); err != nil {
			return b, ledger.FieldErrorf(ledger.CodeInvalidStatement, field, "%v", err)
		}
		return b, nil
	}
	b.result.Status, err = m.status(value, field)
	return b, err
}

// status returns the outcome at the places where members of the kind state one, or ledger.Recorded.
func (m *memberJSON) status(value []byte, field string) (ledger.Status, error) {
	status := ledger.Recorded
	places, ok := outcomes[m.kind()]
	if !ok {
		return status, nil
	}
	for _, at := range places {
		stated, err := at.status(value, at.path, field)
		if err != nil {
			return "", err
		}
		status = worse(status, stated)
	}

	if m.kind() != commandRun || status != ledger.Recorded {
		return status, nil
	}
	if strings.HasSuffix(m.Type, "/v0.2") {
		return ledger.Pass, nil // it omits an exit code of 0
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

// worse returns the worse of two outcomes. Any outcome is worse than ledger.Recorded.
func worse(a, b ledger.Status) ledger.Status {
	for _, s := range []ledger.Status{ledger.Fail, ledger.Warn, ledger.Pass} {
		if a == s || b == s {
			return s
		}
	}
	return ledger.Recorded
}

// A place is where a member states an outcome: the names of JSON members, joined by dots. A name that ends in [] is a
// list, whose entries are all looked at.
type place struct {
	path string
	read func(value []byte) (status ledger.Status, ok bool)
}

// count is a place with the number of failures, or an exit code.
func count(path string) place {
	return place{path, func(value []byte) (ledger.Status, bool) {
		var n int64
		err := ledger.DecodeOpen(value, &n)
		return goodIf(n == 0), err == nil
	}}
}

// list is a place with a list of failures.
func list(path string) place {
	return place{path, func(value []byte) (ledger.Status, bool) {
		var entries []skipped
		err := ledger.DecodeOpen(value, &entries)
		return goodIf(len(entries) == 0), err == nil
	}}
}

// success is a place that is false after a failure. That it is true says too little.
func success(path string) place {
	return place{path, func(value []byte) (ledger.Status, bool) {
		var ok bool
		if err := ledger.DecodeOpen(value, &ok); err != nil || ok {
			return ledger.Recorded, err == nil
		}
		return ledger.Fail, true
	}}
}

// findings is a place with results of SARIF.
func findings(path string) place {
	return place{path, func(value []byte) (ledger.Status, bool) {
		var results []sarifResult
		err := ledger.DecodeOpen(value, &results)
		return goodIf(!slices.ContainsFunc(results, sarifResult.isFinding)), err == nil
	}}
}

// outcomes are the places in the kinds of members that state an outcome: those of
// https://github.com/in-toto/witness/tree/main/docs/attestors, and of cilock.
var outcomes = map[string][]place{
	commandRun:     {count("exitcode")},
	"githubaction": {count("exitcode")},
	"testresults": {count("predicate.summary.failed"), count("predicate.summary.errors"), list("predicate.failedTests"),
		count("summary.failed"), count("summary.errors"), list("failedTests"), count("predicate.failed"), count("failed")},
	"sarif":       {findings("report.runs[].results"), success("report.runs[].invocations[].executionSuccessful")},
	"secretscan":  {list("findings")},
	"govulncheck": {count("summary.totalFindings"), list("summary.findings")},
	"trivy": {count("summary.vulnCount"), count("summary.misconfigCount"), count("summary.secretCount"),
		list("summary.failedFindings")},
	"inspec":       {count("scanSummary.failedControls"), list("scanSummary.failedDetails")},
	"kubebench":    {count("summary.total_fail"), list("summary.failed_checks")},
	"dockerbench":  {count("summary.total_warn"), list("summary.failed_checks")},
	"prowler":      {count("summary.failCount"), list("summary.failedChecks")},
	"oscap":        {count("scanSummary.failCount"), count("scanSummary.errorCount"), list("scanSummary.failedRules")},
	"asff":         {list("summary.failedFindings")},
	"awsconfig":    {count("summary.nonCompliantCount"), list("summary.nonCompliantResources")},
	"linkerdcheck": {count("check_summary.error"), success("check_summary.overall_success")},
	"nessus": {count("scanSummary.vulnerabilities.critical"), count("scanSummary.vulnerabilities.high"),
		count("scanSummary.vulnerabilities.medium"), count("scanSummary.vulnerabilities.low")},
}

// status returns the outcome that an object states at the path, or ledger.Recorded if it states none.
func (p place) status(object []byte, path, field string) (ledger.Status, error) {
	name, rest, _ := strings.Cut(path, ".")
	name, isList := strings.CutSuffix(name, "[]")
	value, err := memberOf(object, name, field)
	if err != nil || len(value) == 0 || string(value) == "null" {
		return ledger.Recorded, err
	}
	field += "." + name

	switch {
	case isList:
		return p.ofEntries(value, rest, field)
	case rest != "":
		return p.status(value, rest, field)
	}
	status, ok := p.read(value)
	if !ok {
		return "", ledger.FieldErrorf(ledger.CodeInvalidStatement, field, "is a JSON %s, which is not an outcome here",
			kindOf(value))
	}
	return status, nil
}

// ofEntries returns the worst outcome in the entries of a list.
func (p place) ofEntries(value []byte, path, field string) (ledger.Status, error) {
	var entries []jsontext.Value
	if err := decodeStatement(value, &entries, field); err != nil {
		return "", err
	}
	status := ledger.Recorded
	for i, entry := range entries {
		stated, err := p.status(entry, path, text.Entry(field, i))
		if err != nil {
			return "", err
		}
		status = worse(status, stated)
	}
	return status, nil
}

// memberOf returns a member of an object; nil if it has none of the name.
func memberOf(object []byte, name, field string) ([]byte, error) {
	if !isObject(object) {
		return nil, ledger.FieldErrorf(ledger.CodeInvalidStatement, field, "must be a JSON object")
	}
	var members map[string]byteRange
	if err := decodeStatement(object, &members, field); err != nil {
		return nil, err
	}
	if found := variantIn(members, []string{name}); found != nil {
		return nil, found.refuse(ledger.CodeInvalidStatement, field)
	}
	at := members[name]
	return object[at.start:at.end], nil
}

// kindOf returns the kind of a JSON value, such as number.
func kindOf(value []byte) string { return jsontext.Value(value).Kind().String() }

func goodIf(good bool) ledger.Status {
	if good {
		return ledger.Pass
	}
	return ledger.Fail
}

// A sarifResult is a result in SARIF 2.1.0.
type sarifResult struct {
	Kind          string `json:"kind"`
	Level         string `json:"level"`
	BaselineState string `json:"baselineState"`
	Suppressions  []struct {
		Status string `json:"status"`
	} `json:"suppressions"`
}

// isFinding reports whether a result says that something was found, which is its default (section 3.27): not that of
// another kind, of the level none, one that was accepted, or one that is gone.
func (r sarifResult) isFinding() bool {
	for _, s := range r.Suppressions {
		if s.Status == "" || s.Status == "accepted" {
			return false
		}
	}
	return (r.Kind == "" || r.Kind == "fail") && r.Level != "none" && r.BaselineState != "absent"
}
