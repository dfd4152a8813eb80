package events

import "sync"

// A notifier wakes the streams that wait for new events of an org.
type notifier struct {
	mu      sync.Mutex
	waiting map[int64]chan struct{} // by org
}

// wait returns a channel that is closed when the org may have new events.
func (n *notifier) wait(orgID int64) <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.waiting == nil {
		n.waiting = make(map[int64]chan struct{})
	}
	ch := n.waiting[orgID]
	if ch == nil {
		ch = make(chan struct{})
		n.waiting[orgID] = ch
	}
	return ch
}

func (n *notifier) notify(orgID int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if ch := n.waiting[orgID]; ch != nil {
		close(ch)
		delete(n.waiting, orgID)
	}
}

func (n *notifier) notifyAll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, ch := range n.waiting {
		close(ch)
	}
	clear(n.waiting)
}

// queued collects the webhooks that have new deliveries or were changed, for the
// dispatcher.
type queued struct {
	wake chan struct{} // has a buffer of 1

	mu       sync.Mutex
	webhooks map[string]struct{}
	changed  map[string]struct{}
}

func newQueued() *queued {
	return &queued{wake: make(chan struct{}, 1), webhooks: make(map[string]struct{}), changed: make(map[string]struct{})}
}

func (q *queued) add(webhooks, changed []string) {
	if len(webhooks) == 0 && len(changed) == 0 {
		return
	}
	q.mu.Lock()
	for _, id := range webhooks {
		q.webhooks[id] = struct{}{}
	}
	for _, id := range changed {
		q.changed[id] = struct{}{}
	}
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}
