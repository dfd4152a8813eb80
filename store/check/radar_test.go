package check_test

import (
	"crypto/ed25519"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/policy/conflicts"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/check"
)

// A radarLedger is a ledger in whose repos HIGH overlaps block. Its clock only goes on when it is set.
type radarLedger struct {
	*writer
	file database
	now  time.Time
}

// newRadarLedger returns a ledger whose repo api has these tips of branches, each of which was registered after those
// before:
//
//	one    p.go 10
//	two    p.go 11   HIGH with one
//	three  p.go 30   MEDIUM with one and two
//	four   q.go 10
//	five   q.go 11   HIGH with four
//
// The commits of two and five have the evidence for PROMOTABLE. The repo web has the tip of the branch one.
func newRadarLedger(t testing.TB) *radarLedger {
	t.Helper()
	v := &radarLedger{now: time.Now().Add(-24 * time.Hour)}
	v.file = database{path: filepath.Join(t.TempDir(), "ledger.db")}
	s := must.Get(store.Open(t.Context(), v.file.path, store.Options{Now: func() time.Time { return v.now }}))(t)
	v.writer = &writer{Store: s, t: t, keys: make(map[string]ed25519.PrivateKey)}
	t.Cleanup(func() { s.Close() })
	must.OK(t, s.Settle(t.Context()))
	must.Get(s.CreateOrg(t.Context(), "acme"))(t)
	for _, repo := range []string{"api", "web"} {
		must.Get(s.CreateRepo(t.Context(), "acme", ledger.NewRepo{Name: repo}, "host"))(t)
	}
	v.set(func(*conflicts.Settings) {})
	for _, dn := range []string{buildDN, reviewDN} {
		v.addSigner(dn)
	}

	for n, place := range []string{"p.go 10", "p.go 11", "p.go 30", "q.go 10", "q.go 11"} {
		v.push(n, []string{"one", "two", "three", "four", "five"}[n], place)
	}
	_, _, err := s.Register(t.Context(), "acme", "web", sha(9),
		ledger.Registration{Branch: "one", Changes: lines("p.go 10")})
	must.OK(t, err)
	v.makePromotable(1)
	v.makePromotable(4)
	return v
}

// lines returns changes of one line each, such as "p.go 10".
func lines(places ...string) []radar.Change {
	changes := []radar.Change{}
	for _, place := range places {
		var path string
		var line int
		_, _ = fmt.Sscan(place, &path, &line)
		hash := func(kind string, gap int) string { return fmt.Sprintf("%s%014x", kind, gap) }
		changes = append(changes, radar.Change{Path: path, Status: "M", OldMode: "100644", Mode: "100644", OldBlob: sha(1),
			Blob: sha(line), Hunks: []radar.Hunk{{Start: line, Lines: 1, Added: 1, Text: hash("e1", line),
				Near: []string{hash("aa", line-1), hash("aa", line)}, Far: []string{hash("bb", line-1), hash("bb", line)}}}})
	}
	return changes
}

// set changes the radar settings of the repo api, and settles nothing.
func (v *radarLedger) set(change func(*conflicts.Settings)) {
	v.t.Helper()
	contract, err := policy.Parse([]byte(`{"requirements":[{"state":"ATTESTED","predicate":"test:go"},
		{"state":"PROMOTABLE","predicate":"review:code"},{"state":"DEPLOYED","predicate":"deploy:prod"}],
		"radar":{"block":"HIGH","max_age":"240h"}}`))
	must.OK(v.t, err)
	change(&contract.Radar)
	must.Get(v.SetPolicy(v.t.Context(), "acme", "api", contract, 0, "host"))(v.t)
}

// pass has time pass.
func (v *radarLedger) pass(d time.Duration) { v.now = v.now.Add(d) }

func (v *radarLedger) push(commit int, branch string, places ...string) {
	v.t.Helper()
	v.register(commit, ledger.Registration{Branch: branch, Changes: lines(places...)})
}

func (v *radarLedger) register(commit int, n ledger.Registration) {
	v.t.Helper()
	v.pass(time.Second)
	_, _, err := v.Register(v.t.Context(), "acme", "api", sha(commit), n)
	must.OK(v.t, err)
}

func (v *radarLedger) withdraw(commit int) {
	v.t.Helper()
	must.OK(v.t, v.Withdraw(v.t.Context(), "acme", "api", sha(commit)))
}

func (v *radarLedger) makePromotable(commit int) {
	v.t.Helper()
	v.say(sha(commit), buildDN, "test:go", ledger.Pass)
	v.say(sha(commit), reviewDN, "review:code", ledger.Pass)
}

func (v *radarLedger) deploy(commit int, status ledger.Status) {
	v.t.Helper()
	v.pass(time.Second)
	v.say(sha(commit), buildDN, "deploy:prod", status)
}

// settled settles all commits, and returns the database.
func (v *radarLedger) settled() database {
	v.t.Helper()
	must.OK(v.t, v.Settle(v.t.Context()))
	return v.file
}

// check checks the database at the time of the ledger, and returns the problems and what was not checked as lines.
func (v *radarLedger) check(d database, o check.Options) (problems, unchecked []string) {
	v.t.Helper()
	o.Now = func() time.Time { return v.now }
	report, err := check.Run(v.t.Context(), d.path, o)
	must.OK(v.t, err)
	for _, p := range report.Problems {
		problems = append(problems, p.String())
	}
	unchecked = slices.DeleteFunc(slices.Clone(report.Unchecked), func(line string) bool {
		return !strings.Contains(line, "overlaps of api that may block commits")
	})
	if report.Complete != (len(unchecked) == 0) {
		v.t.Errorf("complete: %t, unchecked %q", report.Complete, report.Unchecked)
	}
	return problems, unchecked
}

// ofBranch is the condition for the commit of a branch.
func ofBranch(branch string) string {
	return " (SELECT commit_id FROM tips WHERE repo_id = 1 AND branch = '" + branch + "') "
}

// Ways to change what the radar has found, each with a part of a line that must be reported.
var radarChanges = []struct{ name, change, want string }{
	{"a deleted overlap", "DELETE FROM overlaps WHERE later =" + ofBranch("two"),
		sha(1) + ": its overlap with " + sha(0) + ", HIGH (same_lines of p.go), is not stored"},
	{"all overlaps deleted", "DELETE FROM overlaps", sha(4) + ": its overlap with " + sha(3)},
	{"a lower level", "UPDATE overlaps SET level = 2 WHERE level = 3",
		" is stored as MEDIUM (same_lines of p.go), and is HIGH (same_lines of p.go)"},
	{"a higher level", "UPDATE overlaps SET level = 3 WHERE level = 2",
		" is stored as HIGH (near_lines of p.go), and is MEDIUM (near_lines of p.go)"},
	{"another reason", "UPDATE overlaps SET reason = 'add_add' WHERE level = 3",
		" is stored as HIGH (add_add of p.go), and is"},
	{"another path", "UPDATE overlaps SET path = 'x' WHERE level = 3", " is stored as HIGH (same_lines of x), and is"},
	{"with another earlier commit",
		"UPDATE overlaps SET earlier =" + ofBranch("three") + "WHERE later =" + ofBranch("five"),
		sha(4) + ": an overlap with " + sha(2) + " is stored as HIGH, and they have none"},
	{"of another later commit", "UPDATE overlaps SET later =" + ofBranch("five") + "WHERE later =" + ofBranch("two"),
		sha(1) + ": its overlap with " + sha(0) + ", HIGH (same_lines of p.go), is not stored"},
	{"turned round", "UPDATE overlaps SET later = earlier, earlier = later WHERE level = 3",
		sha(1) + ": its overlap with " + sha(0) + ", HIGH (same_lines of p.go), is not stored"},
	{"with a commit of another repo",
		"UPDATE overlaps SET earlier = (SELECT commit_id FROM tips WHERE repo_id = 2) WHERE level = 3",
		": they are not two tips of one repo"},
	{"with no commit", "UPDATE overlaps SET earlier = 1000000 WHERE level = 3", ": they are not two tips of one repo"},
	{"an added one that blocks", "INSERT INTO overlaps SELECT" + ofBranch("five") + "," + ofBranch("one") +
		", 3, 3, since, path, reason FROM overlaps WHERE level = 3 LIMIT 1",
		sha(4) + ": an overlap with " + sha(0) + " is stored as HIGH, and they have none"},

	{"a tip that is deleted", "DELETE FROM tips WHERE branch = 'four'", ": they are not two tips of one repo"},
	{"a tip that seems to wait for a scan", "UPDATE tips SET policy_version = 0",
		sha(1) + ": the radar is to scan it again, and that is not planned"},
	{"a tip that seems to be deployed", "UPDATE tips SET flight = 2 WHERE branch = 'four'",
		sha(3) + ": its times as a tip, its place, or whether it is in flight, do not fit its state or each other"},
	{"a tip that seems to have ended", "UPDATE tips SET ended_at = 1 WHERE branch = 'four'",
		sha(3) + ": its times as a tip"},
	{"a tip that seems to be later", "UPDATE tips SET place = 100 WHERE branch = 'four'", sha(3) + ": its times as a tip"},
	{"a tip that seems to be too old", "UPDATE tips SET opened_at = 1 WHERE branch = 'four'",
		sha(3) + ": its times as a tip"},
	{"two tips in another order", "UPDATE tips SET seq = 100, place = 100 WHERE branch = 'four'",
		sha(3) + ": its overlap with " + sha(4) + ", HIGH (same_lines of q.go), is not stored"},
	{"a tip on others", "UPDATE tips SET lineage = ' " + sha(3) + " ' WHERE branch = 'five'",
		sha(4) + ": the radar has it on other commits than it was registered with"},
	{"tips of one branch", "UPDATE tips SET branch = 'four' WHERE branch = 'five'",
		sha(4) + ": an overlap with " + sha(3) + " is stored as HIGH, and they have none"},
	{"other lines of a tip", "UPDATE commit_details SET changes = CAST(replace(CAST(changes AS TEXT), " +
		"'\"start\":10', '\"start\":9') AS BLOB)",
		" is stored as HIGH (same_lines of p.go), and is"},
	{"lines that cannot be read", "UPDATE commit_details SET changes = CAST('{' AS BLOB)",
		"so radar of acme/api cannot be checked: read changes of "},
}

func TestRadarChangesAreFound(t *testing.T) {
	v := newRadarLedger(t)
	d := v.settled()
	must.OK(t, v.Close())
	if problems, unchecked := v.check(d, check.Options{}); len(problems)+len(unchecked) > 0 {
		t.Fatalf("an intact database has these problems: %q, %q", problems, unchecked)
	}
	for _, test := range radarChanges {
		t.Run(test.name, func(t *testing.T) {
			problems, _ := v.check(d.copy(t, run(test.change)), check.Options{})
			if !slices.ContainsFunc(problems, func(line string) bool { return strings.Contains(line, test.want) }) {
				t.Errorf("got the problems\n%s\nwant %q", strings.Join(problems, "\n"), test.want)
			}
		})
	}
}

// What the radar has done for a reason is no problem.
func TestRadarHistoriesAreChecked(t *testing.T) {
	other := ledger.Registration{Changes: lines("r.go 1")}
	for _, test := range []struct {
		name string
		do   func(v *radarLedger)
	}{
		{"nothing", func(*radarLedger) {}},
		{"superseded, earlier", func(v *radarLedger) { v.push(10, "one", "p.go 200") }},
		{"superseded, later", func(v *radarLedger) { v.push(10, "two", "p.go 9") }},
		{"superseded, and pushed again", func(v *radarLedger) { v.push(10, "one", "r.go 1"); v.push(0, "one", "p.go 10") }},
		{"withdrawn", func(v *radarLedger) { v.withdraw(0); v.withdraw(4) }},
		{"withdrawn, and pushed again", func(v *radarLedger) { v.withdraw(0); v.push(0, "one", "p.go 10") }},
		{"landed", func(v *radarLedger) { v.register(10, ledger.Registration{Branch: "x", Contained: []string{sha(0)}}) }},
		{"contained in the base of the later one", func(v *radarLedger) {
			v.register(1, ledger.Registration{Branch: "two", Contained: []string{sha(0)}})
		}},
		{"landed, and pushed again", func(v *radarLedger) {
			v.register(0, ledger.Registration{Branch: "one", Contained: []string{sha(1)}})
			v.push(1, "two", "p.go 11")
			v.register(0, ledger.Registration{Branch: "one"})
		}},
		{"deployed, earlier", func(v *radarLedger) { v.makePromotable(0); v.deploy(0, ledger.Pass) }},
		{"deployed, later", func(v *radarLedger) { v.withdraw(0); v.deploy(1, ledger.Pass) }},
		{"deployed, and rolled back", func(v *radarLedger) {
			v.makePromotable(0)
			v.deploy(0, ledger.Pass)
			v.push(10, "six", "p.go 9")
			v.deploy(0, ledger.Fail)
		}},
		{"deployed before the other one was pushed", func(v *radarLedger) {
			v.makePromotable(0)
			v.deploy(0, ledger.Pass)
			v.push(10, "six", "p.go 9")
		}},
		{"deployed at the same time", func(v *radarLedger) {
			v.makePromotable(3)
			v.say(sha(3), buildDN, "deploy:prod", ledger.Pass)
		}},
		{"too old", func(v *radarLedger) { v.pass(241 * time.Hour); v.push(10, "six", "p.go 9") }},
		{"too old, and forgotten", func(v *radarLedger) { v.pass(241 * time.Hour); must.OK(v.t, v.Prune(v.t.Context())) }},
		{"one of two too old", func(v *radarLedger) {
			v.pass(239 * time.Hour)
			v.push(10, "six", "p.go 9")
			v.pass(time.Hour)
		}},
		{"other changes", func(v *radarLedger) { v.register(0, other); v.register(4, other) }},
		{"other changes of a superseded tip", func(v *radarLedger) { v.push(10, "one", "r.go 1"); v.register(0, other) }},
		{"on another one", func(v *radarLedger) { v.register(4, ledger.Registration{Parents: []string{sha(3)}}) }},
		{"on the same", func(v *radarLedger) {
			for _, n := range []int{3, 4} {
				v.register(n, ledger.Registration{Base: sha(90), Ancestors: []string{sha(91)}, Changes: lines("q.go 10")})
			}
		}},
		{"corrected", func(v *radarLedger) {
			_, _, err := v.Correct(v.t.Context(), "acme", "api", sha(0),
				ledger.CommitCorrection{Changes: new(lines("r.go 1"))}, "host")
			must.OK(v.t, err)
		}},
		{"other branches", func(v *radarLedger) { v.register(0, ledger.Registration{Branch: "seven"}) }},
		{"ignored paths", func(v *radarLedger) { v.set(func(r *conflicts.Settings) { r.Ignore = []string{"p.go"} }) }},
		{"paths no longer ignored", func(v *radarLedger) {
			v.set(func(r *conflicts.Settings) { r.Ignore = []string{"p.go"} })
			v.settled()
			v.set(func(r *conflicts.Settings) {})
		}},
		{"MEDIUM blocks, too", func(v *radarLedger) { v.set(func(r *conflicts.Settings) { r.Block = radar.Medium }) }},
		{"LOW blocks, too", func(v *radarLedger) {
			v.push(10, "six", "d/a.go 1")
			v.push(11, "seven", "d/b.go 1")
			v.set(func(r *conflicts.Settings) { r.Block = radar.Low })
		}},
		{"another age", func(v *radarLedger) {
			v.set(func(r *conflicts.Settings) { r.MaxAge = ledger.Duration(4 * time.Second) })
			v.push(10, "six", "p.go 9")
			v.settled()
			v.set(func(r *conflicts.Settings) {})
		}},
		{"off, and on again", func(v *radarLedger) {
			v.set(func(r *conflicts.Settings) { r.Enabled = false })
			v.push(10, "six", "p.go 9")
			v.settled()
			v.set(func(r *conflicts.Settings) {})
		}},
		{"off", func(v *radarLedger) {
			v.set(func(r *conflicts.Settings) { r.Enabled = false })
			v.push(10, "six", "p.go 9")
		}},
		{"archived", func(v *radarLedger) {
			must.Get(v.ChangeRepo(v.t.Context(), "acme", "api", ledger.RepoChange{Archived: new(true)}))(v.t)
		}},
		{"deleted", func(v *radarLedger) { must.OK(v.t, v.DeleteRepo(v.t.Context(), "acme", "api")) }},
		{"more overlaps below HIGH than are stored", func(v *radarLedger) {
			for n := range 201 {
				v.push(100+n, fmt.Sprint("b", n), fmt.Sprintf("d/%d.go 1", n))
			}
			v.push(400, "last", "p.go 9", "d/x.go 1")
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			v := newRadarLedger(t)
			test.do(v)
			if problems, _ := v.check(v.file, check.Options{}); len(problems) > 0 {
				t.Errorf("before it is settled, there are the problems\n%s", strings.Join(problems, "\n"))
			}
			problems, unchecked := v.check(v.settled(), check.Options{})
			if len(problems)+len(unchecked) > 0 {
				t.Errorf("got the problems\n%s\nnot checked:\n%s", strings.Join(problems, "\n"), strings.Join(unchecked, "\n"))
			}
		})
	}
}

// What cannot be derived is not checked, and no problem.
func TestOverlapsThatAreNotChecked(t *testing.T) {
	const (
		waits   = "the radar is going to scan the commits again"
		bounded = "the radar has reached a limit"
	)

	for _, test := range []struct {
		name    string
		do      func(v *radarLedger)
		change  string
		options check.Options
		want    string
	}{
		{"a scan that waits", func(v *radarLedger) {
			v.set(func(r *conflicts.Settings) { r.Ignore = []string{"p.go"} })
		}, "DELETE FROM overlaps", check.Options{}, waits},
		{"a scan of the earlier commit that waits", func(v *radarLedger) {
			v.push(10, "six", "q.go 100")
			v.push(11, "seven", "p.go 9")
			v.register(12, ledger.Registration{Branch: "six", Parents: []string{sha(10)}})
		}, "UPDATE tips SET policy_version = 0 WHERE branch = 'one'; DELETE FROM overlaps WHERE later =" + ofBranch("two") +
			"; INSERT INTO backlog (repo_id, kind, ref, org_id, cause_type, cause_id, position, since, not_before) SELECT 1, " +
			"'settle', commit_id, 1, 'radar', '', 0, 1, 1 FROM tips WHERE branch = 'one'", check.Options{}, waits},
		{"more HIGH overlaps than are stored", func(v *radarLedger) {
			last := lines("s.go 7")
			for n := range 201 {
				v.push(100+n, fmt.Sprint("b", n), fmt.Sprintf("s.go %d", 100+100*n))
				last[0].Hunks = append(last[0].Hunks, lines(fmt.Sprintf("s.go %d", 101+100*n))[0].Hunks...)
			}
			v.register(400, ledger.Registration{Branch: "last", Changes: last})
			v.settled()
		}, "", check.Options{}, bounded},
		{"a missing row of a commit with more", func(v *radarLedger) { v.settled() },
			"UPDATE tips SET truncated = 1 WHERE branch = 'one'; DELETE FROM overlaps WHERE later =" + ofBranch("two"),
			check.Options{}, bounded},
		{"less memory", func(v *radarLedger) { v.settled() }, "", check.Options{RadarMemory: 1}, bounded},
		{"other changes of what was deployed", func(v *radarLedger) {
			v.makePromotable(3)
			v.deploy(3, ledger.Pass)
			v.register(3, ledger.Registration{Changes: lines("r.go 1")})
			v.settled()
			v.register(3, ledger.Registration{Changes: lines("q.go 10")})
			v.settled()
		}, "", check.Options{}, "the earlier commit is out of flight"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			v := newRadarLedger(t)
			test.do(v)
			must.OK(t, v.Close())

			d := v.file
			if test.change != "" {
				d = d.copy(t, run(test.change))
			}

			problems, unchecked := v.check(d, test.options)
			for _, line := range problems {
				if strings.HasPrefix(line, "radar ") && !strings.Contains(line, sha(4)+": its overlap") {
					t.Error(line) // nothing is changed that excuses a missing overlap of the branch five
				}
			}

			if !slices.ContainsFunc(unchecked, func(line string) bool { return strings.Contains(line, test.want) }) {
				t.Errorf("not checked: %q, want %q", unchecked, test.want)
			}
		})
	}
}
