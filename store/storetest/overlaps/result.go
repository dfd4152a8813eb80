package overlaps

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy/conflicts"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// describe formats overlaps as "later+earlier LEVEL", with their branches.
func describe(pairs []ledger.RadarPair) []string {
	list := []string{}
	for _, p := range pairs {
		list = append(list, fmt.Sprintf("%s+%s %s", p.Commit.Branch, p.Other.Branch, p.Level))
	}
	return list
}

// TestPreviewFindsTheOverlapsOfARegistration queries the radar for commits that are
// registered and for new ones.
func (s suite) TestPreviewFindsTheOverlapsOfARegistration(t *testing.T) {
	tests := []struct {
		name  string
		do    func(*fixture, *storetest.Signer)
		query ledger.RadarQuery
		want  []string
	}{
		{"a new commit", func(fx *fixture, _ *storetest.Signer) {
			fx.push(sha(0), "one", edit("cmd/root.go", 10))
		}, ledger.RadarQuery{Commit: sha(1), Registration: ledger.Registration{
			Branch: "two", Changes: []radar.Change{edit("cmd/root.go", 11)}}}, []string{"two+one HIGH"}},
		{"in flight, with an earlier commit that was deployed since", func(fx *fixture, s *storetest.Signer) {
			fx.push(sha(0), "one", edit("cmd/root.go", 10))
			fx.push(sha(1), "two", edit("cmd/root.go", 11))
			s.Deploy(sha(0))
		}, ledger.RadarQuery{Commit: sha(1), Registration: ledger.Registration{
			Branch: "two", Changes: []radar.Change{edit("cmd/root.go", 11)}}}, []string{"two+one HIGH"}},
		{"in flight, with the changes omitted", func(fx *fixture, _ *storetest.Signer) {
			fx.push(sha(0), "one", edit("cmd/root.go", 10))
			fx.push(sha(1), "two", edit("cmd/root.go", 11))
		}, ledger.RadarQuery{Commit: sha(1)}, []string{"two+one HIGH"}},
		{"the earlier of two", func(fx *fixture, _ *storetest.Signer) {
			fx.push(sha(0), "one", edit("cmd/root.go", 10))
			fx.push(sha(1), "two", edit("cmd/root.go", 11))
		}, ledger.RadarQuery{Commit: sha(0)}, []string{"two+one HIGH"}},
		{"too old, treated as new", func(fx *fixture, _ *storetest.Signer) {
			fx.push(sha(0), "one", edit("cmd/root.go", 10))
			fx.Clock.Advance(31 * 24 * time.Hour)
			fx.push(sha(1), "two", edit("cmd/root.go", 11))
		}, ledger.RadarQuery{Commit: sha(0)}, []string{"one+two HIGH"}},
		{"deployed", func(fx *fixture, s *storetest.Signer) {
			fx.push(sha(0), "one", edit("cmd/root.go", 10))
			s.Deploy(sha(0))
			fx.push(sha(1), "two", edit("cmd/root.go", 11))
		}, ledger.RadarQuery{Commit: sha(0)}, []string{}},
	}

	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			fx := s.newFixture(t)
			test.do(fx, fx.NewSigner("cn=ci,ou=build,o=acme"))
			result, err := fx.PreviewOverlaps(t.Context(), "acme", "api", test.query)
			must.OK(t, err)
			if got := describe(result.Overlaps); !slices.Equal(got, test.want) {
				t.Errorf("overlaps %q, want %q", got, test.want)
			}
			if len(result.Overlaps) > 0 && result.Overlaps[0].SameAuthor {
				t.Error("SameAuthor is true, want false")
			}
		})
	}
}

func (s suite) TestAnOverlapHasItsStartTime(t *testing.T) {
	fx := s.newFixture(t)
	fx.push(sha(0), "one", edit("cmd/root.go", 10))
	first := fx.push(sha(1), "two", edit("cmd/root.go", 11)).Overlaps[0].Since
	fx.Clock.Advance(time.Hour)
	again := fx.push(sha(1), "two", edit("cmd/root.go", 11)).Overlaps[0].Since
	listed, err := fx.Overlaps(t.Context(), "acme", "api", store.RadarFilter{Query: store.Query{Limit: 1}})
	must.OK(t, err)
	if first == 0 || again != first || listed.Data[0].Since != first {
		t.Errorf("first since %s, pushed again since %s, listed since %s", first, again, listed.Data[0].Since)
	}
}

// TestIgnoredPathsAreNotListed lists overlaps before the radar has re-scanned: those
// stored are of the previous contract.
func (s suite) TestIgnoredPathsAreNotListed(t *testing.T) {
	fx := s.newFixture(t)
	fx.push(sha(0), "one", edit("cmd/root.go", 10), edit("go.sum", 1), edit("x.go", 1))
	fx.push(sha(1), "two", edit("cmd/root.go", 100), edit("go.sum", 2), edit("x.go", 1))
	fx.push(sha(2), "three", edit("cmd/root.go", 200), edit("y.go", 1))
	fx.push(sha(3), "four", edit("go.sum", 30))
	fx.wantOverlaps("two+one HIGH", "four+two MEDIUM", "four+one MEDIUM", "three+two MEDIUM", "three+one MEDIUM")

	p, err := fx.Policy(t.Context(), "acme", "api", 0)
	must.OK(t, err)
	p.Radar.Ignore = []string{"*.sum"}
	_, err = fx.SetPolicy(t.Context(), "acme", "api", p.Contract, p.Version, "host")
	must.OK(t, err)

	for _, test := range []struct {
		name  string
		level radar.Level
		want  []string
	}{
		{"all", radar.NoLevel, []string{"two+one MEDIUM", "three+two MEDIUM", "three+one MEDIUM"}},
		{"HIGH", radar.High, []string{}},
	} {
		list, err := fx.Overlaps(
			t.Context(), "acme", "api", store.RadarFilter{Query: store.Query{Limit: 100}, Level: test.level})
		must.OK(t, err)
		if got := describe(list.Data); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
		for _, pair := range list.Data {
			if len(pair.Paths) == 0 || pair.Paths[0].Level != pair.Level {
				t.Errorf("%s: %s with paths %+v", test.name, pair.Level, pair.Paths)
			}
		}
	}
	must.OK(t, fx.Settle(t.Context()))
	fx.wantOverlaps("three+two MEDIUM", "three+one MEDIUM", "two+one MEDIUM")
}

// TestACrowdedDirectory registers 2,000 commits that each change a different file of
// one directory. Each overlaps with all before it, at LOW.
func (s suite) TestACrowdedDirectory(t *testing.T) {
	testenv.From(t, testenv.Full, "fills a limit")
	fx := s.newFixture(t)
	const tips, lanes = 2000, 8
	var filling sync.WaitGroup
	for lane := range lanes {
		filling.Go(func() {
			for i := lane; i < tips; i += lanes {
				fx.push(sha(i), fmt.Sprint("branch", i), edit(fmt.Sprintf("crowd/f%d.go", i), 1))
			}
		})
	}
	filling.Wait()
	got := fx.push(sha(tips), "last", edit("crowd/last.go", 1))
	if len(got.Overlaps) != 20 || !got.Truncated {
		t.Errorf("the result has %d overlaps, truncated: %t", len(got.Overlaps), got.Truncated)
	}
	if counts := fx.ReadCommit(sha(tips)).Overlaps; counts["LOW"] != radar.MaxPairs {
		t.Errorf("stored %v", counts)
	}
}

// If a registration has more overlaps than its result holds, events report the
// strongest, each once.
func (s suite) TestEventsReportTheStrongestOverlapsOfARegistration(t *testing.T) {
	fx := s.newFixture(t)
	fx.setRadar(func(r *conflicts.Settings) { r.Notify = radar.High })
	for i := range 30 {
		fx.push(sha(i), fmt.Sprint("low", i), edit(fmt.Sprintf("crowd/f%d.go", i), 1))
	}
	fx.push(sha(40), "high", edit("crowd/f3.go", 2))
	fx.setRadar(func(r *conflicts.Settings) { r.Notify = radar.Low })

	want := []string{"0000029 HIGH", "0000033 HIGH", "0000033 MEDIUM"}
	fx.push(sha(50), "last", edit("crowd/f3.go", 3), edit("crowd/last.go", 1))
	for range 18 {
		want = append(want, "0000033 LOW")
	}
	if got := fx.radarEvents(); !slices.Equal(got, want) {
		t.Fatalf("events %q, want %q", got, want)
	}

	fx.push(sha(50), "last", edit("crowd/f3.go", 3), edit("crowd/last.go", 1))
	if got := fx.radarEvents(); len(got) != len(want) {
		t.Errorf("events after pushing again: %q", got[len(want):])
	}

	// An overlap that no event reported becomes worse.
	fx.push(sha(50), "last", edit("crowd/f3.go", 3), edit("crowd/f0.go", 2))
	if got := fx.radarEvents(); len(got) != len(want)+1 || got[len(want)] != "0000033 HIGH" {
		t.Errorf("events after one became worse: %q", got[len(want):])
	}
}

// A registration says which tip it has not replaced, because the tip is built on its commit. Once that one is
// withdrawn, the next registration makes the commit the tip.
func (s suite) TestARegistrationSaysWhichTipStays(t *testing.T) {
	first := ledger.Registration{Branch: "one", Changes: []radar.Change{edit("cmd/root.go", 10)}}
	above := func(branch string) ledger.Registration {
		return ledger.Registration{
			Branch: branch, Parents: []string{sha(0)}, Changes: []radar.Change{edit("cmd/root.go", 20)},
		}
	}

	for _, test := range []struct {
		name string
		do   func(*fixture, *storetest.Signer)
		want string
	}{
		{"a new commit", func(*fixture, *storetest.Signer) {}, ""},
		{"the tip itself", func(fx *fixture, _ *storetest.Signer) { fx.pushAs(sha(0), first) }, ""},
		{"its child", func(fx *fixture, _ *storetest.Signer) { fx.pushAs(sha(1), above("one")) }, sha(1)},
		{"one that has it as its base", func(fx *fixture, _ *storetest.Signer) {
			fx.pushAs(sha(1), ledger.Registration{Branch: "one", Base: sha(0)})
		}, sha(1)},
		{"one far above it", func(fx *fixture, _ *storetest.Signer) {
			fx.pushAs(sha(1), ledger.Registration{
				Branch: "one", Parents: []string{sha(2)}, Ancestors: []string{sha(0), sha(2)},
			})
		}, sha(1)},
		{"its child, which is deployed", func(fx *fixture, ci *storetest.Signer) {
			fx.pushAs(sha(1), above("one"))
			ci.Deploy(sha(1))
		}, ""},
		{"its child, which has landed", func(fx *fixture, _ *storetest.Signer) {
			fx.pushAs(sha(1), above("one"))
			fx.pushAs(sha(3), ledger.Registration{Branch: "two", Contained: []string{sha(1)}})
		}, ""},
		{"its child, which is withdrawn", func(fx *fixture, _ *storetest.Signer) {
			fx.pushAs(sha(1), above("one"))
			must.OK(t, fx.Withdraw(t.Context(), "acme", "api", sha(1)))
		}, ""},
		{"its child, which is too old", func(fx *fixture, _ *storetest.Signer) {
			fx.pushAs(sha(1), above("one"))
			fx.Clock.Advance(31 * 24 * time.Hour)
		}, ""},
		{"its child on another branch", func(fx *fixture, _ *storetest.Signer) { fx.pushAs(sha(1), above("two")) }, ""},
		{"one that is not built on it", func(fx *fixture, _ *storetest.Signer) {
			fx.push(sha(1), "one", edit("cmd/root.go", 20))
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			fx := s.newFixture(t)
			test.do(fx, fx.NewSigner("cn=ci,ou=build,o=acme"))

			if got := fx.pushAs(sha(0), first).Behind; got != test.want {
				t.Errorf("behind %q, want %q", got, test.want)
			}
			if test.want == "" {
				return
			}

			must.OK(t, fx.Withdraw(t.Context(), "acme", "api", test.want))
			if got := fx.pushAs(sha(0), first).Behind; got != "" {
				t.Errorf("behind %q after it was withdrawn", got)
			}
			if got, want := fx.inFlight(), []string{"one 01"}; !slices.Equal(got, want) {
				t.Errorf("in flight %q, want %q", got, want)
			}
		})
	}
}

func (s suite) TestACommitIsBehindATipInFlightAboveADeployedOne(t *testing.T) {
	fx := s.newFixture(t)
	fx.push(sha(0), "one", edit("cmd/root.go", 10))
	fx.pushAs(sha(1), ledger.Registration{Branch: "one", Parents: []string{sha(0)}})
	fx.NewSigner("cn=ci,ou=build,o=acme").Deploy(sha(1))
	fx.pushAs(sha(2), ledger.Registration{Branch: "one", Parents: []string{sha(1)}, Ancestors: []string{sha(0), sha(1)}})
	if got := fx.pushAs(sha(0), ledger.Registration{Branch: "one"}).Behind; got != sha(2) {
		t.Errorf("behind %q, want %q", got, sha(2))
	}
}

func (s suite) TestACommitWithoutABranchIsBehindNoTip(t *testing.T) {
	fx := s.newFixture(t)
	fx.push(sha(0), "one", edit("cmd/root.go", 10))
	fx.pushAs(sha(1), ledger.Registration{Branch: "one", Parents: []string{sha(0)}})
	c, _, err := fx.Register(t.Context(), "acme", "api", sha(0), ledger.Registration{Parents: []string{sha(2)}})
	must.OK(t, err)
	if c.Radar.Behind != "" {
		t.Errorf("behind %q", c.Radar.Behind)
	}
}
