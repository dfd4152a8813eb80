package overlaps

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy/conflicts"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// edit returns a change of one line of a file. All edits of a file have the same base.
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
func (fx *fixture) push(sha, branch string, changes ...radar.Change) ledger.RadarResult {
	fx.T.Helper()
	return fx.pushAs(sha, ledger.Registration{Branch: branch, Changes: changes})
}

func (fx *fixture) pushAs(sha string, n ledger.Registration) ledger.RadarResult {
	fx.T.Helper()
	must.OK(fx.T, n.Check())
	n.Author = ledger.Author{Name: "Dora", Email: n.Branch + "@example.org"}
	c, _, err := fx.Register(fx.T.Context(), "acme", "api", sha, n)
	must.OK(fx.T, err)
	return *c.Radar
}

// overlaps lists the open overlaps, as "later+earlier LEVEL" with their branches.
func (fx *fixture) overlaps(f store.RadarFilter) []string {
	fx.T.Helper()
	list := []string{}
	for f.Limit = 2; ; {
		page, err := fx.Overlaps(fx.T.Context(), "acme", "api", f)
		must.OK(fx.T, err)
		for _, p := range page.Data {
			list = append(list, fmt.Sprintf("%s+%s %s", p.Commit.Branch, p.Other.Branch, p.Level))
		}
		if f.Cursor = page.NextCursor; f.Cursor == "" {
			return list
		}
	}
}

func (fx *fixture) wantOverlaps(want ...string) {
	fx.T.Helper()
	if got := fx.overlaps(store.RadarFilter{}); !slices.Equal(got, want) {
		fx.T.Errorf("overlaps %q, want %q", got, want)
	}
}

// radarEvents lists the radar events so far, as "commit LEVEL".
func (fx *fixture) radarEvents() []string {
	fx.T.Helper()
	var list []string
	for _, e := range storetest.EventsOf[ledger.RadarEvent](fx.Fixture) {
		list = append(list, fmt.Sprintf("%.7s %s", e.Commit[33:], e.Level))
	}
	return list
}

// setRadar changes the radar settings of the contract and settles all commits.
func (fx *fixture) setRadar(change func(*conflicts.Settings)) {
	fx.T.Helper()
	fx.changeRadar(change)
	must.OK(fx.T, fx.Settle(fx.T.Context()))
}

// changeRadar is setRadar, but leaves the commits to the background.
func (fx *fixture) changeRadar(change func(*conflicts.Settings)) {
	fx.T.Helper()
	p, err := fx.Policy(fx.T.Context(), "acme", "api", 0)
	must.OK(fx.T, err)
	change(&p.Radar)
	_, err = fx.SetPolicy(fx.T.Context(), "acme", "api", p.Contract, p.Version, "host")
	must.OK(fx.T, err)
}

func (s suite) TestTheRadarFindsOverlaps(t *testing.T) {
	fx := s.newFixture(t)
	fx.push(sha(0), "one", edit("cmd/root.go", 10))
	fx.push(sha(1), "two", edit("cmd/serve.go", 10))
	got := fx.push(sha(2), "three", edit("cmd/root.go", 11), edit("main.go", 1))

	if got.Level != radar.High || len(got.Overlaps) != 2 || got.Truncated {
		t.Fatalf("the result is %+v, want one HIGH and one LOW", got)
	}
	high := got.Overlaps[0]
	if high.Commit.SHA != sha(2) || high.Other.SHA != sha(0) || high.Other.Branch != "one" || high.SameAuthor ||
		high.Paths[0].Reason != radar.SameLines {
		t.Errorf("the strongest overlap is %+v", high)
	}
	fx.wantOverlaps("three+one HIGH", "three+two LOW", "two+one LOW")

	for _, test := range []struct {
		name   string
		filter store.RadarFilter
		want   []string
	}{
		{"by level", store.RadarFilter{Level: radar.High}, []string{"three+one HIGH"}},
		{"by commit, later and earlier", store.RadarFilter{Commit: sha(1)},
			[]string{"three+two LOW", "two+one LOW"}},
		{"by branch", store.RadarFilter{Branch: "one"}, []string{"three+one HIGH", "two+one LOW"}},
	} {
		if got := fx.overlaps(test.filter); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}

	if counts := fx.ReadCommit(sha(0)).Overlaps; counts["HIGH"] != 1 || counts["MEDIUM"] != 0 || counts["LOW"] != 1 {
		t.Errorf("the first commit's record counts %v", counts)
	}
	listed, err := fx.Overlaps(t.Context(), "acme", "api", store.RadarFilter{Query: store.Query{Limit: 1}})
	must.OK(t, err)
	if p := listed.Data[0]; fmt.Sprint(p.Paths) != fmt.Sprint(high.Paths) || p.Since == 0 {
		t.Errorf("listed %+v, want %+v", p, high)
	}
}

func (s suite) TestPreviewOverlapsWritesNothing(t *testing.T) {
	fx := s.newFixture(t)
	fx.push(sha(0), "one", edit("cmd/root.go", 10))
	q := ledger.RadarQuery{
		Registration: ledger.Registration{Branch: "two", Changes: []radar.Change{edit("cmd/root.go", 11)}}}
	got, err := fx.PreviewOverlaps(t.Context(), "acme", "api", q)
	must.OK(t, err)
	if got.Level != radar.High || len(got.Overlaps) != 1 || got.Overlaps[0].Other.SHA != sha(0) {
		t.Errorf("preview is %+v", got)
	}
	fx.wantOverlaps()
	if events := fx.radarEvents(); len(events) != 0 {
		t.Errorf("events %q", events)
	}
}

func (s suite) TestWhichCommitsAreCompared(t *testing.T) {
	root := edit("cmd/root.go", 10)
	tests := []struct {
		name string
		do   func(*fixture)
		want []string
	}{
		{"not commits of the same branch", func(fx *fixture) {
			fx.push(sha(0), "one", root)
			fx.push(sha(1), "one", root, edit("x.go", 1))
		}, nil},
		{"not a commit and its ancestor", func(fx *fixture) {
			fx.push(sha(0), "one", root)
			fx.pushAs(sha(1), ledger.Registration{Branch: "two", Ancestors: []string{sha(0)},
				Changes: []radar.Change{root, edit("x.go", 1)}})
		}, nil},
		{"not superseded", func(fx *fixture) {
			fx.push(sha(0), "one", root)
			fx.push(sha(1), "one", edit("x.go", 1))
			fx.push(sha(2), "two", edit("cmd/root.go", 11))
		}, nil},
		{"not withdrawn", func(fx *fixture) {
			fx.push(sha(0), "one", root)
			must.OK(fx.T, fx.Withdraw(fx.T.Context(), "acme", "api", sha(0)))
			fx.push(sha(1), "two", edit("cmd/root.go", 11))
		}, nil},
		{"not too old", func(fx *fixture) {
			fx.push(sha(0), "one", root)
			fx.Clock.Advance(31 * 24 * time.Hour)
			fx.push(sha(1), "two", edit("cmd/root.go", 11))
		}, nil},
		{"not contained in the base", func(fx *fixture) {
			fx.push(sha(0), "one", root)
			fx.pushAs(sha(1), ledger.Registration{Branch: "two", Contained: []string{sha(0)},
				Changes: []radar.Change{edit("cmd/root.go", 11)}})
		}, nil},
		{"not contained in another commit's base", func(fx *fixture) {
			fx.push(sha(0), "one", root)
			fx.pushAs(sha(1), ledger.Registration{Branch: "two", Contained: []string{sha(0)},
				Changes: []radar.Change{edit("x.go", 1)}})
			fx.push(sha(2), "three", edit("cmd/root.go", 11))
		}, nil},
		{"not without a branch", func(fx *fixture) {
			fx.push(sha(0), "", root)
			fx.push(sha(1), "two", edit("cmd/root.go", 11))
		}, nil},
		{"not ignored paths", func(fx *fixture) {
			fx.setRadar(func(r *conflicts.Settings) { r.Ignore = []string{"**/*.sum"} })
			fx.push(sha(0), "one", edit("go.sum", 1))
			fx.push(sha(1), "two", edit("go.sum", 2))
		}, nil},
		{"none if the radar is off", func(fx *fixture) {
			fx.setRadar(func(r *conflicts.Settings) { r.Enabled = false })
			fx.push(sha(0), "one", root)
			fx.push(sha(1), "two", edit("cmd/root.go", 11))
		}, nil},
		{"a withdrawn commit registered again, as the later one", func(fx *fixture) {
			fx.push(sha(0), "one", root)
			must.OK(fx.T, fx.Withdraw(fx.T.Context(), "acme", "api", sha(0)))
			fx.push(sha(1), "two", edit("cmd/root.go", 11))
			fx.push(sha(0), "one", root)
		}, []string{"one+two HIGH"}},
		{"a file and a directory of the same name", func(fx *fixture) {
			fx.push(sha(0), "one", radar.Change{Path: "api", Status: "A", Mode: "100644", Blob: fmt.Sprintf("%040x", 1)})
			fx.push(sha(1), "two", radar.Change{Path: "api/v1/x.go", Status: "A", Mode: "100644", Blob: fmt.Sprintf("%040x", 2)})
		}, []string{"two+one HIGH"}},
	}

	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			fx := s.newFixture(t)
			test.do(fx)
			fx.wantOverlaps(test.want...)
		})
	}
}

func (s suite) TestWhatEndsAnOverlap(t *testing.T) {
	tests := []struct {
		name string
		do   func(*fixture, *storetest.Signer)
		open bool
	}{
		{"the later side rebased", func(fx *fixture, _ *storetest.Signer) {
			fx.push(sha(5), "later", edit("x.go", 1))
		}, false},
		{"the earlier side superseded", func(fx *fixture, _ *storetest.Signer) {
			fx.push(sha(5), "earlier", edit("x.go", 1))
		}, false},
		{"the later side withdrawn", func(fx *fixture, _ *storetest.Signer) {
			must.OK(fx.T, fx.Withdraw(fx.T.Context(), "acme", "api", sha(1)))
		}, false},
		{"the earlier side withdrawn", func(fx *fixture, _ *storetest.Signer) {
			must.OK(fx.T, fx.Withdraw(fx.T.Context(), "acme", "api", sha(0)))
		}, false},
		{"age", func(fx *fixture, _ *storetest.Signer) { fx.Clock.Advance(31 * 24 * time.Hour) }, false},
		{"the later side deployed", func(fx *fixture, s *storetest.Signer) { s.Deploy(sha(1)) }, false},
		{"not the earlier side deployed", func(fx *fixture, s *storetest.Signer) { s.Deploy(sha(0)) }, true},
		{"not the earlier side deployed and the later one completed", func(fx *fixture, s *storetest.Signer) {
			s.Deploy(sha(0))
			_, _, err := fx.Register(fx.T.Context(), "acme", "api", sha(1), ledger.Registration{Message: "more"})
			must.OK(fx.T, err)
		}, true},
		{"not the later side deployed and rolled back", func(fx *fixture, s *storetest.Signer) {
			s.Deploy(sha(1))
			s.Attest(sha(1), "deploy:prod", ledger.Fail)
		}, true},
		{"not pruning", func(fx *fixture, _ *storetest.Signer) { must.OK(fx.T, fx.Prune(fx.T.Context())) }, true},
	}

	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			fx := s.newFixture(t)
			s := fx.NewSigner("cn=ci,ou=build,o=acme")
			fx.push(sha(0), "earlier", edit("cmd/root.go", 10))
			fx.push(sha(1), "later", edit("cmd/root.go", 11), edit("cmd/root2.go", 1))
			fx.wantOverlaps("later+earlier HIGH")
			test.do(fx, s)
			if test.open {
				fx.wantOverlaps("later+earlier HIGH")
			} else {
				fx.wantOverlaps()
			}

			must.OK(t, fx.Prune(t.Context())) // changes nothing
			if test.open {
				fx.wantOverlaps("later+earlier HIGH")
			} else {
				fx.wantOverlaps()
			}
		})
	}
}

func (s suite) TestRadarEventsReportNewAndWorseOverlaps(t *testing.T) {
	fx := s.newFixture(t)
	fx.push(sha(0), "one", edit("cmd/root.go", 10))
	fx.push(sha(1), "two", edit("cmd/root.go", 200))
	fx.push(sha(1), "two", edit("cmd/root.go", 200))                             // the same again
	fx.push(sha(1), "two", edit("cmd/root.go", 200), edit("x.go", 1))            // no worse
	fx.push(sha(0), "one", edit("cmd/root.go", 10), edit("cmd/root.go.tmpl", 1)) // neither
	if got, want := fx.radarEvents(), []string{"0000002 MEDIUM"}; !slices.Equal(got, want) {
		t.Fatalf("events %q, want %q", got, want)
	}

	fx.push(sha(0), "one", edit("cmd/root.go", 201)) // worse, because of the earlier commit; the event is the later one's
	fx.push(sha(0), "one", edit("cmd/root.go", 10))  // better
	fx.push(sha(0), "one", edit("cmd/root.go", 201)) // the previous worst again
	if got, want := fx.radarEvents(), []string{"0000002 MEDIUM", "0000002 HIGH"}; !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}

	fx.setRadar(func(r *conflicts.Settings) { r.Notify = radar.High })
	fx.push(sha(2), "three", edit("cmd/root.go", 100))
	if got := fx.radarEvents(); len(got) != 2 {
		t.Errorf("events below radar.notify: %q", got[2:])
	}
}

func (s suite) TestARegistrationKeepsTheStrongestOverlaps(t *testing.T) {
	fx := s.newFixture(t)
	for i := range 250 {
		fx.push(sha(i), fmt.Sprint("branch", i), edit(fmt.Sprintf("crowd/f%d.go", i), 1))
	}
	fx.push(sha(900), "strong", edit("crowd/f3.go", 2))
	got := fx.push(sha(901), "last", edit("crowd/f3.go", 3), edit("crowd/f4.go", 90))
	if !got.Truncated || got.Overlaps[0].Level != radar.High || got.Overlaps[1].Level != radar.Medium ||
		got.Overlaps[2].Level != radar.Medium || got.Overlaps[3].Level != radar.Low {
		t.Errorf("the result begins with %+v", got.Overlaps[:4])
	}
	counts := fx.ReadCommit(sha(901)).Overlaps
	if counts["HIGH"] != 1 || counts["MEDIUM"] != 2 || counts["LOW"] != 197 {
		t.Errorf("stored %v, want the strongest 200", counts)
	}

	listed, err := fx.Overlaps(
		t.Context(), "acme", "api", store.RadarFilter{Query: store.Query{Limit: 1}, Commit: sha(901)})
	must.OK(t, err)
	commits, err := fx.Commits(
		t.Context(), "acme", "api", store.CommitFilter{Query: store.Query{Limit: 1}, Branch: "last", Standing: true})
	must.OK(t, err)
	if !fx.ReadCommit(sha(901)).OverlapsTruncated || !commits.Data[0].OverlapsTruncated ||
		!listed.Data[0].Commit.OverlapsTruncated {
		t.Error("the record or a list does not report that overlaps are truncated")
	}

	fx.push(sha(902), "last", edit("main.go", 1))
	if fx.ReadCommit(sha(10)).OverlapsTruncated || fx.ReadCommit(sha(901)).OverlapsTruncated ||
		fx.ReadCommit(sha(902)).OverlapsTruncated {
		t.Error("a commit with all its overlaps, or a superseded one, reports truncated overlaps")
	}
}

func (s suite) TestTheRadarBlocksTheLaterCommit(t *testing.T) {
	fx := s.newFixture(t)
	fx.setRadar(func(r *conflicts.Settings) { r.Block = radar.High })
	ci := fx.NewSigner("cn=ci,ou=build,o=acme")
	fx.push(sha(0), "earlier", edit("cmd/root.go", 10))
	fx.push(sha(1), "later", edit("cmd/root.go", 11))
	ci.MakePromotable(sha(0), sha(1))
	fx.WantState(sha(0), ledger.Promotable)
	fx.WantState(sha(1), ledger.Attested)

	t.Run("until the earlier one is withdrawn", func(t *testing.T) {
		must.OK(t, fx.Withdraw(t.Context(), "acme", "api", sha(0)))
		fx.WantState(sha(1), ledger.Promotable)
	})
	t.Run("again if a new overlap is HIGH", func(t *testing.T) {
		fx.push(sha(2), "third", edit("cmd/root.go", 300))
		ci.MakePromotable(sha(2))
		fx.WantState(sha(2), ledger.Promotable)
		fx.push(sha(1), "later", edit("cmd/root.go", 301)) // the earlier of these two
		fx.WantState(sha(2), ledger.Attested)
		last := fx.ReadCommit(sha(2)).Transitions
		if cause := last[len(last)-1].Cause; cause.Type != ledger.CauseRadar || cause.ID != sha(1) {
			t.Errorf("the cause is %+v", cause)
		}
	})
	t.Run("until the overlap is too old", func(t *testing.T) {
		fx.Clock.Advance(31 * 24 * time.Hour)
		must.OK(t, fx.Settle(t.Context()))
		fx.WantState(sha(2), ledger.Promotable)
	})
}

func (s suite) TestAContractChangeRescansOverlaps(t *testing.T) {
	fx := s.newFixture(t)
	fx.push(sha(0), "one", edit("cmd/root.go", 10), edit("go.sum", 1))
	fx.push(sha(1), "two", edit("cmd/root.go", 11), edit("go.sum", 2))
	fx.wantOverlaps("two+one HIGH")
	fx.setRadar(func(r *conflicts.Settings) { r.Ignore = []string{"cmd/**", "*.sum"} })
	fx.wantOverlaps()
	fx.setRadar(func(r *conflicts.Settings) { r.Enabled = false })
	fx.wantOverlaps()
	fx.setRadar(func(r *conflicts.Settings) { r.Enabled, r.Ignore = true, []string{} })
	fx.wantOverlaps("two+one HIGH")
}

// An ignored file does not hide overlaps of other files in its directory.
func (s suite) TestAnIgnoredFileHidesNoSibling(t *testing.T) {
	for name, test := range map[string]struct{ theirs, mine, ignored string }{
		"a file that is a directory on the other side": {"d/a", "d/a/c", "d/a"},
		"a file below a path added on the other side":  {"d/gen/x.pb", "d/gen", "d/gen/*"},
		"a file in the same directory":                 {"e/x.pb", "e/y", "*.pb"},
	} {
		t.Run(name, func(t *testing.T) {
			fx := s.newFixture(t)
			fx.setRadar(func(r *conflicts.Settings) { r.Ignore = []string{test.ignored} })
			fx.push(sha(0), "one", radar.Change{Path: test.theirs, Status: "M"}, radar.Change{Path: "d/other", Status: "M"})
			fx.push(sha(1), "two", radar.Change{Path: test.mine, Status: "A"}, radar.Change{Path: "d/mine", Status: "M"})
			fx.wantOverlaps("two+one LOW")
		})
	}
}

func (s suite) TestAnIgnoredFileIsNoSibling(t *testing.T) {
	fx := s.newFixture(t)
	fx.setRadar(func(r *conflicts.Settings) { r.Ignore = []string{"**/*.pb"} })
	fx.push(sha(0), "one", radar.Change{Path: "d/x.pb", Status: "M"}, radar.Change{Path: "main.go", Status: "M"})
	fx.push(sha(1), "two", radar.Change{Path: "d/y.go", Status: "M"})
	fx.wantOverlaps()
}
