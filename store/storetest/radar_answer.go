package storetest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store"
)

// sides tells a radar's answer, as "later+earlier LEVEL" by branch.
func sides(pairs []ledger.RadarPair) []string {
	list := []string{}
	for _, p := range pairs {
		list = append(list, fmt.Sprintf("%s+%s %s", p.Commit.Branch, p.Other.Branch, p.Level))
	}
	return list
}

// TestForeseenIsWhatARegistrationFinds asks before a commit is registered, and
// again when the ledger knows it.
func (s suite) TestForeseenIsWhatARegistrationFinds(t *testing.T) {
	tests := []struct {
		name  string
		play  func(*bench, *signer)
		asked ledger.RadarQuery
		want  []string
	}{
		{"of a new commit", func(b *bench, _ *signer) {
			b.push(sha(0), "one", edit("cmd/root.go", 10))
		}, ledger.RadarQuery{Commit: sha(1), Registration: ledger.Registration{
			Branch: "two", Changes: []radar.Change{edit("cmd/root.go", 11)}}}, []string{"two+one HIGH"}},
		{"of one that is in flight, with an earlier one that has landed since", func(b *bench, s *signer) {
			b.push(sha(0), "one", edit("cmd/root.go", 10))
			b.push(sha(1), "two", edit("cmd/root.go", 11))
			s.deploys(sha(0))
		}, ledger.RadarQuery{Commit: sha(1), Registration: ledger.Registration{
			Branch: "two", Changes: []radar.Change{edit("cmd/root.go", 11)}}}, []string{"two+one HIGH"}},
		{"of one that is in flight, with what it left out", func(b *bench, _ *signer) {
			b.push(sha(0), "one", edit("cmd/root.go", 10))
			b.push(sha(1), "two", edit("cmd/root.go", 11))
		}, ledger.RadarQuery{Commit: sha(1)}, []string{"two+one HIGH"}},
		{"of the earlier of two", func(b *bench, _ *signer) {
			b.push(sha(0), "one", edit("cmd/root.go", 10))
			b.push(sha(1), "two", edit("cmd/root.go", 11))
		}, ledger.RadarQuery{Commit: sha(0)}, []string{"two+one HIGH"}},
		{"of one that is too old, as of a new one", func(b *bench, _ *signer) {
			b.push(sha(0), "one", edit("cmd/root.go", 10))
			b.clock.advance(31 * 24 * time.Hour)
			b.push(sha(1), "two", edit("cmd/root.go", 11))
		}, ledger.RadarQuery{Commit: sha(0)}, []string{"one+two HIGH"}},
		{"of one that is deployed", func(b *bench, s *signer) {
			b.push(sha(0), "one", edit("cmd/root.go", 10))
			s.deploys(sha(0))
			b.push(sha(1), "two", edit("cmd/root.go", 11))
		}, ledger.RadarQuery{Commit: sha(0)}, []string{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := s.newBench(t)
			test.play(b, b.signer("cn=ci,ou=build,o=acme"))
			got, err := b.Foresee(t.Context(), "acme", "api", test.asked)
			check(t, err)
			if told := sides(got.Overlaps); !slices.Equal(told, test.want) {
				t.Errorf("foreseen is %q, want %q", told, test.want)
			}
			if len(got.Overlaps) > 0 && got.Overlaps[0].SameAuthor {
				t.Error("they are of one author")
			}
		})
	}
}

func (s suite) TestAnAnswerTellsSinceWhen(t *testing.T) {
	b := s.newBench(t)
	b.push(sha(0), "one", edit("cmd/root.go", 10))
	first := b.push(sha(1), "two", edit("cmd/root.go", 11)).Overlaps[0].Since
	b.clock.advance(time.Hour)
	again := b.push(sha(1), "two", edit("cmd/root.go", 11)).Overlaps[0].Since
	listed, err := b.Overlaps(t.Context(), "acme", "api", store.RadarFilter{Query: store.Query{Limit: 1}})
	check(t, err)
	if first == 0 || again != first || listed.Data[0].Since != first {
		t.Errorf("first since %s, pushed again since %s, listed since %s", first, again, listed.Data[0].Since)
	}
}

// TestWhatIsIgnoredIsNotListed lists overlaps before the radar has looked anew:
// what is kept of them is of the contract before.
func (s suite) TestWhatIsIgnoredIsNotListed(t *testing.T) {
	b := s.newBench(t)
	b.push(sha(0), "one", edit("cmd/root.go", 10), edit("go.sum", 1), edit("x.go", 1))
	b.push(sha(1), "two", edit("cmd/root.go", 100), edit("go.sum", 2), edit("x.go", 1))
	b.push(sha(2), "three", edit("cmd/root.go", 200), edit("y.go", 1))
	b.push(sha(3), "four", edit("go.sum", 30))
	b.wantOverlaps("two+one HIGH", "four+two MEDIUM", "four+one MEDIUM", "three+two MEDIUM", "three+one MEDIUM")

	p, err := b.Policy(t.Context(), "acme", "api", 0)
	check(t, err)
	p.Radar.Ignore = []string{"*.sum"}
	_, err = b.SetPolicy(t.Context(), "acme", "api", p.Contract, p.Version, "host")
	check(t, err)
	for _, test := range []struct {
		name  string
		level radar.Level
		want  []string
	}{
		{"all", radar.NoLevel, []string{"two+one MEDIUM", "three+two MEDIUM", "three+one MEDIUM"}},
		{"of HIGH", radar.High, []string{}},
	} {
		list, err := b.Overlaps(
			t.Context(), "acme", "api", store.RadarFilter{Query: store.Query{Limit: 100}, Level: test.level})
		check(t, err)
		if got := sides(list.Data); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
		for _, pair := range list.Data {
			if len(pair.Paths) == 0 || pair.Paths[0].Level != pair.Level {
				t.Errorf("%s: %s with paths %+v", test.name, pair.Level, pair.Paths)
			}
		}
	}
	check(t, b.Settle(t.Context()))
	b.wantOverlaps("three+two MEDIUM", "three+one MEDIUM", "two+one MEDIUM")
}

// TestACrowdedDirectory registers 2,000 commits of one file each in one
// directory: each overlaps with all before it, at LOW.
func (s suite) TestACrowdedDirectory(t *testing.T) {
	b := s.newBench(t)
	const tips, lanes = 2000, 8
	var filling sync.WaitGroup
	for lane := range lanes {
		filling.Go(func() {
			for i := lane; i < tips; i += lanes {
				b.push(sha(i), fmt.Sprint("branch", i), edit(fmt.Sprintf("crowd/f%d.go", i), 1))
			}
		})
	}
	filling.Wait()
	got := b.push(sha(tips), "last", edit("crowd/last.go", 1))
	if len(got.Overlaps) != 20 || !got.Truncated {
		t.Errorf("the answer holds %d overlaps, truncated: %t", len(got.Overlaps), got.Truncated)
	}
	if counts := b.commit(sha(tips)).Overlaps; counts["LOW"] != radar.MaxPairs {
		t.Errorf("kept are %v", counts)
	}
}

// TestOneRegistrationTellsTheStrongest: of more overlaps than an answer holds,
// events tell the strongest, once.
func (s suite) TestOneRegistrationTellsTheStrongest(t *testing.T) {
	b := s.newBench(t)
	b.setRadar(func(r *policy.RadarSettings) { r.Notify = radar.High })
	for i := range 30 {
		b.push(sha(i), fmt.Sprint("low", i), edit(fmt.Sprintf("crowd/f%d.go", i), 1))
	}
	b.push(sha(40), "high", edit("crowd/f3.go", 2))
	b.setRadar(func(r *policy.RadarSettings) { r.Notify = radar.Low })

	want := []string{"0000029 HIGH", "0000033 HIGH", "0000033 MEDIUM"}
	b.push(sha(50), "last", edit("crowd/f3.go", 3), edit("crowd/last.go", 1))
	for range 18 {
		want = append(want, "0000033 LOW")
	}
	if got := b.radarEvents(); !slices.Equal(got, want) {
		t.Fatalf("told %q, want %q", got, want)
	}
	b.push(sha(50), "last", edit("crowd/f3.go", 3), edit("crowd/last.go", 1))
	if got := b.radarEvents(); len(got) != len(want) {
		t.Errorf("pushed again, it told %q", got[len(want):])
	}
	// One that was not told becomes worse.
	b.push(sha(50), "last", edit("crowd/f3.go", 3), edit("crowd/f0.go", 2))
	if got := b.radarEvents(); len(got) != len(want)+1 || got[len(want)] != "0000033 HIGH" {
		t.Errorf("with one worse, it told %q", got[len(want):])
	}
}
