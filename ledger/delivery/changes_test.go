package delivery

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/lineage"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/policy/scope"
)

// What commits change is what signed records say, from the head down to a commit that ran. A record is written as
// "m2 m1 web": m2 differs from m1 in web alone.
func TestChangesFollowRecords(t *testing.T) {
	line := []string{"m0", "m1 m0", "m2 m1", "m3 m2"}
	merge := []string{"m0", "t1 m0", "t2 t1", "m1 m0", "m2 m1 t2"}
	for name, test := range map[string]struct {
		history, records []string
		ran              string
		elsewhere        bool   // whether what runs does not lead to the head
		want             string // of all, and of each from the head down; "?" if it is not known
	}{
		"each commit has a record": {line, []string{"m3 m2 web", "m2 m1 api", "m1 m0 web"}, "m0", false,
			"api,web m3:web m2:api m1:web"},
		"a record of several commits": {line, []string{"m3 m1 web", "m1 m0 api"}, "m0", false,
			"api,web m3:web m2:web m1:api"},
		"a record of all": {line, []string{"m3 m0 -"}, "m0", false, "- m3:- m2:- m1:-"},
		"of two records, each may be right": {line, []string{"m3 m2 web", "m3 m2 api", "m2 m0 -"}, "m0", false,
			"api,web m3:api,web m2:- m1:-"},
		"the records of inner commits are of no account": {line, []string{"m3 m0 web", "m2 m1 api"}, "m0", false,
			"web m3:web m2:web m1:web"},
		"a record is missing":   {line, []string{"m3 m2 web", "m1 m0 api"}, "m0", false, "? m3:web m2:? m1:api"},
		"nobody has signed any": {line, nil, "m0", false, "? m3:? m2:? m1:?"},
		"the record of the head is missing": {line, []string{"m2 m1 web", "m1 m0 web"}, "m0", false,
			"? m3:? m2:web m1:web"},
		"a record from before what ran": {line, []string{"m3 m2 web", "m2 m0 web"}, "m1", false, "? m3:web m2:?"},
		"what runs is elsewhere":        {line, []string{"m3 m2 web", "m2 m1 web"}, "m1", true, "? m3:web m2:web"},
		"nothing ran":                   {line[:2], []string{"m1 m0 web"}, "", false, "? m1:web m0:?"},
		"a base that is no ancestor":    {line, []string{"m3 x web"}, "m0", false, "? m3:? m2:? m1:?"},
		"a base above": {append(line, "m4 m3"), []string{"m4 m2 web", "m2 m3 api", "m3 m0 web"}, "m0", false,
			"? m4:? m3:? m2:? m1:?"},

		"the mainline's record of a merge is about the branch": {merge, []string{"m2 m1 web", "m1 m0 api"}, "m0", false,
			"api,web m2:web t2:web t1:web m1:api"},
		"a merge without a record": {merge, []string{"m1 m0 api", "t2 t1 web"}, "m0", false, "? m2:? t2:web t1:? m1:api"},
		"the record of the branch's side is about the mainline": {merge, []string{"m2 t2 api", "t2 m0 web"}, "m0", false,
			"api,web m2:api t2:web t1:web m1:api"},
		"a branch from before what ran": {merge, []string{"m2 m1 web"}, "m1", false, "web m2:web t2:web t1:web"},
		"the branch began at what ran earlier": {merge, []string{"m2 m1 web"}, "m0 m1", false,
			"web m2:web t2:web t1:web"},
		"a merge that undoes what ran": {merge, []string{"m2 t2 -", "t2 m0 web"}, "m1", false, "? m2:? t2:? t1:?"},
		"a merge that undoes what ran, back to what ran before": {merge, []string{"m2 t2 -", "t2 m0 web"}, "m0 m1", false,
			"? m2:? t2:? t1:?"},
	} {
		nodes := make(map[string]lineage.Node)
		for i, commit := range test.history {
			words := strings.Fields(commit)
			nodes[words[0]] = lineage.Node{Parents: words[1:], At: ledger.Time(i+1) * 1000}
		}
		head := strings.Fields(test.history[len(test.history)-1])[0]
		ran := make(map[string]bool)
		for sha := range strings.FieldsSeq(test.ran) {
			ran[sha] = true
		}
		graph := func(sha string) (lineage.Node, bool, error) {
			n, ok := nodes[sha]
			return n, ok, nil
		}
		list, _, err := lineage.Delivery(graph, head, ran)
		must.OK(t, err)
		base := Base{must.Get(lineage.Since(graph, list, ran))(t), !test.elsewhere}

		var commits []Commit
		for _, shipped := range list {
			commits = append(commits, Commit{shipped, recorded(shipped.SHA, test.records)})
		}
		slices.SortFunc(commits[1:], func(a, b Commit) int { return strings.Compare(b.SHA, a.SHA) })
		c := must.Get(policy.Parse([]byte(`{"requirements":[{"state":"ATTESTED","predicate":"test","paths":["a"]}]}`)))(t)
		ch := changesOf(&c, commits, base)
		got := pathsIn(ch.all)
		for i, one := range ch.each {
			got += " " + commits[i].SHA + ":" + pathsIn(one)
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// recorded returns the facts of a commit with change records, or nil if there are none about it.
func recorded(sha string, records []string) *policy.Facts {
	var f policy.Facts
	for i, record := range records {
		if words := strings.Fields(record); words[0] == sha {
			e := policy.Evidence{Attestation: fmt.Sprintf("att_%d", i), Predicate: ledger.ChangesPredicate,
				PredicateType: ledger.ChangesType, Slot: words[1], Base: words[1], Paths: []string{},
				Signer: identity.DN{CN: fmt.Sprint("ci", i)}}
			if words[2] != "-" {
				e.Paths = words[2:]
			}
			f.Evidence = append(f.Evidence, e)
		}
	}
	if f.Evidence == nil {
		return nil
	}
	return &f
}

func pathsIn(ch scope.Changes) string {
	switch {
	case !ch.IsKnown && ch.Unknown == "":
		return "not known, without a reason"
	case !ch.IsKnown:
		return "?"
	case len(ch.Paths) == 0:
		return "-"
	}
	return strings.Join(ch.Paths, ",")
}
