// Package document reads and writes policy contracts as people edit them: as YAML or
// JSON, with the lines of their fields.
package document

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// MaxSize is the maximum size in bytes of a document in YAML, and of the JSON that it
// stands for.
const MaxSize = 1 << 20

// A Document is a contract as a person wrote it.
type Document struct {
	json  jsontext.Value
	lines []string
	// fields holds the line of each field, from 1, by its path.
	fields map[string]int
	// broken is the line of the first syntax error of JSON, or 0.
	broken int
}

// JSON returns the contract as JSON. It may be invalid: the API then says why.
func (d Document) JSON() jsontext.Value { return d.json }

// Contract returns the contract, as the API reads it: without the members that a policy
// has in addition to those of its contract.
func (d Document) Contract() (policy.Contract, error) {
	var members map[string]jsontext.Value
	if err := ledger.DecodeStrict(d.json, &members); err != nil {
		return policy.Contract{}, err
	}
	for _, name := range policy.RecordFields() {
		delete(members, name)
	}
	text, err := json.Marshal(members, json.Deterministic(true))
	if err != nil {
		return policy.Contract{}, fmt.Errorf("encode contract: %w", err)
	}
	return policy.Parse(text)
}

// Is reports whether the document is valid and stands for the contract with a digest.
func (d Document) Is(digest string) bool {
	contract, err := d.Contract()
	return err == nil && contract.Digest() == digest
}

// Broken reports whether the document is JSON with a syntax error.
func (d Document) Broken() bool { return d.broken > 0 }

// An Error says what is wrong with a document. It implements error.
type Error struct {
	// Field is the path of a field, such as requirements[0].state; empty if the error is
	// about none.
	Field   string
	Message string
	Line    int    // from 1; 0 if unknown
	Text    string // the text of the line, cut to maxText bytes
}

// maxText is the maximum length in bytes of the text of a line in an Error.
const maxText = 200

// Error returns the message with the line and the field.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", e.Line)
	}
	if e.Field != "" {
		b.WriteString(e.Field + ": ")
	}
	return b.String() + e.Message
}

// Explain returns an error about a field of the document, with its line.
func (d Document) Explain(field, message string) *Error {
	return d.explain(d.Line(field), field, message)
}

func (d Document) explain(line int, field, message string) *Error {
	e := &Error{Field: field, Message: message, Line: line}
	if line > 0 && line <= len(d.lines) {
		e.Text = strings.TrimSpace(d.lines[line-1])
	} else {
		e.Line = 0
	}
	if len(e.Text) > maxText {
		e.Text = strings.ToValidUTF8(e.Text[:maxText], "") + "…"
	}
	return e
}

// Line returns the line of a field or, if it is missing, of the innermost field around
// it. It is 0 if no such field is in the document.
func (d Document) Line(field string) int {
	for field != "" {
		if line, ok := d.fields[field]; ok {
			return line
		}
		if d.broken > 0 {
			return d.broken
		}
		field = field[:max(strings.LastIndexAny(field, ".["), 0)]
	}
	return d.broken
}

// newDocument returns a document without its contract and fields.
func newDocument(text string) Document {
	return Document{lines: strings.Split(text, "\n"), fields: make(map[string]int)}
}
