package check

import (
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger/settings"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/check/report"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// addSettings adds an event, which must be newer than those before.
func (c *checker) addSettings(o *org, e *event) {
	if problem := o.settings.add(e); problem != "" {
		c.Problemf("settings", o.name, e.row(), "%s", problem)
	}
}

// settingsPage is the number of rows that are read at a time.
const settingsPage = 500

// settings compares who has access to an org, and its settings, with the audit events.
func (c *checker) settings(ctx context.Context, o *org) error {
	logged, unlogged, locked := &o.settings, int64(0), int64(0)
	for place := store.SettingsStart; place != ""; {
		var rows []settings.Row
		var next string
		err := c.Read(ctx, func(conn *sqldb.Conn) (err error) {
			if rows, next, err = c.store.Settings(conn, o.id, place, settingsPage); err != nil {
				return err
			}
			return c.readAuditsOn(conn, o)
		})
		if err != nil && ctx.Err() == nil && sqldb.ClassOf(err) == sqldb.Other {
			c.Problemf("settings", o.name, "", "the rows after %s cannot be read: %v", place, err)
			return nil
		}
		if err != nil {
			return err
		}
		place = next
		for _, row := range rows {
			if row.Kind == settings.Webhook && !row.Has(settings.SecretField) {
				locked++
			}
			problems, isLogged := logged.replay.Compare(row)
			if !isLogged {
				unlogged++
			}
			for _, problem := range problems {
				if logged.unread == 0 { // else it is perhaps because of one of those
					c.Problemf("settings", o.name, row.Kind+" "+row.Target, "%s", problem)
				}
			}
		}
	}

	for _, missing := range logged.replay.Missing(o.end) {
		if logged.unread == 0 {
			c.Problemf("settings", o.name, missing, "it is in force by the events about it, and not in the database")
		}
	}
	if locked > 0 {
		c.Uncheckedf("%s: the secrets of %d webhooks: they are encrypted, and webhooks.secrets_key does not have "+
			"the key", o.name, locked)
	}
	if unlogged > 0 {
		c.Incompletef("%s: access and settings in %d rows that no event has with all fields: the server logs them in the "+
			"background after an upgrade", o.name, unlogged)
	}
	if logged.unread > 0 {
		c.Uncheckedf("%s: access and settings: the bodies of %d audit events are wrong", o.name, logged.unread)
	}
	if left := logged.replay.Left(); left > 0 {
		c.Incompletef("%s: what %d audit events say of access and settings: there are too many resources", o.name, left)
	}
	return nil
}

// readAuditsOn adds the audit events that were recorded since the check of the events.
func (c *checker) readAuditsOn(conn *sqldb.Conn, o *org) error {
	events, err := sqldb.All(conn, func(row sqldb.Scanner) (*event, error) {
		var e event
		return &e, row.Scan(&e.seq, &e.public, &e.kind, &e.body)
	}, `
SELECT seq, event_id, type, body FROM events
WHERE org_id = ? AND seq >= ? AND repo_id IS NULL AND type = 'audit' ORDER BY seq`, o.id, o.settings.end)
	if err != nil {
		return fmt.Errorf("read audit events: %w", err)
	}
	for _, e := range events {
		e.said = report.ReadEvent(e.kind, e.body)
		c.addSettings(o, e)
		o.settings.end = e.seq + 1
	}
	return nil
}
