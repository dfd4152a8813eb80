package ledger

import (
	"strings"

	"github.com/ledgerd/ledgerd/ledger/radar"
)

// The bodies of Conflict Radar in the HTTP API.

// A RadarCommit is one side of a RadarPair.
type RadarCommit struct {
	SHA     string `json:"sha,omitzero"` // absent in the result of a query without a SHA
	Branch  string `json:"branch,omitzero"`
	Author  Author `json:"author,omitzero"`
	Subject string `json:"subject,omitzero"`
	// OverlapsTruncated is the commit's CommitSummary.OverlapsTruncated.
	OverlapsTruncated bool `json:"overlaps_truncated,omitzero"`
}

// A RadarPair is an overlap of two commits.
type RadarPair struct {
	Level radar.Level `json:"level"`
	// Since is when they first overlapped; zero in the result of a RadarQuery.
	Since Time `json:"since,omitzero"`
	// Commit was registered later and must rebase; Other was registered first and has priority.
	Commit     RadarCommit `json:"commit"`
	Other      RadarCommit `json:"other"`
	SameAuthor bool        `json:"same_author"`
	// Paths holds the strongest paths; PathsTotal counts all.
	Paths      []radar.Path `json:"paths"`
	PathsTotal int          `json:"paths_total"`
}

// A RadarQuery asks which commits a commit would overlap with if it were registered.
type RadarQuery struct {
	// Commit is the commit's SHA, if known.
	Commit       string `json:"commit,omitzero"`
	Registration `json:",embed"`
}

// Check returns a field error for the first invalid field.
func (q RadarQuery) Check() error {
	if err := checkObject("commit", q.Commit); err != nil {
		return err
	}
	return q.Registration.Check()
}

// A RadarResult holds the overlaps of one commit.
type RadarResult struct {
	// Level is the level of the strongest pair.
	Level radar.Level `json:"level"`
	// Overlaps holds the strongest pairs, strongest first. Truncated reports whether
	// there were more.
	Overlaps  []RadarPair `json:"overlaps"`
	Truncated bool        `json:"truncated"`
	// Behind is the tip of its branch in flight that a registration has not replaced, since it is built on the
	// commit.
	Behind string `json:"behind,omitzero"`
}

// maxSubject is the maximum length of a subject, in bytes.
const maxSubject = 200

// Subject returns the first line of a commit message, truncated to 200 bytes.
func Subject(message string) string {
	subject, _, _ := strings.Cut(strings.TrimLeft(message, "\r\n"), "\n")
	subject = strings.TrimRight(subject, " \t\r")
	if len(subject) <= maxSubject {
		return subject
	}
	return strings.ToValidUTF8(subject[:maxSubject], "") + "…"
}
