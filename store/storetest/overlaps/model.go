package overlaps

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/policy/conflicts"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// TestOverlapsFollowFromTipsInFlight runs random operations on a repo whose radar
// blocks. It checks that the overlaps of tips in flight have the levels of their change
// records, that the state of each commit follows from its evidence and overlaps, and that a
// check of the database finds a deleted overlap, and nothing else.
func (s suite) TestOverlapsFollowFromTipsInFlight(t *testing.T) {
	testenv.Check(t, func(r *rapid.T) {
		fx := s.newFixture(t)
		defer fx.CloseAll()
		m := &radarModel{fx: fx, r: r, ci: fx.NewSigner("cn=ci,ou=build,o=acme"), changes: make(map[string][]radar.Change),
			contained: make(map[[2]string]bool), forges: rapid.IntRange(0, 9).Draw(r, "forges") == 0}
		fx.setRadar(blockHigh)
		actions := map[string]func(*rapid.T){
			"push":          func(r *rapid.T) { m.r = r; m.push() },
			"complete":      func(r *rapid.T) { m.r = r; m.complete() },
			"withdraw":      func(r *rapid.T) { m.r = r; m.withdraw() },
			"attest":        func(r *rapid.T) { m.r = r; m.attest() },
			"change policy": func(r *rapid.T) { m.r = r; m.changePolicy() },
			"wait":          func(r *rapid.T) { m.r = r; m.wait() },
			"":              func(r *rapid.T) { m.check() },
		}
		if m.forges {
			actions["forge"] = func(r *rapid.T) { m.r = r; m.forge() }
		}
		r.Repeat(actions)
	})
}

// A radarModel is the test's own record of its operations.
type radarModel struct {
	fx      *fixture
	r       *rapid.T
	ci      *storetest.Signer
	changes map[string][]radar.Change // by commit
	// contained has pairs of a commit and another one that its base contains. They
	// are not compared.
	contained map[[2]string]bool
	// forges reports whether the database is checked all the time, which takes long.
	forges bool
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

// push pushes a commit to one of three branches, always the same for a commit.
func (m *radarModel) push() {
	i := m.commit()
	n := ledger.Registration{Branch: fmt.Sprint("branch", i%3), Changes: m.draw()}
	if rapid.IntRange(0, 5).Draw(m.r, "contained") == 0 {
		n.Contained = []string{sha(m.commit())}
		m.contained[[2]string{sha(i), n.Contained[0]}] = true
	}
	m.fx.pushAs(sha(i), n)
	m.changes[sha(i)] = n.Changes
}

func (m *radarModel) complete() {
	i := m.commit()
	n := ledger.Registration{Message: "more"}
	if rapid.Bool().Draw(m.r, "changes") {
		n.Changes = m.draw()
		m.changes[sha(i)] = n.Changes
	}
	m.fx.Complete(sha(i), n)
}

func (m *radarModel) withdraw() {
	if commit := sha(m.commit()); m.changes[commit] != nil {
		must.OK(m.fx.T, m.fx.Withdraw(m.fx.T.Context(), "acme", "api", commit))
	}
}

func (m *radarModel) attest() {
	commit := sha(m.commit())
	switch what := rapid.SampledFrom([]string{"ready", "test:go", "deploy:prod", "deploy:prod"}).Draw(m.r, "what"); what {
	case "ready":
		m.ci.MakePromotable(commit)
	default:
		m.ci.Attest(commit, what, rapid.SampledFrom([]ledger.Status{ledger.Pass, ledger.Fail}).Draw(m.r, "status"))
	}
}

func (m *radarModel) changePolicy() {
	p, err := m.fx.Policy(m.fx.T.Context(), "acme", "api", 0)
	must.OK(m.fx.T, err)
	p.Radar.Block = rapid.SampledFrom([]radar.Level{radar.High, radar.High, radar.Medium, radar.NoLevel}).Draw(m.r,
		"block")
	p.Radar.Ignore = rapid.SampledFrom([][]string{{}, {"a.go"}, {"b.go", "dir/**"}}).Draw(m.r, "ignore")
	p.Radar.MaxAge = ledger.Duration(rapid.SampledFrom([]time.Duration{time.Hour, 24 * time.Hour}).Draw(m.r, "max age"))
	p.Radar.Enabled = rapid.IntRange(0, 5).Draw(m.r, "enabled") > 0
	_, err = m.fx.SetPolicy(m.fx.T.Context(), "acme", "api", p.Contract, p.Version, "host")
	must.OK(m.fx.T, err)
	if rapid.Bool().Draw(m.r, "write before it is settled") {
		m.attest()
		m.push()
	}
}

func (m *radarModel) wait() {
	m.fx.Clock.Advance(rapid.SampledFrom([]time.Duration{time.Minute, 2 * time.Hour}).Draw(m.r, "wait"))
}

// forge deletes an overlap that blocks a commit, has the database checked, and inserts it again.
func (m *radarModel) forge() {
	must.OK(m.fx.T, m.fx.Settle(m.fx.T.Context()))
	p, err := m.fx.Policy(m.fx.T.Context(), "acme", "api", 0)
	must.OK(m.fx.T, err)
	pairs, err := m.fx.Overlaps(m.fx.T.Context(), "acme", "api", store.RadarFilter{Query: store.Query{Limit: 500}})
	must.OK(m.fx.T, err)
	blocking := slices.DeleteFunc(pairs.Data, func(o ledger.RadarPair) bool {
		return o.Level < p.Radar.Block || m.isContained(o.Commit.SHA, o.Other.SHA)
	})
	if !p.Radar.Blocks() || len(blocking) == 0 {
		m.r.Skip("nothing blocks")
	}

	o := rapid.SampledFrom(blocking).Draw(m.r, "overlap")
	row := func(sha string) string { return "(SELECT id FROM commits WHERE sha = '" + sha + "')" }
	m.fx.Database.Exec(m.fx.T, fmt.Sprintf(`DELETE FROM "overlaps" WHERE later = %s AND earlier = %s`,
		row(o.Commit.SHA), row(o.Other.SHA)))
	if found, complete := m.fx.Report(); found == 0 && complete {
		m.r.Fatalf("the overlap of %s and %s is deleted, and the check does not find it", o.Commit.SHA, o.Other.SHA)
	}
	m.fx.Database.Exec(m.fx.T, fmt.Sprintf(`INSERT INTO "overlaps" VALUES (%s, %s, %d, %[3]d, %d, '%s', '%s')`,
		row(o.Commit.SHA), row(o.Other.SHA), o.Level, o.Since, o.Paths[0].Path, o.Paths[0].Reason))
}

func (m *radarModel) check() {
	if m.forges && rapid.IntRange(0, 7).Draw(m.r, "check before it is settled") == 0 {
		if found, _ := m.fx.Report(); found > 0 {
			m.r.Fatal("a check of the database has found problems")
		}
	}
	must.OK(m.fx.T, m.fx.Settle(m.fx.T.Context()))
	p, err := m.fx.Policy(m.fx.T.Context(), "acme", "api", 0)
	must.OK(m.fx.T, err)
	m.checkPairs(p.Radar)
	for i := range modelCommits {
		if c, err := m.fx.Commit(m.fx.T.Context(), "acme", "api", sha(i)); err == nil {
			m.checkState(p.Contract, c)
		}
	}
	m.fx.wantCounts()
	if m.fx.T.Failed() {
		m.r.FailNow()
	}
}

func (m *radarModel) isContained(a, b string) bool {
	return m.contained[[2]string{a, b}] || m.contained[[2]string{b, a}]
}

// checkPairs compares every two commits in flight, unless the base of one contains
// the other. The list of overlaps may have earlier commits that were deployed or
// landed since; it ignores those.
func (m *radarModel) checkPairs(settings conflicts.Settings) {
	list, err := m.fx.Commits(
		m.fx.T.Context(), "acme", "api", store.CommitFilter{Query: store.Query{Limit: 500}, InFlight: true})
	must.OK(m.fx.T, err)
	pairs, err := m.fx.Overlaps(m.fx.T.Context(), "acme", "api", store.RadarFilter{Query: store.Query{Limit: 500}})
	must.OK(m.fx.T, err)
	pair := func(a, b string, level radar.Level) string { return fmt.Sprint(min(a, b), max(a, b), level) }
	var open, want []string
	for _, p := range pairs.Data {
		inFlight := func(sha string) bool {
			return slices.ContainsFunc(list.Data, func(c ledger.CommitSummary) bool { return c.SHA == sha })
		}
		if inFlight(p.Commit.SHA) && inFlight(p.Other.SHA) && !m.isContained(p.Commit.SHA, p.Other.SHA) {
			open = append(open, pair(p.Commit.SHA, p.Other.SHA, p.Level))
		}
	}

	for i, one := range list.Data {
		for _, other := range list.Data[:i] {
			r := radar.New(settings.Ignore)
			o := radar.Compare(r.Footprint(m.changes[one.SHA]), r.Footprint(m.changes[other.SHA]), radar.Options{})
			if settings.Enabled && o.Level > radar.NoLevel && !m.isContained(one.SHA, other.SHA) {
				want = append(want, pair(one.SHA, other.SHA, o.Level))
			}
		}
	}

	slices.Sort(open)
	slices.Sort(want)
	if !slices.Equal(open, want) {
		m.r.Fatalf("overlaps\n%s\nwant\n%s", strings.Join(open, "\n"), strings.Join(want, "\n"))
	}
}

// checkState checks that a commit's transitions form a chain to its state, and that
// this state follows from its requirements.
func (m *radarModel) checkState(contract policy.Contract, c ledger.Commit) {
	state := ledger.Draft
	for _, step := range c.Transitions {
		if step.From != state {
			m.r.Fatalf("commit %s: a transition from %s, want from %s", c.SHA, step.From, state)
		}
		state = step.To
	}
	if state != c.State {
		m.r.Fatalf("commit %s is %s, its transitions lead to %s", c.SHA, c.State, state)
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
		m.r.Fatalf("commit %s is %s, want %s by its requirements: %+v", c.SHA, c.State, want, c.Requirements)
	}
	m.checkBlock(contract.Radar, c)
}

// checkBlock checks the radar's requirement in the commit's record against the list
// of overlaps.
func (m *radarModel) checkBlock(settings conflicts.Settings, c ledger.Commit) {
	if !settings.Blocks() {
		return
	}
	pairs, err := m.fx.Overlaps(
		m.fx.T.Context(), "acme", "api", store.RadarFilter{Query: store.Query{Limit: 500}, Commit: c.SHA})
	must.OK(m.fx.T, err)
	blocked := slices.ContainsFunc(
		pairs.Data, func(p ledger.RadarPair) bool { return p.Commit.SHA == c.SHA && p.Level >= settings.Block })
	if last := c.Requirements[len(c.Requirements)-1]; last.Met == blocked {
		m.r.Fatalf("commit %s is blocked: %t, its record has %+v", c.SHA, blocked, last)
	}
}
