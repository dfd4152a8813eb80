package policy

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// The model implements what docs/policy.md says about contracts. It shares no code with
// Derive: these tables list what each glob, predicate and pattern matches, among a few
// names.
var (
	modelBranches = map[string]string{ // glob: matching branches
		"main": "main", "release/*": "release/1", "*": "main feature-x", "{main,feature-*}": "main feature-x",
		"**": "main release/1 feature-x release/1/2",
	}
	modelPaths = map[string]string{
		"go.mod": "go.mod", "cmd/**": "cmd/main.go cmd/sub/x.go", "cmd/*": "cmd/main.go",
		"**/*.go": "cmd/main.go cmd/sub/x.go a.go", "*.{go,mod}": "go.mod a.go",
	}
	modelPredicates = map[string]string{
		"test:go": "test:go", "test:*": "test:go test:js", "deploy:prod": "deploy:prod", "test:js": "test:js",
		"*": "test:go test:js deploy:prod signed:commit review:code", "t*": "test:go test:js",
		"review:*": "review:code", "review:code": "review:code",
	}
	modelSigners = map[string]string{
		"cn=ci,ou=build,o=acme": "ci", "ou=build": "ci bot", "cn=*,o=acme": "ci bot ann", "cn=a*": "ann",
		"ou=*,o=other": "eve", "cn=*": "ci bot ann eve",
	}
	modelDNs = map[string]identity.DN{
		"ci": {CN: "ci", OU: "build", O: "acme"}, "bot": {CN: "Bot", OU: "build", O: "acme"},
		"ann": {CN: "ann", OU: "dev", O: "acme"}, "eve": {CN: "eve", OU: "dev", O: "other"},
	}
	modelPeople = map[string]int64{"ci": 1, "bot": 2, "ann": 3, "eve": 1} // eve uses the key of ci
	modelTypes  = map[string]string{                                      // pattern: matching types
		"https://a.example/v1": "https://a.example/v1",
		"https://*":            "https://a.example/v1 https://b.example/v1 " + ledger.ResultType,
	}
)

func contains(word, words string) bool { return slices.Contains(strings.Fields(words), word) }

// modelLatest reports whether e is the latest evidence of a list by its person for its
// predicate and slot. Evidence without an outcome replaces none with one.
func modelLatest(list []Evidence, e Evidence) bool {
	for _, o := range list {
		same := o.Person != 0 && o.Person == e.Person || o.Person == 0 && o.Signer == e.Signer
		if !same || o.Predicate != e.Predicate || o.Slot != e.Slot {
			continue
		}
		if o.Status != "recorded" && e.Status == "recorded" ||
			(o.Status == "recorded") == (e.Status == "recorded") && o.Attestation > e.Attestation {
			return false
		}
	}
	return true
}

// modelApplies reports whether a requirement applies: the commit changes a matching
// path or has no change record, and its target branch matches.
func modelApplies(c Contract, r Requirement, f Facts) bool {
	isKnown, changes := f.HasChanges, f.Changes
	if c.Rules > 3 {
		isKnown, changes = false, nil
		for _, e := range f.Evidence {
			if e.PredicateType == ledger.ChangesType && !e.Distrusted && modelLatest(f.Evidence, e) {
				isKnown, changes = true, append(changes, e.Paths...)
			}
		}
	}

	path, branch := len(r.Paths) == 0 || !isKnown, len(r.Branches) == 0
	for _, glob := range r.Paths {
		for _, changed := range changes {
			path = path || contains(changed, modelPaths[glob])
		}
	}
	for _, glob := range r.Branches {
		for _, target := range f.Targets {
			branch = branch || contains(target, modelBranches[glob])
		}
	}
	return path && branch
}

// modelIsAbout reports whether evidence is about a requirement: its predicate, or its
// type.
func modelIsAbout(r Requirement, e Evidence) bool {
	return contains(e.Predicate, modelPredicates[r.Predicate]) || contains(e.PredicateType, modelTypes[r.Predicate]) ||
		contains(e.PredicateType, modelTypes[r.Type])
}

// modelIsSigner reports whether a signer matches a pattern, if there are any.
func modelIsSigner(patterns []identity.Pattern, signer identity.DN) bool {
	for _, p := range patterns {
		for name, dn := range modelDNs {
			if dn == signer && contains(name, modelSigners[p.String()]) {
				return true
			}
		}
	}
	return len(patterns) == 0
}

// modelWho identifies the person of evidence.
func modelWho(e Evidence) any {
	if e.Person != 0 {
		return e.Person
	}
	return e.Signer
}

// modelCounted identifies who counts by evidence: the person, or all people who have a common name.
func modelCounted(e Evidence) any {
	if e.Individual != 0 {
		return e.Individual
	}
	return modelWho(e)
}

// A modelTally is what a requirement makes of the evidence.
type modelTally struct {
	people    map[any]string  // who counts, with their names
	counts    map[string]bool // the evidence that does, by attestation
	blocks    map[string]bool // the evidence that blocks
	signed    bool            // whether any evidence carries
	blocked   bool            // by a failure or a rollback
	again     bool            // whether a deployment has counted after a rollback
	exception bool
	needed    int         // people, after the exception
	first     ledger.Time // when the first evidence or the exception ends
}

// modelWeigh weighs the evidence for a requirement. A person's latest fail or error
// blocks, even if their pass would not count. Evidence counts if its status is accepted, its signer matches
// and did not write the commit, its expression is true, a passkey has confirmed it if the requirement
// wants one, and it is not too old. For
// DEPLOYED, it must be recorded while the commit was PROMOTABLE. A person counts for a
// predicate only if all slots do, and only once. Carried evidence is weighed alike.
func modelWeigh(c Contract, r Requirement, f Facts, now ledger.Time) modelTally {
	type about struct {
		who       any
		predicate string
	}
	tally := modelTally{people: map[any]string{}, counts: map[string]bool{}, blocks: map[string]bool{}}
	tally.needed = r.Threshold
	good, bad, accepted := map[about][]Evidence{}, map[about]bool{}, false
	list, undone, again := modelEvidence(c, r, f), modelRollback(c, f), false
	for _, e := range list {
		if !modelLatest(list, e) || !modelIsAbout(r, e) {
			continue
		}
		tally.signed = tally.signed || e.Source != 0
		a := about{modelWho(e), e.Predicate}
		ok := slices.Contains(r.Accept, e.Status)
		isUndone := r.State == ledger.Deployed && e.Predicate == "deploy:prod" && e.Source == 0 &&
			e.Attestation < undone.Attestation
		accepted = accepted || ok && !isUndone
		verdict := f.Verdicts[r.Where][e.Attestation]
		until := modelEnd(r, f, e)
		switch {
		case !ok && (e.Status == "fail" || e.Status == "error"), e.Distrusted:
			tally.blocked, bad[a] = true, true
			tally.blocks[e.Attestation] = true
		case !modelIsSigner(r.Signers, e.Signer):
			// Neither good nor bad.
		case e.Source != 0 && modelMayBeAuthor(c, r, f, e):
			// The same: it carries no further than it counts.
		case !ok, modelMayBeAuthor(c, r, f, e), r.Passkey && !e.Passkey, r.Where != "" && !verdict.True,
			r.State == ledger.Deployed && !e.WhilePromotable, isUndone:
			bad[a] = true
		case until > 0 && now >= until:
			bad[a] = bad[a] || e.Source == 0 // carried evidence that was good is as if it had never been
			again = again || modelIsAgain(e, undone)
		default:
			good[a] = append(good[a], e)
			again = again || modelIsAgain(e, undone)
		}
	}
	if r.State == ledger.Deployed && undone.Attestation != "" && modelIsAbout(r, modelDeployment) {
		tally.again = again
		if x, ok := modelException(c, Requirement{Name: "rollback:prod"}, f, now); ok {
			tally.first = x.Until
		} else if !again {
			tally.blocked = true
		}
	}

	for a, list := range good {
		for _, e := range list {
			name := dnText(e.Signer)
			if known := tally.people[modelCounted(e)]; !bad[a] && (known == "" || name < known) {
				tally.people[modelCounted(e)] = name
			}
			tally.counts[e.Attestation] = !bad[a]
			if until := modelEnd(r, f, e); until > 0 && (tally.first == 0 || until < tally.first) {
				tally.first = until
			}
		}
	}

	if x, ok := modelException(c, r, f, now); ok {
		tally.exception = true
		if r.State != ledger.Deployed || accepted {
			tally.needed--
		}
		if tally.first == 0 || x.Until < tally.first {
			tally.first = x.Until
		}
	}
	return tally
}

// modelException returns the exception in force for a requirement: the latest one that is
// not too long and by somebody who may grant it. One that ends earlier ends it.
func modelException(c Contract, r Requirement, f Facts, now ledger.Time) (last Exception, ok bool) {
	for _, x := range f.Exceptions {
		if len(c.Exceptions.Signers) > 0 && modelIsSigner(c.Exceptions.Signers, x.Signer) && x.Requirement == r.Name &&
			x.Until <= x.RecordedAt+ledger.Time(c.Exceptions.MaxDuration/1e6) && x.Attestation > last.Attestation {
			last = x
		}
	}
	return last, last.Until > now
}

// modelMet reports which requirements are met: those with enough people and no failure,
// or an exception in place of one signer and of all failures. With distinct_from, it must
// be possible to give each requirement its people, so that nobody is given to two that
// must be distinct. If evidence that may carry is missing, none of it is met that carries.
func modelMet(c Contract, f Facts, now ledger.Time) (met []bool, tallies []modelTally) {
	met, tallies = make([]bool, len(c.Requirements)), make([]modelTally, len(c.Requirements))
	for i, r := range c.Requirements {
		if modelApplies(c, r, f) {
			tallies[i] = modelWeigh(c, r, f, now)
		}
	}
	for i, r := range c.Requirements {
		tally := tallies[i]
		met[i] = modelApplies(c, r, f) && len(tally.people) >= tally.needed && (!tally.blocked || tally.exception) &&
			(r.Carry == 0 || f.Incomplete == "") &&
			(len(r.DistinctFrom) == 0 || modelAssign(c, f, tallies, modelInvolved(c, f, i), map[int][]any{}))
	}
	return met, tallies
}

func modelDiffers(c Contract, i, j int) bool {
	return slices.Contains(c.Requirements[i].DistinctFrom, c.Requirements[j].State)
}

// modelInvolved returns a requirement and those from which it, or these, must differ.
func modelInvolved(c Contract, f Facts, i int) []int {
	involved := []int{i}
	for n := 0; n < len(involved); n++ {
		for j, r := range c.Requirements {
			if modelApplies(c, r, f) && modelDiffers(c, involved[n], j) && !slices.Contains(involved, j) {
				involved = append(involved, j)
			}
		}
	}
	return involved
}

// modelAssign tries all ways to give people to the requirements of a list.
func modelAssign(c Contract, f Facts, tallies []modelTally, list []int, given map[int][]any) bool {
	if len(list) == 0 {
		return true
	}
	i := list[0]
	var free []any
	for person := range tallies[i].people {
		taken := false
		for j, people := range given {
			taken = taken || (modelDiffers(c, i, j) || modelDiffers(c, j, i)) && slices.Contains(people, person)
		}
		if !taken {
			free = append(free, person)
		}
	}

	for chosen := range 1 << len(free) {
		var people []any
		for n, person := range free {
			if chosen>>n&1 != 0 {
				people = append(people, person)
			}
		}
		if len(people) != max(tallies[i].needed, 0) {
			continue
		}
		given[i] = people
		if modelAssign(c, f, tallies, list[1:], given) {
			return true
		}
		delete(given, i)
	}
	return false
}

// modelBlocks reports whether an overlap of the contract's level or above keeps the
// commit from PROMOTABLE. A commit on its target branch is not blocked.
func modelBlocks(c Contract, f Facts) bool {
	if !c.Radar.Enabled || f.Branch == f.Target {
		return false
	}
	blocking := map[radar.Level][]radar.Level{radar.Low: {radar.Low, radar.Medium, radar.High},
		radar.Medium: {radar.Medium, radar.High}, radar.High: {radar.High}}[c.Radar.Block]
	for _, o := range f.Overlaps {
		for _, level := range blocking {
			if o.Level == level {
				return true
			}
		}
	}
	return false
}

// modelState returns the state of a commit with facts f under the contract.
func modelState(c Contract, f Facts, now ledger.Time) ledger.State {
	met, tallies := modelMet(c, f, now)
	return modelReached(c, f, met, tallies)
}

// modelReached returns the state of a commit, given which requirements are met.
func modelReached(c Contract, f Facts, met []bool, tallies []modelTally) ledger.State {
	open, any, signed := map[ledger.State]bool{}, map[ledger.State]bool{}, len(f.Evidence) > 0
	for i, r := range c.Requirements {
		if modelApplies(c, r, f) {
			open[r.State] = open[r.State] || !met[i]
			any[r.State], signed = true, signed || tallies[i].signed
		}
	}

	switch {
	case f.Deployed:
		return ledger.Deployed
	case !signed:
		return ledger.Draft
	case open[ledger.Attested]:
		return ledger.Validating
	case open[ledger.Promotable], modelBlocks(c, f):
		return ledger.Attested
	case open[ledger.Deployed], !any[ledger.Deployed]:
		return ledger.Promotable
	}
	return ledger.Deployed
}

func TestDeriveAgainstModel(t *testing.T) {
	testenv.Check(t, func(t *rapid.T) {
		c := drawContract(t)
		for range 20 {
			compareToModel(t, c, drawFacts(t, c), drawNow(t))
			plain, f := drawPlain(t)
			compareToModel(t, plain, f, drawNow(t))
		}
	})
}

func compareToModel(t *rapid.T, c Contract, f Facts, now ledger.Time) {
	got := c.Derive(f, now)
	if want := modelState(c, f, now); got.State != want {
		t.Errorf("state %s, want %s", got.State, want)
	}
	compareBlock(t, c, f, got.Requirements)
	compareStanding(t, c, f, now, got)
	if state, expires := c.State(f, now); state != got.State || expires != got.Expires {
		t.Errorf("State returns %s until %d, but Derive %s until %d", state, expires, got.State, got.Expires)
	}

	var expires ledger.Time
	met, tallies := modelMet(c, f, now)
	for i, r := range c.Requirements {
		s := got.Requirements[i]
		if applies := modelApplies(c, r, f); s.Applies != applies || s.Reason == "" {
			t.Errorf("requirement %d: %+v, applies: want %t", i, s, applies)
		}
		if !s.Applies {
			continue
		}
		tally := tallies[i]
		if s.Met != met[i] || s.Have != len(tally.people)+r.Threshold-tally.needed || s.Need != r.Threshold ||
			!slices.Equal(s.SignersCounted, slices.Sorted(maps.Values(tally.people))) ||
			(len(s.FailedBy)+len(s.RolledBack) > 0) != tally.blocked || (s.Exception != nil) != tally.exception {
			t.Errorf("requirement %d: %+v, want met %t: %+v", i, s, met[i], tally)
		}
		compareCarried(t, c, r, f, s, tally)
		if first := tally.first; first != 0 && (expires == 0 || first < expires) && !f.Deployed {
			expires = first
		}
	}
	if x, ok := modelException(c, Requirement{Name: "rollback:prod"}, f, now); ok && !f.Deployed &&
		modelRollback(c, f).Attestation != "" && (expires == 0 || x.Until < expires) {
		expires = x.Until
	}
	compareRollback(t, c, f, now, got.RolledBack)
	if got.Expires != expires {
		t.Errorf("expires %d, want %d", got.Expires, expires)
	}
}

// compareBlock checks the radar's requirement, which is last.
func compareBlock(t *rapid.T, c Contract, f Facts, got []ledger.RequirementStatus) {
	blocks := c.Radar.Enabled && c.Radar.Block != radar.NoLevel
	if blocks != (len(got) == len(c.Requirements)+1) || !blocks && len(got) != len(c.Requirements) {
		t.Fatalf("%d requirements of %d, with radar settings %+v", len(got), len(c.Requirements), c.Radar)
	}
	if !blocks {
		return
	}
	s, blocked := got[len(got)-1], modelBlocks(c, f)
	if s.State != ledger.Promotable || s.Predicate != "radar:"+c.Radar.Block.String() ||
		s.Applies != (f.Branch != f.Target) || s.Met != (s.Applies && !blocked) || s.Have != 0 || s.Need != 0 {
		t.Errorf("the radar's requirement is %+v, blocked: want %t", s, blocked)
	}
	named := strings.Contains(s.Reason, "c0ffee at ") || strings.Contains(s.Reason, "decade at ")
	if s.Reason == "" || named != blocked {
		t.Errorf("reason %q, blocked: %t", s.Reason, blocked)
	}
}

// compareStanding compares the standing with the state that the commit would have if it had not
// been deployed.
func compareStanding(t *rapid.T, c Contract, f Facts, now ledger.Time, got Derivation) {
	never := f
	never.Deployed = false
	want := min(modelState(c, never, now), ledger.Promotable)
	if got.Standing != want {
		t.Errorf("standing %s, want %s", got.Standing, want)
	}
	standing, expires := c.Standing(f, now)
	if end := c.Derive(never, now).Expires; standing != want || expires != end {
		t.Errorf("Standing returns %s until %d, want %s until %d", standing, expires, want, end)
	}
	state, standing, shut := c.Present(f, now)
	if state != got.State || standing != want || !reflect.DeepEqual(shut, got.RolledBack) {
		t.Errorf("Present returns %s, %s and %v, want %s, %s and %v", state, standing, shut, got.State, want, got.RolledBack)
	}
	if d := c.Decide(f, now); d.State != got.State || d.Standing != want || d.Expires != expires {
		t.Errorf("Decide returns %s and %s until %d, want %s and %s until %d",
			d.State, d.Standing, d.Expires, got.State, want, expires)
	}
}

func dnText(dn identity.DN) string { return "cn=" + dn.CN + ",ou=" + dn.OU + ",o=" + dn.O }
