// Package fields validates the fields of contracts.
package fields

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/internal/glob"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/ledger/where"
)

// The limits of a contract.
const (
	maxEntries   = 100 // in any list of a contract
	maxCompiled  = 20  // different expressions, as many as earlier releases have allowed
	maxThreshold = 100
	maxPredicate = 512 // bytes; a type URI can be long
	MaxFaults    = 100 // reported for one document
)

// A Check collects the faults of one document. Its methods return the value of a field that they validate.
type Check struct {
	Stored      bool // by this release or an earlier one
	Faults      []ledger.FieldError
	globsSeen   int              // the number of globs so far
	names       map[string]bool  // of requirements so far
	expressions map[string]error // so far, with why they are invalid
}

// Fault records a fault of a field.
func (k *Check) Fault(field, format string, args ...any) {
	if len(k.Faults) < MaxFaults {
		k.Faults = append(k.Faults, ledger.FieldError{Field: field, Message: fmt.Sprintf(format, args...)})
	}
}

// Note records err, unless it is nil, as the fault of a field.
func (k *Check) Note(field string, err error) {
	if err != nil {
		k.Fault(field, "%v", err)
	}
}

// Name validates the name of a requirement, which exceptions use.
func (k *Check) Name(field, name string) string {
	if name == "" {
		return ""
	}
	if !ledger.IsRequirementName(name) {
		k.Fault(field, "%q is not a name (use letters, digits and . _ -, at most %d bytes)", text.Clip(name),
			ledger.MaxRequirementName)
	}
	if k.names[name] {
		k.Fault(field, "%q is the name of another requirement", text.Clip(name))
	}
	if k.names == nil {
		k.names = make(map[string]bool)
	}
	k.names[name] = true
	return name
}

// Where validates an expression. A stored one may be of another release: if it does not
// compile in this one, that is its verdict on each statement.
func (k *Check) Where(field, expression string) string {
	if expression == "" || k.Stored {
		return expression
	}
	err, known := k.expressions[expression]
	if !known {
		if len(k.expressions) == maxCompiled {
			k.Fault(field, "too many different expressions: at most %d in a contract", maxCompiled)
			return expression
		}
		if k.expressions == nil {
			k.expressions = make(map[string]error)
		}
		_, err = where.Compile(expression)
		k.expressions[expression] = err
	}
	k.Note(field, err)
	return expression
}

// Levels validates the levels that a verification summary must state. about is the predicate or the type of the
// requirement.
func (k *Check) Levels(field, about string, list []string) []string {
	if len(list) == 0 || !k.Fits(field, list) {
		return nil
	}
	if !strings.HasPrefix(about, "vsa:") && !strings.HasPrefix(about, summaries) {
		k.Fault(field, "only verification summaries state levels (use the predicate vsa:*, or the type %s*)", summaries)
	}
	for i, level := range list {
		switch track, _, isNumbered := SplitLevel(level); {
		case level == "" || len(level) > maxLevelName || strings.Trim(level, levelCharacters) != "":
			k.Fault(fmt.Sprintf("%s[%d]", field, i), "%q is not a level (use e.g. SLSA_SOURCE_LEVEL_3)", text.Clip(level))
		case strings.HasPrefix(level, "SLSA_") && (!isNumbered || track == ""):
			k.Fault(fmt.Sprintf("%s[%d]", field, i), "%q is not a level of SLSA (use SLSA_SOURCE_LEVEL_0 to _%d, or "+
				"SLSA_BUILD_LEVEL_0 to _%d)", text.Clip(level), MaxLevel, MaxLevel)
		}
	}
	return list
}

// State validates a state that can have requirements.
func (k *Check) State(field, name string) ledger.State {
	s, err := ledger.ParseState(name)
	if err != nil || s < ledger.Attested {
		k.Fault(field, "%q is not a state with requirements (use ATTESTED, PROMOTABLE or DEPLOYED)", text.Clip(name))
	}
	return s
}

// Pattern validates a pattern for predicates or for their types.
func (k *Check) Pattern(field, p string) {
	switch star := strings.IndexByte(p, '*'); {
	case len(p) > maxPredicate:
		k.Fault(field, "too long: %d bytes, at most %d", len(p), maxPredicate)
	case star >= 0 && star < len(p)-1:
		k.Fault(field, "%q has a * before its end (use an exact predicate, or a prefix that ends in one *)", p)
	}
}

// Signers validates patterns of signers.
func (k *Check) Signers(field string, texts []string) []identity.Pattern {
	if !k.Fits(field, texts) {
		return nil
	}
	var patterns []identity.Pattern
	for i, text := range texts {
		p, err := identity.ParsePattern(text)
		k.Note(fmt.Sprintf("%s[%d]", field, i), err)
		patterns = append(patterns, p)
	}
	return patterns
}

// Threshold validates a number of people; nil is 1.
func (k *Check) Threshold(field string, n *int) int {
	if n == nil {
		return 1
	}
	if *n < 1 || *n > maxThreshold {
		k.Fault(field, "%d is out of range (use 1 to %d)", *n, maxThreshold)
	}
	return *n
}

// Accept validates statuses; nil is pass alone.
func (k *Check) Accept(field string, names []string) []ledger.Status {
	if names == nil {
		return []ledger.Status{ledger.Pass}
	}
	if len(names) == 0 {
		k.Fault(field, "use at least one status, or omit the field for pass")
	}
	if !k.Fits(field, names) {
		return nil
	}

	var accept []ledger.Status
	for i, name := range names {
		at := fmt.Sprintf("%s[%d]", field, i)
		switch s := ledger.Status(name); {
		case !slices.Contains(ledger.Statuses(), s):
			k.Fault(at, "%q is not a status (use pass, warn, fail, error, skip or recorded)", text.Clip(name))
		case slices.Contains(accept, s):
			k.Fault(at, "%q occurs twice", name)
		default:
			accept = append(accept, s)
		}
	}
	return accept
}

// MaxAge validates a duration; nil is the default.
func (k *Check) MaxAge(field string, text *string, def ledger.Duration) ledger.Duration {
	if text == nil {
		return def
	}
	d, err := ledger.ParseDuration(*text)
	k.Note(field, err)
	return d
}

// Level validates a level of the radar; nil is the default.
func (k *Check) Level(field string, name *string, def radar.Level) radar.Level {
	if name == nil {
		return def
	}
	l, err := radar.ParseLevel(*name)
	if err != nil {
		k.Note(field, err)
		return def
	}
	return l
}

// Globs validates a list of globs. It returns nil for an empty list.
func (k *Check) Globs(field string, globs []string, check func(string) error) []string {
	if len(globs) == 0 || !k.Fits(field, globs) {
		return nil
	}
	seen := k.globsSeen
	k.globsSeen += len(globs)
	if seen <= glob.MaxGlobs && k.globsSeen > glob.MaxGlobs {
		k.Fault(field, "too many globs: at most %d in paths, branches and radar.ignore together", glob.MaxGlobs)
	}
	for i, g := range globs {
		k.Note(fmt.Sprintf("%s[%d]", field, i), check(g))
	}
	return globs
}

// Fits reports whether a list is short enough.
func (k *Check) Fits(field string, list []string) bool {
	if len(list) > maxEntries {
		k.Fault(field, "too many: %d entries, at most %d", len(list), maxEntries)
	}
	return len(list) <= maxEntries
}

// MaxLevel is the highest level of any track of SLSA.
const MaxLevel = 4

// maxLevelName limits the name of a level, in bytes.
const maxLevelName = 64

const (
	summaries       = "https://slsa.dev/verification_summary/"
	levelCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
)

// SplitLevel splits a level with a number, such as SLSA_SOURCE_LEVEL_3, into the track and the number.
func SplitLevel(level string) (track string, number int, ok bool) {
	track, digit, ok := strings.Cut(level, "_LEVEL_")
	number, err := strconv.Atoi(digit)
	return track + "_LEVEL_", number, ok && err == nil && len(digit) == 1 && number <= MaxLevel
}
