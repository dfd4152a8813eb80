package check

import (
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/settings"
)

// loggedSettings has what the audit events of an org say of access and settings.
type loggedSettings struct {
	replay *settings.Replay
	unread int64 // events without a body that can be trusted
	end    int64 // the seq after the last event that was read
}

func newLoggedSettings(end int64) loggedSettings {
	return loggedSettings{replay: settings.NewReplay(ledger.TimeOf(time.Now()), settings.MaxBytes), end: end}
}

// add adds an event, which must be newer than those before. It returns what is wrong with it.
func (l *loggedSettings) add(e *event) (problem string) {
	if e.kind != ledger.EventAudit {
		return ""
	}
	said, ok := e.said.(*ledger.AuditEvent)
	if !ok {
		l.unread++
		return ""
	}
	return l.replay.Add(e.seq, said)
}
