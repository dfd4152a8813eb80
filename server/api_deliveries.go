package server

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/oklog/ulid/v2"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
)

func (c *call) delivery() string { return c.path.ByName("delivery") }

func (s *Server) listDeliveries(c *call) (*reply, error) {
	f, err := c.deliveryFilter()
	if err != nil {
		return nil, err
	}
	page, err := s.store.Deliveries(c.ctx(), c.org(), c.repo(), c.id(), f)
	return listed(c, page, err)
}

func (c *call) deliveryFilter() (f store.DeliveryFilter, err error) {
	if f.Query, err = c.page(); err != nil {
		return f, err
	}
	if f.Event, err = parse(c, "event", eventID); err != nil {
		return f, err
	}
	f.Status, err = parse(c, "status", ledger.ParseDeliveryStatus)
	return f, err
}

func eventID(s string) (string, error) {
	id, ok := strings.CutPrefix(s, "evt_")
	if _, err := ulid.ParseStrict(id); !ok || err != nil {
		return "", fmt.Errorf("%q is not an event ID (use evt_ and 26 letters and digits)", s)
	}
	return s, nil
}

// getDelivery returns a delivery with its body and all its attempts.
func (s *Server) getDelivery(c *call) (*reply, error) {
	record, err := s.store.Delivery(c.ctx(), c.org(), c.repo(), c.id(), c.delivery())
	return single(record, err)
}

// pingWebhook queues a test delivery.
func (s *Server) pingWebhook(c *call) (*reply, error) {
	if err := c.checkNoBody(); err != nil {
		return nil, err
	}
	delivery, err := s.store.PingWebhook(c.ctx(), c.org(), c.repo(), c.id())
	return queued(c, delivery, err)
}

// redeliver queues a delivery again, whatever its status.
func (s *Server) redeliver(c *call) (*reply, error) {
	if err := c.checkNoBody(); err != nil {
		return nil, err
	}
	delivery, err := s.store.Redeliver(c.ctx(), c.org(), c.repo(), c.id(), c.delivery())
	return queued(c, delivery, err)
}

// queued returns the response for a delivery that was queued. Its Location shows
// the outcome later.
func queued(c *call, d ledger.Delivery, err error) (*reply, error) {
	if err != nil {
		return nil, err
	}
	location := webhookURL(c.org(), c.repo(), d.Webhook) + "/deliveries/" + d.ID
	return &reply{status: http.StatusAccepted, record: d, location: location}, nil
}
