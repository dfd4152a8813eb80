package doctor

import (
	"fmt"
	"time"

	"github.com/ledgerd/ledgerd/internal/config"
)

// A Level says how bad a finding is.
type Level string

// The levels.
const (
	OK      Level = "ok"
	Warning Level = "warning" // the server runs, but something is missing
	Problem Level = "problem" // the server does not start, or does not do what it is set to
)

// A Finding is the result of one examination.
type Finding struct {
	Check string `json:"check"` // what was examined, such as "disk"
	Level Level  `json:"level"`
	Text  string `json:"text"`
}

// An examination collects findings about the server with these settings.
type examination struct {
	settings config.Settings
	now      time.Time
	findings []Finding
	serving  bool // a server uses the database
}

// add adds a finding.
func (e *examination) add(check string, level Level, format string, args ...any) {
	e.findings = append(e.findings, Finding{check, level, fmt.Sprintf(format, args...)})
}
