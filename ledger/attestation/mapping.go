package attestation

import (
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// MappingVersion is the version of the rules that map statements to outcomes and to the
// artifacts that they link. It is
// stored with each attestation: if the rules change, the ledger maps the statements of
// earlier versions again.
const MappingVersion = 4

// An Outcome is the meaning of a statement for the ledger.
type Outcome struct {
	// Predicate names what the result is about, such as test:go. Statements with
	// independent results have different predicates or slots.
	Predicate string
	// Slot is what the statement is about in addition to the commit, such as an image,
	// if its predicate type is about artifacts, and the source of a merge.
	Slot   string
	Result ledger.Result
	// FinishedAt is when the signer says that the check finished; zero if not stated.
	FinishedAt ledger.Time
}

// A Mapping is a row of the table from predicate types to outcomes: how statements of
// some types are read.
type Mapping struct {
	// Types holds the predicate types.
	Types []string
	// AnyVersion reports whether Types with a version appended, such as /v1.2, are
	// included.
	AnyVersion bool
	// Predicate and Result describe the outcome, for the documentation.
	Predicate, Result string
	// Slots reports whether the types are about artifacts, so that other subjects than
	// the commit form the slot.
	Slots bool
	// Source is what forms the slot of other types, for the documentation. It is empty if they
	// have none.
	Source string

	parse func(predicate []byte) (body, error)
}

// mappings is the table of the predicate types that the ledger understands. All others map to their
// type and ledger.Recorded.
var mappings = []Mapping{
	{Types: []string{ResultPredicateType},
		Predicate: "`predicate.predicate`",
		Result:    "`predicate.result.status`; recorded for `deploy:` if `predicate.rollout` is failed", parse: parseResult},
	{Types: []string{ExceptionPredicateType},
		Predicate: "`exception:` and `predicate.requirement`", Result: "`recorded`", parse: parseException},
	{Types: []string{RollbackPredicateType},
		Predicate: "`rollback:` and `predicate.environment`", Result: "`recorded`", parse: parseRollback},
	{Types: []string{BaselinePredicateType},
		Predicate: "`baseline:` and `predicate.environment`", Result: "`recorded`", parse: parseBaseline},
	{Types: []string{ledger.ChangesType},
		Predicate: "`changes:paths`", Result: "`recorded`", Source: "`predicate.base`", parse: parseChanges},
	{Types: []string{SignedCommitType},
		Predicate: "`signed:commit`", Result: "`pass`", parse: refuseSignedCommit},
	{Types: []string{MergePredicateType},
		Predicate: "`merge:` and `predicate.kind`", Result: "`pass`", Source: "`predicate.source.sha`", parse: parseMerge},
	{Types: []string{"https://in-toto.io/attestation/test-result/v0.1"},
		Predicate: "`test:` and the names of `configuration`, sorted, joined by `+`",
		Result:    "PASSED `pass`, WARNED `warn`, FAILED `fail`", parse: parseTestResult},
	{Types: []string{"https://witness.testifysec.com/attestation-collection/v0.1",
		"https://witness.dev/attestation-collection/v0.1", "https://aflock.ai/attestation-collection/v0.1"},
		Predicate: "`witness:` and the step",
		Result:    "`fail` if a member states a bad outcome, `pass` if one states a good one, else `recorded`",
		parse:     parseCollection},
	{Types: []string{"https://in-toto.io/Link/v0.2", "https://in-toto.io/attestation/link/v0.3"},
		Predicate: "`run:` and the name",
		Result:    "`pass` if `byproducts.return-value` is 0, else `fail`; `recorded` without one", parse: parseLink},
	{Types: []string{"https://slsa.dev/provenance/v0.2"}, Slots: true,
		Predicate: "`build:` and the builder", Result: "`pass`", parse: parseProvenanceV02},
	{Types: []string{"https://slsa.dev/provenance/v1"}, Slots: true,
		Predicate: "`build:` and the builder", Result: "`pass`", parse: parseProvenance},
	{Types: []string{"https://slsa.dev/verification_summary/v0.2", "https://slsa.dev/verification_summary/v1"},
		Slots: true, Predicate: "`vsa:` and the verifier", Result: "PASSED `pass`, FAILED `fail`",
		parse: parseVerificationSummary},
	{Types: []string{"https://in-toto.io/attestation/svr/v0.1", "https://in-toto.io/attestation/svr/v0.2"},
		Slots: true, Predicate: "`svr:` and the verifier", Result: "`pass`; refused if it lists no properties",
		parse: parseVerificationResult},
	{Types: []string{"https://in-toto.io/attestation/vulns", "https://cosign.sigstore.dev/attestation/vuln"},
		AnyVersion: true, Slots: true, Predicate: "`scan:` and the scanner", Result: "`recorded`",
		parse: parseVulnerabilities},
	{Types: []string{"https://openvex.dev/ns"}, AnyVersion: true, Slots: true,
		Predicate: "`scan:` and the author", Result: "`recorded`", parse: parseOpenVEX},
	{Types: []string{"https://in-toto.io/attestation/sarif"}, AnyVersion: true, Slots: true,
		Predicate: "`scan:` and the names of the tools, sorted, joined by `+`", Result: "`recorded`", parse: parseSARIF},
	{Types: []string{chainloopType}, AnyVersion: true, Slots: true,
		Predicate: "`chainloop:attestation`", Result: "`recorded`", parse: recordedAs("chainloop:attestation")},
	{Types: []string{"https://spdx.dev/Document"}, AnyVersion: true, Slots: true,
		Predicate: "`sbom:spdx`", Result: "`recorded`", parse: recordedAs("sbom:spdx")},
	{Types: []string{"https://cyclonedx.org/bom"}, AnyVersion: true, Slots: true,
		Predicate: "`sbom:cyclonedx`", Result: "`recorded`", parse: recordedAs("sbom:cyclonedx")},
}

// mappingFor returns the mapping for a predicate type. It refuses a type that is nearly
// one of the table: it would not be read, and its result would be lost.
func mappingFor(predicateType string) (Mapping, error) {
	for _, m := range mappings {
		if m.covers(predicateType) {
			return m, nil
		}
	}

	spelling := normalized(predicateType)
	for _, m := range mappings {
		for _, known := range m.Types {
			unversioned := normalized(withoutVersion(known))
			if spelling == normalized(known) || spelling == unversioned ||
				m.AnyVersion && withoutVersion(spelling) == unversioned {
				return Mapping{}, ledger.FieldErrorf(ledger.CodeInvalidStatement, "predicateType",
					"unknown predicate type %q (did you mean %s?)", text.Clip(predicateType), known)
			}
		}
	}
	return Mapping{Slots: true, parse: recordedAs("")}, nil
}

// IsUnderstood reports whether a predicate type is in the table. The predicate of a
// statement of another type is the type itself.
func IsUnderstood(predicateType string) bool {
	return slices.ContainsFunc(mappings, func(m Mapping) bool { return m.covers(predicateType) })
}

func (m *Mapping) covers(predicateType string) bool {
	return slices.Contains(m.Types, predicateType) ||
		m.AnyVersion && slices.Contains(m.Types, withoutVersion(predicateType))
}

// normalized returns a URI in lower case, without its scheme, repeated slashes and slashes at its end.
func normalized(uri string) string {
	if _, rest, ok := strings.Cut(uri, "://"); ok {
		uri = rest
	}
	parts := strings.FieldsFunc(strings.ToLower(uri), func(r rune) bool { return r == '/' })
	return strings.Join(parts, "/")
}

// recordedAs returns a parser for types that state no outcome. It does not read the
// predicate.
func recordedAs(name string) func([]byte) (body, error) {
	return func([]byte) (body, error) {
		return body{predicate: name, result: ledger.Result{Status: ledger.Recorded}}, nil
	}
}

// CheckMay returns a field error for a pattern of an identity's may that is a type of the
// table: the predicate of its attestations is another one, so that it would match none.
func CheckMay(patterns []string) error {
	for i, p := range patterns {
		if !strings.Contains(p, "://") {
			continue
		}
		for _, m := range mappings {
			if m.covers(p) {
				return ledger.FieldErrorf(ledger.CodeInvalidField, text.Entry("may", i),
					"%q is a type with predicates of its own (use a pattern of them: %s)", text.Clip(p),
					strings.ReplaceAll(m.Predicate, "`", ""))
			}
		}
	}
	return nil
}

// Known returns what is known of statements of a predicate type before any is received: a
// pattern of their predicates, and whether they can have another status than
// ledger.Recorded.
func Known(predicateType string) (predicates string, outcome bool) {
	for _, m := range mappings {
		if m.covers(predicateType) {
			return m.pattern(), m.Result != "`recorded`"
		}
	}
	return predicateType, false
}

// RecordedPredicates returns patterns of the predicates of statements that can be
// ledger.Recorded. A pattern is exact, or a prefix that ends in *.
func RecordedPredicates() []string {
	patterns := []string{ // reserved, so nobody is misled
		"signed:*", "merge:*", "exception:*", "rollback:*", "baseline:*", "changes:*",
	}
	for _, m := range mappings {
		if strings.Contains(m.Result, "`recorded`") {
			patterns = append(patterns, m.pattern())
		}
	}
	return patterns
}

// pattern returns a pattern of the predicates of the mapping's types.
func (m *Mapping) pattern() string {
	switch first := strings.Split(m.Predicate, "`")[1]; {
	case strings.HasPrefix(first, "predicate."): // the statement chooses it
		return "*"
	case strings.HasSuffix(first, ":"):
		return first + "*"
	default:
		return first
	}
}
