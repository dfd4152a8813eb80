package load

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ledgerd/ledgerd/client"
)

// Run has clients send requests to the server at url until ctx is done. They go on while
// the server is down. Each waits for pause after a request.
func (l *Load) Run(ctx context.Context, url string, clients int, pause time.Duration) error {
	c, err := client.New(url, client.Options{Token: l.Token, HTTPClient: l.client})
	if err != nil {
		return err
	}
	errs := make([]error, clients)
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			for ctx.Err() == nil && errs[i] == nil {
				errs[i] = l.send(context.WithoutCancel(ctx), c)
				time.Sleep(pause)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
