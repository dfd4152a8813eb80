package facts_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store/facts"
)

func TestAddPaths(t *testing.T) {
	record := func(paths string) (changes []radar.Change) {
		for path := range strings.FieldsSeq(paths) {
			changes = append(changes, radar.Change{Path: path, Status: "M"})
		}
		return changes
	}
	renamed := []radar.Change{{Path: "b", OldPath: "a", Status: "R"}}
	for name, test := range map[string]struct {
		claimed     []string
		before, now []radar.Change
		want        []string
	}{
		"the first record":         {nil, nil, record("a"), nil},
		"the same again":           {nil, record("a b"), record("b a"), nil},
		"more":                     {nil, record("a"), record("b a"), nil},
		"fewer":                    {nil, record("a b"), record("b"), []string{"a", "b"}},
		"others":                   {nil, record("a"), record("b"), []string{"a", "b"}},
		"an old path":              {nil, renamed, record("b"), []string{"b", "a"}},
		"fewer than ever claimed":  {[]string{"a", "b", "c"}, record("a b"), record("a b"), []string{"a", "b", "c"}},
		"all that were ever named": {[]string{"a", "b"}, record("a"), record("b a"), nil},
		"nothing, then something":  {nil, []radar.Change{}, record("a"), nil},
		"something, then nothing":  {nil, record("a"), []radar.Change{}, []string{"a"}},
	} {
		if got := facts.AddPaths(test.claimed, test.before, test.now); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// What states no outcome does not take the place of an outcome, whatever was first.
func TestRetracedIsLater(t *testing.T) {
	none, scan := facts.Retraced{}, facts.Retraced{ID: 2, Status: ledger.Recorded}
	pass, fail := facts.Retraced{ID: 1, Status: ledger.Pass}, facts.Retraced{ID: 3, Status: ledger.Fail}
	for _, pair := range [][2]facts.Retraced{{none, scan}, {none, pass}, {scan, pass}, {scan, fail}, {pass, fail}} {
		if !pair[1].IsLater(pair[0]) || pair[0].ID != 0 && pair[0].IsLater(pair[1]) {
			t.Errorf("%+v is not later than %+v", pair[1], pair[0])
		}
	}
}

// What a write has stored is its own until it is on disk: a read at the same time neither sees nor touches it.
func TestReadsDoNotSeeThePathsOfAWrite(t *testing.T) {
	s := must.Get(store.Open(t.Context(), storetest.NewFile(t), store.Options{}))(t)
	defer s.Close()
	if paths := must.Get(s.PathsReadDuringWrite(t.Context(), 1, []string{"a.go"}))(t); paths != nil {
		t.Errorf("a read sees %q, which a write has stored", paths)
	}
}
