package web

import (
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/web/format"
)

// functions are what templates can call beside what html/template has.
func (s *Site) functions() template.FuncMap {
	return template.FuncMap{
		"asset":    s.assets.path,
		"path":     pathTo,
		"short":    format.Short,
		"time":     timeTag,
		"duration": format.Duration,
		"plural":   format.Plural,
		"dn":       format.PlainName,
		"line":     format.FirstLine,
		"name":     format.CommitName,
		"clip":     format.Clip,
		"ordered":  format.Ordered,
		"number":   format.Number,
		"kept":     func() int { return ledger.MaxRadarPairs },
		"lower":    func(v any) string { return strings.ToLower(fmt.Sprint(v)) },
		"label":    format.State,
		"states":   ledger.States,
		"field":    newField,
		"choice":   func(value, label string) choice { return choice{value, label} },
		"choices":  func(c ...choice) []choice { return c },
		"dict":     dict,
	}
}

// timeTag shows a time in UTC; the script makes it local and relative.
func timeTag(t ledger.Time) template.HTML {
	if t == 0 {
		return "–"
	}
	return template.HTML(`<time datetime="` + t.String() + `" title="` + t.String() + `">` + t.Std().Format("2 Jan 2006 15:04") + ` UTC</time>`)
}

// dict gives a template several values under names.
func dict(pairs ...any) (map[string]any, error) {
	if len(pairs)%2 != 0 {
		return nil, fmt.Errorf("dict has a name without a value")
	}
	m := make(map[string]any)
	for i := 0; i < len(pairs); i += 2 {
		name, ok := pairs[i].(string)
		if !ok {
			return nil, fmt.Errorf("dict has %v for a name", pairs[i])
		}
		m[name] = pairs[i+1]
	}
	return m, nil
}

// A choice is one of the values that a field may have.
type choice struct{ Value, Label string }

// A field is one input of a form, with its label and what is wrong with it.
type field struct {
	Name, Label  string
	ID           string // for its label, hint and error
	Type         string // text where it is not said; textarea, select, radio and checkboxes are others
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
	Choices      []choice
}

// newField makes a field of a form. The options are names and values in turn:
// type, hint, placeholder, autocomplete, rows, required, autofocus, mono, choices.
func newField(f *form, name, label string, options ...any) (field, error) {
	made := field{Name: name, Label: label, ID: "field-" + name, Type: "text", Value: f.Get(name), Values: f.Values[name], Error: f.Errors[name], Autocomplete: "off", Rows: "8"}
	set, err := dict(options...)
	if err != nil {
		return made, err
	}
	for option, value := range set {
		if choices, ok := value.([]choice); ok && option == "choices" {
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
		texts := map[string]*string{"type": &made.Type, "hint": &made.Hint, "placeholder": &made.Placeholder, "autocomplete": &made.Autocomplete, "rows": &made.Rows}
		text, ok := value.(string)
		if !ok || texts[option] == nil {
			return made, fmt.Errorf("a field has no option %s of %T", option, value)
		}
		*texts[option] = text
	}
	return made, nil
}

// Has reports whether a value is among those chosen.
func (f field) Has(value string) bool { return slices.Contains(f.Values, value) }
