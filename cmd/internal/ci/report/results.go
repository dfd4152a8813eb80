package report

import (
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// Gate returns the report of a gate. title is the line that the gate prints. The commit is
// nil if the ledger does not know it.
func Gate(title string, commit *ledger.Commit, required ledger.State, environment string) Report {
	r := Report{Heading: title}
	reached := commit != nil && commit.Gate(required, environment).Reached
	if commit != nil && commit.Delivery != nil && commit.Delivery.Uncovered > 0 {
		r.Notes = commit.Delivery.Reasons()
		r.Annotations = []Annotation{{Level: Error, Title: "ledgerd gate", Message: commit.Delivery.Summary()}}
	}
	if commit != nil {
		r.Columns = []string{"", "State", "Predicate", "Have", "Reason"}
		for _, s := range commit.Requirements {
			r.Rows = append(r.Rows, requirementRow(s))
			if s.Applies && !s.Met && s.State <= required && !reached {
				r.Annotations = append(r.Annotations, Annotation{Level: Error, Title: "ledgerd gate",
					Message: fmt.Sprintf("%s: %s", s.State, s.Reason)})
			}
		}
	}
	if !reached {
		r.Annotations = slices.Insert(r.Annotations, 0, Annotation{Level: Error, Title: "ledgerd gate", Message: title})
	}
	return r
}

func requirementRow(s ledger.RequirementStatus) []string {
	mark, have := terminal.Requirement(s)
	return []string{mark, s.State.String(), s.Predicate, have, s.Reason}
}

// Artifact returns the report of a gate for an artifact.
func Artifact(title string, a ledger.Artifact, required ledger.State) Report {
	r := Report{Heading: title, Columns: []string{"", "Repo", "Commit", "State", "Linked by", "Reason"}}
	if a.Reason != "" {
		r.Notes = []string{a.Reason}
	}
	for _, warning := range a.Warnings {
		r.Notes = append(r.Notes, fmt.Sprintf("%s: %s", warning, warning.Advice()))
		r.Annotations = append(r.Annotations, Annotation{Level: Warning, Title: "ledgerd gate " + string(warning),
			Message: warning.Advice()})
	}
	for _, l := range a.Links {
		mark, reason := terminal.Link(l, required)
		state := terminal.State(l.State, l.Standing)
		r.Rows = append(r.Rows, []string{mark, l.Repo, ledger.Short(l.Commit), state, l.Predicate, reason})
	}
	if !a.Reached(required) {
		r.Annotations = append(r.Annotations, Annotation{Level: Error, Title: "ledgerd gate", Message: title})
	}
	return r
}

// Radar returns the report about the overlaps of a repo or of one commit, sha. An overlap at
// or above failOn is an error, others are warnings or notices by their level.
func Radar(title, sha string, pairs []ledger.RadarPair, failOn radar.Level) Report {
	r := Report{Heading: title, Columns: []string{"Level", "Branch", "Overlaps with", "Author", "Path", "Reason"}}
	for _, pair := range pairs {
		own, other, advice := pair.Commit, pair.Other, "rebase once it has landed"
		if sha != "" && other.SHA == sha {
			own, other, advice = pair.Other, pair.Commit, "the other branch must rebase"
		}
		path, reason := "", ""
		if len(pair.Paths) > 0 {
			path, reason = pair.Paths[0].Path, string(pair.Paths[0].Reason)
		}
		with, author := name(other), terminal.AuthorName(other.Author)
		r.Rows = append(r.Rows, []string{pair.Level.String(), name(own), with, author, path, reason})

		if level := annotationLevel(pair.Level, failOn); level != "" {
			r.Annotations = append(r.Annotations, Annotation{Level: level, Title: "ledgerd radar " + pair.Level.String(),
				File: path, Message: fmt.Sprintf("%s overlaps with %s of %s (%s): %s", name(own), with, author, reason, advice)})
		}
	}
	return r
}

func name(c ledger.RadarCommit) string {
	if c.Branch != "" {
		return c.Branch
	}
	if c.SHA != "" {
		return ledger.Short(c.SHA)
	}
	return "this commit"
}

// annotationLevel returns the level of the annotation for an overlap. Low ones have none.
func annotationLevel(level, failOn radar.Level) Level {
	switch {
	case failOn != radar.NoLevel && level >= failOn:
		return Error
	case level == radar.High:
		return Warning
	case level == radar.Medium:
		return Notice
	}
	return ""
}
