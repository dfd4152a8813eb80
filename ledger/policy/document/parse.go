package document

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Parse reads a document. What begins like a JSON object and is no YAML is JSON, whose
// errors the API reports. Other errors are of the type *Error.
func Parse(text string) (Document, error) {
	isJSON := looksLikeJSON(text)
	if isJSON && jsontext.Value(text).IsValid() {
		return locateJSON(text), nil
	}
	d, err := parseYAML(text)
	if err != nil && isJSON {
		return locateJSON(text), nil
	}
	return d, err
}

// looksLikeJSON reports whether a text begins like an object in JSON: with a brace and a
// quotation mark or another brace.
func looksLikeJSON(text string) bool {
	const space = " \t\r\n"
	rest, ok := strings.CutPrefix(strings.TrimLeft(text, space), "{")
	rest = strings.TrimLeft(rest, space)
	return ok && (rest == "" || rest[0] == '"' || rest[0] == '}')
}
