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

// maxFlatList is the maximum length in bytes of a list on one line.
const maxFlatList = 100

// Document returns a contract as JSON to read and edit: its canonical form,
// indented, with short lists of strings on one line.
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

// flatList joins the list that begins on the first line, and returns it with its
// number of lines. n is 0 if there is no list, if it is too long, or if it holds
// anything but strings.
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

// ParseDocument parses a document as the API does: it ignores the members that a
// policy record has in addition to its contract.
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
		return policy.Contract{}, fmt.Errorf("encode contract: %w", err)
	}
	return policy.Parse(text)
}

// Locations maps the fields of a document to its lines.
type Locations struct {
	lines  []string
	fields map[string]int // line numbers, from 1, by field path
	// broken is the line of the first syntax error, or 0.
	broken int
}

// Broken reports whether the document is not valid JSON.
func (l Locations) Broken() bool { return l.broken > 0 }

// Locate returns the lines of a document's fields, up to the first syntax error.
func Locate(document string) Locations {
	l := Locations{lines: strings.Split(document, "\n"), fields: make(map[string]int)}
	line, counted := 1, 0 // counted is the number of bytes whose lines are in line
	lineAt := func(offset int64) int {
		upTo := min(max(int(offset), counted), len(document))
		line += strings.Count(document[counted:upTo], "\n")
		counted = upTo
		return line
	}

	decoder := jsontext.NewDecoder(bytes.NewReader([]byte(document)))
	for {
		_, err := decoder.ReadToken()
		if errors.Is(err, io.EOF) {
			return l
		}
		if err != nil {
			offset := decoder.InputOffset()
			if syntactic, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
				offset = syntactic.ByteOffset
			}
			l.broken = lineAt(offset)
			return l
		}

		path := fieldPath(decoder.StackPointer())
		if _, known := l.fields[path]; !known {
			l.fields[path] = lineAt(decoder.InputOffset()) // a token never spans lines
		}
	}
}

// fieldPath formats a pointer as a field name of an API error, such as
// requirements[0].state.
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

// line returns the line of a field or, if it is missing, of the innermost field
// around it, or 0 if no such field is in the document.
func (l Locations) line(field string) int {
	for field != "" {
		if line, ok := l.fields[field]; ok {
			return line
		}
		if l.broken > 0 {
			return l.broken
		}
		field = field[:max(strings.LastIndexAny(field, ".["), 0)]
	}
	return l.broken
}

// A Fault is an error about one field of a document.
type Fault struct {
	Field, Message string
	Line           int    // from 1; 0 if unknown
	Text           string // the text of the line
}

// Fault returns an error about a field, with its line.
func (l Locations) Fault(field, message string) Fault {
	f := Fault{Field: field, Message: message, Line: l.line(field)}
	if f.Line > 0 {
		f.Text = format.FirstLine(l.lines[f.Line-1])
	}
	return f
}
