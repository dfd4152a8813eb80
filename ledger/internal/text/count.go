package text

import (
	"bytes"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// maxCounted limits the JSON documents that CountDocuments counts.
const maxCounted = 1000

// CountDocuments returns the number of JSON documents in a text, up to 1000, or 0 if it is not a sequence of
// them.
func CountDocuments(text []byte) int {
	dec := jsontext.NewDecoder(bytes.NewReader(text))
	for n := range maxCounted {
		if err := dec.SkipValue(); err == io.EOF {
			return n
		} else if err != nil {
			return 0
		}
	}
	return maxCounted
}
