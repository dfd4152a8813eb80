package ledger

import (
	"fmt"

	"github.com/go-json-experiment/json"
)

// What the live stream tells of each type of event: fewer members than the
// event's body has, and the signer by plain name.

// A StreamAttestation is the data of an attestation event on the stream.
type StreamAttestation struct {
	Commit    string `json:"commit"`
	Predicate string `json:"predicate"`
	Identity  string `json:"identity"` // the signer's plain name (CN)
	Repo      string `json:"repo"`
	Timestamp Time   `json:"timestamp"`
	Result    Result `json:"result"`
}

// A StreamState is the data of a state event on the stream.
type StreamState struct {
	Commit    string `json:"commit"`
	From      State  `json:"from"`
	To        State  `json:"to"`
	Repo      string `json:"repo"`
	Timestamp Time   `json:"timestamp"`
}

// A StreamPolicy is the data of a policy event on the stream.
type StreamPolicy struct {
	Repo            string `json:"repo"`
	Version         int    `json:"version"`
	PreviousVersion int    `json:"previous_version"`
	Digest          string `json:"digest"`
	Timestamp       Time   `json:"timestamp"`
}

// A StreamRadar is the data of a radar event on the stream.
type StreamRadar struct {
	Commit     string           `json:"commit"`
	Level      Level            `json:"level"`
	Other      RadarOther       `json:"other"`
	Paths      []RadarEventPath `json:"paths"`
	Repo       string           `json:"repo"`
	Timestamp  Time             `json:"timestamp"`
	PathsTotal int              `json:"paths_total"`
}

// StreamData returns the stream's data, one JSON object on one line, for the
// body of an event of that type.
func StreamData(t EventType, body []byte) ([]byte, error) {
	switch t {
	case EventAttestation:
		var e AttestationEvent
		if err := json.Unmarshal(body, &e); err != nil {
			return nil, fmt.Errorf("read the body of an event: %w", err)
		}
		signer, err := ParseDN(e.Identity)
		if err != nil {
			return nil, fmt.Errorf("read the identity of event %s: %w", e.ID, err)
		}
		return JSON(StreamAttestation{e.Commit, e.Predicate, signer.CN, e.Repo, e.Timestamp, e.Result}), nil
	case EventState:
		var e StateEvent
		if err := json.Unmarshal(body, &e); err != nil {
			return nil, fmt.Errorf("read the body of an event: %w", err)
		}
		return JSON(StreamState{e.Commit, e.From, e.To, e.Repo, e.Timestamp}), nil
	case EventPolicy:
		var e PolicyEvent
		if err := json.Unmarshal(body, &e); err != nil {
			return nil, fmt.Errorf("read the body of an event: %w", err)
		}
		return JSON(StreamPolicy{e.Repo, e.Version, e.PreviousVersion, e.Digest, e.Timestamp}), nil
	case EventRadar:
		var e RadarEvent
		if err := json.Unmarshal(body, &e); err != nil {
			return nil, fmt.Errorf("read the body of an event: %w", err)
		}
		return JSON(StreamRadar{e.Commit, e.Level, e.Other, e.Paths, e.Repo, e.Timestamp, e.PathsTotal}), nil
	}
	return nil, fmt.Errorf("the stream does not know events of type %s", t)
}
