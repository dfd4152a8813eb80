// Package format formats values for pages: ids, numbers, durations and names. It also
// makes untrusted text safe to show.
package format

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// Short shortens an id. It returns the first 12 characters of a commit's id. Of any
// other id, it returns the prefix and the last 6 characters, because ids created one
// after another differ only at the end.
func Short(id string) string {
	if prefix, rest, ok := strings.Cut(id, "_"); ok && len(rest) > 8 {
		return prefix + "_…" + rest[len(rest)-6:]
	}
	return ledger.Short(id)
}

// Duration formats a duration: milliseconds as an int64, a time.Duration or a
// ledger.Duration.
func Duration(v any) string {
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

// Plural returns a number with its noun: 1 commit, 2 commits. many is the plural, if it
// is not the singular with an s.
func Plural(n any, one string, many ...string) string {
	text := Number(n)
	switch {
	case text == "1":
		return text + " " + one
	case len(many) > 0:
		return text + " " + many[0]
	}
	return text + " " + one + "s"
}

// Number formats a number with a narrow space between thousands.
func Number(n any) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "\u202f" + digits[i:]
	}
	return digits
}

// PlainName returns the CN of a DN, or the text itself if it is not a DN.
func PlainName(dn string) string {
	if parsed, err := identity.ParseDN(dn); err == nil {
		return parsed.CN
	}
	return dn
}

// FirstLine returns the first line of a text, such as the subject of a commit's
// message, clipped to 200 characters.
func FirstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return Clip(line, 200)
}

// Clip cuts a text after limit characters, and adds an ellipsis if it was longer.
func Clip(text string, limit int) string {
	cut := First(text, limit)
	if len(cut) < len(text) {
		cut += "…"
	}
	return cut
}

// First returns at most limit characters of the text.
func First(text string, limit int) string {
	for i := range text {
		if limit == 0 {
			return text[:i]
		}
		limit--
	}
	return text
}

// State returns a state as a word, such as Attested.
func State(s ledger.State) string {
	name := s.String()
	return name[:1] + strings.ToLower(name[1:])
}

// CommitName returns the branch of a commit, or its short id if it has none.
func CommitName(c ledger.RadarCommit) string {
	if c.Branch != "" {
		return c.Branch
	}
	return Short(c.SHA)
}

// Dict returns alternating names and values as a map, to pass several values to a
// template.
func Dict(pairs ...any) (map[string]any, error) {
	if len(pairs)%2 != 0 {
		return nil, fmt.Errorf("dict: last name has no value")
	}
	m := make(map[string]any)
	for i := 0; i < len(pairs); i += 2 {
		name, ok := pairs[i].(string)
		if !ok {
			return nil, fmt.Errorf("dict: name %v is not a string", pairs[i])
		}
		m[name] = pairs[i+1]
	}
	return m, nil
}

// exceptionEndsSoon is how long before its end an exception ends soon.
const exceptionEndsSoon = 24 * time.Hour

// EndsSoon reports whether an exception ends within a day.
func EndsSoon(until, now ledger.Time) bool {
	left := until.Sub(now)
	return left > 0 && left <= exceptionEndsSoon
}
