package page

import (
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/server/web/format"
)

// A Choice is a value of a field, with its label.
type Choice struct{ Value, Label string }

// Choices returns choices from alternating values and labels.
func Choices(pairs ...string) []Choice {
	var choices []Choice
	for i := 0; i < len(pairs); i += 2 {
		choices = append(choices, Choice{pairs[i], pairs[i+1]})
	}
	return choices
}

// A Field is an input of a form, with its label and error.
type Field struct {
	Name, Label  string
	ID           string // of the input; label, hint and error refer to it
	Type         string // text (the default), textarea, select, radio, checkboxes or a type of <input>
	Value        string
	Values       []string
	Error        string
	Hint         string
	Placeholder  string
	Autocomplete string
	Rows         string
	Required     bool
	Autofocus    bool
	Mono         bool
	Choices      []Choice
}

// NewField returns a field of a form. The options are alternating names and values.
// The names are type, hint, placeholder, autocomplete, rows (strings), required,
// autofocus, mono (booleans) and choices ([]Choice).
func NewField(f *Form, name, label string, options ...any) (Field, error) {
	field := Field{Name: name, Label: label, ID: "field-" + name, Type: "text", Value: f.Get(name), Values: f.Values[name],
		Error: f.Errors[name], Autocomplete: "off", Rows: "8"}
	set, err := format.Dict(options...)
	if err != nil {
		return field, err
	}

	for option, value := range set {
		if choices, ok := value.([]Choice); ok && option == "choices" {
			field.Choices = choices
			continue
		}

		if flag, ok := value.(bool); ok {
			switch option {
			case "required":
				field.Required = flag
				continue
			case "autofocus":
				field.Autofocus = flag
				continue
			case "mono":
				field.Mono = flag
				continue
			}
		}

		texts := map[string]*string{"type": &field.Type, "hint": &field.Hint, "placeholder": &field.Placeholder,
			"autocomplete": &field.Autocomplete, "rows": &field.Rows}
		text, ok := value.(string)
		if !ok || texts[option] == nil {
			return field, fmt.Errorf("unknown field option %s of type %T", option, value)
		}
		*texts[option] = text
	}
	return field, nil
}

// Has reports whether a value is chosen.
func (f Field) Has(value string) bool { return slices.Contains(f.Values, value) }
