package filecheck

import (
	"slices"
	"sync"
	"time"
)

// A Note is a request that writes, and its answer.
type Note struct {
	Kind Kind `json:"kind"`
	// Key identifies what the request writes, also if it is sent several times: the hex
	// digest of a payload, a commit and its message separated by a space, the digest of a
	// contract, or the URL of a webhook.
	Key     string  `json:"key"`
	Outcome Outcome `json:"outcome"`
	// Sent and Answered are the times of the request and of its answer, in nanoseconds
	// since the notebook was created.
	Sent     int64 `json:"sent"`
	Answered int64 `json:"answered"`

	// The following fields are from the confirmation. Check ignores empty ones.

	ID string `json:"id,omitzero"`
	// Event is the id of the attestation's event.
	Event string `json:"event,omitzero"`
	// Again reports whether the attestation was recorded before.
	Again     bool   `json:"again,omitzero"`
	Repo      string `json:"repo,omitzero"` // org/name
	Commit    string `json:"commit,omitzero"`
	Branch    string `json:"branch,omitzero"`
	Predicate string `json:"predicate,omitzero"`
	Status    string `json:"status,omitzero"`
	Version   int    `json:"version,omitzero"`
	// Content is the hex digest of the envelope or of the canonical contract.
	Content string `json:"content,omitzero"`
}

// A Kind says what a request writes.
type Kind string

// The kinds of requests.
const (
	Attestation Kind = "attestation"
	Commit      Kind = "commit"
	Policy      Kind = "policy"
	Webhook     Kind = "webhook"
)

// An Outcome says what a client knows of its request.
type Outcome string

// The outcomes of requests.
const (
	Confirmed Outcome = "confirmed" // answered with 2xx: it is in the file
	Refused   Outcome = "refused"   // answered with an error: it is not
	Unknown   Outcome = "unknown"   // not answered: it may be
)

// The ends of the problems that Check reports if the file contradicts the notes.
const (
	Lost = "was confirmed, but is not recorded"
	Kept = "was refused, but is recorded"
)

// A Notebook collects notes. It is safe for concurrent use.
type Notebook struct {
	began time.Time
	mu    sync.Mutex
	notes []Note
}

// NewNotebook returns an empty notebook.
func NewNotebook() *Notebook { return &Notebook{began: time.Now()} }

// Now returns the time since the notebook was created, in nanoseconds.
func (b *Notebook) Now() int64 { return time.Since(b.began).Nanoseconds() }

// Add adds a note.
func (b *Notebook) Add(n Note) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.notes = append(b.notes, n)
}

// Notes returns all notes.
func (b *Notebook) Notes() []Note {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.notes)
}

// Count returns the number of notes with an outcome.
func (b *Notebook) Count(o Outcome) (n int) {
	for _, note := range b.Notes() {
		if note.Outcome == o {
			n++
		}
	}
	return n
}
