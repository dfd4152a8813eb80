package attestation

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// The types of an in-toto statement.
const (
	statementV1  = "https://in-toto.io/Statement/v1"
	statementV01 = "https://in-toto.io/Statement/v0.1"
)

// ResultPredicateType is the ledger's own predicate type: a name of what was
// checked, and the result.
const ResultPredicateType = ownPredicateTypes + "result/v1"

// ownPredicateTypes is where all predicate types of the ledger's own are and
// will be.
const ownPredicateTypes = "https://github.com/ledgerd/ledgerd/predicate/"

// The predicate types of others whose results are understood, without their
// versions: a version to come is better refused for what it does not hold
// than taken for a pass.
const (
	testResultType   = "https://in-toto.io/attestation/test-result/v"
	verificationType = "https://slsa.dev/verification_summary/v"
	provenanceType   = "https://slsa.dev/provenance/v"
)

const (
	maxPredicateType = 512
	// maxDurationMS is a year. Whatever took longer was not measured.
	maxDurationMS = 365 * 24 * 60 * 60 * 1000
)

// A ResultPredicate is the body of the ledger's own predicate type.
type ResultPredicate struct {
	Predicate string        `json:"predicate"`
	Result    ledger.Result `json:"result"`
	// StartedOn and FinishedOn make the statements of two runs differ.
	StartedOn   ledger.Time       `json:"startedOn,omitzero"`
	FinishedOn  ledger.Time       `json:"finishedOn,omitzero"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// A statement is what an attestation says.
type statement struct {
	commit        string
	predicate     string
	predicateType string
	result        ledger.Result
}

// parseStatement understands an in-toto statement about a commit.
func parseStatement(payload []byte) (statement, error) {
	var doc statementJSON
	if err := decodeStatement(payload, &doc, ""); err != nil {
		return statement{}, err
	}
	if err := doc.check(); err != nil {
		return statement{}, err
	}
	body, err := doc.understand(payload[doc.Predicate.start:doc.Predicate.end])
	if err != nil {
		return statement{}, err
	}
	commit, err := doc.commit(body.sources)
	if err != nil {
		return statement{}, err
	}
	return statement{commit, body.predicate, doc.PredicateType, body.result}, nil
}

// decodeStatement reads a statement, or the part of it that lies under prefix:
// whatever is wrong there makes the statement invalid.
func decodeStatement(data []byte, v any, prefix string) error {
	err := ledger.DecodeForeign(data, v, ledger.CodeInvalidStatement, prefix)
	if fault, ok := errors.AsType[*ledger.Error](err); ok && fault.Code != ledger.CodeInvalidStatement {
		return &ledger.Error{Code: ledger.CodeInvalidStatement, Detail: "the payload: " + fault.Detail, Fields: fault.Fields}
	}
	return err
}

type statementJSON struct {
	Type          string         `json:"_type"`
	Subject       []resourceJSON `json:"subject"`
	PredicateType string         `json:"predicateType"`
	Predicate     span           `json:"predicate"`
}

// A resourceJSON is a subject or a material, as far as git is concerned.
type resourceJSON struct {
	Digest struct {
		GitCommit string `json:"gitCommit"`
		SHA1      string `json:"sha1"`
	} `json:"digest"`
}

// A span is where in the document a value stands. How to read a predicate is
// known only once its type is, which may come later.
type span struct{ start, end int64 }

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (s *span) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	value, err := dec.ReadValue()
	s.end = dec.InputOffset()
	s.start = s.end - int64(len(value))
	return err
}

func (d *statementJSON) check() error {
	if d.Type != statementV1 && d.Type != statementV01 {
		return ledger.FieldErrorf(ledger.CodeInvalidStatement, "_type", "%q is not a statement: it must be %s or v0.1",
			text.Clip(d.Type), statementV1)
	}
	if d.Subject == nil {
		return ledger.FieldErrorf(ledger.CodeInvalidStatement, "subject", "it is missing")
	}
	switch {
	case d.PredicateType == "":
		return ledger.FieldErrorf(ledger.CodeInvalidStatement, "predicateType", "it is missing")
	case len(d.PredicateType) > maxPredicateType:
		return ledger.FieldErrorf(ledger.CodeInvalidStatement, "predicateType", "it is longer than %d bytes",
			maxPredicateType)
	case strings.ContainsFunc(d.PredicateType, notInURI):
		return ledger.FieldErrorf(ledger.CodeInvalidStatement, "predicateType", "%q holds what a URI cannot",
			text.Clip(d.PredicateType))
	case !strings.Contains(d.PredicateType, "://"):
		return ledger.FieldErrorf(ledger.CodeInvalidStatement, "predicateType", "%q is not a URI such as %s",
			text.Clip(d.PredicateType), ResultPredicateType)
	case strings.HasPrefix(d.PredicateType, ownPredicateTypes) && d.PredicateType != ResultPredicateType:
		return ledger.FieldErrorf(ledger.CodeInvalidStatement, "predicateType", "%q is not known here: use %s",
			text.Clip(d.PredicateType), ResultPredicateType)
	}
	return nil
}

func notInURI(r rune) bool { return r <= ' ' || r >= 0x7f }

// A body is what a predicate says.
type body struct {
	predicate string
	result    ledger.Result
	sources   resources // of provenance: what was built from
}

// resources are those of one list of a statement, which stands at path.
type resources struct {
	path string
	list []resourceJSON
}

// understand reads the predicate as its type asks for.
func (d *statementJSON) understand(predicate []byte) (body, error) {
	switch {
	case d.PredicateType == ResultPredicateType:
		return understandResult(predicate)
	case strings.HasPrefix(d.PredicateType, testResultType):
		return d.understandTestResult(predicate)
	case strings.HasPrefix(d.PredicateType, verificationType):
		return d.understandVerification(predicate)
	case strings.HasPrefix(d.PredicateType, provenanceType):
		return d.understandProvenance(predicate)
	}
	return body{predicate: d.PredicateType, result: ledger.Result{Status: ledger.Pass}}, nil
}

func understandResult(predicate []byte) (body, error) {
	var p struct {
		Predicate string        `json:"predicate"`
		Result    ledger.Result `json:"result"`
	}
	if err := decodePredicate(predicate, &p); err != nil {
		return body{}, err
	}
	if err := checkResult(p.Predicate, p.Result); err != nil {
		return body{}, err
	}
	return body{predicate: p.Predicate, result: p.Result}, nil
}

func checkResult(predicate string, r ledger.Result) error {
	if !ledger.IsPredicateName(predicate) {
		return ledger.FieldErrorf(ledger.CodeInvalidStatement, "predicate.predicate",
			"%q cannot name a predicate: use a name such as test:go", text.Clip(predicate))
	}
	switch r.Status {
	case ledger.Pass, ledger.Warn, ledger.Fail, ledger.Errored, ledger.Skip:
	default:
		return ledger.FieldErrorf(ledger.CodeInvalidStatement, "predicate.result.status",
			"%q is not a status: use pass, warn, fail, error or skip", text.Clip(string(r.Status)))
	}
	if r.DurationMS < 0 || r.DurationMS > maxDurationMS {
		return ledger.FieldErrorf(ledger.CodeInvalidStatement, "predicate.result.duration_ms",
			"%d lies outside 0 to %d (a year)", r.DurationMS, int64(maxDurationMS))
	}
	return nil
}

func (d *statementJSON) understandTestResult(predicate []byte) (body, error) {
	var p struct {
		Result string `json:"result"`
	}
	if err := decodePredicate(predicate, &p); err != nil {
		return body{}, err
	}
	statuses := map[string]ledger.Status{"PASSED": ledger.Pass, "WARNED": ledger.Warn, "FAILED": ledger.Fail}
	status, ok := statuses[p.Result]
	if !ok {
		return body{}, ledger.FieldErrorf(ledger.CodeInvalidStatement, "predicate.result",
			"%q is not a test result: it must be PASSED, WARNED or FAILED", text.Clip(p.Result))
	}
	return body{predicate: d.PredicateType, result: ledger.Result{Status: status}}, nil
}

func (d *statementJSON) understandVerification(predicate []byte) (body, error) {
	var p struct {
		Result string `json:"verificationResult"`
		Old    string `json:"verification_result"` // before v1
	}
	if err := decodePredicate(predicate, &p); err != nil {
		return body{}, err
	}
	if p.Result == "" {
		p.Result = p.Old
	}
	statuses := map[string]ledger.Status{"PASSED": ledger.Pass, "FAILED": ledger.Fail}
	status, ok := statuses[p.Result]
	if !ok {
		return body{}, ledger.FieldErrorf(ledger.CodeInvalidStatement, "predicate.verificationResult",
			"%q is not a verification result: it must be PASSED or FAILED", text.Clip(p.Result))
	}
	return body{predicate: d.PredicateType, result: ledger.Result{Status: status}}, nil
}

// A provenanceJSON is SLSA provenance of v1, or of a version before it.
type provenanceJSON struct {
	BuildDefinition struct {
		ResolvedDependencies []resourceJSON `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Metadata struct {
			StartedOn  moment `json:"startedOn"`
			FinishedOn moment `json:"finishedOn"`
		} `json:"metadata"`
	} `json:"runDetails"`
	Materials []resourceJSON `json:"materials"`
	Metadata  struct {
		BuildStartedOn  moment `json:"buildStartedOn"`
		BuildFinishedOn moment `json:"buildFinishedOn"`
	} `json:"metadata"`
}

func (d *statementJSON) understandProvenance(predicate []byte) (body, error) {
	var p provenanceJSON
	if err := decodePredicate(predicate, &p); err != nil {
		return body{}, err
	}
	b := body{predicate: d.PredicateType, result: ledger.Result{Status: ledger.Pass}}
	b.sources = resources{"predicate.buildDefinition.resolvedDependencies", p.BuildDefinition.ResolvedDependencies}
	from, to := p.RunDetails.Metadata.StartedOn, p.RunDetails.Metadata.FinishedOn
	if strings.HasPrefix(d.PredicateType, provenanceType+"0.") {
		b.sources = resources{"predicate.materials", p.Materials}
		from, to = p.Metadata.BuildStartedOn, p.Metadata.BuildFinishedOn
	}
	if !from.at.IsZero() && !to.at.IsZero() {
		b.result.DurationMS = min(max(to.at.Sub(from.at).Milliseconds(), 0), maxDurationMS)
	}
	return b, nil
}

func decodePredicate(predicate []byte, v any) error {
	if len(predicate) == 0 || predicate[0] != '{' {
		return ledger.FieldErrorf(ledger.CodeInvalidStatement, "predicate", "it must be an object")
	}
	return decodeStatement(predicate, v, "predicate")
}

// A moment is a time that a builder claims; an empty text means none.
type moment struct{ at time.Time }

// UnmarshalText implements encoding.TextUnmarshaler.
func (m *moment) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	t, err := time.Parse(time.RFC3339Nano, string(b))
	if err != nil {
		return fmt.Errorf("%q is not an RFC 3339 date-time", text.Clip(string(b)))
	}
	m.at = t
	return nil
}

// commit returns the commit that the statement is about: a subject's, or,
// where no subject names one, the one that provenance names as a source.
func (d *statementJSON) commit(sources resources) (string, error) {
	subjects := resources{"subject", d.Subject}
	var named commitSet
	if err := named.addGitCommits(subjects); err != nil {
		return "", err
	}
	if err := named.addSHA1s(subjects); err != nil {
		return "", err
	}
	if len(named) == 0 {
		if err := named.addGitCommits(sources); err != nil {
			return "", err
		}
	}
	// A dependency is often a package, whose SHA-1 is of a file: it is taken
	// for a commit only where nothing better is said.
	if len(named) == 0 {
		if err := named.addSHA1s(sources); err != nil {
			return "", err
		}
	}
	return named.only()
}

// A commitSet holds the distinct commits that resources name, or the first of
// them where they are many.
type commitSet []string

const maxNamed = 4

func (s *commitSet) addGitCommits(from resources) error {
	for i := range from.list {
		digest := from.list[i].Digest.GitCommit
		if !s.add(digest, 40, 64) {
			field := fmt.Sprintf("%s[%d].digest.gitCommit", from.path, i)
			return ledger.FieldErrorf(ledger.CodeInvalidStatement, field, "%q is not an object id: 40 or 64 hex digits",
				text.Clip(digest))
		}
	}
	return nil
}

func (s *commitSet) addSHA1s(from resources) error {
	for i := range from.list {
		digest := from.list[i].Digest.SHA1
		if !s.add(digest, 40) {
			field := fmt.Sprintf("%s[%d].digest.sha1", from.path, i)
			return ledger.FieldErrorf(ledger.CodeInvalidStatement, field, "%q is not a SHA-1: 40 hex digits", text.Clip(digest))
		}
	}
	return nil
}

// add adds a digest, if there is one, and reports false if it cannot be one of
// the given lengths.
func (s *commitSet) add(digest string, lengths ...int) bool {
	if digest == "" {
		return true
	}
	commit := strings.ToLower(digest)
	if !slices.Contains(lengths, len(commit)) || !text.IsHex(commit) {
		return false
	}
	if len(*s) < maxNamed && !slices.Contains(*s, commit) {
		*s = append(*s, commit)
	}
	return true
}

func (s commitSet) only() (string, error) {
	switch len(s) {
	case 0:
		return "", ledger.Errorf(ledger.CodeNoCommitSubject,
			"the statement names no commit: a subject must have a gitCommit digest (or a sha1 of 40 hex digits)")
	case 1:
		return s[0], nil
	}
	return "", ledger.Errorf(ledger.CodeSeveralCommits, "the statement names several commits, and must be about one: %s",
		strings.Join(s, ", "))
}
