package document

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"
)

// locateJSON returns a document in JSON, with the lines of its fields up to the first
// syntax error.
func locateJSON(text string) Document {
	d := newDocument(text)
	d.json = jsontext.Value(text)
	line, counted := 1, 0 // counted is the number of bytes whose lines are in line
	lineAt := func(offset int64) int {
		upTo := min(max(int(offset), counted), len(text))
		line += strings.Count(text[counted:upTo], "\n")
		counted = upTo
		return line
	}

	decoder := jsontext.NewDecoder(strings.NewReader(text))
	for {
		_, err := decoder.ReadToken()
		if errors.Is(err, io.EOF) {
			return d
		}
		if err != nil {
			offset := decoder.InputOffset()
			if syntactic, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
				offset = syntactic.ByteOffset
			}
			d.broken = lineAt(offset)
			return d
		}

		path := ""
		for token := range decoder.StackPointer().Tokens() {
			path = below(path, token)
		}
		if _, known := d.fields[path]; !known {
			d.fields[path] = lineAt(decoder.InputOffset()) // a token never spans lines
		}
	}
}

// below returns the path of a member, or of an item if its name is a number, as the API's
// errors write it: requirements[0].state.
func below(path, name string) string {
	switch {
	case name != "" && strings.Trim(name, "0123456789") == "":
		return path + "[" + name + "]"
	case name == "" || strings.ContainsFunc(
		name, func(r rune) bool { return strings.ContainsRune(`.[]"`, r) || !unicode.IsPrint(r) }):
		return path + fmt.Sprintf("[%q]", name)
	case path != "":
		return path + "." + name
	}
	return name
}
