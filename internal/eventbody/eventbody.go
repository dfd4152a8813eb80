// Package eventbody reads the bodies of events, which the history and webhooks share.
package eventbody

import (
	"fmt"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/eventstream"
)

// A Head is what the bodies of all events begin with.
type Head struct {
	ID   string           `json:"id"`
	Type ledger.EventType `json:"type"`
	Repo string           `json:"repo"`
}

// ParseHead reads the head of an event's body.
func ParseHead(body []byte) (head Head, err error) {
	err = ledger.DecodeOpen(body, &head)
	return head, err
}

// Parse returns the event of a body, as the live stream delivers it.
func Parse(body []byte) (client.Event, error) {
	head, err := ParseHead(body)
	if err != nil {
		return client.Event{}, fmt.Errorf("an event of the history: %w", err)
	}
	data, err := eventstream.Data(head.Type, body)
	if err != nil {
		return client.Event{}, err
	}
	return client.NewEvent(head.ID, head.Type, data)
}
