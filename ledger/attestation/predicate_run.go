package attestation

import (
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
)

// parseTestResult parses a test result:
// https://github.com/in-toto/attestation/blob/main/spec/predicates/test-result.md.
func parseTestResult(predicate []byte) (body, error) {
	var p struct {
		Result        string         `json:"result"`
		Configuration []resourceJSON `json:"configuration"`
		WarnedTests   []skipped      `json:"warnedTests"`
		FailedTests   []skipped      `json:"failedTests"`
		Other         otherMembers   `json:",embed"`
	}
	if err := decodePredicate(predicate, &p); err != nil {
		return body{}, err
	}
	status, err := statusOf("predicate.result", p.Result, map[string]ledger.Status{
		"PASSED": ledger.Pass, "WARNED": ledger.Warn, "FAILED": ledger.Fail}, "test result", "PASSED, WARNED or FAILED")
	if err != nil {
		return body{}, err
	}
	if status != ledger.Fail && len(p.FailedTests) > 0 || status == ledger.Pass && len(p.WarnedTests) > 0 {
		return body{}, ledger.FieldErrorf(ledger.CodeInvalidStatement, "predicate.result",
			"%s contradicts %d failed and %d warned tests", p.Result, len(p.FailedTests), len(p.WarnedTests))
	}

	var labels []string
	for i := range p.Configuration {
		label := p.Configuration[i].label()
		if label == "" {
			return body{}, ledger.FieldErrorf(ledger.CodeInvalidStatement, fmt.Sprintf("predicate.configuration[%d].name", i),
				"required (or a uri or a digest)")
		}
		labels = append(labels, label)
	}
	return body{predicate: outcomeName("test", labelsOf(labels)), result: ledger.Result{Status: status}}, nil
}

// parseLink parses an in-toto link:
// https://github.com/in-toto/attestation/blob/main/spec/predicates/link.md.
func parseLink(predicate []byte) (body, error) {
	var p struct {
		Name       string `json:"name"`
		Byproducts struct {
			ReturnValue *int64       `json:"return-value"`
			Other       otherMembers `json:",embed"`
		} `json:"byproducts"`
		Other otherMembers `json:",embed"`
	}
	if err := decodePredicate(predicate, &p); err != nil {
		return body{}, err
	}

	status := ledger.Recorded
	switch value := p.Byproducts.ReturnValue; {
	case value == nil:
	case *value == 0:
		status = ledger.Pass
	default:
		status = ledger.Fail
	}
	return body{predicate: outcomeName("run", labelOf(p.Name)), result: ledger.Result{Status: status}}, nil
}
