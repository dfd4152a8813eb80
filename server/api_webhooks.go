package server

import (
	"net/http"

	"github.com/ledgerd/ledgerd/ledger"
)

func (s *Server) listWebhooks(c *call) (*reply, error) {
	q, err := c.page()
	if err != nil {
		return nil, err
	}
	page, err := s.store.Webhooks(c.ctx(), c.org(), c.repo(), q)
	return listed(c, page, err)
}

// createWebhook answers with the signing secret, which only a rotation's
// answer shows too.
func (s *Server) createWebhook(c *call) (*reply, error) {
	var n ledger.NewWebhook
	if err := c.decode(&n, smallBody); err != nil {
		return nil, err
	}
	if err := n.Check(); err != nil {
		return nil, err
	}
	if err := s.checkTarget(c.ctx(), n.URL); err != nil {
		return nil, err
	}
	secret := ledger.NewWebhookSecret()
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
	webhook, err := s.store.Webhook(c.ctx(), c.org(), c.repo(), c.id())
	return found(webhook, err)
}

func (s *Server) changeWebhook(c *call) (*reply, error) {
	var change ledger.WebhookChange
	if err := c.decode(&change, smallBody); err != nil {
		return nil, err
	}
	if err := change.Check(); err != nil {
		return nil, err
	}
	if change.URL != nil {
		// The URL that it has may stay, whatever has become of its address since.
		webhook, err := s.store.Webhook(c.ctx(), c.org(), c.repo(), c.id())
		if err != nil {
			return nil, err
		}
		if *change.URL != webhook.URL {
			if err := s.checkTarget(c.ctx(), *change.URL); err != nil {
				return nil, err
			}
		}
	}
	webhook, err := s.store.ChangeWebhook(c.ctx(), c.org(), c.repo(), c.id(), change)
	if err != nil {
		return nil, err
	}
	return &reply{status: http.StatusOK, record: webhook}, nil
}

func (s *Server) deleteWebhook(c *call) (*reply, error) {
	return deleted(s.store.DeleteWebhook(c.ctx(), c.org(), c.repo(), c.id()))
}

// rotateWebhook gives a webhook a new signing secret and answers with it.
func (s *Server) rotateWebhook(c *call) (*reply, error) {
	var r ledger.Rotation
	if err := c.decodeAny(&r, smallBody); err != nil {
		return nil, err
	}
	if err := r.Check(); err != nil {
		return nil, err
	}
	secret := ledger.NewWebhookSecret()
	webhook, err := s.store.RotateWebhook(c.ctx(), c.org(), c.repo(), c.id(), secret, r.Overlap.Std())
	if err != nil {
		return nil, err
	}
	webhook.Secret = secret
	return &reply{status: http.StatusOK, record: webhook, secret: true}, nil
}

// replayWebhook queues what a webhook has missed.
func (s *Server) replayWebhook(c *call) (*reply, error) {
	var r ledger.Replay
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
	return &reply{status: http.StatusAccepted, record: ledger.Replayed{Queued: queued}}, nil
}
