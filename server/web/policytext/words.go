// Package policytext writes a policy contract for people: in words, as what
// changed between two versions, and as the document that they edit.
package policytext

import (
	"fmt"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/server/web/format"
)

// A Phrase is a part of a sentence. Code is quoted from the contract.
type Phrase struct {
	Text string
	Code bool
}

// A Sentence describes a part of a contract.
type Sentence []Phrase

func (s Sentence) say(format string, args ...any) Sentence {
	return append(s, Phrase{Text: fmt.Sprintf(format, args...)})
}

func (s Sentence) code(text string) Sentence { return append(s, Phrase{text, true}) }

// list says texts as code, with a word before the last one.
func (s Sentence) list(word string, texts []string) Sentence {
	for i, text := range texts {
		switch {
		case i > 0 && i == len(texts)-1:
			s = s.say(" %s ", word)
		case i > 0:
			s = s.say(", ")
		}
		s = s.code(text)
	}
	return s
}

const (
	maxSentence = 400 // characters of a sentence that are shown
	maxCode     = 160 // of what it quotes
)

// Shown returns the beginning of the sentence, as much as a page has room for.
func (s Sentence) Shown() Sentence {
	var shown Sentence
	room := maxSentence
	for i, p := range s {
		p.Text = format.Clip(p.Text, maxCode)
		if room -= len(p.Text); room < 0 {
			return shown.say(" and %d more …", len(s[i:])/2+1)
		}
		shown = append(shown, p)
	}
	return shown
}

// describe describes a requirement.
func describe(r policy.Requirement) Sentence {
	s := Sentence{}.say("%s of ", accepted(r.Accept))
	switch {
	case r.Predicate == "*":
		s = s.say("any predicate")
	case strings.HasSuffix(r.Predicate, "*"):
		s = s.say("any ").code(r.Predicate)
	default:
		s = s.code(r.Predicate)
	}
	return s.signers(r).age(r.MaxAge).scope(r)
}

// accepted names the statuses that count: A pass or warn.
func accepted(statuses []ledger.Status) string {
	names := make([]string, len(statuses))
	for i, status := range statuses {
		names[i] = string(status)
	}
	article := "A "
	if len(names) > 0 && names[0] == string(ledger.Errored) {
		article = "An "
	}
	if len(names) < 2 {
		return article + strings.Join(names, "")
	}
	last := len(names) - 1
	return article + strings.Join(names[:last], ", ") + " or " + names[last]
}

func (s Sentence) signers(r policy.Requirement) Sentence {
	patterns := make([]string, len(r.Signers))
	for i, p := range r.Signers {
		patterns[i] = p.String()
	}
	switch {
	case r.Threshold > 1 && len(patterns) > 0:
		s = s.say(" by %d different signers, each of them ", r.Threshold).list("or", patterns)
	case r.Threshold > 1:
		s = s.say(" by %d different signers", r.Threshold)
	case len(patterns) > 0:
		s = s.say(" by ").list("or", patterns)
	default:
		s = s.say(" by anyone trusted")
	}
	if r.ExcludeAuthor {
		s = s.say(", other than the commit's author")
	}
	return s
}

func (s Sentence) age(d ledger.Duration) Sentence {
	if d == 0 {
		return s
	}
	return s.say(", recorded within the last %s", span(d))
}

func (s Sentence) scope(r policy.Requirement) Sentence {
	s = s.say(".")
	if len(r.Paths) > 0 {
		s = s.say(" Only for commits that change ").list("or", r.Paths)
	}
	switch {
	case len(r.Paths) > 0 && len(r.Branches) > 0:
		s = s.say(" and are meant for ").list("or", r.Branches)
	case len(r.Branches) > 0:
		s = s.say(" Only for commits meant for ").list("or", r.Branches)
	}
	if len(r.Paths)+len(r.Branches) > 0 {
		s = s.say(".")
	}
	return s
}

// span writes a duration in the largest unit that says it exactly.
func span(d ledger.Duration) string {
	for _, unit := range []struct {
		name string
		long time.Duration
	}{{"day", 24 * time.Hour}, {"hour", time.Hour}, {"minute", time.Minute}, {"second", time.Second}} {
		if d.Std()%unit.long == 0 {
			return format.Plural(int64(d.Std()/unit.long), unit.name)
		}
	}
	return d.String()
}

// Radar describes what Conflict Radar does in a repo.
func Radar(r policy.RadarSettings) []Sentence {
	if !r.Enabled {
		return []Sentence{Sentence{}.say("Conflict Radar is off: overlaps of commits are not looked for.")}
	}
	all := []Sentence{Sentence{}.say(
		"Overlaps of commits in flight make an event from ").code(r.Notify.String()).say(" up.")}
	if r.Block == radar.NoLevel {
		all = append(all, Sentence{}.say("None keeps a commit from being promotable."))
	} else {
		all = append(all, Sentence{}.say("From ").code(r.Block.String()).say(
			" up, the commit registered later is not promotable."))
	}
	all = append(all, Sentence{}.say("A commit counts as in flight for %s.", span(r.MaxAge)))
	if len(r.Ignore) > 0 {
		all = append(all, Sentence{}.say("Left out are ").list("and", r.Ignore).say("."))
	}
	return all
}

// A Stage is what a contract requires for one state.
type Stage struct {
	State ledger.State
	Needs []Sentence
	// Without says what it means that nothing is required, if so.
	Without string
}

// Stages describes what a commit needs to reach each state.
func Stages(c policy.Contract) []Stage {
	stages := []Stage{
		{State: ledger.Attested, Without: "Nothing: a commit is attested with its first attestation."},
		{State: ledger.Promotable, Without: "Nothing more: what is attested is promotable."},
		{State: ledger.Deployed, Without: "No requirement says when a commit is deployed, so none ever is."},
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
