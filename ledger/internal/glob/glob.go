// Package glob matches paths and branches against the globs of a contract, in bounded
// time.
package glob

import (
	"errors"
	"fmt"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// The limits of globs. The ledger's single writer matches them, one commit after
// another, so no contract may slow it down for everybody.
const (
	MaxGlobs        = 100 // in a contract
	maxGlob         = 512 // bytes
	maxStars        = 8   // runs of * in one glob
	maxAlternatives = 16  // to which the braces of one glob expand

	// MaxMatched limits the paths that are matched against a contract's globs.
	MaxMatched = 2000
	// MaxMatching limits the steps of matching for the radar, for exchange rules, and under contracts
	// by the rules of version 1. That many take at most a tenth of a second.
	MaxMatching = 1 << 24
)

// CheckPath is like Check, but also refuses a glob that never matches a path in git: a
// leading slash must not silently disable a requirement.
func CheckPath(glob string) error {
	if strings.HasPrefix(glob, "/") || strings.HasPrefix(glob, "./") {
		return fmt.Errorf("%q never matches: paths are relative to the repo root, without a leading / or ./", text.Clip(glob))
	}
	return Check(glob)
}

// Check returns an error if the glob is invalid or exceeds a limit.
func Check(glob string) error {
	switch {
	case glob == "":
		return errors.New("empty glob (use e.g. release/* or services/**)")
	case len(glob) > maxGlob:
		return fmt.Errorf("too long: %d bytes, at most %d", len(glob), maxGlob)
	case !doublestar.ValidatePattern(glob):
		return fmt.Errorf("%q is not a glob (close each [ and {, and escape literal special characters with \\)", glob)
	case stars(glob) > maxStars:
		return fmt.Errorf("%q has more than %d runs of * (use several globs)", glob, maxStars)
	case alternatives(glob) > maxAlternatives:
		return fmt.Errorf("%q expands to more than %d alternatives (use several globs)", glob, maxAlternatives)
	}
	return nil
}

// stars counts the runs of * in a glob, including escaped ones.
func stars(glob string) int {
	n := 0
	for i := range len(glob) {
		if glob[i] == '*' && (i == 0 || glob[i-1] != '*') {
			n++
		}
	}
	return n
}

// alternatives returns an upper bound on the number of globs that the braces of a glob
// expand to. Matching tries each of them. It counts every comma as a separator.
func alternatives(glob string) int {
	product, group := 1, 1
	for i := range len(glob) {
		switch glob[i] {
		case '{':
			product, group = product*group, 1
		case ',':
			group++
		}
		if product > maxAlternatives {
			break
		}
	}
	return product * group
}

// AnyMatch reports whether any of the globs matches any of the names. It gives up, with
// sure false, if that would take more than the given steps.
func AnyMatch(globs, names []string, steps int) (matches, sure bool) {
	for _, g := range globs {
		shape := ShapeOf(g)
		for _, name := range names {
			may, cost := shape.MayMatch(name)
			if steps -= cost; steps < 0 {
				return false, false
			}
			if may && doublestar.MatchUnvalidated(g, name) {
				return true, true
			}
		}
	}
	return false, true
}

// A Shape is a fast filter for a glob. It excludes most names that do not match, and
// estimates the cost of matching the others.
type Shape struct {
	// Every matching name has this prefix and suffix, and contains part.
	prefix, suffix, part string
	rest                 int // bytes after the prefix
	alternatives         int
}

// ShapeOf returns the shape of a glob.
func ShapeOf(glob string) Shape {
	const special = `*?[]{}\`
	// Next to a **, which also matches zero folders, a slash is optional.
	s := Shape{prefix: glob, suffix: glob, alternatives: alternatives(glob)}
	if i := strings.IndexAny(glob, special); i >= 0 {
		s.prefix = strings.TrimSuffix(glob[:i], "/")
	}
	if i := strings.LastIndexAny(glob, special); i >= 0 {
		s.suffix = strings.TrimPrefix(glob[i+1:], "/")
	}
	s.rest = len(glob) - len(s.prefix)
	s.part = strings.Trim(middleLiteral(glob), "/")
	s.part = s.part[:min(len(s.part), maxPart)] // searching a longer one is slower
	return s
}

// MayMatch reports false only if the name does not match the glob, and returns an upper bound on the
// steps of finding out whether it does: in the worst case, each alternative compares the text after
// each * again from every byte of the name.
func (s *Shape) MayMatch(name string) (may bool, steps int) {
	if !strings.HasPrefix(name, s.prefix) || !strings.HasSuffix(name, s.suffix) {
		return false, 1
	}
	if !strings.Contains(name, s.part) {
		return false, 1 + len(name)/4
	}
	return true, 1 + len(name)/4 + s.alternatives*(s.rest+1)*(len(name)-len(s.prefix)+1)
}

const maxPart = 16

// middleLiteral returns the longest run of literal characters in a glob, except for
// those at its start, at its end and in braces.
func middleLiteral(glob string) string {
	longest, start, depth := "", -1, 0
	end := func(i int) {
		if start >= 0 && depth == 0 && i-start > len(longest) {
			longest = glob[start:i]
		}
	}

	for i := 0; i < len(glob); i++ {
		switch glob[i] {
		case '*', '?':
			end(i)
			start = i + 1
		case '{':
			end(i)
			depth++
		case '}':
			depth--
			start = i + 1
		case '[':
			end(i)
			for i++; i < len(glob) && glob[i] != ']'; i++ {
				if glob[i] == '\\' {
					i++
				}
			}
			start = i + 1
		case '\\':
			end(i)
			i++
			start = i
		}
	}
	return longest
}
