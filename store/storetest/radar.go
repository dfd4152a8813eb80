package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store"
)

// edit is a change of the given line of a file that all start from.
func edit(path string, line int) radar.Change {
	hash := func(kind string, gap int) string { return fmt.Sprintf("%s%014x", kind, gap) }
	return radar.Change{
		Path: path, Status: "M", OldMode: "100644", Mode: "100644", OldBlob: fmt.Sprintf("%040x", len(path)),
		Blob: fmt.Sprintf("%032x%08x", len(path), line),
		Hunks: []radar.Hunk{{
			Start: line, Lines: 1, Added: 1, Text: hash("e1", line),
			Near: []string{hash("aa", line-1), hash("aa", line)}, Far: []string{hash("bb", line-1), hash("bb", line)},
		}},
	}
}

// push registers a commit as its branch's tip.
func (b *bench) push(sha, branch string, changes ...radar.Change) ledger.RadarResult {
	b.t.Helper()
	return b.pushAs(sha, ledger.Registration{Branch: branch, Changes: changes})
}

func (b *bench) pushAs(sha string, n ledger.Registration) ledger.RadarResult {
	b.t.Helper()
	check(b.t, n.Check())
	n.Author = ledger.Author{Name: "Ann", Email: n.Branch + "@example.org"}
	c, _, err := b.Register(b.t.Context(), "acme", "api", sha, n)
	check(b.t, err)
	return *c.Radar
}

// overlaps lists what is open, as "later+earlier LEVEL" by branch.
func (b *bench) overlaps(f store.RadarFilter) []string {
	b.t.Helper()
	list := []string{}
	for f.Limit = 2; ; {
		page, err := b.Overlaps(b.t.Context(), "acme", "api", f)
		check(b.t, err)
		for _, p := range page.Data {
			list = append(list, fmt.Sprintf("%s+%s %s", p.Commit.Branch, p.Other.Branch, p.Level))
		}
		if f.Cursor = page.NextCursor; f.Cursor == "" {
			return list
		}
	}
}

func (b *bench) wantOverlaps(want ...string) {
	b.t.Helper()
	if got := b.overlaps(store.RadarFilter{}); !slices.Equal(got, want) {
		b.t.Errorf("open are %q, want %q", got, want)
	}
}

// radarEvents lists the radar events told so far, as "commit LEVEL".
func (b *bench) radarEvents() []string {
	b.t.Helper()
	page, err := b.Events(b.t.Context(), "acme",
		store.EventFilter{Query: store.Query{Limit: 500}, Types: []ledger.EventType{ledger.EventRadar}})
	check(b.t, err)
	var list []string
	for _, body := range page.Data {
		var e ledger.RadarEvent
		check(b.t, ledger.DecodeOpen(body, &e))
		list = append(list, fmt.Sprintf("%.7s %s", e.Commit[33:], e.Level))
	}
	return list
}

// setRadar makes a contract active that asks for nothing but has this radar, and has
// Evaluate reach all commits.
func (b *bench) setRadar(change func(*policy.RadarSettings)) {
	b.t.Helper()
	b.changeRadar(change)
	check(b.t, b.Settle(b.t.Context()))
}

// changeRadar is setRadar without Evaluate.
func (b *bench) changeRadar(change func(*policy.RadarSettings)) {
	b.t.Helper()
	p, err := b.Policy(b.t.Context(), "acme", "api", 0)
	check(b.t, err)
	change(&p.Radar)
	_, err = b.SetPolicy(b.t.Context(), "acme", "api", p.Contract, p.Version, "host")
	check(b.t, err)
}

func (s suite) TestTheRadarFindsWhatOverlaps(t *testing.T) {
	b := s.newBench(t)
	b.push(sha(0), "one", edit("cmd/root.go", 10))
	b.push(sha(1), "two", edit("cmd/serve.go", 10))
	got := b.push(sha(2), "three", edit("cmd/root.go", 11), edit("main.go", 1))

	if got.Level != radar.High || len(got.Overlaps) != 2 || got.Truncated {
		t.Fatalf("the answer is %+v, want one HIGH and one LOW", got)
	}
	high := got.Overlaps[0]
	if high.Commit.SHA != sha(2) || high.Other.SHA != sha(0) || high.Other.Branch != "one" || high.SameAuthor ||
		high.Paths[0].Reason != radar.SameLines {
		t.Errorf("the strongest is %+v", high)
	}
	b.wantOverlaps("three+one HIGH", "three+two LOW", "two+one LOW")
	for _, test := range []struct {
		name   string
		filter store.RadarFilter
		want   []string
	}{
		{"by level", store.RadarFilter{Level: radar.High}, []string{"three+one HIGH"}},
		{"by commit, as the later and as the earlier", store.RadarFilter{Commit: sha(1)},
			[]string{"three+two LOW", "two+one LOW"}},
		{"by branch", store.RadarFilter{Branch: "one"}, []string{"three+one HIGH", "two+one LOW"}},
	} {
		if got := b.overlaps(test.filter); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
	if counts := b.commit(sha(0)).Overlaps; counts["HIGH"] != 1 || counts["MEDIUM"] != 0 || counts["LOW"] != 1 {
		t.Errorf("the record of the first counts %v", counts)
	}
	listed, err := b.Overlaps(t.Context(), "acme", "api", store.RadarFilter{Query: store.Query{Limit: 1}})
	check(t, err)
	if p := listed.Data[0]; fmt.Sprint(p.Paths) != fmt.Sprint(high.Paths) || p.Since == 0 {
		t.Errorf("listed as %+v, answered as %+v", p, high)
	}
}

func (s suite) TestForeseeWritesNothing(t *testing.T) {
	b := s.newBench(t)
	b.push(sha(0), "one", edit("cmd/root.go", 10))
	q := ledger.RadarQuery{
		Registration: ledger.Registration{Branch: "two", Changes: []radar.Change{edit("cmd/root.go", 11)}}}
	got, err := b.Foresee(t.Context(), "acme", "api", q)
	check(t, err)
	if got.Level != radar.High || len(got.Overlaps) != 1 || got.Overlaps[0].Other.SHA != sha(0) {
		t.Errorf("foreseen is %+v", got)
	}
	b.wantOverlaps()
	if events := b.radarEvents(); len(events) != 0 {
		t.Errorf("events %q", events)
	}
}

func (s suite) TestWhoIsCompared(t *testing.T) {
	root := edit("cmd/root.go", 10)
	tests := []struct {
		name string
		play func(*bench)
		want []string
	}{
		{"not two of one branch", func(b *bench) {
			b.push(sha(0), "one", root)
			b.push(sha(1), "one", root, edit("x.go", 1))
		}, nil},
		{"not a commit and what it is built on", func(b *bench) {
			b.push(sha(0), "one", root)
			b.pushAs(sha(1), ledger.Registration{Branch: "two", Ancestors: []string{sha(0)},
				Changes: []radar.Change{root, edit("x.go", 1)}})
		}, nil},
		{"not what has been superseded", func(b *bench) {
			b.push(sha(0), "one", root)
			b.push(sha(1), "one", edit("x.go", 1))
			b.push(sha(2), "two", edit("cmd/root.go", 11))
		}, nil},
		{"not what has been withdrawn", func(b *bench) {
			b.push(sha(0), "one", root)
			check(b.t, b.Withdraw(b.t.Context(), "acme", "api", sha(0)))
			b.push(sha(1), "two", edit("cmd/root.go", 11))
		}, nil},
		{"not what is too old", func(b *bench) {
			b.push(sha(0), "one", root)
			b.clock.advance(31 * 24 * time.Hour)
			b.push(sha(1), "two", edit("cmd/root.go", 11))
		}, nil},
		{"not what its base holds", func(b *bench) {
			b.push(sha(0), "one", root)
			b.pushAs(sha(1), ledger.Registration{Branch: "two", Contained: []string{sha(0)},
				Changes: []radar.Change{edit("cmd/root.go", 11)}})
		}, nil},
		{"not what the base of somebody else held", func(b *bench) {
			b.push(sha(0), "one", root)
			b.pushAs(sha(1), ledger.Registration{Branch: "two", Contained: []string{sha(0)},
				Changes: []radar.Change{edit("x.go", 1)}})
			b.push(sha(2), "three", edit("cmd/root.go", 11))
		}, nil},
		{"not what is registered without a branch", func(b *bench) {
			b.push(sha(0), "", root)
			b.push(sha(1), "two", edit("cmd/root.go", 11))
		}, nil},
		{"not what the contract ignores", func(b *bench) {
			b.setRadar(func(r *policy.RadarSettings) { r.Ignore = []string{"**/*.sum"} })
			b.push(sha(0), "one", edit("go.sum", 1))
			b.push(sha(1), "two", edit("go.sum", 2))
		}, nil},
		{"nobody where the radar is off", func(b *bench) {
			b.setRadar(func(r *policy.RadarSettings) { r.Enabled = false })
			b.push(sha(0), "one", root)
			b.push(sha(1), "two", edit("cmd/root.go", 11))
		}, nil},
		{"a withdrawn commit that is pushed again, as the later one", func(b *bench) {
			b.push(sha(0), "one", root)
			check(b.t, b.Withdraw(b.t.Context(), "acme", "api", sha(0)))
			b.push(sha(1), "two", edit("cmd/root.go", 11))
			b.push(sha(0), "one", root)
		}, []string{"one+two HIGH"}},
		{"a file and the directory of that name", func(b *bench) {
			b.push(sha(0), "one", radar.Change{Path: "api", Status: "A", Mode: "100644", Blob: fmt.Sprintf("%040x", 1)})
			b.push(sha(1), "two", radar.Change{Path: "api/v1/x.go", Status: "A", Mode: "100644", Blob: fmt.Sprintf("%040x", 2)})
		}, []string{"two+one HIGH"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := s.newBench(t)
			test.play(b)
			b.wantOverlaps(test.want...)
		})
	}
}

func (s suite) TestWhatEndsAnOverlap(t *testing.T) {
	tests := []struct {
		name string
		do   func(*bench, *signer)
		open bool
	}{
		{"the later side rebased", func(b *bench, _ *signer) { b.push(sha(5), "later", edit("x.go", 1)) }, false},
		{"the earlier side pushed anew", func(b *bench, _ *signer) { b.push(sha(5), "earlier", edit("x.go", 1)) }, false},
		{"the later side withdrawn", func(b *bench, _ *signer) {
			check(b.t, b.Withdraw(b.t.Context(), "acme", "api", sha(1)))
		}, false},
		{"the earlier side withdrawn", func(b *bench, _ *signer) {
			check(b.t, b.Withdraw(b.t.Context(), "acme", "api", sha(0)))
		}, false},
		{"age", func(b *bench, _ *signer) { b.clock.advance(31 * 24 * time.Hour) }, false},
		{"the later side deployed", func(b *bench, s *signer) { s.deploys(sha(1)) }, false},
		{"not the earlier side deployed", func(b *bench, s *signer) { s.deploys(sha(0)) }, true},
		{"not the earlier side deployed and the later one completed", func(b *bench, s *signer) {
			s.deploys(sha(0))
			_, _, err := b.Register(b.t.Context(), "acme", "api", sha(1), ledger.Registration{Message: "more"})
			check(b.t, err)
		}, true},
		{"not the later side deployed and rolled back", func(b *bench, s *signer) {
			s.deploys(sha(1))
			s.attests(sha(1), "deploy:prod", ledger.Fail)
		}, true},
		{"not pruning", func(b *bench, _ *signer) { check(b.t, b.Prune(b.t.Context())) }, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := s.newBench(t)
			s := b.signer("cn=ci,ou=build,o=acme")
			b.push(sha(0), "earlier", edit("cmd/root.go", 10))
			b.push(sha(1), "later", edit("cmd/root.go", 11), edit("cmd/root2.go", 1))
			b.wantOverlaps("later+earlier HIGH")
			test.do(b, s)
			if test.open {
				b.wantOverlaps("later+earlier HIGH")
			} else {
				b.wantOverlaps()
			}
			check(t, b.Prune(t.Context())) // changes nothing of that
			if test.open {
				b.wantOverlaps("later+earlier HIGH")
			} else {
				b.wantOverlaps()
			}
		})
	}
}

// deploys brings a commit up to DEPLOYED.
func (s *signer) deploys(sha string) {
	s.b.t.Helper()
	for _, predicate := range []string{"test:go", "review:code", "deploy:prod"} {
		s.attests(sha, predicate, ledger.Pass)
	}
	s.b.wantState(sha, ledger.Deployed)
}

func (s suite) TestRadarEventsTellWhatIsNewOrWorse(t *testing.T) {
	b := s.newBench(t)
	b.push(sha(0), "one", edit("cmd/root.go", 10))
	b.push(sha(1), "two", edit("cmd/root.go", 200))
	b.push(sha(1), "two", edit("cmd/root.go", 200))                             // the same again
	b.push(sha(1), "two", edit("cmd/root.go", 200), edit("x.go", 1))            // no worse
	b.push(sha(0), "one", edit("cmd/root.go", 10), edit("cmd/root.go.tmpl", 1)) // neither
	if got, want := b.radarEvents(), []string{"0000002 MEDIUM"}; !slices.Equal(got, want) {
		t.Fatalf("told %q, want %q", got, want)
	}
	b.push(sha(0), "one", edit("cmd/root.go", 201)) // worse, by the earlier side: told about the later one
	b.push(sha(0), "one", edit("cmd/root.go", 10))  // better
	b.push(sha(0), "one", edit("cmd/root.go", 201)) // as bad as it was
	if got, want := b.radarEvents(), []string{"0000002 MEDIUM", "0000002 HIGH"}; !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
	b.setRadar(func(r *policy.RadarSettings) { r.Notify = radar.High })
	b.push(sha(2), "three", edit("cmd/root.go", 100))
	if got := b.radarEvents(); len(got) != 2 {
		t.Errorf("below radar.notify told %q", got[2:])
	}
}

func (s suite) TestOneRegistrationKeepsTheStrongest(t *testing.T) {
	b := s.newBench(t)
	for i := range 250 {
		b.push(sha(i), fmt.Sprint("branch", i), edit(fmt.Sprintf("crowd/f%d.go", i), 1))
	}
	b.push(sha(900), "strong", edit("crowd/f3.go", 2))
	got := b.push(sha(901), "last", edit("crowd/f3.go", 3), edit("crowd/f4.go", 90))
	if !got.Truncated || got.Overlaps[0].Level != radar.High || got.Overlaps[1].Level != radar.Medium ||
		got.Overlaps[2].Level != radar.Medium || got.Overlaps[3].Level != radar.Low {
		t.Errorf("the answer begins with %+v", got.Overlaps[:4])
	}
	counts := b.commit(sha(901)).Overlaps
	if counts["HIGH"] != 1 || counts["MEDIUM"] != 2 || counts["LOW"] != 197 {
		t.Errorf("kept are %v, want the strongest 200", counts)
	}
	listed, err := b.Overlaps(
		t.Context(), "acme", "api", store.RadarFilter{Query: store.Query{Limit: 1}, Commit: sha(901)})
	check(t, err)
	standing, err := b.Commits(
		t.Context(), "acme", "api", store.CommitFilter{Query: store.Query{Limit: 1}, Branch: "last", Standing: true})
	check(t, err)
	if !b.commit(sha(901)).OverlapsTruncated || !standing.Data[0].OverlapsTruncated ||
		!listed.Data[0].Commit.OverlapsTruncated {
		t.Error("the record, or a list, does not tell that there were more")
	}
	b.push(sha(902), "last", edit("main.go", 1))
	if b.commit(sha(10)).OverlapsTruncated || b.commit(sha(901)).OverlapsTruncated ||
		b.commit(sha(902)).OverlapsTruncated {
		t.Error("a commit that has all its overlaps, or is superseded, tells of more")
	}
}

func (s suite) TestTheRadarBlocksTheLaterCommit(t *testing.T) {
	b := s.newBench(t)
	b.setRadar(func(r *policy.RadarSettings) { r.Block = radar.High })
	ci := b.signer("cn=ci,ou=build,o=acme")
	b.push(sha(0), "earlier", edit("cmd/root.go", 10))
	b.push(sha(1), "later", edit("cmd/root.go", 11))
	for _, commit := range []string{sha(0), sha(1)} {
		ci.attests(commit, "test:go", ledger.Pass)
		ci.attests(commit, "review:code", ledger.Pass)
	}
	b.wantState(sha(0), ledger.Promotable)
	b.wantState(sha(1), ledger.Attested)

	t.Run("until the earlier one is withdrawn", func(t *testing.T) {
		check(t, b.Withdraw(t.Context(), "acme", "api", sha(0)))
		b.wantState(sha(1), ledger.Promotable)
	})
	t.Run("again when it comes back worse than before", func(t *testing.T) {
		b.push(sha(2), "third", edit("cmd/root.go", 300))
		ci.attests(sha(2), "test:go", ledger.Pass)
		ci.attests(sha(2), "review:code", ledger.Pass)
		b.wantState(sha(2), ledger.Promotable)
		b.push(sha(1), "later", edit("cmd/root.go", 301)) // the earlier of these two
		b.wantState(sha(2), ledger.Attested)
		last := b.commit(sha(2)).Transitions
		if cause := last[len(last)-1].Cause; cause.Type != ledger.CauseRadar || cause.ID != sha(1) {
			t.Errorf("the cause is %+v", cause)
		}
	})
	t.Run("until age ends it", func(t *testing.T) {
		b.clock.advance(31 * 24 * time.Hour)
		check(t, b.Settle(t.Context()))
		b.wantState(sha(2), ledger.Promotable)
	})
}

func (s suite) TestAChangedContractMakesTheRadarLookAnew(t *testing.T) {
	b := s.newBench(t)
	b.push(sha(0), "one", edit("cmd/root.go", 10), edit("go.sum", 1))
	b.push(sha(1), "two", edit("cmd/root.go", 11), edit("go.sum", 2))
	b.wantOverlaps("two+one HIGH")
	b.setRadar(func(r *policy.RadarSettings) { r.Ignore = []string{"cmd/**", "*.sum"} })
	b.wantOverlaps()
	b.setRadar(func(r *policy.RadarSettings) { r.Enabled = false })
	b.wantOverlaps()
	b.setRadar(func(r *policy.RadarSettings) { r.Enabled, r.Ignore = true, []string{} })
	b.wantOverlaps("two+one HIGH")
}

// A file that the contract ignores does not keep others beside it from counting.
func (s suite) TestWhatIsIgnoredHidesNoSibling(t *testing.T) {
	for name, test := range map[string]struct{ theirs, mine, ignored string }{
		"a file where the other makes a directory": {"d/a", "d/a/c", "d/a"},
		"a file below one that the other makes":    {"d/gen/x.pb", "d/gen", "d/gen/*"},
		"a file beside":                            {"e/x.pb", "e/y", "*.pb"},
	} {
		t.Run(name, func(t *testing.T) {
			b := s.newBench(t)
			b.setRadar(func(r *policy.RadarSettings) { r.Ignore = []string{test.ignored} })
			b.push(sha(0), "one", radar.Change{Path: test.theirs, Status: "M"}, radar.Change{Path: "d/other", Status: "M"})
			b.push(sha(1), "two", radar.Change{Path: test.mine, Status: "A"}, radar.Change{Path: "d/mine", Status: "M"})
			b.wantOverlaps("two+one LOW")
		})
	}
}

func (s suite) TestWhatIsIgnoredIsNoSibling(t *testing.T) {
	b := s.newBench(t)
	b.setRadar(func(r *policy.RadarSettings) { r.Ignore = []string{"**/*.pb"} })
	b.push(sha(0), "one", radar.Change{Path: "d/x.pb", Status: "M"}, radar.Change{Path: "main.go", Status: "M"})
	b.push(sha(1), "two", radar.Change{Path: "d/y.go", Status: "M"})
	b.wantOverlaps()
}
