package browse

import (
	"strconv"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/web/page"
)

// A status says whether the log is signed.
type status struct {
	Label string
	Class string // of the style, as for the result of an attestation
}

// A logPage shows the present transparency log of an org.
type logPage struct {
	ledger.Log
	Status status
	// Waiting is the number of events that the newest checkpoint does not cover.
	Waiting int64
	// Checkpoint is the newest checkpoint with its signatures; empty before the first.
	Checkpoint string
	// Files is the path of the log's files in the API.
	Files     string
	Witnesses []witnessRow
}

// A witnessRow is a witness with its lag.
type witnessRow struct {
	ledger.LogWitness
	// Lag is the number of events in the newest checkpoint that it has not cosigned. It is
	// that of all events if it has cosigned nothing.
	Lag int64
}

func showLog(v *page.Visit) (*page.Response, error) {
	l, err := v.API.Log(v.Ctx(), v.Org)
	if err != nil {
		return nil, err
	}
	p := logPage{Log: l, Status: statusOf(l), Waiting: l.Events - l.Size, Files: filesOf(l)}
	for _, w := range l.Witnesses {
		p.Witnesses = append(p.Witnesses, witnessRow{w, max(0, l.Size-w.Size)})
	}

	checkpoint, err := v.API.LogFile(v.Ctx(), v.Org, l.Epoch, "checkpoint")
	if err != nil && page.CodeOf(err) != ledger.CodeNotFound {
		return nil, err
	}
	p.Checkpoint = string(checkpoint)
	return v.Page("log", "Transparency log", p), nil
}

// filesOf returns the path, below the URL of the server, of a log's files. Those of the first epoch
// are not below its number.
func filesOf(l ledger.Log) string {
	path := "/v1" + page.PathTo("orgs", l.Org, "log")
	if l.Epoch > 1 {
		path += "/" + strconv.Itoa(l.Epoch)
	}
	return path
}

// statusOf returns whether a log is signed. Without a problem, a log that has events and no
// checkpoint is one of a server without base_url, or one that is about to be signed.
func statusOf(l ledger.Log) status {
	switch {
	case l.Problem != "":
		return status{"not signed", "fail"}
	case l.Building:
		return status{"being built", "warn"}
	case l.Size > 0:
		return status{"signed", "pass"}
	}
	return status{"not signed", "skip"}
}
