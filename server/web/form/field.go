package form

import (
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/server/web/format"
)

// A Choice is one of the values that a field may have.
type Choice struct{ Value, Label string }

// Choices returns choices: pairs are values and labels in turn.
func Choices(pairs ...string) []Choice {
	var choices []Choice
	for i := 0; i < len(pairs); i += 2 {
		choices = append(choices, Choice{pairs[i], pairs[i+1]})
	}
	return choices
}

// A Field is one input of a form, with its label and what is wrong with it.
type Field struct {
	Name, Label  string
	ID           string // for its label, hint and error
	Type         string // text by default; textarea, select, radio and checkboxes are others
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

// NewField returns a field of a form. The options are names and values in turn:
// type, hint, placeholder, autocomplete, rows, required, autofocus, mono, choices.
func NewField(f *Form, name, label string, options ...any) (Field, error) {
	made := Field{Name: name, Label: label, ID: "field-" + name, Type: "text", Value: f.Get(name), Values: f.Values[name],
		Error: f.Errors[name], Autocomplete: "off", Rows: "8"}
	set, err := format.Dict(options...)
	if err != nil {
		return made, err
	}
	for option, value := range set {
		if choices, ok := value.([]Choice); ok && option == "choices" {
			made.Choices = choices
			continue
		}
		if flag, ok := value.(bool); ok {
			switch option {
			case "required":
				made.Required = flag
				continue
			case "autofocus":
				made.Autofocus = flag
				continue
			case "mono":
				made.Mono = flag
				continue
			}
		}
		texts := map[string]*string{"type": &made.Type, "hint": &made.Hint, "placeholder": &made.Placeholder,
			"autocomplete": &made.Autocomplete, "rows": &made.Rows}
		text, ok := value.(string)
		if !ok || texts[option] == nil {
			return made, fmt.Errorf("a field has no option %s of %T", option, value)
		}
		*texts[option] = text
	}
	return made, nil
}

// Has reports whether a value is chosen.
func (f Field) Has(value string) bool { return slices.Contains(f.Values, value) }
