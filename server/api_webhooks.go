package server

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/oklog/ulid/v2"

	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/store"
)

func (s *Server) listWebhooks(c *call) (*reply, error) {
	q, err := c.page()
	if err != nil {
		return nil, err
	}
	page, err := s.store.Webhooks(c.ctx(), c.org(), c.repo(), q)
	return listed(c, page, err)
}

// createWebhook returns the new webhook with its signing secret. Only the response
// of rotateWebhook contains a secret too.
func (s *Server) createWebhook(c *call) (*reply, error) {
	var n outbound.NewWebhook
	if err := c.decodeValid(&n, smallBody); err != nil {
		return nil, err
	}
	if err := s.config.CheckTarget(c.ctx(), n.URL); err != nil {
		return nil, err
	}

	secret := outbound.NewWebhookSecret()
	webhook, err := s.store.CreateWebhook(c.ctx(), c.org(), c.repo(), n, secret)
	if err != nil {
		return nil, err
	}
	webhook.Secret = secret
	return &reply{
		status: http.StatusCreated, record: webhook, secret: true,
		location: webhookURL(webhook.Org, webhook.Repo, webhook.ID),
	}, nil
}

func (s *Server) getWebhook(c *call) (*reply, error) {
	return single(s.store.Webhook(c.ctx(), c.org(), c.repo(), c.id()))
}

func (s *Server) changeWebhook(c *call) (*reply, error) {
	var change outbound.WebhookChange
	if err := c.decodeValid(&change, smallBody); err != nil {
		return nil, err
	}

	if change.URL != nil {
		// An unchanged URL is valid even if its address is no longer allowed.
		webhook, err := s.store.Webhook(c.ctx(), c.org(), c.repo(), c.id())
		if err != nil {
			return nil, err
		}
		if *change.URL != webhook.URL {
			if err := s.config.CheckTarget(c.ctx(), *change.URL); err != nil {
				return nil, err
			}
		}
	}

	return shown(s.store.ChangeWebhook(c.ctx(), c.org(), c.repo(), c.id(), change))
}

func (s *Server) deleteWebhook(c *call) (*reply, error) {
	return deleted(s.store.DeleteWebhook(c.ctx(), c.org(), c.repo(), c.id()))
}

// rotateWebhook replaces a webhook's signing secret and returns the new one.
func (s *Server) rotateWebhook(c *call) (*reply, error) {
	var r outbound.Rotation
	if err := c.decodeOptional(&r, smallBody); err != nil {
		return nil, err
	}
	if err := r.Check(); err != nil {
		return nil, err
	}
	secret := outbound.NewWebhookSecret()
	webhook, err := s.store.RotateWebhook(c.ctx(), c.org(), c.repo(), c.id(), secret, r.Overlap.Std())
	if err != nil {
		return nil, err
	}
	webhook.Secret = secret
	return &reply{status: http.StatusOK, record: webhook, secret: true}, nil
}

// replayWebhook queues the events that a webhook has missed.
func (s *Server) replayWebhook(c *call) (*reply, error) {
	var r outbound.Replay
	if err := c.decode(&r, smallBody); err != nil {
		return nil, err
	}
	if err := r.Check(s.time()); err != nil {
		return nil, err
	}
	queued, err := s.store.ReplayWebhook(c.ctx(), c.org(), c.repo(), c.id(), r.Since)
	if err != nil {
		return nil, err
	}
	return &reply{status: http.StatusAccepted, record: outbound.Replayed{Queued: queued}}, nil
}

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
	f.Status, err = parse(c, "status", outbound.ParseDeliveryStatus)
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
	return single(s.store.Delivery(c.ctx(), c.org(), c.repo(), c.id(), c.delivery()))
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
func queued(c *call, d outbound.Delivery, err error) (*reply, error) {
	if err != nil {
		return nil, err
	}
	location := webhookURL(c.org(), c.repo(), d.Webhook) + "/deliveries/" + d.ID
	return &reply{status: http.StatusAccepted, record: d, location: location}, nil
}
