package ledger

import (
	"strings"

	"github.com/ledgerd/ledgerd/ledger/radar"
)

// The bodies of Conflict Radar in the HTTP API.

// A RadarCommit is one side of a RadarPair.
type RadarCommit struct {
	SHA     string `json:"sha,omitzero"` // absent for a record that is only asked about
	Branch  string `json:"branch,omitzero"`
	Author  Author `json:"author,omitzero"`
	Subject string `json:"subject,omitzero"`
	// OverlapsTruncated is that of the commit's record.
	OverlapsTruncated bool `json:"overlaps_truncated,omitzero"`
}

// A RadarPair is an overlap of two commits.
type RadarPair struct {
	Level radar.Level `json:"level"`
	// Since is when they first overlapped; zero for a record that is only asked
	// about.
	Since Time `json:"since,omitzero"`
	// Commit is the one registered later, which has to be rebased; Other the
	// one registered earlier.
	Commit     RadarCommit `json:"commit"`
	Other      RadarCommit `json:"other"`
	SameAuthor bool        `json:"same_author"`
	// Paths are the strongest; PathsTotal counts all.
	Paths      []radar.Path `json:"paths"`
	PathsTotal int          `json:"paths_total"`
}

// A RadarQuery asks what a commit would overlap with if it were registered.
type RadarQuery struct {
	// Commit is the sha that it will have, where it is known.
	Commit       string `json:"commit,omitzero"`
	Registration `json:",embed"`
}

// Check reports the first field that cannot be, by its path.
func (q RadarQuery) Check() error {
	if err := checkObject("commit", q.Commit); err != nil {
		return err
	}
	return q.Registration.Check()
}

// A RadarResult is what one commit overlaps with.
type RadarResult struct {
	// Level is that of the strongest pair.
	Level radar.Level `json:"level"`
	// Overlaps are the strongest, the strongest first. Truncated tells that
	// there were more.
	Overlaps  []RadarPair `json:"overlaps"`
	Truncated bool        `json:"truncated"`
}

// maxSubject is how much of a subject is told, in bytes.
const maxSubject = 200

// Subject returns the first line of a commit's message, or what is told of it.
func Subject(message string) string {
	subject, _, _ := strings.Cut(strings.TrimLeft(message, "\r\n"), "\n")
	subject = strings.TrimRight(subject, " \t\r")
	if len(subject) <= maxSubject {
		return subject
	}
	return strings.ToValidUTF8(subject[:maxSubject], "") + "…"
}
