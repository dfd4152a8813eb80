package policytext

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/server/web/format"
)

// maxFlatList is how long a list may be, in bytes, to stand on one line.
const maxFlatList = 100

// Document returns a contract as a document to read and to edit: its canonical
// form, indented, with short lists of words on one line.
func Document(c policy.Contract) string {
	var b strings.Builder
	lines := strings.Split(format.Indented(c.Canonical()), "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if flat, n := flatList(lines[i:]); n > 0 {
			line, i = flat, i+n-1
		}
		b.WriteString(line)
		b.WriteByte('\n')
	}
	return b.String()
}

// flatList joins the list that begins on the first of the lines to one line, and
// returns how many lines it had. n is 0 if the list has more than words or is too
// long.
func flatList(lines []string) (flat string, n int) {
	if !strings.HasSuffix(lines[0], "[") {
		return "", 0
	}
	flat = lines[0]
	for i, line := range lines[1:] {
		line = strings.TrimSpace(line)
		switch {
		case line == "]" || line == "],":
			return strings.TrimSuffix(flat, " ") + line, i + 2
		case !strings.HasPrefix(line, `"`) || len(flat)+len(line) > maxFlatList:
			return "", 0
		}
		flat += line
		if strings.HasSuffix(line, ",") {
			flat += " "
		}
	}
	return "", 0
}

// ParseDocument reads a document as the API does: it ignores the members that a
// policy has in addition to its contract.
func ParseDocument(document string) (policy.Contract, error) {
	var members map[string]jsontext.Value
	if err := ledger.DecodeStrict([]byte(document), &members); err != nil {
		return policy.Contract{}, err
	}
	for _, name := range policy.RecordFields() {
		delete(members, name)
	}
	text, err := json.Marshal(members, json.Deterministic(true))
	if err != nil {
		return policy.Contract{}, fmt.Errorf("encode the contract: %w", err)
	}
	return policy.Parse(text)
}

// Locations says on which lines the fields of a document are.
type Locations struct {
	lines  []string
	fields map[string]int // the number of the line, from 1, by the field's path
	// broken is the line of the first syntax error, 0 if there is none.
	broken int
}

// Broken reports whether the document is not JSON.
func (p Locations) Broken() bool { return p.broken > 0 }

// Locate finds the lines of a document's fields, up to the first syntax error.
func Locate(document string) Locations {
	p := Locations{lines: strings.Split(document, "\n"), fields: make(map[string]int)}
	line, seen := 1, 0 // up to which byte its lines are counted
	lineAt := func(offset int64) int {
		upTo := min(max(int(offset), seen), len(document))
		line += strings.Count(document[seen:upTo], "\n")
		seen = upTo
		return line
	}
	decoder := jsontext.NewDecoder(bytes.NewReader([]byte(document)))
	for {
		_, err := decoder.ReadToken()
		if errors.Is(err, io.EOF) {
			return p
		}
		if err != nil {
			offset := decoder.InputOffset()
			if syntactic, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
				offset = syntactic.ByteOffset
			}
			p.broken = lineAt(offset)
			return p
		}
		path := fieldPath(decoder.StackPointer())
		if _, known := p.fields[path]; !known {
			p.fields[path] = lineAt(decoder.InputOffset()) // no token has a line's end in it
		}
	}
}

// fieldPath writes a pointer as the API's errors name fields.
func fieldPath(pointer jsontext.Pointer) string {
	path := ""
	for token := range pointer.Tokens() {
		switch {
		case token != "" && strings.Trim(token, "0123456789") == "":
			path += "[" + token + "]"
		case token == "" || strings.ContainsFunc(
			token, func(r rune) bool { return strings.ContainsRune(`.[]"`, r) || !unicode.IsPrint(r) }):
			path += fmt.Sprintf("[%q]", token)
		case path != "":
			path += "." + token
		default:
			path = token
		}
	}
	return path
}

// line returns the number of the line of a field, or of the innermost one around
// it if the field is missing; 0 if there is none.
func (p Locations) line(field string) int {
	for field != "" {
		if line, ok := p.fields[field]; ok {
			return line
		}
		if p.broken > 0 {
			return p.broken
		}
		field = field[:max(strings.LastIndexAny(field, ".["), 0)]
	}
	return p.broken
}

// A Fault is an error at one place of a document.
type Fault struct {
	Field, Message string
	Line           int    // 0 if it is unknown
	Text           string // of the line
}

// Fault returns an error about a field with its line.
func (p Locations) Fault(field, message string) Fault {
	f := Fault{Field: field, Message: message, Line: p.line(field)}
	if f.Line > 0 {
		f.Text = format.FirstLine(p.lines[f.Line-1])
	}
	return f
}
