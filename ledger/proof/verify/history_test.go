package verify

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger/proof"
)

// kindOf returns what Extends found: "", a kind of conflict, "fetch" or "invalid".
func kindOf(err error) string {
	if conflict, ok := errors.AsType[*Conflict](err); ok {
		return string(conflict.Kind)
	}
	if _, ok := errors.AsType[*FetchError](err); ok {
		return "fetch"
	}
	if err != nil {
		return "invalid"
	}
	return ""
}

func TestExtends(t *testing.T) {
	ours := (&tree{t: t}).grow(700, "ours")
	fork := (&tree{t: t}).grow(300, "ours").grow(400, "theirs")
	other := ours.at(5)
	other.Origin = "other.example/log"
	wrongRoot := ours.at(0)
	wrongRoot.Root[0]++

	for name, test := range map[string]struct {
		seen, served proof.Checkpoint
		log          *tree
		want         string
	}{
		"grown":               {ours.at(300), ours.at(700), ours, ""},
		"grown by one":        {ours.at(255), ours.at(256), ours, ""},
		"the same":            {ours.at(300), ours.at(300), ours, ""},
		"from nothing":        {ours.at(0), ours.at(700), ours, ""},
		"the common part":     {ours.at(300), fork.at(700), fork, ""},
		"one after it":        {ours.at(301), fork.at(700), fork, "fork"},
		"fork":                {ours.at(600), fork.at(700), fork, "fork"},
		"fork of one size":    {ours.at(700), fork.at(700), fork, "fork"},
		"fork, our tiles":     {ours.at(600), fork.at(700), ours, "invalid"},
		"truncated":           {ours.at(700), ours.at(699), ours, "rollback"},
		"truncated fork":      {ours.at(700), fork.at(400), fork, "rollback"},
		"truncated to none":   {ours.at(1), ours.at(0), ours, "rollback"},
		"another log":         {other, ours.at(700), ours, "invalid"},
		"another empty log":   {wrongRoot, ours.at(700), ours, "fork"},
		"no tiles":            {ours.at(300), ours.at(700), (&tree{t: t}).grow(600, "ours"), "fetch"},
		"tiles of other size": {ours.at(300), ours.at(600), ours, ""},
	} {
		if got := kindOf(Extends(test.seen, test.served, test.log.tiles())); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// Tiles prove nothing that they do not lead to.
func TestTilesAreNotTrusted(t *testing.T) {
	ours := (&tree{t: t}).grow(70_000, "ours")
	for name, broken := range map[string]func(string, []byte) ([]byte, error){
		"a bit":     func(_ string, tile []byte) ([]byte, error) { tile[rand.IntN(len(tile))] ^= 4; return tile, nil },
		"too short": func(_ string, tile []byte) ([]byte, error) { return tile[1:], nil },
		"too long":  func(_ string, tile []byte) ([]byte, error) { return append(tile, 0), nil },
		"empty":     func(string, []byte) ([]byte, error) { return nil, nil },
		"level 0": func(file string, tile []byte) ([]byte, error) {
			if strings.HasPrefix(file, "tile/0/") {
				tile[0] ^= 1
			}
			return tile, nil
		},
	} {
		ours.broken = broken
		if got := kindOf(Extends(ours.at(300), ours.at(70_000), ours.tiles())); got != "invalid" {
			t.Errorf("%s: %q", name, got)
		}
	}
	ours.broken = func(string, []byte) ([]byte, error) { return nil, errors.New("no network") }
	if got := kindOf(Extends(ours.at(300), ours.at(70_000), ours.tiles())); got != "fetch" {
		t.Errorf("without a network: %q", got)
	}
}

// Any prefix of a log is one, and no other tree is.
func TestExtendsRandomTrees(t *testing.T) {
	r := testenv.Rand(t)
	ours := (&tree{t: t}).grow(2000, "ours")
	for range 300 {
		size := 1 + r.IntN(2000)
		old := r.IntN(size + 1)
		if err := Extends(ours.at(old), ours.at(size), ours.tiles()); err != nil {
			t.Fatalf("%d of %d: %v", old, size, err)
		}
		changed := ours.at(old)
		changed.Root[r.IntN(32)] ^= 1 << r.IntN(8)
		if got := kindOf(Extends(changed, ours.at(size), ours.tiles())); got != "fork" {
			t.Fatalf("%d of %d, another root: %q", old, size, got)
		}
	}
}

// Tiles that were verified are read once, and do not fill the memory.
func TestTilesAreKept(t *testing.T) {
	ours := (&tree{t: t}).grow(3000, "ours")
	tiles := ours.tiles()
	for range 3 {
		must.OK(t, Extends(ours.at(300), ours.at(3000), tiles))
	}
	if ours.reads != 3 {
		t.Errorf("%d reads, want 3", ours.reads)
	}

	many := ours.tiles()
	for old := 1; old < 3000; old += 7 {
		must.OK(t, Extends(ours.at(old), ours.at(old+1), many))
	}
	if len(many.known) == 0 || len(many.known) > maxTiles {
		t.Errorf("%d tiles are kept", len(many.known))
	}
}

func TestConflictsSaySo(t *testing.T) {
	c := &Conflict{Rollback, proof.Checkpoint{Size: 7}, proof.Checkpoint{Size: 5}}
	if got := c.Error(); got != "ROLLBACK: the log had 7 events, and now has 5" {
		t.Error(got)
	}
	c.Kind = Fork
	if got := c.Error(); got != "FORK: the first 7 events of the log are not those that were seen before" {
		t.Error(got)
	}
}
