package ledger

import "strings"

// The records of Conflict Radar in the HTTP API.

// A LineRange is where a hunk was before the change: so many lines from the
// first on, or, where there are none, behind the line Start.
type LineRange struct {
	Start int `json:"start"`
	Lines int `json:"lines"`
}

// A RadarPath is one path at which two commits overlap.
type RadarPath struct {
	// Path is what a file that was there before was called then; that of a
	// directory has a slash at its end.
	Path   string      `json:"path"`
	Level  Level       `json:"level"`
	Reason RadarReason `json:"reason"`
	Ranges RadarRanges `json:"ranges"`
}

// RadarRanges are the lines concerned, as each of the two commits found them:
// the first few of them, and none where it is not about lines.
type RadarRanges struct {
	Commit []LineRange `json:"commit"`
	Other  []LineRange `json:"other"`
}

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
	Level Level `json:"level"`
	// Since is when they first overlapped; zero for a record that is only asked
	// about.
	Since Time `json:"since,omitzero"`
	// Commit is the one registered later, which has to be rebased; Other the
	// one registered earlier.
	Commit     RadarCommit `json:"commit"`
	Other      RadarCommit `json:"other"`
	SameAuthor bool        `json:"same_author"`
	// Paths are the strongest; PathsTotal counts all.
	Paths      []RadarPath `json:"paths"`
	PathsTotal int         `json:"paths_total"`
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
	Level Level `json:"level"`
	// Overlaps are the strongest, the strongest first. Truncated tells that
	// there were more.
	Overlaps  []RadarPair `json:"overlaps"`
	Truncated bool        `json:"truncated"`
}

// The most that is kept of what one commit overlaps with.
const (
	MaxRadarPairs = 200 // of one registration
	MaxRadarPaths = 100 // of one pair
)

// Strongest returns the first paths, at most MaxRadarPaths.
func (o Overlap) Strongest() []RadarPath { return o.Paths[:min(len(o.Paths), MaxRadarPaths)] }

// EventPaths returns the paths as an event tells them.
func EventPaths(paths []RadarPath) []RadarEventPath {
	told := make([]RadarEventPath, len(paths))
	for i, p := range paths {
		told[i] = RadarEventPath{p.Path, p.Level, p.Reason}
	}
	return told
}

// Swap returns what the overlap is with its two sides exchanged.
func (o Overlap) Swap() Overlap {
	swapped := Overlap{Level: o.Level}
	for _, p := range o.Paths {
		p.Ranges.Commit, p.Ranges.Other = p.Ranges.Other, p.Ranges.Commit
		swapped.Paths = append(swapped.Paths, p)
	}
	return swapped
}

// SameAs reports whether two authors are one: by e-mail address, in letters of
// any case, or by name where one has no address.
func (a Author) SameAs(b Author) bool {
	if a.Email != "" && b.Email != "" {
		return strings.EqualFold(a.Email, b.Email)
	}
	return a.Name != "" && a.Name == b.Name
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
