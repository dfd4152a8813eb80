// Package events receives events as webhooks, parses their bodies, and formats them as lines, for
// people and as JSON.
package events

import (
	"fmt"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/eventstream"
)

// A Head holds the members that all event bodies have.
type Head struct {
	ID   string           `json:"id"`
	Type ledger.EventType `json:"type"`
	Repo string           `json:"repo"`
}

// ParseHead parses the head of an event's body.
func ParseHead(body []byte) (head Head, err error) {
	err = ledger.DecodeOpen(body, &head)
	return head, err
}

// Parse parses an event's body and returns the event in the form of the live stream.
func Parse(body []byte) (client.Event, error) {
	head, err := ParseHead(body)
	if err != nil {
		return client.Event{}, fmt.Errorf("parse an event: %w", err)
	}
	data, err := eventstream.Data(head.Type, body)
	if err != nil {
		return client.Event{}, err
	}
	return client.NewEvent(head.ID, head.Type, data)
}
