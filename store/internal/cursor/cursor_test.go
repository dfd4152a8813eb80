package cursor

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
)

func newSealer(t testing.TB, key byte) *Sealer {
	t.Helper()
	s, err := New(bytes.Repeat([]byte{key}, KeySize))
	must.OK(t, err)
	return s
}

func TestPositionsSurviveSealing(t *testing.T) {
	s := newSealer(t, 1)
	for _, want := range [][]int64{{0}, {math.MaxInt64}, {math.MinInt64, -1}, {1, 2, 3}} {
		got, ok := s.Open("commits 7", s.Seal("commits 7", want), len(want))
		if !ok || !slices.Equal(got, want) {
			t.Errorf("opened %d %t, want %d", got, ok, want)
		}
	}
}

// A page that is read twice has the same ETag only if its cursor is the same.
func TestTheSamePositionHasTheSameCursor(t *testing.T) {
	s, other := newSealer(t, 1), newSealer(t, 1)
	if s.Seal("commits 7", []int64{5}) != other.Seal("commits 7", []int64{5}) {
		t.Error("two servers with one key seal a position differently")
	}
}

func TestCursorsDiscloseNoPosition(t *testing.T) {
	s := newSealer(t, 1)
	first := s.Seal("commits 7", []int64{1})
	for _, position := range []int64{2, 300, -1, math.MaxInt64} {
		c := s.Seal("commits 7", []int64{position})
		if len(c) != len(first) {
			t.Errorf("the cursor of %d has %d characters, that of 1 has %d", position, len(c), len(first))
		}
		if c[:16] == first[:16] {
			t.Errorf("the cursors of 1 and %d begin with the same nonce", position)
		}
	}
}

func TestOnlyCursorsOfTheListOpen(t *testing.T) {
	s := newSealer(t, 1)
	valid := s.Seal("commits 7", []int64{5})
	for name, test := range map[string]struct {
		list, cursor string
		n            int
	}{
		"of another list":          {"commits 8", valid, 1},
		"of a list with more keys": {"commits 7", valid, 2},
		"with another key":         {"commits 7", newSealer(t, 2).Seal("commits 7", []int64{5}), 1},
		"changed":                  {"commits 7", strings.ToLower(valid), 1},
		"cut":                      {"commits 7", valid[:len(valid)-1], 1},
		"longer":                   {"commits 7", valid + "AAAA", 1},
		"a number":                 {"commits 7", "NQ", 1},
		"not base64":               {"commits 7", "!", 1},
		"empty":                    {"commits 7", "", 1},
	} {
		if got, ok := s.Open(test.list, test.cursor, test.n); ok {
			t.Errorf("a cursor that is %s is opened: %d", name, got)
		}
	}

	for i := range valid { // each bit of a cursor is checked, also the last ones, which base64 can ignore
		for _, char := range "AZaz09-_" {
			changed := valid[:i] + string(char) + valid[i+1:]
			if _, ok := s.Open("commits 7", changed, 1); ok && changed != valid {
				t.Errorf("the cursor is opened with %q at %d", char, i)
			}
		}
	}
}

func TestShortKeysAreRefused(t *testing.T) {
	if _, err := New(make([]byte, KeySize-1)); err == nil {
		t.Error("a short key is accepted")
	}
}
