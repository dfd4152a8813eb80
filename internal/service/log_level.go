package service

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"

	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/ledger"
)

// levelPath is the path of the log level on the listener of the metrics.
const levelPath = "/loglevel"

// maxLevelBody is the maximum size of a request that sets the log level, in bytes.
const maxLevelBody = 1 << 10

// handleLevel adds the handlers of the log level to mux. Pages of other origins cannot
// change it.
func (l *Log) handleLevel(mux *http.ServeMux) {
	mux.HandleFunc("GET "+levelPath, l.showLevel)
	mux.Handle("PUT "+levelPath, http.NewCrossOriginProtection().Handler(http.HandlerFunc(l.changeLevel)))
}

// A levelDocument is the body of requests and responses about the log level.
type levelDocument struct {
	Level string `json:"level"`
}

func (l *Log) showLevel(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, "{\"level\":%q}\n", nameOf(l.level.Level()))
}

func (l *Log) changeLevel(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxLevelBody))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		http.Error(w, fmt.Sprintf("the body is too large: at most %d bytes", maxLevelBody), http.StatusRequestEntityTooLarge)
		return
	}
	if err != nil {
		http.Error(w, "the body is incomplete: send it again", http.StatusBadRequest)
		return
	}

	level, err := decodeLevel(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	l.setLevel(level, r.RemoteAddr)
	l.showLevel(w, r)
}

// decodeLevel returns the level of a levelDocument.
func decodeLevel(body []byte) (slog.Level, error) {
	var wanted levelDocument
	if err := ledger.DecodeStrict(body, &wanted); err != nil {
		return 0, err
	}
	level, err := config.ParseLogLevel(wanted.Level)
	if err != nil {
		return 0, fmt.Errorf("level: %w", err)
	}
	return level, nil
}

// setLevel sets the level for a client. The line about the change is logged at the lower
// one of both levels, so that it is never lost.
func (l *Log) setLevel(level slog.Level, remote string) {
	before := l.level.Level()
	l.level.Set(min(before, level))
	if before != level {
		l.Warn("log level changed", "from", nameOf(before), "to", nameOf(level), "remote", remote)
	}
	l.level.Set(level)
}

// nameOf returns the name of a level in the configuration.
func nameOf(level slog.Level) string { return strings.ToLower(level.String()) }
