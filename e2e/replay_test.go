package e2e_test

import (
	"crypto/ed25519"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/gitrepo/gitrepotest"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
)

var (
	replayMerges = flag.Int("replay.merges", 10, "the largest `number` of branches of each history that "+
		"TestReplayOf… merges in each way")
	replayRepos = flag.String("replay.repos", "", "absolute `paths` of git repositories, separated by commas, for "+
		"TestReplayOf… (default: a generated one)")
	replayKinds = flag.String("replay.kinds", "", "`names` of the ways to merge, separated by commas (default: all)")
	replayJob   = flag.Int("replay.job", 5, "the `number` of merges after which the job of the mainline runs")
)

// TestReplayOfMerges merges the branches of histories again, in each way that forges have, and runs the job of the
// mainline. Their tests and reviews carry exactly as a script says that asks git alone, and never to a merge with a
// smuggled line.
func TestReplayOfMerges(t *testing.T) {
	testenv.From(t, testenv.Push, "takes many seconds")
	testenv.Need(t, "git", "python3")
	gitrepotest.IgnoreConfig(t)

	r := newReplay(t)
	r.all(r.merge)
	t.Logf("merges:\n%s", r.table())
	for name, n := range r.tallies {
		if n.all == 0 || n.byClaim == 0 && !n.isDecoy {
			t.Errorf("%s: %+v, want some that carry by a claim", name, *n)
		}
	}
}

// all calls a function for each way to merge, and each history.
func (r *replay) all(merge func(kind mergeKind, history, path string)) {
	var paths []string
	if *replayRepos != "" {
		paths = strings.Split(*replayRepos, ",")
	} else {
		paths = []string{writeMerges(r.t, *replayMerges)}
	}
	for i, path := range paths {
		for _, kind := range mergeKinds() {
			if *replayKinds == "" || slices.Contains(strings.Split(*replayKinds, ","), kind.name) {
				merge(kind, fmt.Sprint("history", i), path)
			}
		}
	}
}

// A tally counts commits of one kind by what may carry to them, and what does.
type tally struct {
	isDecoy              bool // they are no merges, or not of what was reviewed
	all, byTree, byClaim int
	// less counts commits to which not all may carry, by the reason.
	less map[string]int
	// missed counts those to which less has carried than may, by the reason, and wrong those with more.
	missed map[string]int
	wrong  int
	// claims counts what the job has claimed about them, and wrongClaims what git does not confirm.
	claims, wrongClaims int
}

// count counts what may carry to a commit.
func (n *tally) count(may verdict) {
	n.all++
	switch {
	case may.state() < ledger.Promotable:
		n.less[may.why]++
	case may.isClaimed:
		n.byClaim++
	default:
		n.byTree++
	}
}

// A replay records merges in one ledger.
type replay struct {
	t       *testing.T
	policy  string // that of the repos
	org     *org
	api     *client.Client
	people  map[string]ed25519.PrivateKey
	claimer string // the file of the mainline's key
	tallies map[string]*tally
	serial  int
	// undecided counts what jobs could not decide, by the reason.
	undecided map[string]int
}

const replayContract = `
requirements:
  - {state: ATTESTED, predicate: "test:*", signers: ["ou=build,o=acme"], carry: [tree, merge],
    carry_signers: ["ou=merge,o=acme"]}
  - {state: PROMOTABLE, predicate: "review:*", signers: ["ou=dev,o=acme"], exclude_author: proven, covers: change,
    carry: [tree, merge], carry_signers: ["ou=merge,o=acme"]}
`

func newReplay(t *testing.T) *replay {
	r := &replay{t: t, policy: replayContract, org: newOrg(t), people: make(map[string]ed25519.PrivateKey),
		tallies: make(map[string]*tally), undecided: make(map[string]int)}
	r.people["ci"] = r.org.key
	r.add("reviewer", "cn=reviewer,ou=dev,o=acme", "review:*")
	r.claimer = r.add("mainline", "cn=mainline,ou=merge,o=acme", "merge:*,changes:*")
	r.org.start()
	r.api = must.Get(client.New(r.org.url, client.Options{Token: r.org.token}))(t)
	return r
}

// add adds a new key to acme's keyring, and returns its file.
func (r *replay) add(name, dn, may string, options ...string) string {
	r.t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	must.OK(r.t, err)
	file := filepath.Join(r.t.TempDir(), name+".key")
	must.OK(r.t, os.WriteFile(file, []byte(must.PrivatePEM(r.t, private)), 0o600))
	must.OK(r.t, os.WriteFile(file+".pub", []byte(must.PublicPEM(r.t, public)), 0o600))
	r.org.ledgerd(append([]string{"identity", "add", "--org", "acme", "--key", file + ".pub", "--dn", dn, "--may", may},
		options...)...)
	r.people[name] = private
	return file
}

// tally returns the tally with a name.
func (r *replay) tally(name string) *tally {
	if r.tallies[name] == nil {
		r.tallies[name] = &tally{less: make(map[string]int), missed: make(map[string]int)}
	}
	return r.tallies[name]
}

// table returns the tallies as tables.
func (r *replay) table() string {
	var text, reasons strings.Builder
	text.WriteString("| kind | commits | by tree | by claim | not all may carry | missed | wrongly carried | claims | " +
		"wrong claims |\n" + strings.Repeat("|---", 9) + "|\n")
	reasons.WriteString("\n| kind | | commits | why |\n|---|---|---|---|\n")

	for _, name := range r.names() {
		n := r.tallies[name]
		fmt.Fprintf(&text, "| %s | %d | %d | %d | %d | %d | %d | %d | %d |\n", name, n.all, n.byTree, n.byClaim,
			sum(n.less), sum(n.missed), n.wrong, n.claims, n.wrongClaims)
		for _, why := range slices.Sorted(maps.Keys(n.less)) {
			fmt.Fprintf(&reasons, "| %s | may not | %d | %s |\n", name, n.less[why], why)
		}
		for _, why := range slices.Sorted(maps.Keys(n.missed)) {
			fmt.Fprintf(&reasons, "| %s | missed | %d | %s |\n", name, n.missed[why], why)
		}
	}

	for _, why := range slices.Sorted(maps.Keys(r.undecided)) {
		fmt.Fprintf(&reasons, "| job | not decided | %d | %s |\n", r.undecided[why], why)
	}
	return text.String() + reasons.String()
}

// names returns the names of the tallies, those of decoys last.
func (r *replay) names() (list []string) {
	for _, isDecoy := range []bool{false, true} {
		for _, name := range slices.Sorted(maps.Keys(r.tallies)) {
			if r.tallies[name].isDecoy == isDecoy {
				list = append(list, name)
			}
		}
	}
	return list
}

func sum(counts map[string]int) (n int) {
	for _, count := range counts {
		n += count
	}
	return n
}
