// Package policytext presents a policy contract to people: in sentences, as the changes between
// two versions, and as the diff of their documents.
package policytext

import (
	"fmt"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/policy/conflicts"
	"github.com/ledgerd/ledgerd/ledger/policy/linking"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/server/web/format"
)

// A Phrase is a part of a sentence. If Code is set, Text is quoted from the
// contract.
type Phrase struct {
	Text string
	Code bool
}

// A Sentence describes a part of a contract.
type Sentence []Phrase

// text appends plain text.
func (s Sentence) text(format string, args ...any) Sentence {
	return append(s, Phrase{Text: fmt.Sprintf(format, args...)})
}

// code appends a quotation from the contract.
func (s Sentence) code(text string) Sentence { return append(s, Phrase{text, true}) }

// list appends quotations, separated by commas and, before the last one, by a
// conjunction.
func (s Sentence) list(conjunction string, quotations []string) Sentence {
	for i, text := range quotations {
		switch {
		case i > 0 && i == len(quotations)-1:
			s = s.text(" %s ", conjunction)
		case i > 0:
			s = s.text(", ")
		}
		s = s.code(text)
	}
	return s
}

const (
	maxSentence = 400 // bytes that a page shows of a sentence
	maxCode     = 160 // characters that it shows of a phrase
)

// Shown returns the sentence clipped to the length that a page shows.
func (s Sentence) Shown() Sentence {
	var shown Sentence
	room := maxSentence
	for i, p := range s {
		p.Text = format.Clip(p.Text, maxCode)
		if room -= len(p.Text); room < 0 {
			return shown.text(" and %d more …", len(s[i:])/2+1)
		}
		shown = append(shown, p)
	}
	return shown
}

// describe returns a requirement as sentences.
func describe(r policy.Requirement) Sentence {
	var s Sentence
	if r.Name != "" {
		s = s.code(r.Name).text(": ")
	}
	switch {
	case strings.HasSuffix(r.Type, "*"):
		s = s.text("Any type ").code(r.Type)
	case r.Type != "":
		s = s.text("Type ").code(r.Type)
	case r.Predicate == "*":
		s = s.text("Any predicate")
	case strings.HasSuffix(r.Predicate, "*"):
		s = s.text("Any ").code(r.Predicate)
	default:
		s = s.code(r.Predicate)
	}

	s = s.text(" %s", verbs(r.Accept)).levels(r.Levels).where(r.Where).signers(r).age(r.MaxAge).text(".")
	s = s.others(r)
	if r.Covers == policy.CoversChange {
		s = s.text(" Covers the change of a commit alone.")
	}
	if r.Delivery {
		s = s.text(" Counts only if every commit that it ships is covered.")
	}
	return s.carry(r).scope(r)
}

var statusVerbs = map[ledger.Status]string{
	ledger.Pass:     "passes",
	ledger.Warn:     "warns",
	ledger.Fail:     "fails",
	ledger.Errored:  "errors",
	ledger.Skip:     "is skipped",
	ledger.Recorded: "is recorded",
}

// verbs returns the accepted statuses as verbs: passes, warns or is skipped.
func verbs(statuses []ledger.Status) string {
	words := make([]string, len(statuses))
	for i, status := range statuses {
		words[i] = statusVerbs[status]
	}
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// levels appends what a verification summary must state.
func (s Sentence) levels(list []string) Sentence {
	for i, level := range list {
		s = s.text(" %s ", map[bool]string{true: "at", false: "and"}[i == 0]).code(level)
	}
	if len(list) > 0 {
		s = s.text(" or above")
	}
	return s
}

// where appends what the statement must say.
func (s Sentence) where(expression string) Sentence {
	if expression == "" {
		return s
	}
	return s.text(" where ").code(strings.Join(strings.Fields(expression), " "))
}

// signers appends the required signers, and whether they must confirm with a passkey.
func (s Sentence) signers(r policy.Requirement) Sentence {
	patterns := patterns(r.Signers)
	s = s.text(", signed by ")
	switch {
	case r.Threshold > 1 && len(patterns) > 0:
		s = s.text("%d distinct signers matching ", r.Threshold).list("or", patterns)
	case r.Threshold > 1:
		s = s.text("%d distinct signers", r.Threshold)
	case len(patterns) > 0:
		s = s.list("or", patterns)
	default:
		s = s.text("any trusted identity")
	}

	if r.Passkey {
		s = s.text(", confirmed by a passkey")
	}
	return s
}

// others appends a sentence about people whose signatures do not count.
func (s Sentence) others(r policy.Requirement) Sentence {
	var people []string
	switch r.ExcludeAuthor {
	case policy.AuthorExcluded:
		people = append(people, "the author")
	case policy.ProvenAuthorExcluded:
		people = append(people, "the author (who must be proven)")
	case policy.KnownAuthorExcluded:
		people = append(people, "the author (who must be proven, and known to the org)")
	}
	if len(r.DistinctFrom) > 0 {
		people = append(people, "people needed for "+statesInWords(r.DistinctFrom))
	}
	if len(people) == 0 {
		return s
	}
	return s.text(" Not by %s.", strings.Join(people, " or "))
}

// carry appends a sentence about the other commits whose evidence counts.
func (s Sentence) carry(r policy.Requirement) Sentence {
	switch r.Carry {
	case policy.CarryTree:
		s = s.text(" Carries from commits with the same tree")
	case policy.CarryMerge:
		s = s.text(" Carries from commits that it merges")
	case policy.CarryTree | policy.CarryMerge:
		s = s.text(" Carries from commits with the same tree, or that it merges")
	default:
		return s
	}
	if len(r.CarrySigners) > 0 {
		s = s.text(" (merges claimed by ").list("or", patterns(r.CarrySigners)).text(")")
	}
	return s.text(".")
}

// statesInWords joins the labels of states: Attested and Promotable.
func statesInWords(states []ledger.State) string {
	labels := make([]string, len(states))
	for i, state := range states {
		labels[i] = format.State(state)
	}
	return strings.Join(labels, " and ")
}

// patterns formats patterns of signers.
func patterns(list []identity.Pattern) []string {
	texts := make([]string, len(list))
	for i, p := range list {
		texts[i] = p.String()
	}
	return texts
}

// age appends how old the evidence may be.
func (s Sentence) age(d ledger.Duration) Sentence {
	if d == 0 {
		return s
	}
	return s.text(", recorded within the last %s", durationInWords(d))
}

// scope appends a sentence about the commits to which the requirement applies, if that is
// not all of them.
func (s Sentence) scope(r policy.Requirement) Sentence {
	if len(r.Paths) > 0 {
		s = s.text(" Only for commits that change ").list("or", r.Paths)
	}

	switch {
	case len(r.Paths) > 0 && len(r.Branches) > 0:
		s = s.text(" and target ").list("or", r.Branches)
	case len(r.Branches) > 0:
		s = s.text(" Only for commits that target ").list("or", r.Branches)
	}

	if len(r.Paths)+len(r.Branches) > 0 {
		s = s.text(".")
	}
	return s
}

// durationInWords formats a duration in the largest unit that divides it.
func durationInWords(d ledger.Duration) string {
	for _, unit := range []struct {
		name   string
		length time.Duration
	}{{"day", 24 * time.Hour}, {"hour", time.Hour}, {"minute", time.Minute}, {"second", time.Second}} {
		if d.Std()%unit.length == 0 {
			return format.Plural(int64(d.Std()/unit.length), unit.name)
		}
	}
	return d.String()
}

// Radar returns the settings of Conflict Radar as sentences.
func Radar(r conflicts.Settings) []Sentence {
	if !r.Enabled {
		return []Sentence{Sentence{}.text("Conflict Radar is off: commits are not compared.")}
	}

	all := []Sentence{overlapsFrom(r.Notify).text(" create an event.")}
	if r.Block == radar.NoLevel {
		all = append(all, Sentence{}.text("Overlaps do not keep commits from becoming Promotable."))
	} else {
		all = append(all, overlapsFrom(r.Block).text(" keep the later commit from becoming Promotable."))
	}

	all = append(all, Sentence{}.text("A commit is in flight for at most %s.", durationInWords(r.MaxAge)))
	if len(r.Ignore) > 0 {
		all = append(all, Sentence{}.text("Ignored: ").list("and", r.Ignore).text("."))
	}
	return all
}

// Targets returns the rule for target branches as a sentence.
func Targets(r policy.TargetRule) Sentence {
	if r == policy.ClaimedTargets {
		return Sentence{}.text("A commit is meant for every target claimed for it; until one is claimed, for the default " +
			"branch.")
	}
	return Sentence{}.text("A commit is meant for the default branch and every target claimed for it.")
}

// Exceptions returns whose exceptions count, as a sentence.
func Exceptions(r policy.ExceptionRule) Sentence {
	if len(r.Signers) == 0 {
		return Sentence{}.text("No exceptions count.")
	}
	return Sentence{}.text("Exceptions count if signed by ").list("or", patterns(r.Signers)).
		text(", for at most %s.", durationInWords(r.MaxDuration))
}

// Artifacts returns whose statements link artifacts with commits, as a sentence.
func Artifacts(c policy.Contract) Sentence {
	switch signers := c.Artifacts.Signers; {
	case len(signers) > 0:
		return Sentence{}.text("Statements link artifacts with commits if signed by ").list("or", patterns(signers)).text(".")
	case linking.AnyLinker(&c):
		return Sentence{}.text("By the rules of an earlier release, everybody who may attest ").code("build:*").
			text(" can link artifacts with commits, also identities without a list of predicates. To end this, save the " +
				"policy again.")
	}
	return Sentence{}.text("Statements for ").code("build:*").text(" link artifacts with commits if the signer’s " +
		"identity " +
		"has a list of predicates that names ").code("build:").text(".")
}

// overlapsFrom names the overlaps of a level or a higher one.
func overlapsFrom(level radar.Level) Sentence {
	if level == radar.High {
		return Sentence{}.code(level.String()).text(" overlaps")
	}
	return Sentence{}.text("Overlaps at ").code(level.String()).text(" or above")
}

// A Stage holds the requirements of one state.
type Stage struct {
	State ledger.State
	Needs []Sentence
	// Without explains what follows if there are no requirements.
	Without string
}

// Stages returns the requirements of each state, in the order of the states.
func Stages(c policy.Contract) []Stage {
	stages := []Stage{
		{State: ledger.Attested, Without: "No requirements: the first attestation makes a commit Attested."},
		{State: ledger.Promotable, Without: "No requirements: every Attested commit is Promotable."},
		{State: ledger.Deployed, Without: "No requirements: no commit becomes Deployed."},
	}
	for i := range stages {
		for _, r := range c.Requirements {
			if r.State == stages[i].State {
				stages[i].Needs = append(stages[i].Needs, describe(r))
			}
		}
	}
	return stages
}
