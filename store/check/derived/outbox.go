package derived

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// A hook is a row of the table webhooks.
type hook struct {
	id     int64
	public string
	events int64 // the types that it gets, as bits; 0 if it is not active
}

// A delivery is a row of the table outbox, with the org and the repo of its event.
type delivery struct {
	public          string
	event           sql.NullInt64
	ping            sql.NullString
	status          outbound.DeliveryStatus
	due, ended      ledger.Time
	leased          int64
	attempts, tries int64
	orgID, repoID   int64 // 0 if the event has none, or does not exist
}

// deliveriesPage is the number of deliveries that are read at a time.
const deliveriesPage = 1000

const (
	selectHooks = `
SELECT id, webhook_id, CASE active WHEN 1 THEN events ELSE 0 END FROM webhooks
WHERE repo_id = ? AND id > ? AND deleted_at = 0 ORDER BY id LIMIT ?`
	selectDeliveries = `
SELECT d.delivery_id, d.event, d.ping, d.status, d.due_at, d.ended_at, d.leased, d.attempts, d.tries,
  coalesce(e.org_id, 0), coalesce(e.repo_id, 0)
FROM outbox d LEFT JOIN events e ON e.id = d.event
WHERE d.webhook_id = ? AND d.delivery_id > ? ORDER BY d.delivery_id LIMIT ?`
)

func scanDelivery(row sqldb.Scanner) (d delivery, err error) {
	return d, row.Scan(&d.public, &d.event, &d.ping, &d.status, &d.due, &d.ended, &d.leased, &d.attempts, &d.tries,
		&d.orgID, &d.repoID)
}

// deliveries checks the deliveries to the webhooks of a repo.
func (o *Org) deliveries(ctx context.Context, r repo) error {
	sends := int64(0)
	for after := int64(0); ; {
		var hooks []hook
		err := o.Read(ctx, func(conn *sqldb.Conn) (err error) {
			hooks, err = sqldb.All(conn, func(row sqldb.Scanner) (h hook, err error) {
				return h, row.Scan(&h.id, &h.public, &h.events)
			}, selectHooks, r.id, after, deliveriesPage)
			return err
		})
		if err != nil {
			return err
		}
		if len(hooks) == 0 {
			return o.sends(ctx, r, sends)
		}

		for _, h := range hooks {
			sends |= h.events
			if err := o.deliveriesTo(ctx, r, h); err != nil {
				return err
			}
		}
		after = hooks[len(hooks)-1].id
	}
}

// sends compares which types of events the webhooks of a repo get with what the repo says: what it does not say
// is not sent. Those of an org or a repo that was deleted get nothing.
func (o *Org) sends(ctx context.Context, r repo, events int64) error {
	if o.Deleted || r.deleted {
		events = 0
	}
	if r.sends == events {
		return nil
	}
	var isChanged bool // since the repos were read
	err := o.Read(ctx, func(conn *sqldb.Conn) error {
		return conn.Row("SELECT webhook_events <> ? FROM repos WHERE id = ?", r.sends, r.id).Scan(&isChanged)
	})
	if err != nil {
		return fmt.Errorf("read the types of events: %w", err)
	}
	if !isChanged {
		o.Problemf("outbox", o.Name, "repo "+r.name, "its webhooks get the types of events %b, and it says %b", events,
			r.sends)
	}
	return nil
}

// deliveriesTo checks the deliveries to a webhook.
func (o *Org) deliveriesTo(ctx context.Context, r repo, h hook) error {
	for after := ""; ; {
		var page []delivery
		err := o.Read(ctx, func(conn *sqldb.Conn) (err error) {
			page, err = sqldb.All(conn, scanDelivery, selectDeliveries, h.id, after, deliveriesPage)
			return err
		})
		if err != nil || len(page) == 0 {
			return err
		}
		for _, d := range page {
			if problem := d.problem(o, r, h); problem != "" {
				o.Problemf("outbox", o.Name, "delivery "+d.public+" to "+h.public, "%s", problem)
			}
		}
		after = page[len(page)-1].public
	}
}

// problem returns what is wrong with a delivery to a webhook of a repo, or "".
func (d delivery) problem(o *Org, r repo, h hook) string {
	pending := d.status == outbound.DeliveryPending
	switch _, err := outbound.ParseDeliveryStatus(string(d.status)); {
	case err != nil:
		return fmt.Sprintf("the status %q is not one of a delivery", d.status)
	case d.event.Valid == d.ping.Valid:
		return "it has not one body, of an event or a ping"
	case d.ping.Valid && !isPing(d.ping.String, o, r, h.public):
		return "its body is not that of a ping to this webhook"
	case d.event.Valid && (d.orgID != o.ID || d.repoID != 0 && d.repoID != r.id):
		return "its event is not one of the webhook's repo or org"
	case pending != (d.due > 0) || pending == (d.ended > 0):
		return fmt.Sprintf("it is %s, and has the times %s (next attempt) and %s (end)", d.status, d.due, d.ended)
	case d.leased != 0 && !pending:
		return fmt.Sprintf("it is %s, and being attempted", d.status)
	case d.tries < 0 || d.tries > d.attempts:
		return fmt.Sprintf("it has %d attempts, %d of them since it was queued", d.attempts, d.tries)
	}
	return ""
}

// isPing reports whether a text is the body of a ping to a webhook. Its org and repo may have had
// other names.
func isPing(text string, o *Org, r repo, webhook string) bool {
	var ping ledger.PingEvent
	err := json.Unmarshal([]byte(text), &ping)
	return err == nil && ping.Type == ledger.EventPing && ping.Webhook == webhook &&
		o.had(0, o.Name, ping.Org) && o.had(r.id, r.name, ping.Repo)
}
