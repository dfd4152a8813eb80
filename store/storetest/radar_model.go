package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store"
)

// TestTheRadarFollowsFromWhatIsInFlight does at random what can be done to the
// commits of a repo whose radar blocks, and checks that any two in flight are
// open at the level of their records, and that each commit is where its evidence
// and its overlaps put it.
func (s suite) TestTheRadarFollowsFromWhatIsInFlight(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		b := s.newBench(t)
		defer b.Close()
		m := &radarModel{b: b, r: r, ci: b.signer("cn=ci,ou=build,o=acme"), changes: make(map[string][]radar.Change),
			held: make(map[[2]string]bool)}
		b.setRadar(blocks)
		r.Repeat(map[string]func(*rapid.T){
			"push":          func(r *rapid.T) { m.r = r; m.push() },
			"complete":      func(r *rapid.T) { m.r = r; m.complete() },
			"withdraw":      func(r *rapid.T) { m.r = r; m.withdraw() },
			"attest":        func(r *rapid.T) { m.r = r; m.attest() },
			"change policy": func(r *rapid.T) { m.r = r; m.changePolicy() },
			"wait":          func(r *rapid.T) { m.r = r; m.wait() },
			"":              func(r *rapid.T) { m.check() },
		})
	})
}

type radarModel struct {
	b       *bench
	r       *rapid.T
	ci      *signer
	changes map[string][]radar.Change // by commit
	// held are commits and what their bases hold: those are never compared, or
	// no more.
	held map[[2]string]bool
}

const modelCommits = 6

func (m *radarModel) commit() int { return rapid.IntRange(0, modelCommits-1).Draw(m.r, "commit") }

func (m *radarModel) draw() []radar.Change {
	changes := []radar.Change{}
	for _, path := range []string{"a.go", "b.go", "dir/c.go"} {
		if line := rapid.IntRange(0, 4).Draw(m.r, path); line > 0 {
			changes = append(changes, edit(path, 20*line*line))
		}
	}
	return changes
}

// push is of one of three branches: a commit is always of the same.
func (m *radarModel) push() {
	i := m.commit()
	n := ledger.Registration{Branch: fmt.Sprint("branch", i%3), Changes: m.draw()}
	if rapid.IntRange(0, 5).Draw(m.r, "contained") == 0 {
		n.Contained = []string{sha(m.commit())}
		m.held[[2]string{sha(i), n.Contained[0]}] = true
	}
	m.b.pushAs(sha(i), n)
	m.changes[sha(i)] = n.Changes
}

func (m *radarModel) complete() {
	i := m.commit()
	n := ledger.Registration{Message: "more"}
	if rapid.Bool().Draw(m.r, "changes") {
		n.Changes = m.draw()
		m.changes[sha(i)] = n.Changes
	}
	m.b.completes(sha(i), n)
}

func (m *radarModel) withdraw() {
	if commit := sha(m.commit()); m.changes[commit] != nil {
		check(m.b.t, m.b.Withdraw(m.b.t.Context(), "acme", "api", commit))
	}
}

func (m *radarModel) attest() {
	commit := sha(m.commit())
	switch what := rapid.SampledFrom([]string{"ready", "test:go", "deploy:prod", "deploy:prod"}).Draw(m.r, "what"); what {
	case "ready":
		m.ci.readies(commit)
	default:
		m.ci.attests(commit, what, rapid.SampledFrom([]ledger.Status{ledger.Pass, ledger.Fail}).Draw(m.r, "status"))
	}
}

func (m *radarModel) changePolicy() {
	p, err := m.b.Policy(m.b.t.Context(), "acme", "api", 0)
	check(m.b.t, err)
	p.Radar.Block = rapid.SampledFrom([]radar.Level{radar.High, radar.High, radar.Medium, radar.NoLevel}).Draw(m.r,
		"block")
	p.Radar.Ignore = rapid.SampledFrom([][]string{{}, {"a.go"}, {"b.go", "dir/**"}}).Draw(m.r, "ignore")
	p.Radar.MaxAge = ledger.Duration(rapid.SampledFrom([]time.Duration{time.Hour, 24 * time.Hour}).Draw(m.r, "max age"))
	p.Radar.Enabled = rapid.IntRange(0, 5).Draw(m.r, "enabled") > 0
	_, err = m.b.SetPolicy(m.b.t.Context(), "acme", "api", p.Contract, p.Version, "host")
	check(m.b.t, err)
	if rapid.Bool().Draw(m.r, "something comes before the evaluation") {
		m.attest()
		m.push()
	}
}

func (m *radarModel) wait() {
	m.b.clock.advance(rapid.SampledFrom([]time.Duration{time.Minute, 2 * time.Hour}).Draw(m.r, "wait"))
}

func (m *radarModel) check() {
	check(m.b.t, m.b.Settle(m.b.t.Context()))
	p, err := m.b.Policy(m.b.t.Context(), "acme", "api", 0)
	check(m.b.t, err)
	m.checkPairs(p.Radar)
	for i := range modelCommits {
		if c, err := m.b.Commit(m.b.t.Context(), "acme", "api", sha(i)); err == nil {
			m.checkState(p.Contract, c)
		}
	}
	m.b.wantCounts()
	if m.b.t.Failed() {
		m.r.FailNow()
	}
}

func (m *radarModel) holds(a, b string) bool {
	return m.held[[2]string{a, b}] || m.held[[2]string{b, a}]
}

// checkPairs compares each two commits in flight of which neither's base holds
// the other. The list may also hold an earlier commit that was deployed or has
// landed meanwhile.
func (m *radarModel) checkPairs(settings policy.RadarSettings) {
	list, err := m.b.Commits(
		m.b.t.Context(), "acme", "api", store.CommitFilter{Query: store.Query{Limit: 500}, InFlight: true})
	check(m.b.t, err)
	pairs, err := m.b.Overlaps(m.b.t.Context(), "acme", "api", store.RadarFilter{Query: store.Query{Limit: 500}})
	check(m.b.t, err)
	pair := func(a, b string, level radar.Level) string { return fmt.Sprint(min(a, b), max(a, b), level) }
	var open, want []string
	for _, p := range pairs.Data {
		flying := func(sha string) bool {
			return slices.ContainsFunc(list.Data, func(c ledger.CommitSummary) bool { return c.SHA == sha })
		}
		if flying(p.Commit.SHA) && flying(p.Other.SHA) && !m.holds(p.Commit.SHA, p.Other.SHA) {
			open = append(open, pair(p.Commit.SHA, p.Other.SHA, p.Level))
		}
	}
	for i, one := range list.Data {
		for _, other := range list.Data[:i] {
			r := radar.New(settings.Ignore)
			o := radar.Compare(r.Footprint(m.changes[one.SHA]), r.Footprint(m.changes[other.SHA]), radar.Options{})
			if settings.Enabled && o.Level > radar.NoLevel && !m.holds(one.SHA, other.SHA) {
				want = append(want, pair(one.SHA, other.SHA, o.Level))
			}
		}
	}
	slices.Sort(open)
	slices.Sort(want)
	if !slices.Equal(open, want) {
		m.r.Fatalf("open are\n%s\nwant\n%s", strings.Join(open, "\n"), strings.Join(want, "\n"))
	}
}

// checkState holds a commit against its own record: its transitions lead from
// one to the next and to its state, and its requirements give that state.
func (m *radarModel) checkState(contract policy.Contract, c ledger.Commit) {
	at := ledger.Draft
	for _, step := range c.Transitions {
		if step.From != at {
			m.r.Fatalf("commit %s: a transition from %s, but it was %s", c.SHA, step.From, at)
		}
		at = step.To
	}
	if at != c.State {
		m.r.Fatalf("commit %s is %s, its transitions lead to %s", c.SHA, c.State, at)
	}
	if c.State == ledger.Deployed || c.State == ledger.Draft {
		return
	}
	want := ledger.Deployed
	for _, r := range c.Requirements {
		if r.Applies && !r.Met {
			want = min(want, r.State-1)
		}
	}
	if c.State != want {
		m.r.Fatalf("commit %s is %s, its requirements make it %s: %+v", c.SHA, c.State, want, c.Requirements)
	}
	m.checkBlock(contract.Radar, c)
}

// checkBlock holds what the record says of the radar against the list.
func (m *radarModel) checkBlock(settings policy.RadarSettings, c ledger.Commit) {
	if !settings.Blocks() {
		return
	}
	pairs, err := m.b.Overlaps(
		m.b.t.Context(), "acme", "api", store.RadarFilter{Query: store.Query{Limit: 500}, Commit: c.SHA})
	check(m.b.t, err)
	blocked := slices.ContainsFunc(
		pairs.Data, func(p ledger.RadarPair) bool { return p.Commit.SHA == c.SHA && p.Level >= settings.Block })
	if last := c.Requirements[len(c.Requirements)-1]; last.Met == blocked {
		m.r.Fatalf("commit %s is blocked: %t, its record says %+v", c.SHA, blocked, last)
	}
}
