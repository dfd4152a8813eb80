package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/internal/glob"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/ledger/where"
)

// The limits of a contract.
const (
	maxEntries      = 100 // in any list of a contract
	maxCompiled     = 20  // different expressions, as many as earlier releases have allowed
	maxExceptionAge = ledger.Duration(366 * 24 * time.Hour)
	maxThreshold    = 100
	maxPredicate    = 512 // bytes; a type URI can be long
	maxFaults       = 100 // reported for one document
)

// A contractCheck collects the faults of one document.
type contractCheck struct {
	stored      bool // by this release or an earlier one
	faults      []ledger.FieldError
	globsSeen   int              // the number of globs so far
	names       map[string]bool  // of requirements so far
	expressions map[string]error // so far, with why they are invalid
}

func (k *contractCheck) fault(field, format string, args ...any) {
	if len(k.faults) < maxFaults {
		k.faults = append(k.faults, ledger.FieldError{Field: field, Message: fmt.Sprintf(format, args...)})
	}
}

// note records err, unless it is nil, as the fault of a field.
func (k *contractCheck) note(field string, err error) {
	if err != nil {
		k.fault(field, "%v", err)
	}
}

// name validates the name of a requirement, which exceptions use.
func (k *contractCheck) name(field, name string) string {
	if name == "" {
		return ""
	}
	if !ledger.IsRequirementName(name) {
		k.fault(field, "%q is not a name (use letters, digits and . _ -, at most %d bytes)", text.Clip(name),
			ledger.MaxRequirementName)
	}
	if k.names[name] {
		k.fault(field, "%q is the name of another requirement", text.Clip(name))
	}
	if k.names == nil {
		k.names = make(map[string]bool)
	}
	k.names[name] = true
	return name
}

// where validates an expression. A stored one may be of another release: if it does not
// compile in this one, that is its verdict on each statement.
func (k *contractCheck) where(field, expression string) string {
	if expression == "" || k.stored {
		return expression
	}
	err, known := k.expressions[expression]
	if !known {
		if len(k.expressions) == maxCompiled {
			k.fault(field, "too many different expressions: at most %d in a contract", maxCompiled)
			return expression
		}
		if k.expressions == nil {
			k.expressions = make(map[string]error)
		}
		_, err = where.Compile(expression)
		k.expressions[expression] = err
	}
	k.note(field, err)
	return expression
}

// levels validates the levels that a verification summary must state. about is the predicate or the type of the
// requirement.
func (k *contractCheck) levels(field, about string, list []string) []string {
	if len(list) == 0 || !k.fits(field, list) {
		return nil
	}
	if !strings.HasPrefix(about, "vsa:") && !strings.HasPrefix(about, summaries) {
		k.fault(field, "only verification summaries state levels (use the predicate vsa:*, or the type %s*)", summaries)
	}
	for i, level := range list {
		switch track, _, isNumbered := splitLevel(level); {
		case level == "" || len(level) > maxLevelName || strings.Trim(level, levelCharacters) != "":
			k.fault(fmt.Sprintf("%s[%d]", field, i), "%q is not a level (use e.g. SLSA_SOURCE_LEVEL_3)", text.Clip(level))
		case strings.HasPrefix(level, "SLSA_") && (!isNumbered || track == ""):
			k.fault(fmt.Sprintf("%s[%d]", field, i), "%q is not a level of SLSA (use SLSA_SOURCE_LEVEL_0 to _%d, or "+
				"SLSA_BUILD_LEVEL_0 to _%d)", text.Clip(level), maxLevel, maxLevel)
		}
	}
	return list
}

func (k *contractCheck) state(field, name string) ledger.State {
	s, err := ledger.ParseState(name)
	if err != nil || s < ledger.Attested {
		k.fault(field, "%q is not a state with requirements (use ATTESTED, PROMOTABLE or DEPLOYED)", text.Clip(name))
	}
	return s
}

func (k *contractCheck) predicateType(field, p string) string {
	if p != "" && !IsTypePattern(p) {
		k.fault(field, "%q is not a URI (use e.g. https://slsa.dev/provenance/v1)", text.Clip(p))
	}
	k.pattern(field, p)
	return p
}

// pattern validates a pattern for predicates or for their types.
func (k *contractCheck) pattern(field, p string) {
	switch star := strings.IndexByte(p, '*'); {
	case len(p) > maxPredicate:
		k.fault(field, "too long: %d bytes, at most %d", len(p), maxPredicate)
	case star >= 0 && star < len(p)-1:
		k.fault(field, "%q has a * before its end (use an exact predicate, or a prefix that ends in one *)", p)
	}
}

func (k *contractCheck) signers(field string, texts []string) []identity.Pattern {
	if !k.fits(field, texts) {
		return nil
	}
	var patterns []identity.Pattern
	for i, text := range texts {
		p, err := identity.ParsePattern(text)
		k.note(fmt.Sprintf("%s[%d]", field, i), err)
		patterns = append(patterns, p)
	}
	return patterns
}

func (k *contractCheck) threshold(field string, n *int) int {
	if n == nil {
		return 1
	}
	if *n < 1 || *n > maxThreshold {
		k.fault(field, "%d is out of range (use 1 to %d)", *n, maxThreshold)
	}
	return *n
}

func (k *contractCheck) accept(field string, names []string) []ledger.Status {
	if names == nil {
		return []ledger.Status{ledger.Pass}
	}
	if len(names) == 0 {
		k.fault(field, "use at least one status, or omit the field for pass")
	}
	if !k.fits(field, names) {
		return nil
	}

	var accept []ledger.Status
	for i, name := range names {
		at := fmt.Sprintf("%s[%d]", field, i)
		switch s := ledger.Status(name); {
		case !slices.Contains(ledger.Statuses(), s):
			k.fault(at, "%q is not a status (use pass, warn, fail, error, skip or recorded)", text.Clip(name))
		case slices.Contains(accept, s):
			k.fault(at, "%q occurs twice", name)
		default:
			accept = append(accept, s)
		}
	}
	return accept
}

func (k *contractCheck) maxAge(field string, text *string, def ledger.Duration) ledger.Duration {
	if text == nil {
		return def
	}
	d, err := ledger.ParseDuration(*text)
	k.note(field, err)
	return d
}

func (k *contractCheck) level(field string, name *string, def radar.Level) radar.Level {
	if name == nil {
		return def
	}
	l, err := radar.ParseLevel(*name)
	if err != nil {
		k.note(field, err)
		return def
	}
	return l
}

// globs validates a list of globs. It returns nil for an empty list.
func (k *contractCheck) globs(field string, globs []string, check func(string) error) []string {
	if len(globs) == 0 || !k.fits(field, globs) {
		return nil
	}
	seen := k.globsSeen
	k.globsSeen += len(globs)
	if seen <= glob.MaxGlobs && k.globsSeen > glob.MaxGlobs {
		k.fault(field, "too many globs: at most %d in paths, branches and radar.ignore together", glob.MaxGlobs)
	}
	for i, g := range globs {
		k.note(fmt.Sprintf("%s[%d]", field, i), check(g))
	}
	return globs
}

func (k *contractCheck) fits(field string, list []string) bool {
	if len(list) > maxEntries {
		k.fault(field, "too many: %d entries, at most %d", len(list), maxEntries)
	}
	return len(list) <= maxEntries
}
