package web

import (
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

// functions are what templates can call beside what html/template has.
func (s *Site) functions() template.FuncMap {
	return template.FuncMap{
		"asset":    s.assets.path,
		"path":     pathTo,
		"short":    short,
		"time":     timeTag,
		"duration": durationText,
		"plural":   plural,
		"dn":       plainName,
		"line":     firstLine,
		"name":     nameOf,
		"clip":     clip,
		"ordered":  ordered,
		"number":   number,
		"kept":     func() int { return ledger.MaxRadarPairs },
		"lower":    func(v any) string { return strings.ToLower(fmt.Sprint(v)) },
		"label":    stateLabel,
		"states":   ledger.States,
		"field":    newField,
		"choice":   func(value, label string) choice { return choice{value, label} },
		"choices":  func(c ...choice) []choice { return c },
		"dict":     dict,
	}
}

// short returns the beginning of a commit's id, and the end of another id,
// which is where those made one after another differ.
func short(id string) string {
	if prefix, rest, ok := strings.Cut(id, "_"); ok && len(rest) > 8 {
		return prefix + "_…" + rest[len(rest)-6:]
	}
	if len(id) > 12 {
		return id[:12]
	}
	return id
}

// timeTag shows a time in UTC; the script makes it local and relative.
func timeTag(t ledger.Time) template.HTML {
	if t == 0 {
		return "–"
	}
	return template.HTML(`<time datetime="` + t.String() + `" title="` + t.String() + `">` + t.Std().Format("2 Jan 2006 15:04") + ` UTC</time>`)
}

// durationText takes milliseconds, a time.Duration or a ledger.Duration.
func durationText(v any) string {
	var d time.Duration
	switch v := v.(type) {
	case int64:
		d = time.Duration(v) * time.Millisecond
	case time.Duration:
		d = v
	case ledger.Duration:
		d = v.Std()
	}
	switch {
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < time.Minute:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// plural counts things: 1 commit, 2 commits. The words may differ by more
// than an s: then many gives the other one.
func plural(n any, one string, many ...string) string {
	text := number(n)
	switch {
	case text == "1":
		return text + " " + one
	case len(many) > 0:
		return text + " " + many[0]
	}
	return text + " " + one + "s"
}

// number writes a number with a narrow space between thousands.
func number(n any) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "\u202f" + digits[i:]
	}
	return digits
}

// plainName returns the CN of a DN, or the text itself where it is none.
func plainName(dn string) string {
	if parsed, err := ledger.ParseDN(dn); err == nil {
		return parsed.CN
	}
	return dn
}

// firstLine returns the subject of a commit's message, cut where it is long.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return clip(line, 200)
}

// clip cuts a text that is longer than so many characters, with an ellipsis.
func clip(text string, most int) string {
	cut := firstOf(text, most)
	if len(cut) < len(text) {
		cut += "…"
	}
	return cut
}

// firstOf returns at most so many characters of the text.
func firstOf(text string, most int) string {
	for i := range text {
		if most == 0 {
			return text[:i]
		}
		most--
	}
	return text
}

// stateLabel writes a state as a word.
func stateLabel(s ledger.State) string {
	name := s.String()
	return name[:1] + strings.ToLower(name[1:])
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
