package web

import (
	"fmt"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/web/format"
)

// A phrase is a part of a sentence. Code is what stands so in the contract.
type phrase struct {
	Text string
	Code bool
}

// A sentence tells a part of a contract in words.
type sentence []phrase

func (s sentence) say(format string, args ...any) sentence {
	return append(s, phrase{Text: fmt.Sprintf(format, args...)})
}

func (s sentence) code(text string) sentence { return append(s, phrase{text, true}) }

// list says texts as code, with a word before the last one.
func (s sentence) list(word string, texts []string) sentence {
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

// Shown returns the beginning of the sentence, as much as there is room for.
func (s sentence) Shown() sentence {
	var shown sentence
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

// describe tells a requirement in words.
func describe(r ledger.Requirement) sentence {
	s := sentence{}.say("%s of ", accepted(r.Accept))
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

func (s sentence) signers(r ledger.Requirement) sentence {
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

func (s sentence) age(d ledger.Duration) sentence {
	if d == 0 {
		return s
	}
	return s.say(", recorded within the last %s", span(d))
}

func (s sentence) scope(r ledger.Requirement) sentence {
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

// describeRadar tells in words what Conflict Radar does in a repo.
func describeRadar(r ledger.RadarSettings) []sentence {
	if !r.Enabled {
		return []sentence{sentence{}.say("Conflict Radar is off: overlaps of commits are not looked for.")}
	}
	all := []sentence{sentence{}.say("Overlaps of commits in flight make an event from ").code(r.Notify.String()).say(" up.")}
	if r.Block == ledger.NoLevel {
		all = append(all, sentence{}.say("None keeps a commit from being promotable."))
	} else {
		all = append(all, sentence{}.say("From ").code(r.Block.String()).say(" up, the commit registered later is not promotable."))
	}
	all = append(all, sentence{}.say("A commit counts as in flight for %s.", span(r.MaxAge)))
	if len(r.Ignore) > 0 {
		all = append(all, sentence{}.say("Left out are ").list("and", r.Ignore).say("."))
	}
	return all
}

// A stage is what a contract asks for one state, in words.
type stage struct {
	State ledger.State
	Needs []sentence
	// Without tells what it means where nothing is asked for.
	Without string
}

// describeStates tells what a commit needs to reach each state.
func describeStates(c ledger.Contract) []stage {
	stages := []stage{
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
