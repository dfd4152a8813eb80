package terminal

import (
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/go-json-experiment/json"
)

// WriteJSON writes v to w as indented JSON.
func WriteJSON(w io.Writer, v any) error {
	text, err := json.Marshal(v, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	_, err = w.Write(append(text, '\n'))
	return err
}
