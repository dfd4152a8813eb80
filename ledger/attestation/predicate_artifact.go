package attestation

import (
	"cmp"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
)

// parseVerificationSummary parses a SLSA verification summary, whose members had other
// names before v1: https://slsa.dev/spec/v1.1/verification_summary.
func parseVerificationSummary(predicate []byte) (body, error) {
	var p struct {
		Verifier    actorJSON    `json:"verifier"`
		Result      string       `json:"verificationResult"`
		OldResult   string       `json:"verification_result"`
		Levels      []string     `json:"verifiedLevels"`
		Verified    moment       `json:"timeVerified"`
		OldVerified moment       `json:"time_verified"`
		Resource    sourceJSON   `json:"resourceUri"`
		OldResource sourceJSON   `json:"resource_uri"`
		Other       otherMembers `json:",embed"`
	}
	if err := decodePredicate(predicate, &p); err != nil {
		return body{}, err
	}
	const field = "predicate.verificationResult"
	result, verified := p.Result, p.Verified
	if result == "" {
		result, verified = p.OldResult, p.OldVerified
	} else if p.OldResult != "" && p.OldResult != result {
		return body{}, ledger.FieldErrorf(ledger.CodeInvalidStatement, field, "contradicts verification_result")
	}

	status, err := statusOf(field, result, map[string]ledger.Status{"PASSED": ledger.Pass, "FAILED": ledger.Fail},
		"verification result", "PASSED or FAILED")
	if err != nil {
		return body{}, err
	}
	if status == ledger.Pass && slices.Contains(p.Levels, "FAILED") {
		return body{}, ledger.FieldErrorf(ledger.CodeInvalidStatement, field, "PASSED contradicts the verified level FAILED")
	}
	return body{predicate: outcomeName("vsa", uriLabel(p.Verifier.ID)), result: ledger.Result{Status: status},
		finishedAt: verified.time(), verified: []string{string(cmp.Or(p.Resource, p.OldResource))}}, nil
}

// parseVerificationResult parses a simple verification result. It lists the properties
// that were verified:
// https://github.com/in-toto/attestation/blob/main/spec/predicates/svr.md.
func parseVerificationResult(predicate []byte) (body, error) {
	var p struct {
		Verifier   actorJSON    `json:"verifier"`
		Created    moment       `json:"timeCreated"`
		Properties []string     `json:"properties"`
		Other      otherMembers `json:",embed"`
	}
	if err := decodePredicate(predicate, &p); err != nil {
		return body{}, err
	}
	if len(p.Properties) == 0 {
		return body{}, ledger.FieldErrorf(ledger.CodeInvalidStatement, "predicate.properties",
			"required: without a verified property, the statement has no result")
	}
	return body{predicate: outcomeName("svr", uriLabel(p.Verifier.ID)), result: ledger.Result{Status: ledger.Pass},
		finishedAt: p.Created.time()}, nil
}

// parseVulnerabilities parses the report of a vulnerability scanner:
// https://github.com/in-toto/attestation/blob/main/spec/predicates/vulns_02.md.
func parseVulnerabilities(predicate []byte) (body, error) {
	var p struct {
		Scanner struct {
			URI   string       `json:"uri"`
			Other otherMembers `json:",embed"`
		} `json:"scanner"`
		Other otherMembers `json:",embed"`
	}
	err := decodeReport(predicate, &p)
	return scanBy(uriLabel(p.Scanner.URI)), err
}

// parseOpenVEX parses an OpenVEX document: https://github.com/openvex/spec.
func parseOpenVEX(predicate []byte) (body, error) {
	var p struct {
		Author string       `json:"author"`
		Other  otherMembers `json:",embed"`
	}
	err := decodeReport(predicate, &p)
	return scanBy(labelOf(p.Author)), err
}

// parseSARIF parses the report of an analysis in SARIF 2.1.0 (OASIS).
func parseSARIF(predicate []byte) (body, error) {
	var p struct {
		Runs []struct {
			Tool struct {
				Driver struct {
					Name  string       `json:"name"`
					Other otherMembers `json:",embed"`
				} `json:"driver"`
				Other otherMembers `json:",embed"`
			} `json:"tool"`
			Other otherMembers `json:",embed"`
		} `json:"runs"`
		Other otherMembers `json:",embed"`
	}
	err := decodeReport(predicate, &p)

	var labels []string
	for i := range p.Runs {
		if name := p.Runs[i].Tool.Driver.Name; name != "" {
			labels = append(labels, labelOf(name))
		}
	}
	return scanBy(labelsOf(labels)), err
}

// decodeReport decodes the predicate of a type that states no outcome. The predicate may
// be missing.
func decodeReport(predicate []byte, v any) error {
	if !isObject(predicate) {
		return nil
	}
	return decodeStatement(predicate, v, "predicate")
}

func scanBy(label string) body {
	return body{predicate: outcomeName("scan", label), result: ledger.Result{Status: ledger.Recorded}}
}
