package policy

import (
	"strconv"
	"strings"
)

// maxLevel is the highest level of any track of SLSA.
const maxLevel = 4

// maxLevelName limits the name of a level, in bytes.
const maxLevelName = 64

const (
	summaries       = "https://slsa.dev/verification_summary/"
	levelCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
)

// splitLevel splits a level with a number, such as SLSA_SOURCE_LEVEL_3, into the track and the number.
func splitLevel(level string) (track string, number int, ok bool) {
	track, digit, ok := strings.Cut(level, "_LEVEL_")
	number, err := strconv.Atoi(digit)
	return track + "_LEVEL_", number, ok && err == nil && len(digit) == 1 && number <= maxLevel
}

// hasExpression reports whether a statement must meet an expression.
func (r *Requirement) hasExpression() bool { return r.Where != "" || len(r.Levels) > 0 }

// Expression returns the CEL expression that a statement must meet: Where, and that it states the Levels. A requirement
// without both has none, and the text is empty.
func (r *Requirement) Expression() string {
	if len(r.Levels) == 0 {
		return r.Where
	}
	var all []string
	for _, level := range r.Levels {
		names := []string{strconv.Quote(level)}
		if track, number, ok := splitLevel(level); ok {
			for n := number + 1; n <= maxLevel; n++ {
				names = append(names, strconv.Quote(track+strconv.Itoa(n)))
			}
		}
		all = append(all, "predicate.verifiedLevels.exists(l, l in ["+strings.Join(names, ", ")+"])")
	}
	if r.Where != "" {
		all = append(all, "("+r.Where+"\n)") // it may end with a comment
	}
	return strings.Join(all, " && ")
}
